//! `[retention]`: age, number and bytes up to which ended executions are stored.

use algonius_actors::model::host::storage_stats::RetentionLimits;

use crate::config::table::{ConfigKey, Count, Flag, RangeWithDefault, Seconds, Section};
use std::time::Duration;

/// Retention of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionSettings {
    /// Retention limits.
    pub limits: RetentionLimits,
    /// Interval between two passes over the history.
    pub interval: Duration,
}

/// Seconds of a day, and of a hundred years.
const DAY_SECONDS: f64 = 86_400.0;
const CENTURY_SECONDS: f64 = 36_525.0 * DAY_SECONDS;

const ENABLED: ConfigKey<Flag> = ConfigKey::flag("enabled", true, "false: nothing is deleted");
const MAX_AGE: ConfigKey<Seconds> = ConfigKey::seconds(
    "max_age",
    RangeWithDefault::new(0.0, CENTURY_SECONDS, 30.0 * DAY_SECONDS),
    "",
);
const MAX_EXECUTIONS: ConfigKey<Count> = ConfigKey::count(
    "max_executions",
    RangeWithDefault::new(0, 1 << 40, 100_000),
    "of the whole service, including unfinished ones",
);
const MAX_BYTES: ConfigKey<Count> = ConfigKey::count(
    "max_bytes",
    RangeWithDefault::new(0, 1 << 50, 2 << 30),
    "size of the database",
);
const MIN_AGE: ConfigKey<Seconds> = ConfigKey::seconds(
    "min_age",
    RangeWithDefault::new(0.0, CENTURY_SECONDS, 3600.0),
    "no execution is deleted earlier",
);
const INTERVAL: ConfigKey<Seconds> = ConfigKey::seconds(
    "interval",
    RangeWithDefault::new(0.05, DAY_SECONDS, 600.0),
    "time between two passes",
);

/// Reads `[retention]`; `None` if it is disabled. A bound of 0 means no bound.
pub(crate) fn read(mut section: Section<'_>) -> Option<RetentionSettings> {
    let table = &mut section;
    let is_enabled = ENABLED.read(table);
    let limits = RetentionLimits {
        max_age: Some(MAX_AGE.read(table)).filter(|age| !age.is_zero()),
        max_executions: Some(MAX_EXECUTIONS.read(table)).filter(|count| *count > 0),
        max_bytes: Some(MAX_BYTES.read(table)).filter(|bytes| *bytes > 0),
        min_age: MIN_AGE.read(table),
    };
    let interval = INTERVAL.read(table);
    section.report_unknown_keys();
    is_enabled.then_some(RetentionSettings { limits, interval })
}
