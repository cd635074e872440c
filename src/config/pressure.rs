//! `[pressure]`: how short of something the machine may be before new work stays out.

use std::time::Duration;

use algonius_actors::model::pressure::{PressureSpec, Stalls};

use super::section::Section;
use super::shape::Shape;
use super::value::{self, Bounds};

/// Bytes of memory.
const MEMORY: Bounds<u64> = Bounds::new(1 << 20, 1 << 46, 0);

/// How the machine is watched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pressure {
    /// The bounds.
    pub spec: PressureSpec,
    /// From one look to the next.
    pub interval: Duration,
    /// Bytes of memory that agents may take together; a share of the machine's where nobody says.
    pub agents_memory: Option<u64>,
}

/// Reads `[pressure]`; nothing when it is switched off.
pub(super) fn read(mut section: Section<'_>) -> Option<Pressure> {
    let from = &mut section;
    let is_enabled = from.flag("enabled", true);
    let modes = [("stalls", true), ("usage", false)];
    let share =
        |from: &mut Section<'_>, key, usual| from.number(key, Bounds::new(0.1, 100.0, usual));
    let load = |from: &mut Section<'_>, key, usual| from.number(key, Bounds::new(0.01, 1e6, usual));
    let spec = PressureSpec {
        by_stalls: from.word("mode", &modes).is_none_or(|mode| mode.value),
        cpu_percent: share(from, "cpu_percent", 90.0),
        memory_percent: share(from, "memory_percent", 85.0),
        load: load(from, "load", 4.0),
        stalls: Stalls {
            cpu_percent: share(from, "cpu_stall_percent", 90.0),
            memory_percent: share(from, "memory_stall_percent", 20.0),
            io_percent: share(from, "io_stall_percent", 95.0),
        },
        load_per_core: load(from, "load_per_core", 16.0),
        min_disk_free_bytes: from
            .count("min_disk_free_bytes", Bounds::new(0, 1 << 60, 1_000_000_000)),
    };
    let interval = from.seconds("interval", Bounds::new(0.01, 3600.0, 1.0));
    let most = from.entry("agents_memory_bytes");
    from.note("agents_memory_bytes", || Shape::Count(MEMORY, false));
    let agents_memory = most.and_then(|most| value::count(from.reader, &most, MEMORY));
    section.finish();
    is_enabled.then_some(Pressure { spec, interval, agents_memory })
}
