//! Login session of the process. The system removes the runtime folder of a user when the user's last session ends,
//! also while programs of the user run.

use std::fs;
use std::path::Path;

use nix::unistd::{Uid, User, geteuid};

/// Folder with an entry for each user whose services outlive the sessions.
const LINGER_FOLDER: &str = "/var/lib/systemd/linger";

/// Returns true if this process runs in a login session, and the folder is removed when the user has logged out.
#[must_use]
pub(crate) fn is_bound_to_login_session(folder: &Path) -> bool {
    let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    is_in_session_runtime_folder(folder, geteuid(), &cgroups) && !is_linger_enabled(geteuid())
}

/// Returns true if a folder is in the runtime folder of the user, and the process is in a session. A service of the
/// user ends with the last session itself, so its folder is there as long as the service.
fn is_in_session_runtime_folder(folder: &Path, user: Uid, cgroups: &str) -> bool {
    let is_session = |unit: &str| unit.starts_with("session-") && unit.ends_with(".scope");
    let is_in_session = cgroups.lines().flat_map(|line| line.split('/')).any(is_session);
    is_in_session && folder.starts_with(format!("/run/user/{user}"))
}

fn is_linger_enabled(user: Uid) -> bool {
    let user = User::from_uid(user).ok().flatten();
    user.is_some_and(|user| Path::new(LINGER_FOLDER).join(user.name).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_the_session_is_removed_at_logout() {
        let session = "0::/user.slice/user-1000.slice/session-3.scope\n";
        let old_session = "1:name=systemd:/user.slice/user-1000.slice/session-c2.scope\n0::/\n";
        let service = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/algonius.service";
        let runtime_folder = "/run/user/1000/algonius";
        for (folder, cgroups, expected) in [
            (runtime_folder, session, true),
            (runtime_folder, old_session, true),
            (runtime_folder, service, false),
            (runtime_folder, "0::/\n", false),
            (runtime_folder, "", false),
            ("/run/user/1001/algonius", session, false),
            ("/run/user/10001/algonius", session, false),
            ("/dev/shm/algonius-1000", session, false),
        ] {
            let found =
                is_in_session_runtime_folder(Path::new(folder), Uid::from_raw(1000), cgroups);
            assert_eq!(found, expected, "{folder} in {cgroups}");
        }
    }
}
