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
use super::path_components::PathRoute;
use crate::config::Settings;

/// Identity that distinguishes a file from another one at the same path.
type FileIdentity = (u64, u64);

/// Watches on the places that lead to the files of the configuration.
#[derive(Debug, Default)]
pub(crate) struct ModeWatcher {
    queue: Option<Inotify>,
    /// Folders that are watched.
    folders: HashMap<WatchDescriptor, PathBuf>,
    /// Watched places, with the identities of their files.
    places: HashMap<PathBuf, FileIdentity>,
}

impl ModeWatcher {
    /// Starts watching. A place that an agent of this user cannot change is omitted.
    pub(crate) fn of(settings: &Settings, file: Option<&Path>) -> Self {
        let routes = configuration_paths(settings, file);
        // A file with the value of a variable selects no program, and operators write such files in place.
        let presets = &settings.server.configuration.presets;
        let values = settings.files.iter().filter(|path| !path.starts_with(presets));
        let values: HashSet<_> = values.map(PathBuf::as_path).collect();
        let routes =
            routes.iter().filter(|(_, path)| !values.contains(path) || Some(*path) == file);
        let routes = routes.filter_map(|(_, path)| PathRoute::to(path).ok());
        let own = routes.flat_map(|PathRoute(places)| places).filter(|place| {
            let user = geteuid();
            user.is_root() || place.data.uid() == user.as_raw()
        });
        let places = own.map(|place| (place.path, (place.data.dev(), place.data.ino()))).collect();
        Self::watch(places).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot watch the modes of the configuration");
            Self::default()
        })
    }

    fn watch(places: HashMap<PathBuf, FileIdentity>) -> nix::Result<Self> {
        // Non-blocking, because the queue is emptied by a check that must not wait.
        let queue = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        let flags = AddWatchFlags::IN_ATTRIB | AddWatchFlags::IN_ONLYDIR;
        // The watch on a folder reports its entries with their names.
        let above: HashSet<_> = places.keys().filter_map(|place| place.parent()).collect();
        let mut folders = HashMap::new();
        for folder in above {
            match queue.add_watch(folder, flags) {
                Ok(watch) => _ = folders.insert(watch, folder.to_owned()),
                // An agent that cannot read the folder changes nothing in it either.
                Err(Errno::EACCES | Errno::ENOENT | Errno::ENOTDIR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { queue: Some(queue), folders, places })
    }

    /// Returns a place whose mode or owner changed since the last call. A file that replaced the watched one does not
    /// count: editors set the mode of the file that they write.
    pub(crate) fn changed_path(&self) -> Option<PathBuf> {
        let mut seen = None;
        while let Some(Ok(events)) = self.queue.as_ref().map(Inotify::read_events) {
            for event in events {
                if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                    seen = seen.or_else(|| self.places.keys().next().cloned());
                    continue;
                }
                let (folder, name) = (self.folders.get(&event.wd), event.name);
                let place = folder.zip(name).map(|(folder, name)| folder.join(name));
                seen = seen.or_else(|| place.filter(|place| self.is_watched(place)));
            }
        }
        seen
    }

    fn is_watched(&self, place: &Path) -> bool {
        let now = fs::symlink_metadata(place).ok().map(|data| (data.dev(), data.ino()));
        self.places.get(place).is_some_and(|then| now.is_none_or(|now| now == *then))
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
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
        };
        mode(&file, 0o600);
        let places = [&file, &folder.path().to_owned()].map(|path| (path.clone(), identity(path)));
        let watcher = ModeWatcher::watch(places.into()).expect("watches");
        fs::write(&file, "two").expect("a file");
        fs::write(folder.path().join("other"), "").expect("a file");
        mode(&folder.path().join("other"), 0o666);
        assert_eq!(watcher.changed_path(), None);
        mode(&file, 0o666);
        mode(&file, 0o600);
        assert_eq!((watcher.changed_path(), watcher.changed_path()), (Some(file.clone()), None));
        mode(folder.path(), 0o777);
        mode(folder.path(), 0o700);
        assert_eq!(watcher.changed_path().as_deref(), Some(folder.path()));
        let replacement = folder.path().join("beside");
        fs::write(&replacement, "three").expect("a file");
        fs::rename(&replacement, &file).expect("a file");
        mode(&file, 0o640);
        assert_eq!(watcher.changed_path(), None);
    }
}
