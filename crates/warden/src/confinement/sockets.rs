//! Sockets of other programs through which a program can be started outside of every sandbox.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, User, access, geteuid};

/// Sockets in the runtime folder of a user: the session bus and the service manager, which start units, and container
/// engines.
const USER_SOCKETS: [&str; 7] = [
    "bus",
    "systemd/private",
    "podman/podman.sock",
    "docker.sock",
    "buildkit/buildkitd.sock",
    "containerd/containerd.sock",
    "libvirt/libvirt-sock",
];
/// Folders of sockets in the runtime folder of a user: editors and terminals that execute commands.
const USER_SOCKET_FOLDERS: [&str; 3] = ["emacs", "wezterm", "containerd-rootless"];
/// Sockets in the home of a user.
const HOME_SOCKETS: [&str; 3] =
    [".docker/run/docker.sock", ".docker/desktop/docker.sock", ".colima/default/docker.sock"];
/// Sockets of engines of the machine: containers and virtual machines.
const ENGINE_SOCKETS: [&str; 9] = [
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/buildkit/buildkitd.sock",
    "/run/libvirt/libvirt-sock",
    "/var/lib/lxd/unix.socket",
    "/var/lib/incus/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
];
/// Sockets of the machine's service manager, which executes requests of root.
const ROOT_SOCKETS: [&str; 2] = ["/run/systemd/private", "/run/dbus/system_bus_socket"];
/// Folder of the sockets of displays: a client of one can type into the windows of the others.
const DISPLAY_SOCKET_FOLDER: &str = "/tmp/.X11-unix";

/// Returns the sockets that exist here and accept connections of this user. `env` returns variables with the locations
/// for some programs.
#[must_use]
pub fn reachable_escape_sockets(env: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let uid = geteuid();
    let mut candidates: Vec<PathBuf> = ENGINE_SOCKETS.map(PathBuf::from).to_vec();
    let folder_from_env =
        |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let default_runtime = PathBuf::from(format!("/run/user/{uid}"));
    for runtime in folder_from_env("XDG_RUNTIME_DIR").iter().chain([&default_runtime]) {
        candidates.extend(USER_SOCKETS.iter().map(|name| runtime.join(name)));
        candidates
            .extend(USER_SOCKET_FOLDERS.iter().flat_map(|name| list_folder(&runtime.join(name))));
        candidates.extend(list_folder(runtime).into_iter().filter(|path| is_editor_socket(path)));
    }
    if let Some(home) = folder_from_env("HOME") {
        candidates.extend(HOME_SOCKETS.iter().map(|name| home.join(name)));
        candidates.extend(list_folder(&home.join(".screen")));
    }
    for tmux_parent in folder_from_env("TMUX_TMPDIR").into_iter().chain([PathBuf::from("/tmp")]) {
        candidates.extend(list_folder(&tmux_parent.join(format!("tmux-{uid}"))));
    }
    if let Some(name) = User::from_uid(uid).ok().flatten().map(|user| user.name) {
        candidates.extend(list_folder(&Path::new("/run/screen").join(format!("S-{name}"))));
    }
    candidates.extend(list_folder(Path::new(DISPLAY_SOCKET_FOLDER)));
    candidates.extend(engine_socket(env("DOCKER_HOST")));
    if uid.is_root() {
        candidates.extend(ROOT_SOCKETS.map(PathBuf::from));
    }
    candidates.retain(|path| is_reachable(path));
    candidates.sort();
    candidates.dedup();
    candidates
}

/// Returns the socket of a container engine that `DOCKER_HOST` names.
fn engine_socket(host: Option<OsString>) -> Option<PathBuf> {
    Some(PathBuf::from(OsStr::from_bytes(host?.as_bytes().strip_prefix(b"unix://")?)))
}

/// Returns true for a socket of Visual Studio Code, which executes commands of every client.
fn is_editor_socket(socket: &Path) -> bool {
    socket.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vscode-"))
}

fn list_folder(folder: &Path) -> Vec<PathBuf> {
    let dir_entries = fs::read_dir(folder).into_iter().flatten();
    dir_entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn is_reachable(path: &Path) -> bool {
    let is_socket = fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    is_socket && access(path, AccessFlags::W_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn sockets_that_start_programs_are_found_by_environment() {
        let folder = tempfile::tempdir().expect("a folder");
        let tmux = format!("tmux/tmux-{}/default", geteuid());
        let names = [
            ".docker/run/docker.sock",
            ".screen/1.session",
            "engine.sock",
            "run/bus",
            "run/emacs/server",
            "run/vscode-1.sock",
            &tmux,
        ];
        let sockets = names.map(|name| folder.path().join(name));
        let open = |path: &Path| {
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            UnixListener::bind(path).expect("a socket")
        };
        let _open = sockets.each_ref().map(|path| open(path));
        let _harmless = open(&folder.path().join("run/ssh-agent"));
        fs::write(folder.path().join("run/emacs/file"), "").expect("a file");
        let env = |name: &str| {
            let value = match name {
                "HOME" => folder.path().to_owned(),
                "XDG_RUNTIME_DIR" => folder.path().join("run"),
                "TMUX_TMPDIR" => folder.path().join("tmux"),
                "DOCKER_HOST" => {
                    return Some(format!("unix://{}/engine.sock", folder.path().display()).into());
                }
                _ => return None,
            };
            Some(value.into_os_string())
        };
        let mut found = reachable_escape_sockets(&env);
        found.retain(|path| path.starts_with(folder.path()));
        assert_eq!(found, sockets);
    }

    #[test]
    fn a_socket_in_another_encoding_is_found() {
        let host = OsString::from_vec(b"unix:///run/caf\xe9.sock".to_vec());
        let socket = OsString::from_vec(b"/run/caf\xe9.sock".to_vec());
        assert_eq!(engine_socket(Some(host)), Some(PathBuf::from(socket)));
        assert_eq!(engine_socket(Some("tcp://127.0.0.1".into())), None);
    }
}
