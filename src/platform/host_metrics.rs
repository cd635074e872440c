//! Metrics of this machine: processors, memory, load, stalls, and room on a disk.
//!
//! `sysinfo` reads most of it. It has no pressure stall information, and its list of disks contains mount
//! points, not the file system of a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_actors::model::host::pressure::{HostReading, StallReading};
use algonius_actors::ports::host_metrics::HostMetrics;
use async_trait::async_trait;
use nix::sys::statvfs::statvfs;
use sysinfo::{LoadAvg, MINIMUM_CPU_UPDATE_INTERVAL, MemoryRefreshKind, System};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

/// Reader of the metrics of this machine, and of the disk on which a folder is.
#[derive(Debug)]
pub struct SystemMetrics {
    folder: PathBuf,
    cpu_usage_reader: Arc<Mutex<CpuUsageReader>>,
}

/// Use of the processors since the reading before.
#[derive(Debug, Default)]
struct CpuUsageReader {
    system: Option<System>,
    read_at: Option<Instant>,
    usage_percent: Option<f64>,
}

impl SystemMetrics {
    /// Returns a reader that measures the disk of this folder.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, cpu_usage_reader: Arc::default() }
    }
}

#[async_trait]
impl HostMetrics for SystemMetrics {
    /// Reads the metrics. A disk that hangs blocks only a thread for blocking work.
    async fn read(&self) -> HostReading {
        let mut cpu_usage_reader = Arc::clone(&self.cpu_usage_reader).lock_owned().await;
        // The lock is free again before the disk is read.
        let (cores, cpu_percent) =
            spawn_blocking(move || cpu_usage_reader.read_cores_and_usage(Instant::now()))
                .await
                .unwrap_or_default();
        let folder = self.folder.clone();
        // If the read panics, the machine reports nothing.
        let other_metrics =
            spawn_blocking(move || read_without_cpu_usage(&folder)).await.unwrap_or_default();
        HostReading { cores, cpu_percent, ..other_metrics }
    }

    fn total_memory(&self) -> Option<u64> {
        read_memory().map(|(total, _)| total)
    }
}

fn read_without_cpu_usage(folder: &Path) -> HostReading {
    let proc_text =
        |name: &str| fs::read_to_string(Path::new("/proc").join(name)).unwrap_or_default();
    HostReading {
        memory_percent: read_memory().map(|(total, available)| used_percent(total, available)),
        load: System::load_average().ok().map(|LoadAvg { one, .. }| one),
        disk_free_bytes: free_bytes(folder),
        stalls: parse_stalls(
            ["cpu", "memory", "io"].map(|name| proc_text(&format!("pressure/{name}"))),
        ),
        ..HostReading::default()
    }
}

impl CpuUsageReader {
    /// Returns the number of the machine's processors, also if the service may use only some of them, because
    /// the load is that of all; and their use in percent, which the first reading cannot contain.
    fn read_cores_and_usage(&mut self, now: Instant) -> (u32, Option<f64>) {
        if self.system.is_none() {
            self.system = System::new().ok();
        }
        let Some(system) = &mut self.system else { return (0, None) };
        let is_first = self.read_at.is_none();
        // Before that interval `sysinfo` returns its old value, which after the first read is the use since
        // the boot of the machine.
        if self.read_at.is_none_or(|at| now.duration_since(at) >= MINIMUM_CPU_UPDATE_INTERVAL) {
            system.refresh_cpu_usage();
            self.read_at = Some(now);
            self.usage_percent = (!is_first).then(|| f64::from(system.global_cpu_usage()));
        }
        (u32::try_from(system.cpus().len()).unwrap_or(u32::MAX), self.usage_percent)
    }
}

/// Returns the whole memory of this machine and the part that programs can still use, in bytes. Caches of the
/// system count as usable.
fn read_memory() -> Option<(u64, u64)> {
    let mut system = System::new().ok()?;
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    let total = system.total_memory();
    (total > 0).then(|| (total, system.available_memory()))
}

