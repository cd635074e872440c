//! Measures the resources that a program and its descendants use.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use algonius_actors::model::execution::usage::UsageReading;
use algonius_actors::model::host::resources::ProcessTreeUsage;
use nix::unistd::{SysconfVar, sysconf};

use super::process_label::ProcessLabel;
use super::process_scan::ProcessScanner;
use super::procfs::{proc_folder, read_proc_text, read_process_stat, read_status, subtree};

/// Gauge of one program's resource usage. Clones share the peak.
#[derive(Debug, Clone)]
pub struct UsageGauge {
    pid: u32,
    label: ProcessLabel,
    scanner: Arc<ProcessScanner>,
    /// Highest observed memory in bytes.
    peak_bytes: Arc<AtomicU64>,
}

impl UsageGauge {
    /// Returns the gauge of the program with this process and this label.
    pub(crate) fn new(pid: u32, label: ProcessLabel, scanner: Arc<ProcessScanner>) -> Self {
        Self { pid, label, scanner, peak_bytes: Arc::default() }
    }

    /// Returns the present usage; `None` if no process of the program is alive.
    pub async fn read(self) -> Option<UsageReading> {
        let labelled_pids = self.scanner.pids_with_label(self.label).await;
        // Tokio treats `/proc` as files, and a process under memory pressure answers slowly.
        tokio::task::spawn_blocking(move || self.measure(labelled_pids)).await.ok().flatten()
    }

    /// Returns memory and process count only, which is cheap enough for frequent calls.
    pub async fn read_memory_and_processes(self) -> ProcessTreeUsage {
        let labelled_pids = self.scanner.pids_with_label(self.label).await;
        let measure_all = move || {
            self.all_pids(labelled_pids)
                .into_iter()
                .map(read_memory_and_threads)
                .fold(ProcessTreeUsage::default(), add_tree_usages)
        };
        tokio::task::spawn_blocking(measure_all).await.unwrap_or_default()
    }

    /// Returns the program's processes, given those that carry its label.
    fn all_pids(&self, labelled_pids: Vec<i32>) -> BTreeSet<i32> {
        let mut pids: BTreeSet<_> = labelled_pids.into_iter().collect();
        if let Some(root) = i32::try_from(self.pid).ok().filter(|root| pids.contains(root)) {
            pids.extend(subtree(root)); // Adds descendants of other users, too.
        }
        pids
    }

    fn measure(&self, labelled_pids: Vec<i32>) -> Option<UsageReading> {
        let tick_ms = 1000 / sysconf(SysconfVar::CLK_TCK).ok()??.unsigned_abs().max(1);
        let readings =
            self.all_pids(labelled_pids).into_iter().filter_map(|pid| read_usage(pid, tick_ms));
        let mut sum = readings.reduce(add_readings)?;
        let peak_bytes = sum.peak_memory_bytes.max(sum.memory_bytes);
        sum.peak_memory_bytes =
            self.peak_bytes.fetch_max(peak_bytes, Ordering::Relaxed).max(peak_bytes);
        Some(sum)
    }
}

/// Adds the usage of two processes. Their peaks were not at one time, so the larger one counts.
fn add_readings(one: UsageReading, other: UsageReading) -> UsageReading {
    UsageReading {
        cpu_ms: one.cpu_ms + other.cpu_ms,
        memory_bytes: one.memory_bytes + other.memory_bytes,
        peak_memory_bytes: one.peak_memory_bytes.max(other.peak_memory_bytes),
        read_bytes: one.read_bytes + other.read_bytes,
        written_bytes: one.written_bytes + other.written_bytes,
        processes: one.processes + other.processes,
    }
}

/// Returns the usage of one process; unreadable values count as zero.
fn read_usage(pid: i32, tick_ms: u64) -> Option<UsageReading> {
    let process_stat = read_process_stat(pid).filter(|stat| stat.is_alive)?;
    let io = read_proc_text(proc_folder(pid).join("io")).unwrap_or_default();
    let status = read_status(pid);
    Some(UsageReading {
        cpu_ms: process_stat.cpu_ticks * tick_ms,
        memory_bytes: field_number(&status, "VmRSS:") * 1024,
        peak_memory_bytes: field_number(&status, "VmHWM:") * 1024,
        read_bytes: field_number(&io, "rchar:"),
        written_bytes: field_number(&io, "wchar:"),
        processes: 1,
    })
}

