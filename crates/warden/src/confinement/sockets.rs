//! Sockets of other programs through which a program can be started outside of every sandbox.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
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
/// Folders of sockets in the runtime folder of a user: editors, terminals and window managers that execute commands.
const USER_SOCKET_FOLDERS: [&str; 6] =
    ["emacs", "wezterm", "containerd-rootless", "zellij", "hypr", "i3"];
/// Starts of the names of sockets, and of folders with sockets, that users' programs create beside other files: Visual
/// Studio Code, Neovim, kitty, the session bus, and window managers.
const SOCKET_NAME_PREFIXES: [&str; 7] =
    ["vscode-", "nvim.", "kitty", "dbus-", "i3-", "niri.", "sway-ipc."];
/// Greatest depth of a socket in such a folder.
const MAX_FOLDER_DEPTH: usize = 2;
/// List of the Unix sockets of a network namespace.
const SOCKET_LIST: &str = "/proc/net/unix";
/// Field of a line of this list with flags in hexadecimal digits.
const SOCKET_FLAGS_FIELD: usize = 3;
/// Flag of a socket that accepts connections (`SO_ACCEPTCON`).
const LISTENING_FLAG: u32 = 0x1_0000;
/// Folder of temporary files, in which programs create sockets if they know no runtime folder.
const TEMPORARY_FOLDER: &str = "/tmp";
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

/// Places of sockets through which a program can be started outside of every sandbox. Without places, no socket is
/// found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EscapeSocketLocations {
    sockets: Vec<PathBuf>,
    /// Folders in which each socket counts.
    socket_folders: Vec<PathBuf>,
    /// Folders in which the entries with a name of `SOCKET_NAME_PREFIXES` count.
    shared_folders: Vec<PathBuf>,
}

impl EscapeSocketLocations {
    /// Returns the places on this machine for the user of this process. `env` returns variables with the locations for
    /// some programs.
    #[must_use]
    pub fn from_env(env: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let uid = geteuid();
        let user_name = User::from_uid(uid).ok().flatten().map(|user| user.name);
        let folder_from_env =
            |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let mut locations = Self::default();
        locations.sockets.extend(ENGINE_SOCKETS.map(PathBuf::from));
        locations.sockets.extend(engine_socket(env("DOCKER_HOST")));
        locations.sockets.extend(session_bus_socket(env("DBUS_SESSION_BUS_ADDRESS")));
        let default_runtime = PathBuf::from(format!("/run/user/{uid}"));
        for runtime in folder_from_env("XDG_RUNTIME_DIR").into_iter().chain([default_runtime]) {
            locations.sockets.extend(USER_SOCKETS.map(|name| runtime.join(name)));
            locations.socket_folders.extend(USER_SOCKET_FOLDERS.map(|name| runtime.join(name)));
            locations.shared_folders.push(runtime);
        }
        if let Some(home) = folder_from_env("HOME") {
            locations.sockets.extend(HOME_SOCKETS.map(|name| home.join(name)));
            locations.socket_folders.push(home.join(".screen"));
        }
        let temporary = PathBuf::from(TEMPORARY_FOLDER);
        for folder in folder_from_env("TMUX_TMPDIR").iter().chain([&temporary]) {
            locations.socket_folders.push(folder.join(format!("tmux-{uid}")));
        }
        for folder in folder_from_env("TMPDIR").into_iter().chain([temporary]) {
            let names = [format!("emacs{uid}"), format!("zellij-{uid}")];
            locations.socket_folders.extend(names.map(|name| folder.join(name)));
            locations.shared_folders.push(folder);
        }
        locations.socket_folders.push(PathBuf::from(DISPLAY_SOCKET_FOLDER));
        if let Some(name) = user_name {
            locations.socket_folders.push(Path::new("/run/screen").join(format!("S-{name}")));
        }
        if uid.is_root() {
            locations.sockets.extend(ROOT_SOCKETS.map(PathBuf::from));
        }
        locations
    }

    /// Returns the sockets that exist now and accept connections of this user, in the order of their paths. Lists
    /// folders, so it may block.
    #[must_use]
    pub fn find_reachable(&self) -> Vec<PathBuf> {
        let mut search = FolderSearch { listening_names: listening_names(), sockets: Vec::new() };
        for folder in &self.socket_folders {
            search.add_sockets_below(folder, MAX_FOLDER_DEPTH);
        }
        for folder in &self.shared_folders {
            for path in list_folder(folder).filter(|path| has_known_prefix(path)) {
                search.add_socket_or_folder(path, MAX_FOLDER_DEPTH + 1);
            }
        }
        let is_socket = |path: &&PathBuf| {
            fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
        };
        let FolderSearch { mut sockets, .. } = search;
        sockets.extend(self.sockets.iter().filter(is_socket).cloned());
        sockets.retain(|path| access(path, AccessFlags::W_OK).is_ok());
        sockets.sort();
        sockets.dedup();
        sockets
    }
}

