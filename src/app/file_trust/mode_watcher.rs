//! Detection of short changes of the mode or the owner of configuration files.
//!
//! Polling the modes every two seconds misses a file that is opened to other users for a moment. A user who opened the
//! file in that moment can still write it later.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use nix::unistd::geteuid;

use super::configuration_paths;
use super::path_components::PathResolution;
use crate::config::Settings;

/// Identity that distinguishes a file from another one at the same path.
type FileIdentity = (u64, u64);

/// Watches on the places that lead to the files of the configuration.
#[derive(Debug, Default)]
pub(crate) struct ModeWatcher {
    inotify: Option<Inotify>,
    /// Folders that are watched.
    watched_folders: HashMap<WatchDescriptor, PathBuf>,
    /// Watched places, with the identities of their files.
    identities: HashMap<PathBuf, FileIdentity>,
}

impl ModeWatcher {
    /// Starts watching. A place that an agent of this user cannot change is omitted.
    pub(crate) fn new(settings: &Settings, config_file: Option<&Path>) -> Self {
        let paths = configuration_paths(settings, config_file);
        // A file with the value of a variable selects no program, and operators write such files in place.
        let presets = &settings.server.configuration.presets_dir;
        let value_files =
            settings.referenced_files.iter().filter(|path| !path.starts_with(presets));
        let value_files: HashSet<_> = value_files.map(PathBuf::as_path).collect();
        let paths = paths
            .iter()
            .filter(|(_, path)| !value_files.contains(path) || Some(*path) == config_file);
        let resolutions = paths.filter_map(|(_, path)| PathResolution::resolve(path).ok());
        let own_components =
            resolutions.flat_map(|PathResolution(components)| components).filter(|component| {
                let uid = geteuid();
                uid.is_root() || component.metadata.uid() == uid.as_raw()
            });
        let identities = own_components
            .map(|component| (component.path, (component.metadata.dev(), component.metadata.ino())))
            .collect();
        Self::watch(identities).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot watch the modes of the configuration");
            Self::default()
        })
    }

    fn watch(identities: HashMap<PathBuf, FileIdentity>) -> nix::Result<Self> {
        // Non-blocking, because the queue is emptied by a check that must not wait.
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        let flags = AddWatchFlags::IN_ATTRIB | AddWatchFlags::IN_ONLYDIR;
        // The watch on a folder reports its entries with their names.
        let parents: HashSet<_> = identities.keys().filter_map(|path| path.parent()).collect();
        let mut watched_folders = HashMap::new();
        for folder in parents {
            match inotify.add_watch(folder, flags) {
                Ok(descriptor) => _ = watched_folders.insert(descriptor, folder.to_owned()),
                // An agent that cannot read the folder changes nothing in it either.
                Err(Errno::EACCES | Errno::ENOENT | Errno::ENOTDIR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { inotify: Some(inotify), watched_folders, identities })
    }

    /// Returns a place whose mode or owner changed since the last call. A file that replaced the watched one does not
    /// count: editors set the mode of the file that they write.
    pub(crate) fn take_changed_path(&self) -> Option<PathBuf> {
        let mut changed_path = None;
        while let Some(Ok(events)) = self.inotify.as_ref().map(Inotify::read_events) {
            for event in events {
                if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                    changed_path = changed_path.or_else(|| self.identities.keys().next().cloned());
                    continue;
                }
                let (folder, name) = (self.watched_folders.get(&event.wd), event.name);
                let path = folder.zip(name).map(|(folder, name)| folder.join(name));
                changed_path = changed_path
                    .or_else(|| path.filter(|path| self.is_watched_and_unreplaced(path)));
            }
        }
        changed_path
    }

    fn is_watched_and_unreplaced(&self, path: &Path) -> bool {
        let current =
            fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        self.identities
            .get(path)
            .is_some_and(|recorded| current.is_none_or(|current| current == *recorded))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn identity(path: &Path) -> FileIdentity {
        let data = fs::symlink_metadata(path).expect("a file");
        (data.dev(), data.ino())
    }

    #[test]
    fn a_short_permission_change_is_seen_but_no_replaced_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "one").expect("a file");
        let set_mode = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
        };
        set_mode(&file, 0o600);
        let identities =
            [&file, &folder.path().to_owned()].map(|path| (path.clone(), identity(path)));
        let watcher = ModeWatcher::watch(identities.into()).expect("watches");
        fs::write(&file, "two").expect("a file");
        fs::write(folder.path().join("other"), "").expect("a file");
        set_mode(&folder.path().join("other"), 0o666);
        assert_eq!(watcher.take_changed_path(), None);
        set_mode(&file, 0o666);
        set_mode(&file, 0o600);
        assert_eq!(
            (watcher.take_changed_path(), watcher.take_changed_path()),
            (Some(file.clone()), None)
        );
        set_mode(folder.path(), 0o777);
        set_mode(folder.path(), 0o700);
        assert_eq!(watcher.take_changed_path().as_deref(), Some(folder.path()));
        let replacement = folder.path().join("beside");
        fs::write(&replacement, "three").expect("a file");
        fs::rename(&replacement, &file).expect("a file");
        set_mode(&file, 0o640);
        assert_eq!(watcher.take_changed_path(), None);
    }
}
