//! Sees that files of the configuration have changed.
//!
//! Files are looked at again and again rather than waited for: that also sees a file that is replaced,
//! a link that leads elsewhere, and a file on another machine, and costs a few calls a second.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;

use crate::config::{Settings, Source};

/// Tells one content of a file from another; `None` where there is no file.
type Mark = Option<(u64, u64, u64, i64, i64)>;

/// The files of the configuration, and how they were when it was last read.
#[derive(Debug, Clone, Default)]
pub(super) struct Sight {
    config: Option<PathBuf>,
    read: Vec<(PathBuf, Mark)>,
    /// As they looked the last time.
    looked: Vec<(PathBuf, Mark)>,
}

impl Sight {
    /// The files of settings that were read from there.
    pub(super) fn of(source: &Source, settings: &Settings) -> Self {
        let mut sight = Self { config: source.file().map(Path::to_owned), ..Self::default() };
        sight.reading(Vec::new());
        sight.known(settings.files.iter().chain([&settings.server.token_file]).cloned());
        sight
    }

    /// The files are read from now on, as they are now.
    pub(super) fn begin(&mut self) {
        let files = self.read.drain(..).map(|(file, _)| file).collect();
        self.reading(files);
    }

    fn reading(&mut self, files: Vec<PathBuf>) {
        let config = self.config.iter().filter(|config| !files.contains(config)).cloned();
        self.read = marks(config.chain(files.iter().cloned()).collect());
        self.looked.clone_from(&self.read);
    }

    /// These are what the configuration names. What was read before keeps its mark of then.
    pub(super) fn known(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        if self.config.is_none() {
            return; // Nothing is read again.
        }
        let before = std::mem::take(&mut self.read);
        let all: Vec<_> = self.config.iter().cloned().chain(files).collect();
        for (file, now) in marks(all) {
            let then = before.iter().find(|(known, _)| *known == file).map(|(_, then)| *then);
            if !self.read.iter().any(|(known, _)| *known == file) {
                self.read.push((file, then.unwrap_or(now)));
            }
        }
        self.looked.clone_from(&self.read);
    }

    /// Looks. Whether a file is other than it was read, and is as it was a look ago: whoever writes
    /// several, or one slowly, is given that time.
    pub(super) async fn has_changed(&mut self) -> bool {
        let files: Vec<_> = self.read.iter().map(|(file, _)| file.clone()).collect();
        let Ok(now) = spawn_blocking(move || marks(files)).await else { return false };
        let is_still = now == self.looked;
        self.looked = now;
        is_still && self.looked != self.read
    }
}

fn marks(files: Vec<PathBuf>) -> Vec<(PathBuf, Mark)> {
    let mark = |file: PathBuf| {
        let mark = mark(&file);
        (file, mark)
    };
    files.into_iter().map(mark).collect()
}

fn mark(file: &Path) -> Mark {
    let data = fs::metadata(file).ok()?;
    Some((data.dev(), data.ino(), data.size(), data.ctime(), data.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_changes_is_seen_once_it_is_still() {
        let folder = tempfile::tempdir().expect("a folder");
        let (config, secret) = (folder.path().join("config"), folder.path().join("secret"));
        fs::write(&config, "one").expect("a file");
        let mut sight = Sight { config: Some(config.clone()), ..Sight::default() };
        sight.reading(Vec::new());
        sight.known([secret.clone()]);
        assert!(!sight.has_changed().await && !sight.has_changed().await);
        fs::write(&secret, "two").expect("a file");
        assert!(!sight.has_changed().await, "seen while it is written");
        assert!(sight.has_changed().await);
        sight.begin();
        assert!(!sight.has_changed().await && !sight.has_changed().await);
        let beside = folder.path().join("beside");
        fs::write(&beside, "one").expect("a file");
        fs::rename(&beside, &config).expect("another file");
        assert!(!sight.has_changed().await);
        fs::write(&secret, "three").expect("a file");
        assert!(!sight.has_changed().await, "seen while another is written");
        assert!(sight.has_changed().await);
    }
}
