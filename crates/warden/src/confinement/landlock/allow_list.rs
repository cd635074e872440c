//! Read allow-list: everything on this machine except the service's own files.
//!
//! Landlock has no deny rules. So the list consists of siblings: in each folder on the way to a hidden path,
//! every other entry is allowed. An entry that is created in such a folder later is not on the list until the
//! change of the folder is noticed and the list is rebuilt.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, FileType, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::geteuid;

use super::AllowedPath;
use crate::confinement::service_folders::is_copy_name;

/// Folder of the devices. Only root can open those through which every file of the machine can be read: block devices,
/// and the following.
const DEVICES_FOLDER: &str = "/dev";
/// Devices of memory and ports, and character devices of disks, by the letters before their number.
const RAW_DEVICES: [&str; 10] =
    ["mem", "kmem", "port", "sg", "bsg", "nvme", "ng", "raw", "mtd", "ubi"];

/// Greatest number of links that are followed to resolve a path.
const MAX_LINKS: u32 = 40;

/// Paths that no confined program may read, and the allow-list that omits them.
#[derive(Debug, Default)]
pub struct AllowList {
    hidden_paths: Vec<PathBuf>,
    readable_paths: Arc<ReadablePaths>,
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
        let readable = Arc::new(ReadablePaths::from_hidden_paths(&hidden));
        Self { hidden_paths: hidden, readable_paths: readable }
    }

    /// Returns the list if no folder has changed since its creation; needs one `lstat` per folder.
    #[must_use]
    pub fn paths_if_current(&self) -> Option<Arc<ReadablePaths>> {
        self.readable_paths.is_current().then(|| Arc::clone(&self.readable_paths))
    }

    /// Returns the present list; rebuilds it if a folder has changed, which may block.
    pub fn refresh_paths(&mut self) -> Arc<ReadablePaths> {
        if !self.readable_paths.is_current() {
            self.readable_paths = Arc::new(ReadablePaths::from_hidden_paths(&self.hidden_paths));
        }
        Arc::clone(&self.readable_paths)
    }
}

impl ReadablePaths {
    fn from_hidden_paths(hidden: &[PathBuf]) -> Self {
        let (mut resolved, mut readable) = (BTreeSet::new(), Self::default());
        for path in hidden {
            // A replaced link hides another file from then on, so its state is recorded before the link is read.
            parents_of_traversed_links(path)
                .iter()
                .for_each(|folder| readable.record_state(folder));
            resolved.insert(resolve(path));
        }
        readable.add_folder(Path::new("/"), &resolved);
        readable
    }