fn used_percent(total: u64, available: u64) -> f64 {
    total.saturating_sub(available) as f64 * 100.0 / total as f64
}

/// Returns the stalls of `/proc/pressure/*`, or `None` if one of the files is missing.
fn parse_stalls([cpu, memory, io]: [String; 3]) -> Option<StallReading> {
    Some(StallReading {
        cpu_percent: ten_second_average(&cpu, "some")?,
        memory_percent: ten_second_average(&memory, "full")?,
        io_percent: ten_second_average(&io, "full")?,
    })
}

/// Returns the average of ten seconds in a line such as `some avg10=1.23 avg60=0.50 …`.
fn ten_second_average(text: &str, line_name: &str) -> Option<f64> {
    let line = text.lines().find_map(|text| text.strip_prefix(line_name))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
}

/// Returns the free bytes for programs on the disk of a folder.
fn free_bytes(folder: &Path) -> Option<u64> {
    let disk = statvfs(folder).ok()?;
    disk.blocks_available().checked_mul(disk.fragment_size())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PSI: &str = "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\n\
        full avg10=3.25 avg60=0.00 avg300=0.00 total=1\n";

    #[test]
    fn stall_files_of_the_kernel_are_parsed() {
        let psi = || PSI.to_owned();
        let read = StallReading { cpu_percent: 12.5, memory_percent: 3.25, io_percent: 3.25 };
        assert_eq!(parse_stalls([psi(), psi(), psi()]), Some(read));
        assert_eq!((used_percent(2000, 500), used_percent(2000, 3000)), (75.0, 0.0));
    }

    #[test]
    fn missing_stall_files_are_omitted() {
        let psi = || PSI.to_owned();
        assert_eq!(parse_stalls([psi(), String::new(), psi()]), None);
        assert_eq!(free_bytes(Path::new("/proc/nowhere/at/all")), None);
    }

    /// Test against the use since boot, which would make the service refuse work on a machine that was busy only
    /// earlier.
    #[test]
    fn a_second_reading_too_soon_gives_no_cpu_usage() {
        let (mut cpu_usage, now) = (CpuUsageReader::default(), Instant::now());
        let (cores, first) = cpu_usage.read_cores_and_usage(now);
        assert!(cores > 0 && first.is_none(), "{cores} {first:?}");
        assert_eq!(
            cpu_usage.read_cores_and_usage(now + MINIMUM_CPU_UPDATE_INTERVAL / 2),
            (cores, None)
        );
    }

    /// Test against the same numbers, read by hand.
    #[tokio::test]
    async fn host_metrics_match_the_proc_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let metrics = SystemMetrics::new(folder.path().to_owned());
        let first = metrics.read().await;
        assert_eq!(first.cpu_percent, None);
        let stat = fs::read_to_string("/proc/stat").expect("statistics");
        let is_core = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
        assert_eq!(first.cores as usize, stat.lines().filter(is_core).count());
        let meminfo = fs::read_to_string("/proc/meminfo").expect("memory");
        let kilobytes = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let kilobytes =
            kilobytes.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
        assert_eq!(metrics.total_memory(), kilobytes.map(|kilobytes: u64| kilobytes * 1024));
        assert!(first.load.is_some_and(|load| load >= 0.0), "{first:?}");
        assert!(first.memory_percent.is_some_and(|used| (0.1..100.0).contains(&used)), "{first:?}");
        assert!(first.disk_free_bytes.is_some_and(|free| free > 0), "{first:?}");
        assert_eq!(first.stalls.is_some(), Path::new("/proc/pressure/cpu").exists());
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut used = None;
        while used.is_none() && Instant::now() < deadline {
            used = metrics.read().await.cpu_percent; // Known after the shortest interval.
        }
        assert!(used.is_some_and(|used| (0.0..=100.0).contains(&used)), "{used:?}");
    }
}