/// Search in folders that other programs and users may fill.
struct FolderSearch {
    /// Names of the sockets of which a program accepts connections; `None` if they are unknown.
    listening_names: Option<BTreeSet<Vec<u8>>>,
    sockets: Vec<PathBuf>,
}

impl FolderSearch {
    /// Adds a socket, or the sockets of a folder. Links and entries of other users do not count: otherwise such a user
    /// could stop agents that permit no such socket.
    fn add_socket_or_folder(&mut self, path: PathBuf, depth: usize) {
        let Ok(metadata) = path.symlink_metadata() else { return };
        if !is_own(&metadata) {
            return;
        }
        if metadata.is_dir() {
            self.add_sockets_below(&path, depth - 1);
        } else if metadata.file_type().is_socket() && self.is_listening(&path) {
            self.sockets.push(path);
        }
    }

    /// Adds the sockets of a folder.
    fn add_sockets_below(&mut self, folder: &Path, depth: usize) {
        if depth > 0 {
            list_folder(folder).for_each(|path| self.add_socket_or_folder(path, depth));
        }
    }

    /// Returns true if a program may accept connections of a socket. The file remains when its program was killed, and
    /// a program cannot use its own folder again if a mount hides such a file.
    fn is_listening(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().as_bytes();
        let is_listed = || self.listening_names.as_ref().is_some_and(|names| names.contains(name));
        // A program may listen in another network namespace, or the socket may have another name now.
        is_listed() || !refuses_connections(path)
    }
}

/// Returns the names, without folders, of the sockets that programs listen on in this network namespace; `None` if the
/// system does not list them. A program may have named its socket by another path.
fn listening_names() -> Option<BTreeSet<Vec<u8>>> {
    let list = fs::read(SOCKET_LIST).ok()?;
    let lines = list.split(|byte| *byte == b'\n');
    let name_of = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
        let flags = str::from_utf8(fields.nth(SOCKET_FLAGS_FIELD)?).ok()?;
        let is_listening = u32::from_str_radix(flags, 16).ok()? & LISTENING_FLAG != 0;
        let path_start = line.iter().position(|byte| *byte == b'/').filter(|_| is_listening);
        let relative_start = line.iter().rposition(|byte| *byte == b' ').map(|at| at + 1);
        let path = line.get(path_start.or(relative_start.filter(|_| is_listening))?..)?;
        Some(path.rsplit(|byte| *byte == b'/').next()?.to_vec())
    };
    Some(lines.skip(1).filter_map(name_of).collect())
}

/// Returns true if no program accepts connections of a socket.
fn refuses_connections(path: &Path) -> bool {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None);
    let refusal = socket
        .ok()
        .zip(UnixAddr::new(path).ok())
        .map(|(socket, address)| connect(socket.as_raw_fd(), &address) == Err(Errno::ECONNREFUSED));
    refusal.unwrap_or_default()
}

fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == 0 || metadata.uid() == geteuid().as_raw()
}

/// Returns the socket of a container engine that `DOCKER_HOST` names.
fn engine_socket(host: Option<OsString>) -> Option<PathBuf> {
    Some(PathBuf::from(OsStr::from_bytes(host?.as_bytes().strip_prefix(b"unix://")?)))
}

/// Returns the socket of the first address in a list of addresses of the session bus.
fn session_bus_socket(addresses: Option<OsString>) -> Option<PathBuf> {
    let addresses = addresses?.into_vec();
    let path = addresses.strip_prefix(b"unix:path=")?;
    let end = path.iter().position(|byte| matches!(byte, b',' | b';')).unwrap_or(path.len());
    Some(PathBuf::from(OsStr::from_bytes(path.get(..end)?))).filter(|path| path.is_absolute())
}

fn has_known_prefix(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    SOCKET_NAME_PREFIXES.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
}

