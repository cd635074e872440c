//! Which machine it was measured on, and when.

use std::fs;

use crate::limit::cores;
use crate::load::wall;
use chrono::DateTime;

/// The machine in one sentence: numbers of another one differ.
#[must_use]
pub fn told() -> String {
    let day = DateTime::from_timestamp_nanos(i64::try_from(wall()).unwrap_or_default());
    let memory = of("/proc/meminfo", "MemTotal");
    let memory: f64 = memory.trim_end_matches(" kB").parse().unwrap_or_default();
    format!(
        "Measured on {}: {}, {} cores, {:.0} GB of memory, Linux {}.\n",
        day.format("%Y-%m-%d"),
        of("/proc/cpuinfo", "model name"),
        cores(),
        memory / 1e6,
        fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
    )
}

/// What a file of the system says of this.
fn of(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim());
    value.unwrap_or("unknown").to_owned()
}
