//! Read allow-list: everything on this machine except the service's own files.
//!
//! Landlock has no deny rules. So the list consists of siblings: in each folder on the way to a hidden path,
//! every other entry is allowed. An entry that is created in such a folder later is not on the list until the
//! change of the folder is noticed and the list is rebuilt.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::geteuid;

use super::AllowedPath;

/// Folder of the devices. Its block devices and memory devices give access to every file of the machine, and only root
/// can open them.
const DEVICES_FOLDER: &str = "/dev";
const MEMORY_DEVICES: [&str; 3] = ["mem", "kmem", "port"];

/// Greatest number of links that are followed to resolve a path.
const MAX_LINKS: u32 = 40;

/// Paths that no confined program may read, and the allow-list that omits them.
#[derive(Debug, Default)]
pub struct AllowList {
    hidden: Vec<PathBuf>,
    readable: Arc<ReadablePaths>,
}

/// Files and folders that may be read: siblings of the hidden paths.
#[derive(Debug, PartialEq, Eq, Default)]
pub struct ReadablePaths {
    entries: Vec<PathBuf>,
    /// Folders that were listed, with their state at that time.
    folder_states: Vec<(PathBuf, FolderState)>,
}

/// State of a folder; a different state means that an entry was added, removed or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FolderState {
    device: u64,
    inode: u64,
    change_time: (i64, i64),
}

impl FolderState {
    fn from_metadata(metadata: &Metadata) -> Self {
        let change_time = (metadata.ctime(), metadata.ctime_nsec());
        Self { device: metadata.dev(), inode: metadata.ino(), change_time }
    }
}

impl AllowList {
    /// Returns a list that omits these absolute paths and all below them. Lists folders, so it may block.
    #[must_use]
    pub fn new(hidden: Vec<PathBuf>) -> Self {
        let readable = Arc::new(ReadablePaths::without(&hidden));
        Self { hidden, readable }
    }

    /// Returns the list if no folder has changed since its creation; needs one `lstat` per folder.
    #[must_use]
    pub fn cached(&self) -> Option<Arc<ReadablePaths>> {
        self.readable.is_current().then(|| Arc::clone(&self.readable))
    }

    /// Returns the present list; rebuilds it if a folder has changed, which may block.
    pub fn current(&mut self) -> Arc<ReadablePaths> {
        if !self.readable.is_current() {
            self.readable = Arc::new(ReadablePaths::without(&self.hidden));
        }
        Arc::clone(&self.readable)
    }
}

impl ReadablePaths {
    fn without(hidden: &[PathBuf]) -> Self {
        let (mut resolved, mut readable) = (BTreeSet::new(), Self::default());
        for path in hidden {
            // A replaced link hides another file from then on, so its state is recorded before the link is read.
            link_folders(path).iter().for_each(|folder| readable.record_state(folder));
            resolved.insert(resolve(path));
        }
        readable.add_folder(Path::new("/"), &resolved);
        readable
    }

    /// Adds the entries of a folder, and descends into those that lead to a hidden path.
    fn add_folder(&mut self, folder: &Path, hidden: &BTreeSet<PathBuf>) {
        self.record_state(folder);
        // A folder that cannot be listed cannot be allowed either.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // A link needs no rule: the rule for its target decides.
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_symlink() || hidden.contains(&path) {
                continue;
            }
            let next_hidden = hidden.range(path.clone()..).next();
            if next_hidden.is_some_and(|hidden_path| hidden_path.starts_with(&path)) {
                self.add_folder(&path, hidden);
            } else if path == Path::new(DEVICES_FOLDER) && geteuid().is_root() {
                self.add_devices(&path);
            } else {
                self.entries.push(path);
            }
        }
    }

    /// Records the state of a folder before its entries are read, so that a change in between is noticed.
    fn record_state(&mut self, folder: &Path) {
        if let Ok(metadata) = fs::symlink_metadata(folder) {
            self.folder_states.push((folder.to_owned(), FolderState::from_metadata(&metadata)));
        }
    }

    /// Adds the devices except those through which every file can be read.
    fn add_devices(&mut self, folder: &Path) {
        self.record_state(folder);
        let is_memory_device = |name: &OsStr| MEMORY_DEVICES.iter().any(|memory| name == *memory);
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if !kind.is_symlink()
                && !kind.is_block_device()
                && !is_memory_device(&entry.file_name())
            {
                self.entries.push(entry.path());
            }
        }
    }

    /// Returns true if no folder has changed since it was listed.
    fn is_current(&self) -> bool {
        let is_same = |(folder, recorded): &(PathBuf, FolderState)| {
            fs::symlink_metadata(folder)
                .is_ok_and(|metadata| FolderState::from_metadata(&metadata) == *recorded)
        };
        !self.folder_states.is_empty() && self.folder_states.iter().all(is_same)
    }

    /// Opens the entries. An entry that no longer exists or cannot be opened is skipped, which allows less.
    pub(in crate::confinement::landlock) fn open(&self) -> impl Iterator<Item = AllowedPath> {
        let flags = libc::O_PATH | libc::O_NOFOLLOW;
        self.entries.iter().filter_map(move |path| AllowedPath::open_with(path, flags).ok())
    }
}

