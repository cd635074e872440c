//! `[pressure]`: bounds of the machine's resource shortage beyond which the service accepts no new work.

use std::time::Duration;

use algonius_actors::model::host::pressure::{PressureSpec, StallReading};

use crate::config::table::{
    ConfigKey, Flag, RangeWithDefault, Seconds, Section, ValueShape, value,
};

/// Bounds in bytes of memory.
const MEMORY_BOUNDS: RangeWithDefault<u64> = RangeWithDefault::new(1 << 20, 1 << 46, 0);

/// Monitoring of the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PressureSettings {
    /// Pressure limits.
    pub spec: PressureSpec,
    /// Interval between two measurements.
    pub interval: Duration,
    /// Bytes of memory that agents may use together; by default a share of the machine's memory.
    pub max_reserved_memory_bytes: Option<u64>,
}

const ENABLED: ConfigKey<Flag> = ConfigKey::flag("enabled", true, "");
const INTERVAL: ConfigKey<Seconds> = ConfigKey::seconds(
    "interval",
    RangeWithDefault::new(0.01, 3600.0, 1.0),
    "seconds between two measurements",
);

/// Reads `[pressure]`; `None` if it is disabled.
pub(crate) fn read(mut section: Section<'_>) -> Option<PressureSettings> {
    let table = &mut section;
    let is_enabled = ENABLED.read(table);
    let modes = [("stalls", true), ("usage", false)];
    let percent = |table: &mut Section<'_>, key, default| {
        table.number(key, RangeWithDefault::new(0.1, 100.0, default))
    };
    let load = |table: &mut Section<'_>, key, default| {
        table.number(key, RangeWithDefault::new(0.01, 1e6, default))
    };
    let spec = PressureSpec {
        uses_stall_information: table.keyword("mode", &modes).is_none_or(|mode| mode.value),
        max_cpu_percent: percent(table, "cpu_percent", 90.0),
        max_memory_percent: percent(table, "memory_percent", 85.0),
        max_load: load(table, "load", 4.0),
        max_stalls: StallReading {
            cpu_percent: percent(table, "cpu_stall_percent", 90.0),
            memory_percent: percent(table, "memory_stall_percent", 20.0),
            io_percent: percent(table, "io_stall_percent", 95.0),
        },
        max_load_per_core: load(table, "load_per_core", 16.0),
        min_disk_free_bytes: table
            .count("min_disk_free_bytes", RangeWithDefault::new(0, 1 << 60, 1_000_000_000)),
    };
    let interval = INTERVAL.read(table);
    let entry = table.entry("max_reserved_memory_bytes");
    table.record_shape("max_reserved_memory_bytes", || ValueShape::Count(MEMORY_BOUNDS, false));
    let max_reserved_memory_bytes =
        entry.and_then(|entry| value::count(table.reader, &entry, MEMORY_BOUNDS));
    section.report_unknown_keys();
    is_enabled.then_some(PressureSettings { spec, interval, max_reserved_memory_bytes })
}
