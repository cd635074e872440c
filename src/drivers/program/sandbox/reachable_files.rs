//! Files of the service that a program with a user of its own can reach.

use algonius_actors::model::program::UnixUser;
use algonius_warden::confinement::path_access::{UserIds, is_reachable_by_user};
use algonius_warden::confinement::service_folders::ProtectedServiceFiles;
use nix::unistd::geteuid;
use tokio::task::spawn_blocking;

/// Removes the files that a user cannot reach, because a folder above them is closed: bubblewrap runs as this user, so
/// it can mount nothing there and would not start.
pub(super) async fn retain_reachable_files(
    files: ProtectedServiceFiles,
    user: Option<UnixUser>,
) -> ProtectedServiceFiles {
    let Some(UnixUser { uid, gid }) = user.filter(|user| user.uid != geteuid().as_raw()) else {
        return files;
    };
    let all_files = files.clone();
    let retained_files = spawn_blocking(move || {
        let ProtectedServiceFiles { mut hidden_paths, mut read_only_paths, config_folder } = files;
        let user = UserIds { uid, gid };
        for list in [&mut hidden_paths, &mut read_only_paths] {
            list.retain(|path| is_reachable_by_user(path, user));
        }
        let config_folder = config_folder.filter(|folder| is_reachable_by_user(folder, user));
        ProtectedServiceFiles { hidden_paths, read_only_paths, config_folder }
    });
    // Only the end of the service cancels the search.
    retained_files.await.unwrap_or(all_files)
}