fn list_folder(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let dir_entries = fs::read_dir(folder).into_iter().flatten();
    dir_entries.filter_map(|entry| Some(entry.ok()?.path()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn sockets_that_start_programs_are_found_by_environment() {
        let folder = tempfile::tempdir().expect("a folder");
        let [tmux, emacs] =
            ["tmux/tmux-", "temporary/emacs"].map(|name| format!("{name}{}", geteuid()));
        let (tmux, emacs) = (format!("{tmux}/default"), format!("{emacs}/server"));
        let names = [
            ".docker/run/docker.sock",
            ".screen/1.session",
            "bus of a login",
            "engine.sock",
            "run/bus",
            "run/emacs/server",
            "run/hypr/1/.socket.sock",
            "run/nvim.1.0",
            "run/sway-ipc.0.1.sock",
            "run/vscode-1.sock",
            "run/zellij/0.44/session",
            &emacs,
            "temporary/kitty-1",
            "temporary/nvim.user/x/nvim.1.0",
            &tmux,
        ];
        let sockets = names.map(|name| folder.path().join(name));
        let open = |path: &Path| {
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            UnixListener::bind(path).expect("a socket")
        };
        let _open = sockets.each_ref().map(|path| open(path));
        let _harmless =
            ["run/ssh-agent", "temporary/agent.1"].map(|name| open(&folder.path().join(name)));
        fs::write(folder.path().join("run/emacs/file"), "").expect("a file");
        let env = |name: &str| {
            let value = match name {
                "HOME" => folder.path().to_owned(),
                "XDG_RUNTIME_DIR" => folder.path().join("run"),
                "TMUX_TMPDIR" => folder.path().join("tmux"),
                "TMPDIR" => folder.path().join("temporary"),
                "DBUS_SESSION_BUS_ADDRESS" => {
                    return Some(
                        format!("unix:path={}/bus of a login,guid=1", folder.path().display())
                            .into(),
                    );
                }
                "DOCKER_HOST" => {
                    return Some(format!("unix://{}/engine.sock", folder.path().display()).into());
                }
                _ => return None,
            };
            Some(value.into_os_string())
        };
        let locations = EscapeSocketLocations::from_env(&env);
        let mut found = locations.find_reachable();
        found.retain(|path| path.starts_with(folder.path()));
        assert_eq!(found, sockets);
        // The places are fixed, and what is there may change.
        fs::remove_file(&sockets[0]).expect("a socket to remove");
        found = locations.find_reachable();
        found.retain(|path| path.starts_with(folder.path()));
        assert_eq!(found, sockets[1..]);
    }

    /// Returns the sockets that are found below a folder.
    fn find_below(folder: &Path) -> Vec<PathBuf> {
        let locations = EscapeSocketLocations {
            shared_folders: vec![folder.to_owned()],
            ..EscapeSocketLocations::default()
        };
        locations.find_reachable()
    }

    /// Otherwise any user could stop agents that permit no such socket.
    #[test]
    fn sockets_and_links_of_other_users_do_not_count() {
        if !geteuid().is_root() {
            return algonius_skips::skip("needs root");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let _open = UnixListener::bind(path("kitty-1")).expect("a socket");
        fs::create_dir(path("kitty-2")).expect("a folder");
        let _inner = UnixListener::bind(path("kitty-2/a")).expect("a socket");
        let _target = UnixListener::bind(path("target")).expect("a socket");
        symlink(path("target"), path("kitty-3")).expect("a link");
        assert_eq!(find_below(folder.path()), [path("kitty-1"), path("kitty-2/a")]);
        for name in ["kitty-1", "kitty-2"] {
            chown(path(name), Some(65_532), None).expect("another owner");
        }
        assert_eq!(find_below(folder.path()), Vec::<PathBuf>::new());
    }

    /// A program that is killed leaves its socket.
    #[test]
    fn a_socket_without_a_program_does_not_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = ["kitty with a space", "nvim.1"].map(|name| folder.path().join(name));
        let listeners = names.each_ref().map(|path| UnixListener::bind(path).expect("a socket"));
        assert_eq!(find_below(folder.path()), names);
        // The list of the system has the name at the start of the program.
        let renamed = folder.path().join("kitty-renamed");
        fs::rename(&names[0], &renamed).expect("another name");
        assert_eq!(find_below(folder.path()), [&renamed, &names[1]].map(PathBuf::clone));
        fs::rename(&renamed, &names[0]).expect("the first name");
        drop(listeners);
        assert_eq!(find_below(folder.path()), Vec::<PathBuf>::new());
        assert!(names.iter().all(|path| path.exists()));
    }

    #[test]
    fn the_address_of_a_session_bus_names_a_path() {
        for (addresses, expected) in [
            ("unix:path=/run/user/1/bus", Some("/run/user/1/bus")),
            ("unix:path=/run/bus,guid=0a;unix:path=/other", Some("/run/bus")),
            ("unix:path=relative", None),
            ("unix:abstract=/run/bus", None),
        ] {
            let found = session_bus_socket(Some(addresses.into()));
            assert_eq!(found, expected.map(PathBuf::from), "{addresses}");
        }
    }

    #[test]
    fn a_socket_in_another_encoding_is_found() {
        let host = OsString::from_vec(b"unix:///run/caf\xe9.sock".to_vec());
        let socket = OsString::from_vec(b"/run/caf\xe9.sock".to_vec());
        assert_eq!(engine_socket(Some(host)), Some(PathBuf::from(socket)));
        assert_eq!(engine_socket(Some("tcp://127.0.0.1".into())), None);
    }
}
