//! Processes of the system, found by their environment.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Variable in the environment of an agent and of all its descendants.
pub(crate) const MARK_VARIABLE: &str = "AGENTS_MARK";

/// Returns the living processes with this mark: their ids and command lines.
pub(crate) fn marked(mark: &str) -> Vec<(i32, String)> {
    let entry = format!("{MARK_VARIABLE}={mark}");
    let pids = fs::read_dir("/proc").expect("the processes").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let carries = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|have| have == entry.as_bytes())
    };
    let alive = pids.filter(carries).filter(|pid| is_alive(*pid));
    alive.map(|pid| (pid, command(pid))).collect()
}

/// Kills all processes with this mark.
pub(crate) fn sweep(mark: &str) {
    for (pid, _) in marked(mark) {
        _ = kill(Pid::from_raw(pid), Signal::SIGKILL); // The process may have ended meanwhile.
    }
}

/// Returns the available memory of the machine in bytes.
pub(crate) fn available_memory() -> u64 {
    let facts = fs::read_to_string("/proc/meminfo").expect("the memory");
    bytes(&facts, "MemAvailable:").expect("what is available")
}

/// Returns the proportional set size of a process in bytes; zero for one that has ended.
pub(crate) fn proportional_bytes(pid: i32) -> u64 {
    let facts = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    bytes(&facts, "Pss:").unwrap_or_default()
}

fn bytes(facts: &str, name: &str) -> Option<u64> {
    let line = facts.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

fn command(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ").trim().to_owned()
}

fn is_alive(pid: i32) -> bool {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = line.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, Some('Z' | 'X')))
}
