//! The gauges of this machine, as Linux shows them under `/proc`.

use std::fs;
use std::path::{Path, PathBuf};

use algonius_actors::model::pressure::{Reading, Stalls};
use algonius_actors::ports::meter::Meter;
use async_trait::async_trait;
use nix::sys::statvfs::statvfs;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

/// Reads the gauges of this machine, and of the disk on which a folder is.
#[derive(Debug)]
pub struct MachineMeter {
    folder: PathBuf,
    /// What the processors had done at the reading before.
    before: Mutex<Option<Ticks>>,
}

/// What all processors have done since the machine began, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    all: u64,
}

impl MachineMeter {
    /// Looks at the disk of this folder.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, before: Mutex::new(None) }
    }
}

#[async_trait]
impl Meter for MachineMeter {
    /// A disk that hangs holds a thread that may be held, and nobody else.
    async fn read(&self) -> Reading {
        let folder = self.folder.clone();
        // A fault of the reading is a machine that tells nothing.
        let (reading, ticks) = spawn_blocking(move || look(&folder)).await.unwrap_or_default();
        let before = std::mem::replace(&mut *self.before.lock().await, ticks);
        let cpu_percent = before.zip(ticks).and_then(|(before, now)| now.busy_since(before));
        Reading { cpu_percent, ..reading }
    }

    fn memory(&self) -> Option<u64> {
        memory_of_machine()
    }
}

fn look(folder: &Path) -> (Reading, Option<Ticks>) {
    let text = |name: &str| fs::read_to_string(Path::new("/proc").join(name)).unwrap_or_default();
    let stat = text("stat");
    let reading = Reading {
        cores: cores(&stat),
        cpu_percent: None,
        memory_percent: memory(&text("meminfo")),
        load: text("loadavg").split(' ').next().and_then(|load| load.parse().ok()),
        disk_free_bytes: room(folder),
        stalls: stalls(["cpu", "memory", "io"].map(|name| text(&format!("pressure/{name}")))),
    };
    (reading, ticks(&stat))
}

impl Ticks {
    /// The busy share since an earlier moment, in percent; nothing when no time has passed.
    fn busy_since(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        Some(self.busy.saturating_sub(before.busy) as f64 * 100.0 / all as f64)
    }
}

/// Those of `/proc/stat`: its first line has the sum of all processors.
fn ticks(stat: &str) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let numbers: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    // What guests use, from the ninth on, is part of the first two already.
    let [user, nice, system, idle, rest @ ..] = numbers.get(..8).unwrap_or(&numbers) else {
        return None;
    };
    let (waiting, others) = rest.split_first().unwrap_or((&0, &[]));
    let busy = user + nice + system + others.iter().sum::<u64>();
    Some(Ticks { busy, all: busy + idle + waiting })
}

/// The machine's processors, also where the service may use some of them only: the load is that
/// of all.
fn cores(stat: &str) -> u32 {
    let is_core = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    u32::try_from(stat.lines().filter(is_core).count()).unwrap_or(u32::MAX)
}

/// What programs cannot get, of `/proc/meminfo`; what the system keeps for speed they can get.
fn memory(meminfo: &str) -> Option<f64> {
    let of = |name: &str| -> Option<f64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.trim().parse().ok()
    };
    let (all, free) = (of("MemTotal:").filter(|all| *all > 0.0)?, of("MemAvailable:")?);
    Some((all - free).max(0.0) * 100.0 / all)
}

/// All memory of this machine, in bytes.
fn memory_of_machine() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Those of `/proc/pressure/*`; nothing when one of them is not there.
fn stalls([cpu, memory, io]: [String; 3]) -> Option<Stalls> {
    Some(Stalls {
        cpu_percent: average(&cpu, "some")?,
        memory_percent: average(&memory, "full")?,
        io_percent: average(&io, "full")?,
    })
}

/// The average of ten seconds in a line such as `some avg10=1.23 avg60=0.50 …`.
fn average(text: &str, line: &str) -> Option<f64> {
    let line = text.lines().find_map(|text| text.strip_prefix(line))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
}

/// What is free for programs on the disk of a folder, in bytes.
fn room(folder: &Path) -> Option<u64> {
    let disk = statvfs(folder).ok()?;
    disk.blocks_available().checked_mul(disk.fragment_size())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    const STAT: &str = "cpu  100 20 30 400 50 6 4 10 7 0\n\
        cpu0 50 10 15 200 25 3 2 5 0 0\ncpu1 50 10 15 200 25 3 2 5 0 0\nintr 1\nctxt 2\n";
    const PSI: &str = "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\n\
        full avg10=3.25 avg60=0.00 avg300=0.00 total=1\n";

    #[test]
    fn what_the_system_writes_is_read() {
        let now = ticks(STAT);
        assert_eq!((now, cores(STAT)), (Some(Ticks { busy: 170, all: 620 }), 2));
        let before = Ticks { busy: 160, all: 600 };
        assert_eq!(now.and_then(|now| now.busy_since(before)), Some(50.0));
        let meminfo = "MemTotal:    2000 kB\nMemFree:  10 kB\nMemAvailable:    500 kB\n";
        assert_eq!(memory(meminfo), Some(75.0));
        let psi = || PSI.to_owned();
        let read = Stalls { cpu_percent: 12.5, memory_percent: 3.25, io_percent: 3.25 };
        assert_eq!(stalls([psi(), psi(), psi()]), Some(read));
    }

    #[test]
    fn what_is_not_there_is_left_out() {
        let psi = || PSI.to_owned();
        assert_eq!(stalls([psi(), String::new(), psi()]), None);
        assert_eq!((ticks(""), ticks("cpu  1 2"), cores("")), (None, None, 0));
        assert_eq!((memory(""), memory("MemTotal: 0 kB\nMemAvailable: 0 kB")), (None, None));
        assert_eq!(room(Path::new("/proc/nowhere/at/all")), None);
        let now = Ticks { busy: 1, all: 5 };
        assert_eq!((now.busy_since(now), now.busy_since(Ticks { busy: 1, all: 9 })), (None, None));
    }

    #[tokio::test]
    async fn this_machine_tells_what_it_has() {
        let folder = tempfile::tempdir().expect("a folder");
        let meter = MachineMeter::new(folder.path().to_owned());
        let first = meter.read().await;
        assert_eq!(first.cpu_percent, None);
        assert!(first.cores > 0 && first.load.is_some_and(|load| load >= 0.0), "{first:?}");
        assert!(first.memory_percent.is_some_and(|used| (0.1..100.0).contains(&used)), "{first:?}");
        assert!(first.disk_free_bytes.is_some_and(|free| free > 0), "{first:?}");
        assert_eq!(first.stalls.is_some(), Path::new("/proc/pressure/cpu").exists());
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut used = None;
        while used.is_none() && Instant::now() < deadline {
            used = meter.read().await.cpu_percent; // A tick has 10 ms.
        }
        assert!(used.is_some_and(|used| (0.0..=100.0).contains(&used)), "{used:?}");
    }
}
