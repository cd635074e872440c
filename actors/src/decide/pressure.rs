//! Whether the machine can take more work.
//!
//! Each gauge is seen as a level: 1 is its bound. The first reading sets a gauge; then it turns when
//! two readings in a row say so, and back only well below its bound: the judgement does not flutter.

use std::collections::BTreeMap;

use crate::model::pressure::{Basis, PressureSpec, Reading, Shortage};

/// A gauge that is over its bound turns back below this level.
const RELIEF: f64 = 0.9;
/// So many readings in a row turn a gauge.
const TURNS: u32 = 2;

/// What is remembered from one reading to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gauges(BTreeMap<Shortage, Gauge>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gauge {
    is_over: bool,
    /// How many readings in a row spoke against that.
    against: u32,
}

impl Gauges {
    /// What is short.
    #[must_use]
    pub fn short(&self) -> Vec<Shortage> {
        self.0.iter().filter(|(_, gauge)| gauge.is_over).map(|(shortage, _)| *shortage).collect()
    }
}

/// By what a reading can be judged.
#[must_use]
pub const fn basis(reading: &Reading, spec: &PressureSpec) -> Basis {
    match (spec.by_stalls, &reading.stalls) {
        (true, Some(_)) => Basis::Stalls,
        (true, None) => Basis::Fallback,
        (false, _) => Basis::Usage,
    }
}

/// Decides what the reading does to the gauges. What could not be read speaks for no shortage.
#[must_use]
pub fn step(mut gauges: Gauges, reading: &Reading, spec: &PressureSpec) -> Gauges {
    use Shortage::{Cpu, Disk, Io, Load, Memory};
    let levels = levels(reading, spec);
    for shortage in [Cpu, Memory, Io, Load, Disk] {
        let level = levels.iter().find(|(of, _)| *of == shortage).map_or(0.0, |(_, level)| *level);
        let first = Gauge { is_over: level > 1.0, against: 0 };
        gauges.0.entry(shortage).and_modify(|gauge| gauge.turn(level)).or_insert(first);
    }
    gauges
}

impl Gauge {
    fn turn(&mut self, level: f64) {
        let is_against = if self.is_over { level < RELIEF } else { level > 1.0 };
        self.against = if is_against { self.against + 1 } else { 0 };
        if self.against == TURNS {
            *self = Self { is_over: !self.is_over, against: 0 };
        }
    }
}

/// The levels of all gauges that count.
fn levels(reading: &Reading, spec: &PressureSpec) -> Vec<(Shortage, f64)> {
    let of = |value: Option<f64>, bound: f64| value.unwrap_or_default() / bound;
    let per_core = reading.load.map(|load| load / f64::from(reading.cores.max(1)));
    let load_per_core = of(per_core, spec.load_per_core);
    let mut levels = vec![(Shortage::Disk, disk(reading, spec))];
    match (basis(reading, spec), reading.stalls) {
        (Basis::Stalls, Some(stalls)) => levels.extend([
            (Shortage::Memory, stalls.memory_percent / spec.stalls.memory_percent),
            (Shortage::Io, stalls.io_percent / spec.stalls.io_percent),
            // One waiting program is no overload, and the load remembers what is over: both count.
            (Shortage::Load, load_per_core.min(stalls.cpu_percent / spec.stalls.cpu_percent)),
        ]),
        (Basis::Usage, _) => levels.extend([
            (Shortage::Cpu, of(reading.cpu_percent, spec.cpu_percent)),
            (Shortage::Memory, of(reading.memory_percent, spec.memory_percent)),
            (Shortage::Load, of(reading.load, spec.load)),
        ]),
        (Basis::Fallback | Basis::Stalls, _) => levels.extend([
            (Shortage::Memory, of(reading.memory_percent, spec.memory_percent)),
            (Shortage::Load, load_per_core),
        ]),
    }
    levels
}

/// The level of the disk: the less room there is, the higher.
fn disk(reading: &Reading, spec: &PressureSpec) -> f64 {
    match (reading.disk_free_bytes, spec.min_disk_free_bytes) {
        (None, _) | (_, 0) => 0.0,
        (Some(free), least) => least as f64 / free.max(1) as f64,
    }
}
