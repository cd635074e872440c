//! Processes of the system, found by their environment.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Variable in the environment of an agent and of all its descendants.
pub(crate) const MARK_VARIABLE: &str = "AGENTS_MARK";

/// Returns the living processes with this mark: their ids and command lines.
pub(crate) fn marked_processes(mark: &str) -> Vec<(i32, String)> {
    let entry = format!("{MARK_VARIABLE}={mark}");
    let pids = fs::read_dir("/proc").expect("the processes").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_mark = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
    };
    let living_pids = pids.filter(has_mark).filter(|pid| is_alive(*pid));
    living_pids.map(|pid| (pid, command_line(pid))).collect()
}

/// Kills all processes with this mark.
pub(crate) fn kill_marked_processes(mark: &str) {
    for (pid, _) in marked_processes(mark) {
        _ = kill(Pid::from_raw(pid), Signal::SIGKILL); // The process may have ended meanwhile.
    }
}

/// Returns the available memory of the machine in bytes.
pub(crate) fn available_memory() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").expect("the memory");
    field_bytes(&meminfo, "MemAvailable:").expect("what is available")
}

/// Returns the proportional set size of a process in bytes; zero for one that has ended.
pub(crate) fn proportional_set_bytes(pid: i32) -> u64 {
    let smaps = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    field_bytes(&smaps, "Pss:").unwrap_or_default()
}

fn field_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

fn command_line(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ").trim().to_owned()
}

fn is_alive(pid: i32) -> bool {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = line.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, Some('Z' | 'X')))
}
