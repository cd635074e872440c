//! Looks at what this machine offers to hold programs with.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use algonius_actors::model::rungs::{Presence, Rungs};
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{AccessFlags, access, geteuid};

use super::process::can_label;
use super::{confine, wrap};

/// Looks now. Tries bubblewrap where it is on this search path, so it may take some time.
#[must_use]
pub fn look(path: Option<&OsStr>) -> Rungs {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Rungs {
        kernel: release.trim().to_owned(),
        labels: can_label(),
        landlock: confine::version(),
        bubblewrap: bubblewrap(path)
            .map_or(Presence::Absent, |program| works(wrap::works(&program))),
        cgroup: cgroup(),
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

/// Whether we could make groups below our own.
fn cgroup() -> Presence {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let Some(folder) = group(&own, &mounts) else { return Presence::Absent };
    let is_ours = |file: &Path| access(file, AccessFlags::W_OK).is_ok();
    works(is_ours(&folder) && is_ours(&folder.join("cgroup.procs")))
}

/// The folder of our group of version 2.
fn group(own: &str, mounts: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let place = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        after.starts_with("cgroup2 ").then(|| before.split(' ').nth(4))?
    })?;
    Some(Path::new(place).join(own.trim_start_matches('/')))
}

fn works(is_usable: bool) -> Presence {
    if is_usable { Presence::Usable } else { Presence::Unusable }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_below_the_mount_of_its_version() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                      31 24 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        let found = group("4:pids:/a\n0::/user/b\n", mounts);
        assert_eq!(found, Some(PathBuf::from("/sys/fs/cgroup/unified/user/b")));
        assert_eq!(group("4:pids:/a\n", mounts), None);
        assert_eq!(group("0::/\n", ""), None);
    }
}
