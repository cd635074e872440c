//! Looks at what a program and all that it started take of the machine.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use algonius_actors::model::resources::Footprint;
use algonius_actors::model::usage::Usage;
use nix::unistd::{SysconfVar, sysconf};

use super::census::Census;
use super::label::Label;
use super::proc::{folder, stat, subtree};

/// Reads what one program takes. Clones share what was the most.
#[derive(Debug, Clone)]
pub struct Gauge {
    pid: u32,
    label: Label,
    census: Arc<Census>,
    /// The most bytes of memory that were seen.
    peak: Arc<AtomicU64>,
}

impl Gauge {
    /// Of the program with this process, whose processes carry this label.
    pub(super) fn of(pid: u32, label: Label, census: Arc<Census>) -> Self {
        Self { pid, label, census, peak: Arc::default() }
    }

    /// What it takes now; `None` when nothing of it lives.
    pub async fn read(self) -> Option<Usage> {
        let found = self.census.of(self.label).await;
        // `/proc` is files to the runtime, and a process under memory pressure answers slowly.
        tokio::task::spawn_blocking(move || self.look(found)).await.ok().flatten()
    }

    /// What there is of it now: less is looked at, so it may be asked often.
    pub async fn weigh(self) -> Footprint {
        let found = self.census.of(self.label).await;
        let all =
            move || self.all(found).into_iter().map(footprint).fold(Footprint::default(), sum);
        tokio::task::spawn_blocking(all).await.unwrap_or_default()
    }

    /// Its processes, from those that were found.
    fn all(&self, found: Vec<i32>) -> BTreeSet<i32> {
        let mut all: BTreeSet<_> = found.into_iter().collect();
        if let Some(root) = i32::try_from(self.pid).ok().filter(|root| all.contains(root)) {
            all.extend(subtree(root)); // What runs as somebody else, too.
        }
        all
    }

    fn look(&self, found: Vec<i32>) -> Option<Usage> {
        let tick_ms = 1000 / sysconf(SysconfVar::CLK_TCK).ok()??.unsigned_abs().max(1);
        let each = self.all(found).into_iter().filter_map(|pid| usage(pid, tick_ms));
        let mut sum = each.reduce(add)?;
        let seen = sum.memory_peak.max(sum.memory);
        sum.memory_peak = self.peak.fetch_max(seen, Ordering::Relaxed).max(seen);
        Some(sum)
    }
}

/// Of two processes together. The most of each was not at one time, so that of one is told.
fn add(one: Usage, other: Usage) -> Usage {
    Usage {
        cpu_ms: one.cpu_ms + other.cpu_ms,
        memory: one.memory + other.memory,
        memory_peak: one.memory_peak.max(other.memory_peak),
        read: one.read + other.read,
        written: one.written + other.written,
        processes: one.processes + other.processes,
    }
}

/// What one process takes; what it may not tell counts nothing.
fn usage(pid: i32, tick_ms: u64) -> Option<Usage> {
    let found = stat(pid).filter(|stat| stat.is_alive)?;
    let read = |name| fs::read_to_string(folder(pid).join(name)).unwrap_or_default();
    let (status, io) = (read("status"), read("io"));
    Some(Usage {
        cpu_ms: found.ticks * tick_ms,
        memory: number(&status, "VmRSS:") * 1024,
        memory_peak: number(&status, "VmHWM:") * 1024,
        read: number(&io, "rchar:"),
        written: number(&io, "wchar:"),
        processes: 1,
    })
}

/// What there is of one process. What waits to be reaped has no memory, and counts still: it takes a
/// place.
fn footprint(pid: i32) -> Footprint {
    let status = fs::read_to_string(folder(pid).join("status")).unwrap_or_default();
    Footprint { memory: number(&status, "VmRSS:") * 1024, processes: number(&status, "Threads:") }
}

fn sum(one: Footprint, other: Footprint) -> Footprint {
    Footprint { memory: one.memory + other.memory, processes: one.processes + other.processes }
}

/// The number behind a word at the beginning of a line.
fn number(lines: &str, word: &str) -> u64 {
    let rest = lines.lines().find_map(|line| line.strip_prefix(word));
    rest.and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Gauge, add, footprint, number, usage};
    use crate::warden::label::Label;
    use algonius_actors::model::execution::Stamp;
    use algonius_actors::model::id::ExecutionId;
    use algonius_actors::model::resources::Footprint;
    use algonius_actors::model::usage::Usage;
    use std::sync::Arc;
    use uuid::Uuid;

    #[test]
    fn a_number_is_read_from_its_own_line() {
        let lines = "VmHWM:\t  300 kB\nVmRSS:\t  200 kB\n";
        assert_eq!((number(lines, "VmRSS:"), number(lines, "VmHWM:")), (200, 300));
        assert_eq!(number(lines, "rchar:"), 0);
    }

    #[test]
    fn what_processes_take_is_added_but_for_the_most_of_one() {
        let one = Usage { cpu_ms: 1, memory: 2, memory_peak: 9, read: 3, written: 4, processes: 1 };
        let sum = Usage { cpu_ms: 2, memory: 4, memory_peak: 9, read: 6, written: 8, processes: 2 };
        assert_eq!(add(one, one), sum);
    }

    #[test]
    fn this_process_takes_memory() {
        let own = usage(std::process::id().try_into().unwrap(), 10).unwrap();
        assert!(own.memory > 0 && own.memory_peak >= own.memory && own.read > 0, "{own:?}");
    }

    #[test]
    fn threads_count_as_the_system_counts_them() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let waits = std::thread::spawn(move || receiver.recv());
        let own = footprint(std::process::id().try_into().unwrap());
        assert!(own.memory > 0 && own.processes >= 2, "{own:?}");
        drop(sender);
        assert!(waits.join().unwrap().is_err());
    }

    #[tokio::test]
    async fn where_nothing_lives_there_is_nothing_to_tell() {
        let label = Label::of(Uuid::new_v4(), ExecutionId::fresh(), Stamp::FIRST);
        let gauge = Gauge::of(std::process::id(), label, Arc::default());
        assert_eq!(gauge.clone().read().await, None);
        assert_eq!(gauge.weigh().await, Footprint::default());
    }
}