    /// Adds the entries of a folder, and descends into those that lead to a hidden path.
    fn add_folder(&mut self, folder: &Path, hidden: &BTreeSet<PathBuf>) {
        self.record_state(folder);
        let has_devices = may_contain_raw_devices(folder);
        let hidden_files: Vec<_> =
            hidden.iter().filter(|path| path.parent() == Some(folder) && path.is_file()).collect();
        let is_copy_of_hidden = |name: &OsStr| {
            hidden_files
                .iter()
                .any(|file| file.file_name().is_some_and(|original| is_copy_name(name, original)))
        };
        // A folder that cannot be listed cannot be allowed either.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // A link needs no rule: the rule for its target decides.
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            let is_raw_device = || has_devices && is_raw_device(kind, &entry.file_name());
            if kind.is_symlink()
                || hidden.contains(&path)
                || kind.is_file() && is_copy_of_hidden(&entry.file_name())
                || is_raw_device()
            {
                continue;
            }
            let next_hidden = hidden.range(path.clone()..).next();
            let leads_to_hidden =
                next_hidden.is_some_and(|hidden_path| hidden_path.starts_with(&path));
            if leads_to_hidden || kind.is_dir() && may_contain_raw_devices(&path) {
                self.add_folder(&path, hidden);
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

    /// Returns true if no folder has changed since it was listed.
    fn is_current(&self) -> bool {
        let is_same = |(folder, recorded): &(PathBuf, FolderState)| {
            fs::symlink_metadata(folder)
                .is_ok_and(|metadata| FolderState::from_metadata(&metadata) == *recorded)
        };
        !self.folder_states.is_empty() && self.folder_states.iter().all(is_same)
    }

    /// Opens the entries. An entry that no longer exists or cannot be opened is skipped, which allows less.
    pub(in crate::confinement::landlock) fn open_entries(
        &self,
    ) -> impl Iterator<Item = AllowedPath> {
        let flags = libc::O_PATH | libc::O_NOFOLLOW;
        self.entries.iter().filter_map(move |path| AllowedPath::open_with_flags(path, flags).ok())
    }
}

/// Returns true for the folder of the devices and for folders of its file system, if this process may open every
/// device. Other file systems that are mounted there (terminals, shared memory) contain no devices of disks.
fn may_contain_raw_devices(folder: &Path) -> bool {
    let device = |path: &Path| fs::symlink_metadata(path).map(|metadata| metadata.dev()).ok();
    geteuid().is_root()
        && folder.starts_with(DEVICES_FOLDER)
        && device(folder).is_some_and(|own| Some(own) == device(Path::new(DEVICES_FOLDER)))
}

/// Returns true for a device through which files can be read without regard to their modes and rules.
fn is_raw_device(kind: FileType, name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let is_empty_or_numbered =
        |rest: &str| rest.is_empty() || rest.starts_with(|first: char| first.is_ascii_digit());
    let is_listed = |raw: &&str| name.strip_prefix(*raw).is_some_and(is_empty_or_numbered);
    kind.is_block_device() || RAW_DEVICES.iter().any(is_listed)
}

/// Returns the folders whose links lead to a path.
fn parents_of_traversed_links(path: &Path) -> Vec<PathBuf> {
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
    let resolved = found.and_then(|(ancestor, canonical)| {
        let missing_part = path.strip_prefix(ancestor).ok()?;
        // `join` with an empty path adds a slash, and no file has a slash at its end.
        let is_complete = missing_part.as_os_str().is_empty();
        Some(if is_complete { canonical } else { canonical.join(missing_part) })
    });
    resolved.unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Creates a folder with `state/ledger`, `state/homes/a`, `config/supervisor.toml` and files beside them.
    fn create_test_tree() -> (tempfile::TempDir, PathBuf) {
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
        let (_folder, root) = create_test_tree();
        let hidden = ["state", "config/supervisor.toml"].map(|name| root.join(name)).to_vec();
        fs::write(root.join("config/supervisor.toml.bak"), "a copy").unwrap();
        let list = AllowList::new(hidden).refresh_paths();
        assert_eq!(entries_below(&list, &root), ["config/beside", "file", "other"]);
        let is_parent_allowed =
            root.ancestors().skip(1).any(|parent| list.entries.iter().any(|it| it == parent));
        assert!(!is_parent_allowed, "a folder above a hidden path is allowed as a whole");
    }

    /// The default runtime folder of root lies below `/dev`.
    #[test]
    fn a_hidden_path_below_dev_opens_no_disk() {
        let hidden = tempfile::tempdir_in("/dev/shm").unwrap();
        let list = AllowList::new(vec![hidden.path().canonicalize().unwrap()]).refresh_paths();
        let is_block_device = |path: &&PathBuf| {
            fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
        };
        let disks: Vec<_> = list.entries.iter().filter(is_block_device).collect();
        assert!(!geteuid().is_root() || disks.is_empty(), "{disks:?}");
        let is_raw =
            |path: &&PathBuf| ["/dev/mem", "/dev/port"].iter().any(|raw| **path == *Path::new(raw));
        let raw: Vec<_> = list.entries.iter().filter(is_raw).collect();
        assert!(!geteuid().is_root() || raw.is_empty(), "{raw:?}");
        assert!(list.entries.iter().any(|path| path == Path::new("/dev/null")), "{list:?}");
        assert!(!list.entries.iter().any(|path| path.starts_with(hidden.path())), "{list:?}");
    }

    #[test]
    fn devices_of_disks_are_known_by_name() {
        let file = tempfile::tempfile().unwrap().metadata().unwrap().file_type();
        for name in ["mem", "sg0", "nvme0", "nvme0n1", "ng0n1", "bsg", "mtd0ro", "raw"] {
            assert!(is_raw_device(file, OsStr::new(name)), "{name}");
        }
        for name in ["memory", "sgx_enclave", "null", "nvidia0", "ngx", "tty1", "sg_"] {
            assert!(!is_raw_device(file, OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_link_to_a_hidden_path_allows_nothing() {
        let (_folder, root) = create_test_tree();
        symlink(root.join("state"), root.join("way")).unwrap();
        symlink(&root, root.join("other/up")).unwrap();
        let list = AllowList::new(vec![root.join("way/ledger")]).refresh_paths();
        assert_eq!(entries_below(&list, &root), ["config", "file", "other", "state/homes"]);
    }

    #[test]
    fn a_missing_hidden_path_stays_hidden_when_it_is_created() {
        let (_folder, root) = create_test_tree();
        let mut list = AllowList::new(vec![root.join("config/token")]);
        fs::write(root.join("config/token"), "secret").unwrap();
        fs::write(root.join("config/new"), "text").unwrap();
        let entries = entries_below(&list.refresh_paths(), &root);
        assert!(entries.contains(&"config/new".to_owned()), "{entries:?}");
        assert!(!entries.contains(&"config/token".to_owned()), "{entries:?}");
    }

    #[test]
    fn the_allow_list_is_rebuilt_only_after_a_change() {
        let (_folder, root) = create_test_tree();
        let secret = root.join("config/key");
        symlink("../state/ledger", &secret).unwrap();
        let mut list = AllowList::new(vec![secret.clone()]);
        let first = list.refresh_paths();
        assert!(Arc::ptr_eq(&first, &list.refresh_paths()));
        // As with a renewed certificate: first another file, then the link to it.
        fs::write(root.join("other/deep/renewed"), "key").unwrap();
        fs::remove_file(&secret).unwrap();
        symlink("../other/deep/renewed", &secret).unwrap();
        let second = list.refresh_paths();
        assert!(!entries_below(&second, &root).contains(&"other/deep/renewed".to_owned()));
        assert!(!entries_below(&second, &root).contains(&"other".to_owned()));
    }
}
