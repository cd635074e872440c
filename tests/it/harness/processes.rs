//! Processes of the system, found by their environment.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Returns the living processes with this entry in their environment, as `NAME=value`.
pub(crate) fn pids_with_env(env_entry: &str) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_entry = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == env_entry.as_bytes())
    };
    pids.filter(has_entry).filter(|pid| is_alive(*pid)).collect()
}

/// Returns the process holders among the children of a service, in the order of their start.
pub(crate) fn holder_pids(service_pid: i32) -> Vec<i32> {
    // Any thread of the service may have started a process holder.
    let threads = fs::read_dir(format!("/proc/{service_pid}/task")).into_iter().flatten().flatten();
    let children =
        threads.map(|it| fs::read_to_string(it.path().join("children")).unwrap_or_default());
    let children: Vec<_> = children.collect();
    let children = children.iter().flat_map(|text| text.split_whitespace());
    let pids = children.map(|pid| pid.parse::<i32>().unwrap());
    let process_name =
        |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    pids.filter(|pid| process_name(pid).trim() == "algonius-warden" && is_alive(*pid)).collect()
}

pub(crate) fn kill9(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

/// Returns the soft limit of file locks of every living process that has one, which is the label of the service's
/// processes.
pub(crate) fn pids_and_labels() -> Vec<(i32, u64)> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let label = |pid: i32| {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        let limit = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
        Some((pid, limit.split_whitespace().next()?.parse().ok()?))
    };
    pids.filter_map(label).filter(|(pid, _)| is_alive(*pid)).collect()
}

/// Returns the number of open descriptors of a process.
pub(crate) fn open_descriptor_count(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Returns true if a process exists and has not ended.
pub(crate) fn is_alive(pid: i32) -> bool {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = line.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, Some('Z' | 'X')))
}

/// Kills all processes whose home is this folder, including those that a killed service left.
pub(crate) fn kill_processes_of_home(home: &Path) {
    for pid in pids_with_env(&format!("HOME={}", home.display())) {
        _ = kill(Pid::from_raw(pid), Signal::SIGKILL); // The process may have ended meanwhile.
    }
}

/// Resets the peak of a process's resident memory; returns the present size in bytes.
pub(crate) fn reset_peak_and_read_rss(pid: i32) -> u64 {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
    proc_status_bytes(pid, "VmRSS:")
}

/// Returns the peak since then, in bytes.
pub(crate) fn peak_memory_bytes(pid: i32) -> u64 {
    proc_status_bytes(pid, "VmHWM:")
}

fn proc_status_bytes(pid: i32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
}

/// Returns the processor time of a process, in hundredths of a second.
pub(crate) fn cpu_ticks(pid: i32) -> u64 {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = line.rsplit_once(") ").unwrap();
    rest.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// Returns the number of open sockets of a process.
pub(crate) fn open_socket_count(pid: i32) -> usize {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

/// Returns the children of a process, including zombies.
pub(crate) fn child_pids(parent_pid: i32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        rest.split(' ').nth(1) == Some(parent_pid.to_string().as_str())
    };
    pids.filter(is_child).collect()
}
