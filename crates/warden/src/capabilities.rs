//! Detects the capabilities of this machine for holding and confining programs.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use algonius_actors::model::host::host_capabilities::{CapabilityState, HostCapabilities};
use algonius_actors::model::host::resources::Controllers;
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::geteuid;

use super::confinement::cgroup::CgroupRoot;
use super::confinement::sockets::EscapeSocketLocations;
use super::confinement::{bubblewrap, landlock};
use super::startup::can_label_processes;

/// Detects the capabilities now. Runs bubblewrap if it is on this search path, so it may take some time.
///
/// # Errors
/// Fails if bubblewrap is there and cannot be tested now, because it does not end or the machine lacks resources.
pub fn detect(search_path: Option<&OsStr>) -> io::Result<HostCapabilities> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let (cgroup, controllers) = detect_cgroup_support();
    Ok(HostCapabilities {
        kernel: release.trim().to_owned(),
        labels: can_label_processes(),
        landlock: landlock::abi_version(),
        bubblewrap: probe_bubblewrap(search_path)?,
        cgroup,
        controllers,
        root: geteuid().is_root(),
        users: can_run_as_other_users(),
        sockets: EscapeSocketLocations::from_env(&|name| std::env::var_os(name)).find_reachable(),
        open_files: getrlimit(Resource::RLIMIT_NOFILE).unwrap_or_default(),
    })
}

fn probe_bubblewrap(search_path: Option<&OsStr>) -> io::Result<CapabilityState> {
    let Some(program) = find_bubblewrap(search_path) else { return Ok(CapabilityState::Absent) };
    let is_usable = is_writable_by_root_only(&program) && bubblewrap::is_usable(&program)?;
    Ok(if is_usable { CapabilityState::Usable } else { CapabilityState::Unusable })
}

/// Returns the path of bubblewrap on this search path, without links.
#[must_use]
pub fn find_bubblewrap(search_path: Option<&OsStr>) -> Option<PathBuf> {
    let mut files =
        std::env::split_paths(search_path.unwrap_or_default()).map(|folder| folder.join("bwrap"));
    files.find(|file| file.is_absolute() && file.is_file())?.canonicalize().ok()
}

/// Returns true if only root can change a file without links, or replace it. An agent that could replace bubblewrap
/// would disable the sandbox of every other agent.
fn is_writable_by_root_only(file: &Path) -> bool {
    const GROUP_AND_OTHERS_WRITE: u32 = 0o022;
    file.ancestors().all(|path| {
        fs::symlink_metadata(path).is_ok_and(|metadata| {
            let forbidden_bits = if metadata.gid() == 0 { 0o002 } else { GROUP_AND_OTHERS_WRITE };
            metadata.uid() == 0 && metadata.mode() & forbidden_bits == 0
        })
    })
}

/// Returns whether groups can be created below the service's own group, and which limits they would enforce.
fn detect_cgroup_support() -> (CapabilityState, Controllers) {
    let Some(cgroup_root) = CgroupRoot::for_this_process() else {
        return (CapabilityState::Absent, Controllers::default());
    };
    match cgroup_root.is_writable() {
        true => (CapabilityState::Usable, cgroup_root.available_controllers()),
        false => (CapabilityState::Unusable, Controllers::default()),
    }
}

/// Returns true if this process has every capability that is needed to start a program as another user, to give the
/// program its folder, to end it, and to read and remove its files.
fn can_run_as_other_users() -> bool {
    const REQUIRED_CAPABILITIES: [u32; 6] = [0, 1, 3, 5, 6, 7]; // CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    effective.is_some_and(|set| REQUIRED_CAPABILITIES.iter().all(|number| set & (1 << number) != 0))
}
