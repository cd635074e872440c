//! Processor time and memory of a process, as the system reports them.

use std::fs;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Returns the milliseconds of processor time of a process itself, in steps of ten, without its children.
///
/// # Panics
/// Panics if there is no such process.
#[must_use]
pub fn cpu_time_ms(pid: u32) -> f64 {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let (_, rest) = line.rsplit_once(") ").expect("a state");
    let ticks = rest.split(' ').skip(11).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() * 10.0
}

/// Returns the milliseconds of processor time of all present threads of a process, to the nanosecond.
///
/// # Panics
/// Panics if there is no such process.
#[must_use]
pub fn thread_cpu_time_ms(pid: u32) -> f64 {
    let cpu_time =
        |content: String| content.split(' ').next().and_then(|text| text.parse::<f64>().ok());
    sum_over_threads(pid, "schedstat", cpu_time) / 1e6
}

/// Returns the number of context switches of a process's threads, which equals their wakeups.
///
/// # Panics
/// Panics if there is no such process.
#[must_use]
pub fn context_switches(pid: u32) -> f64 {
    let count = |line: &str| {
        let (name, count) = line.split_once(':')?;
        name.ends_with("_ctxt_switches").then(|| count.trim().parse::<f64>().ok())?
    };
    sum_over_threads(pid, "status", |content| Some(content.lines().filter_map(count).sum()))
}

fn sum_over_threads(pid: u32, file: &str, parse: impl Fn(String) -> Option<f64>) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("a process").flatten();
    let contents = threads.filter_map(|thread| fs::read_to_string(thread.path().join(file)).ok());
    contents.map(|content| parse(content).expect("a number")).sum()
}

/// Returns the proportional set size of a process in bytes.
///
/// # Panics
/// Panics if there is no such process of this user.
#[must_use]
pub fn proportional_set_bytes(pid: u32) -> f64 {
    let content = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("its memory");
    let line = content.lines().find_map(|line| line.strip_prefix("Pss:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
}

/// Returns the resident bytes of a process.
#[must_use]
pub fn resident_bytes(pid: u32) -> f64 {
    status_bytes(pid, "VmRSS:")
}

/// Returns the peak of resident bytes since the start, or since [`reset_peak_resident_bytes`].
#[must_use]
pub fn peak_resident_bytes(pid: u32) -> f64 {
    status_bytes(pid, "VmHWM:")
}

/// Resets the peak to the present resident bytes.
///
/// # Panics
/// Panics if the process belongs to another user.
pub fn reset_peak_resident_bytes(pid: u32) {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("a process of ours");
}

fn status_bytes(pid: u32, name: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("its memory");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
}

/// Returns the child of a process with this name.
#[must_use]
pub fn find_child(pid: u32, name: &str) -> Option<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let children: Vec<u32> = lists
        .flat_map(|list| list.split(' ').filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect();
    children.into_iter().find(|child| {
        fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|comm| comm.trim() == name)
    })
}

/// Raises the descriptor limit of this process and its children to the maximum, and returns it.
///
/// # Panics
/// Panics if the system does not report the limit.
#[must_use]
pub fn raise_descriptor_limit() -> usize {
    let (_, hard_limit) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard_limit, hard_limit).expect("a limit");
    usize::try_from(hard_limit).unwrap_or(usize::MAX)
}
