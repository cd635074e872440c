//! Resource pressure: decides whether the machine can accept more work.
//!
//! Each gauge is a level relative to its limit, which is 1. The first reading sets the gauge. Later the gauge turns
//! after two consecutive readings on the other side, and returns only well below its limit, so that the decision does
//! not flap.

use std::collections::BTreeMap;

use crate::model::host::pressure::{HostReading, PressureBasis, PressureSpec, Shortage};

/// Level below which a gauge over its limit turns back.
const CLEAR_LEVEL: f64 = 0.9;
/// Number of consecutive readings that turn a gauge.
const READINGS_TO_SWITCH: u32 = 2;

/// State of the gauges between two readings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PressureGauges(BTreeMap<Shortage, PressureGauge>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PressureGauge {
    is_over_limit: bool,
    /// Number of consecutive readings on the other side of the limit.
    opposite_readings: u32,
}

impl PressureGauges {
    /// Returns the short resources.
    #[must_use]
    pub fn shortages(&self) -> Vec<Shortage> {
        self.0
            .iter()
            .filter(|(_, gauge)| gauge.is_over_limit)
            .map(|(shortage, _)| *shortage)
            .collect()
    }
}

/// Returns the metrics by which a reading can be evaluated.
#[must_use]
pub const fn pressure_basis(reading: &HostReading, spec: &PressureSpec) -> PressureBasis {
    match (spec.uses_stall_information, &reading.stalls) {
        (true, Some(_)) => PressureBasis::Stalls,
        (true, None) => PressureBasis::Fallback,
        (false, _) => PressureBasis::Usage,
    }
}

/// Updates the gauges with a reading. A missing value indicates no shortage.
#[must_use]
pub fn update_gauges(
    mut gauges: PressureGauges,
    reading: &HostReading,
    spec: &PressureSpec,
) -> PressureGauges {
    use Shortage::{Cpu, Disk, Io, Load, Memory};
    let levels = gauge_levels(reading, spec);
    for shortage in [Cpu, Memory, Io, Load, Disk] {
        let level = levels
            .iter()
            .find(|(resource, _)| *resource == shortage)
            .map_or(0.0, |(_, level)| *level);
        let initial_gauge = PressureGauge { is_over_limit: level > 1.0, opposite_readings: 0 };
        gauges.0.entry(shortage).and_modify(|gauge| gauge.update(level)).or_insert(initial_gauge);
    }
    gauges
}

impl PressureGauge {
    fn update(&mut self, level: f64) {
        let is_opposite = if self.is_over_limit { level < CLEAR_LEVEL } else { level > 1.0 };
        self.opposite_readings = if is_opposite { self.opposite_readings + 1 } else { 0 };
        if self.opposite_readings == READINGS_TO_SWITCH {
            *self = Self { is_over_limit: !self.is_over_limit, opposite_readings: 0 };
        }
    }
}

/// Returns the levels of all gauges that apply.
fn gauge_levels(reading: &HostReading, spec: &PressureSpec) -> Vec<(Shortage, f64)> {
    let relative_level = |value: Option<f64>, bound: f64| value.unwrap_or_default() / bound;
    let per_core = reading.load.map(|load| load / f64::from(reading.cores.max(1)));
    let load_per_core = relative_level(per_core, spec.max_load_per_core);
    let mut levels = vec![(Shortage::Disk, disk_level(reading, spec))];
    match (pressure_basis(reading, spec), reading.stalls) {
        (PressureBasis::Stalls, Some(stalls)) => levels.extend([
            (Shortage::Memory, stalls.memory_percent / spec.max_stalls.memory_percent),
            (Shortage::Io, stalls.io_percent / spec.max_stalls.io_percent),
            // One waiting program is no overload, and the load average lags behind: both must be high.
            (Shortage::Load, load_per_core.min(stalls.cpu_percent / spec.max_stalls.cpu_percent)),
        ]),
        (PressureBasis::Usage, _) => levels.extend([
            (Shortage::Cpu, relative_level(reading.cpu_percent, spec.max_cpu_percent)),
            (Shortage::Memory, relative_level(reading.memory_percent, spec.max_memory_percent)),
            (Shortage::Load, relative_level(reading.load, spec.max_load)),
        ]),
        (PressureBasis::Fallback | PressureBasis::Stalls, _) => levels.extend([
            (Shortage::Memory, relative_level(reading.memory_percent, spec.max_memory_percent)),
            (Shortage::Load, load_per_core),
        ]),
    }
    levels
}

/// Returns the level of the disk: the less free space, the higher the level.
fn disk_level(reading: &HostReading, spec: &PressureSpec) -> f64 {
    match (reading.disk_free_bytes, spec.min_disk_free_bytes) {
        (None, _) | (_, 0) => 0.0,
        (Some(free), min_free) => min_free as f64 / free.max(1) as f64,
    }
}
