//! Looks at what this machine offers to hold programs with.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use algonius_actors::model::resources::Controllers;
use algonius_actors::model::rungs::{Presence, Rungs};
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::geteuid;

use super::group::Place;
use super::process::can_label;
use super::{confine, wrap};

/// Looks now. Tries bubblewrap where it is on this search path, so it may take some time.
#[must_use]
pub fn look(path: Option<&OsStr>) -> Rungs {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let (cgroup, controllers) = groups();
    Rungs {
        kernel: release.trim().to_owned(),
        labels: can_label(),
        landlock: confine::version(),
        bubblewrap: bubblewrap(path)
            .map_or(Presence::Absent, |program| works(wrap::works(&program))),
        cgroup,
        controllers,
        root: geteuid().is_root(),
        open_files: getrlimit(Resource::RLIMIT_NOFILE).unwrap_or_default(),
    }
}

/// Where bubblewrap is on this search path.
#[must_use]
pub fn bubblewrap(path: Option<&OsStr>) -> Option<PathBuf> {
    let mut files =
        std::env::split_paths(path.unwrap_or_default()).map(|folder| folder.join("bwrap"));
    files.find(|file| file.is_absolute() && file.is_file())
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
