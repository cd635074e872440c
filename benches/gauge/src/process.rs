//! What the system says of a process: its own processor time, and its memory.

use std::fs;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Milliseconds of processor time that a process has taken itself, in steps of ten; its children's
/// time is none of it.
///
/// # Panics
/// Where there is no such process.
#[must_use]
pub fn spent(process: u32) -> f64 {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
    let (_, rest) = line.rsplit_once(") ").expect("a state");
    let ticks = rest.split(' ').skip(11).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() * 10.0
}

/// Milliseconds of processor time of all threads that a process has now, to the nanosecond.
///
/// # Panics
/// Where there is no such process.
#[must_use]
pub fn awake(process: u32) -> f64 {
    let spent = |told: String| told.split(' ').next().and_then(|text| text.parse::<f64>().ok());
    of_threads(process, "schedstat", spent) / 1e6
}

/// How often the threads of a process were put to sleep, or made to wait: so often they were woken.
///
/// # Panics
/// Where there is no such process.
#[must_use]
pub fn wakings(process: u32) -> f64 {
    let count = |line: &str| {
        let (name, count) = line.split_once(':')?;
        name.ends_with("_ctxt_switches").then(|| count.trim().parse::<f64>().ok())?
    };
    of_threads(process, "status", |told| Some(told.lines().filter_map(count).sum()))
}

fn of_threads(process: u32, file: &str, number: impl Fn(String) -> Option<f64>) -> f64 {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("a process").flatten();
    let told = threads.filter_map(|thread| fs::read_to_string(thread.path().join(file)).ok());
    told.map(|told| number(told).expect("a number")).sum()
}

/// Bytes of memory that a process has for itself, and its part of what it shares with others.
///
/// # Panics
/// Where there is no such process of ours.
#[must_use]
pub fn share(process: u32) -> f64 {
    let told = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).expect("its memory");
    let line = told.lines().find_map(|line| line.strip_prefix("Pss:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
}

/// Bytes of memory that a process has resident.
#[must_use]
pub fn resident(process: u32) -> f64 {
    memory(process, "VmRSS:")
}

/// The most bytes that it had resident since it began, or since [`forget`].
#[must_use]
pub fn peak(process: u32) -> f64 {
    memory(process, "VmHWM:")
}

/// Lets the peak be what is resident now.
///
/// # Panics
/// Where the process belongs to another.
pub fn forget(process: u32) {
    fs::write(format!("/proc/{process}/clear_refs"), "5").expect("a process of ours");
}

fn memory(process: u32, name: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("its memory");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
}

/// The child of this name that a process has.
#[must_use]
pub fn child(process: u32, name: &str) -> Option<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let children: Vec<u32> = lists
        .flat_map(|list| list.split(' ').filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect();
    children.into_iter().find(|child| {
        fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|have| have.trim() == name)
    })
}

/// Lets this process, and what it starts, have as many descriptors as it may; how many.
///
/// # Panics
/// Where the system does not tell.
#[must_use]
pub fn descriptors() -> usize {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("a limit");
    usize::try_from(most).unwrap_or(usize::MAX)
}
