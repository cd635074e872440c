//! Description of the machine and the date of a measurement.

use std::fs;

use crate::load::wall_clock_nanoseconds;
use crate::spawn_limit::core_count;
use chrono::DateTime;

/// Returns the machine in one sentence: numbers of other machines differ.
#[must_use]
pub fn description() -> String {
    let date =
        DateTime::from_timestamp_nanos(i64::try_from(wall_clock_nanoseconds()).unwrap_or_default());
    let memory = system_value("/proc/meminfo", "MemTotal");
    let memory: f64 = memory.trim_end_matches(" kB").parse().unwrap_or_default();
    format!(
        "Measured on {}: {}, {} cores, {:.0} GB of memory, Linux {}.\n",
        date.format("%Y-%m-%d"),
        system_value("/proc/cpuinfo", "model name"),
        core_count(),
        memory / 1e6,
        fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
    )
}

/// Returns the value of a key in a system file.
fn system_value(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim());
    value.unwrap_or("unknown").to_owned()
}
