//! Detection of changed configuration files.
//!
//! Files are polled, because that also detects a replaced file, a changed link, and a file on another machine, at the
//! cost of a few system calls.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tokio::task::{JoinError, spawn_blocking};

use crate::config::{ConfigFaults, ConfigSource, LoadedConfig, Settings};

/// Identity of a file's content; `None` if there is no file.
type FileState = Option<(u64, u64, u64, i64, i64)>;

/// Source of the configuration, with a watcher of its files.
pub(super) struct ConfigFiles {
    source: ConfigSource,
    watcher: FileWatcher,
}

impl ConfigFiles {
    /// Returns the files of settings from this source.
    pub(super) fn new(source: ConfigSource, settings: &Settings) -> Self {
        Self { watcher: FileWatcher::new(&source, settings), source }
    }

    /// Returns the source of the configuration.
    pub(super) const fn source(&self) -> &ConfigSource {
        &self.source
    }

    /// Reads the configuration again. Every change from now on counts as a change after this reading.
    ///
    /// # Errors
    /// Fails if the reading panicked; the inner error reports an invalid configuration.
    pub(super) async fn read(&mut self) -> Result<Result<LoadedConfig, ConfigFaults>, JoinError> {
        // The states are recorded first: a file that is written while it is read must be read again.
        self.record_states();
        let source = self.source.clone();
        spawn_blocking(move || source.read()).await
    }

    /// Records the present states of the files.
    pub(super) fn record_states(&mut self) {
        self.watcher.record_states();
    }

    /// Sets the files that the configuration names.
    pub(super) fn set_files(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        self.watcher.set_files(files);
    }

    /// Returns true if a file has changed since it was read, and is not being written.
    pub(super) async fn poll_for_change(&mut self) -> bool {
        self.watcher.poll_for_change().await
    }
}

/// Configuration files, with their states at the time of the last reading.
#[derive(Debug, Clone, Default)]
struct FileWatcher {
    config_file: Option<PathBuf>,
    states_at_reading: Vec<(PathBuf, FileState)>,
    /// States at the time of the latest poll.
    states_at_poll: Vec<(PathBuf, FileState)>,
}

impl FileWatcher {
    /// Returns a watcher of the files of settings from this source.
    fn new(source: &ConfigSource, settings: &Settings) -> Self {
        let mut watcher =
            Self { config_file: source.file().map(Path::to_owned), ..Self::default() };
        watcher.reset_states(Vec::new());
        watcher.set_files(
            settings.referenced_files.iter().chain([&settings.server.token_file]).cloned(),
        );
        watcher
    }

    /// Records the present states of the files before they are read.
    fn record_states(&mut self) {
        let files = self.states_at_reading.drain(..).map(|(file, _)| file).collect();
        self.reset_states(files);
    }

    fn reset_states(&mut self, files: Vec<PathBuf>) {
        let config_file =
            self.config_file.iter().filter(|config_file| !files.contains(config_file)).cloned();
        self.states_at_reading = file_states(config_file.chain(files.iter().cloned()).collect());
        self.states_at_poll.clone_from(&self.states_at_reading);
    }

    /// Sets the files that the configuration names. A file that was known keeps its earlier state.
    fn set_files(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        if self.config_file.is_none() {
            return; // A source without a file is never read again.
        }
        let before = std::mem::take(&mut self.states_at_reading);
        let all: Vec<_> = self.config_file.iter().cloned().chain(files).collect();
        for (file, current) in file_states(all) {
            let earlier =
                before.iter().find(|(known, _)| *known == file).map(|(_, earlier)| *earlier);
            if !self.states_at_reading.iter().any(|(known, _)| *known == file) {
                self.states_at_reading.push((file, earlier.unwrap_or(current)));
            }
        }
        self.states_at_poll.clone_from(&self.states_at_reading);
    }

    /// Polls the files. Returns true if a file differs from its last reading, and has not changed since the previous
    /// poll: a slow write of one or several files gets that time.
    async fn poll_for_change(&mut self) -> bool {
        let files: Vec<_> = self.states_at_reading.iter().map(|(file, _)| file.clone()).collect();
        let Ok(current) = spawn_blocking(move || file_states(files)).await else { return false };
        let is_stable = current == self.states_at_poll;
        self.states_at_poll = current;
        is_stable && self.states_at_poll != self.states_at_reading
    }
}

fn file_states(files: Vec<PathBuf>) -> Vec<(PathBuf, FileState)> {
    let file_with_state = |file: PathBuf| {
        let state = file_state(&file);
        (file, state)
    };
    files.into_iter().map(file_with_state).collect()
}

fn file_state(file: &Path) -> FileState {
    let metadata = fs::metadata(file).ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.size(), metadata.ctime(), metadata.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_changed_file_is_reported_once_it_is_stable() {
        let folder = tempfile::tempdir().expect("a folder");
        let (config, secret) = (folder.path().join("config"), folder.path().join("secret"));
        fs::write(&config, "one").expect("a file");
        let mut watcher =
            FileWatcher { config_file: Some(config.clone()), ..FileWatcher::default() };
        watcher.reset_states(Vec::new());
        watcher.set_files([secret.clone()]);
        assert!(!watcher.poll_for_change().await && !watcher.poll_for_change().await);
        fs::write(&secret, "two").expect("a file");
        assert!(!watcher.poll_for_change().await, "seen while it is written");
        assert!(watcher.poll_for_change().await);
        watcher.record_states();
        assert!(!watcher.poll_for_change().await && !watcher.poll_for_change().await);
        let replacement = folder.path().join("beside");
        fs::write(&replacement, "one").expect("a file");
        fs::rename(&replacement, &config).expect("another file");
        assert!(!watcher.poll_for_change().await);
        fs::write(&secret, "three").expect("a file");
        assert!(!watcher.poll_for_change().await, "seen while another is written");
        assert!(watcher.poll_for_change().await);
    }
}
