//! Processes as the system shows them, found by their environment.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The processes that are alive and have this in their environment, as `NAME=value`.
pub(crate) fn marked(entry: &str) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let carries = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|have| have == entry.as_bytes())
    };
    pids.filter(carries).filter(|pid| is_alive(*pid)).collect()
}

/// Whether a process is there and has not ended.
pub(crate) fn is_alive(pid: i32) -> bool {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = line.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, Some('Z' | 'X')))
}

/// Ends everything whose home is this folder; what a killed service left behind is among it.
pub(crate) fn sweep(home: &Path) {
    for pid in marked(&format!("HOME={}", home.display())) {
        _ = kill(Pid::from_raw(pid), Signal::SIGKILL); // It may have ended meanwhile.
    }
}