/// Returns the folders whose links lead to a path.
fn link_folders(path: &Path) -> Vec<PathBuf> {
    let (mut folders, mut current) = (Vec::new(), path.to_owned());
    for _ in 0..MAX_LINKS {
        let Some(link) = current.ancestors().filter(|ancestor| ancestor.is_symlink()).last() else {
            break;
        };
        let Some(Ok(folder)) = link.parent().map(Path::canonicalize) else { break };
        let Ok(target) = link.read_link() else { break };
        let rest = current.strip_prefix(link).unwrap_or(Path::new("")).to_owned();
        current = folder.join(target).join(rest);
        folders.push(folder);
    }
    folders
}

/// Resolves a path to one without links. A path that does not exist yet is resolved in
/// its deepest existing folder.
fn resolve(path: &Path) -> PathBuf {
    let found =
        path.ancestors().find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    let resolved = found
        .and_then(|(ancestor, canonical)| Some(canonical.join(path.strip_prefix(ancestor).ok()?)));
    resolved.unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Creates a folder with `state/ledger`, `state/homes/a`, `config/supervisor.toml` and files beside them.
    fn tree() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["state/homes/a", "config", "other/deep"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["state/ledger", "config/supervisor.toml", "config/beside", "file"] {
            fs::write(root.join(name), "text").unwrap();
        }
        (folder, root)
    }

    /// Returns the entries below a folder, relative to it.
    fn entries_below(list: &ReadablePaths, root: &Path) -> Vec<String> {
        let below = list.entries.iter().filter_map(|path| path.strip_prefix(root).ok());
        let mut below: Vec<_> = below.map(|path| path.display().to_string()).collect();
        below.sort();
        below
    }

    #[test]
    fn siblings_of_hidden_paths_are_allowed() {
        let (_folder, root) = tree();
        let hidden = ["state", "config/supervisor.toml"].map(|name| root.join(name)).to_vec();
        let list = AllowList::new(hidden).current();
        assert_eq!(entries_below(&list, &root), ["config/beside", "file", "other"]);
        let is_parent_allowed =
            root.ancestors().skip(1).any(|parent| list.entries.iter().any(|it| it == parent));
        assert!(!is_parent_allowed, "a folder above a hidden path is allowed as a whole");
    }

    #[test]
    fn a_link_to_a_hidden_path_allows_nothing() {
        let (_folder, root) = tree();
        symlink(root.join("state"), root.join("way")).unwrap();
        symlink(&root, root.join("other/up")).unwrap();
        let list = AllowList::new(vec![root.join("way/ledger")]).current();
        assert_eq!(entries_below(&list, &root), ["config", "file", "other", "state/homes"]);
    }

    #[test]
    fn a_missing_hidden_path_stays_hidden_when_it_is_created() {
        let (_folder, root) = tree();
        let mut list = AllowList::new(vec![root.join("config/token")]);
        fs::write(root.join("config/token"), "secret").unwrap();
        fs::write(root.join("config/new"), "text").unwrap();
        let entries = entries_below(&list.current(), &root);
        assert!(entries.contains(&"config/new".to_owned()), "{entries:?}");
        assert!(!entries.contains(&"config/token".to_owned()), "{entries:?}");
    }

    #[test]
    fn the_allow_list_is_rebuilt_only_after_a_change() {
        let (_folder, root) = tree();
        let secret = root.join("config/key");
        symlink("../state/ledger", &secret).unwrap();
        let mut list = AllowList::new(vec![secret.clone()]);
        let first = list.current();
        assert!(Arc::ptr_eq(&first, &list.current()));
        // As with a renewed certificate: first another file, then the link to it.
        fs::write(root.join("other/deep/renewed"), "key").unwrap();
        fs::remove_file(&secret).unwrap();
        symlink("../other/deep/renewed", &secret).unwrap();
        let second = list.current();
        assert!(!entries_below(&second, &root).contains(&"other/deep/renewed".to_owned()));
        assert!(!entries_below(&second, &root).contains(&"other".to_owned()));
    }
}
