//! Looks at what this machine offers to hold programs with.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};

use algonius_actors::model::resources::Controllers;
use algonius_actors::model::rungs::{Presence, Rungs};
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::geteuid;

use super::confine;
use super::group::Place;
use super::process::can_label;

/// Looks now. Tries bubblewrap where it is on this search path, so it may take some time.
#[must_use]
pub fn look(path: Option<&OsStr>) -> Rungs {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let (cgroup, controllers) = groups();
    Rungs {
        kernel: release.trim().to_owned(),
        labels: can_label(),
        landlock: confine::version(),
        bubblewrap: bubblewrap(path.unwrap_or_default()),
        cgroup,
        controllers,
        root: geteuid().is_root(),
        open_files: getrlimit(Resource::RLIMIT_NOFILE).unwrap_or_default(),
    }
}

fn bubblewrap(path: &OsStr) -> Presence {
    let mut files = std::env::split_paths(path).map(|folder| folder.join("bwrap"));
    let Some(program) = files.find(|file| file.is_absolute() && file.is_file()) else {
        return Presence::Absent;
    };
    let mut command = Command::new(program);
    command.args(["--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev", "true"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    works(command.status().is_ok_and(|status| status.success()))
}

/// Whether we could make groups below our own, and which limits they would hold.
fn groups() -> (Presence, Controllers) {
    let Some(place) = Place::own() else { return (Presence::Absent, Controllers::default()) };
    match place.is_ours() {
        true => (Presence::Usable, place.controllers()),
        false => (Presence::Unusable, Controllers::default()),
    }
}

fn works(is_usable: bool) -> Presence {
    if is_usable { Presence::Usable } else { Presence::Unusable }
}