/// Returns memory and threads of one process. A zombie has no memory, but still counts, because it occupies a process
/// slot.
fn read_memory_and_threads(pid: i32) -> ProcessTreeUsage {
    let status = read_status(pid);
    ProcessTreeUsage {
        memory_bytes: field_number(&status, "VmRSS:") * 1024,
        processes: field_number(&status, "Threads:"),
    }
}

fn add_tree_usages(one: ProcessTreeUsage, other: ProcessTreeUsage) -> ProcessTreeUsage {
    ProcessTreeUsage {
        memory_bytes: one.memory_bytes + other.memory_bytes,
        processes: one.processes + other.processes,
    }
}

/// Returns the number after a key at the start of a line.
fn field_number(lines: &str, key: &str) -> u64 {
    let field = lines.lines().find_map(|line| line.strip_prefix(key));
    field.and_then(|field| field.split_ascii_whitespace().next()?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{UsageGauge, add_readings, field_number, read_memory_and_threads, read_usage};
    use crate::process::process_label::ProcessLabel;
    use algonius_actors::model::execution::AttemptId;
    use algonius_actors::model::execution::usage::UsageReading;
    use algonius_actors::model::host::resources::ProcessTreeUsage;
    use algonius_actors::model::id::ExecutionId;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::sync::Arc;
    use uuid::Uuid;

    #[test]
    fn a_proc_field_is_read_from_its_own_line() {
        let lines = "VmHWM:\t  300 kB\nVmRSS:\t  200 kB\n";
        assert_eq!((field_number(lines, "VmRSS:"), field_number(lines, "VmHWM:")), (200, 300));
        assert_eq!(field_number(lines, "rchar:"), 0);
    }

    #[test]
    fn usage_adds_up_except_for_peak_memory() {
        let one = UsageReading {
            cpu_ms: 1,
            memory_bytes: 2,
            peak_memory_bytes: 9,
            read_bytes: 3,
            written_bytes: 4,
            processes: 1,
        };
        let sum = UsageReading {
            cpu_ms: 2,
            memory_bytes: 4,
            peak_memory_bytes: 9,
            read_bytes: 6,
            written_bytes: 8,
            processes: 2,
        };
        assert_eq!(add_readings(one, one), sum);
    }

    #[test]
    fn the_usage_of_this_process_is_positive() {
        let own = read_usage(std::process::id().try_into().unwrap(), 10).unwrap();
        assert!(
            own.memory_bytes > 0 && own.peak_memory_bytes >= own.memory_bytes && own.read_bytes > 0,
            "{own:?}"
        );
    }

    /// A process chooses its own name, and the kernel cuts a longer one within a character.
    #[test]
    fn a_process_name_that_is_no_text_hides_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        for name in [&b"caf\xe9"[..], "fourteen-bytes\u{e9}".as_bytes(), b"\xff\nVmRSS: 0"] {
            let program = folder.path().join(OsStr::from_bytes(name));
            std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
            let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
            let pid = child.id().try_into().unwrap();
            let (held, usage) = (read_memory_and_threads(pid), read_usage(pid, 10));
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(held.memory_bytes > 0 && held.processes == 1, "{name:?}: {held:?}");
            assert!(usage.is_some_and(|usage| usage.memory_bytes > 0), "{name:?}: {usage:?}");
        }
    }

    #[test]
    fn threads_are_counted_as_processes() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let waiting_thread = std::thread::spawn(move || receiver.recv());
        let own = read_memory_and_threads(std::process::id().try_into().unwrap());
        assert!(own.memory_bytes > 0 && own.processes >= 2, "{own:?}");
        drop(sender);
        assert!(waiting_thread.join().unwrap().is_err());
    }

    #[tokio::test]
    async fn usage_of_a_dead_program_is_absent() {
        let label =
            ProcessLabel::for_attempt(Uuid::new_v4(), ExecutionId::generate(), AttemptId::FIRST);
        let gauge = UsageGauge::new(std::process::id(), label, Arc::default());
        assert_eq!(gauge.clone().read().await, None);
        assert_eq!(gauge.read_memory_and_processes().await, ProcessTreeUsage::default());
    }
}
