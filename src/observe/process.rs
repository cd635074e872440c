//! Resource usage of this process, under the usual names of Prometheus exporters.

use std::fs;
use std::sync::atomic::AtomicU64;

use nix::unistd::{SysconfVar, sysconf};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sysinfo::System;

/// Adds the metrics of this process. Values that the system does not report are left out.
pub(super) fn register_metrics(registry: &mut Registry) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks_per_second = sysconf_value(SysconfVar::CLK_TCK);
    if let Some(seconds) = cpu_seconds(&stat, ticks_per_second) {
        let cpu = Counter::<f64, AtomicU64>::default();
        cpu.inc_by(seconds);
        registry.register("process_cpu_seconds", "Processor time, in seconds.", cpu);
    }
    let resident_bytes =
        stat_field(&stat, 24).map(|pages| pages * sysconf_value(SysconfVar::PAGE_SIZE));
    register_gauge(registry, "process_resident_memory_bytes", "Resident memory.", resident_bytes);
    let open_files = fs::read_dir("/proc/self/fd")
        .ok()
        .and_then(|open_files| u64::try_from(open_files.count()).ok().map(to_f64));
    register_gauge(registry, "process_open_fds", "Open files.", open_files);
    register_gauge(registry, "process_threads", "Threads.", stat_field(&stat, 20));
    let boot_time = System::boot_time().ok().map(to_f64);
    let started_at = boot_time
        .zip(stat_field(&stat, 22))
        .map(|(boot_time, start_ticks)| boot_time + start_ticks / ticks_per_second);
    register_gauge(
        registry,
        "process_start_time_seconds",
        "Start time in seconds since the Unix epoch.",
        started_at,
    );
}

fn register_gauge(registry: &mut Registry, name: &str, help: &str, value: Option<f64>) {
    if let Some(value) = value {
        let gauge = Gauge::<f64, AtomicU64>::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    }
}

fn sysconf_value(name: SysconfVar) -> f64 {
    let found = sysconf(name).ok().flatten().and_then(|value| u64::try_from(value).ok());
    found.map_or(1.0, to_f64)
}

/// Returns a field of `/proc/self/stat` by its number in the manual page. The process name, which may contain any
/// characters, is the second field.
fn stat_field(stat: &str, number: usize) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

fn cpu_seconds(stat: &str, ticks_per_second: f64) -> Option<f64> {
    Some((stat_field(stat, 14)? + stat_field(stat, 15)?) / ticks_per_second)
}

#[expect(clippy::cast_precision_loss, reason = "sixteen digits are enough for a gauge")]
pub(super) const fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_after_a_process_name_with_blanks_are_parsed() {
        let rest = (3..=30).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
        let stat = format!("17 (a ) b) {rest}\n");
        assert_eq!((stat_field(&stat, 14), stat_field(&stat, 24)), (Some(14.0), Some(24.0)));
        assert_eq!(cpu_seconds(&stat, 100.0), Some(0.29));
        assert_eq!(stat_field("", 14), None);
    }
}
