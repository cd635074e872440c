//! `[retention]`: for how long, how many and in how many bytes what has ended is kept.

use algonius_actors::model::stock::Keep;

use super::section::Section;
use super::value::Bounds;
use std::time::Duration;

/// How the history is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The bounds.
    pub keep: Keep,
    /// From one pass over the history to the next.
    pub interval: Duration,
}

/// A day in seconds, and a hundred years of them.
const DAY: f64 = 86_400.0;
const CENTURY: f64 = 36_525.0 * DAY;

/// Reads `[retention]`; nothing when it is switched off. A bound of 0 is none.
pub(super) fn read(mut section: Section<'_>) -> Option<Retention> {
    let from = &mut section;
    let is_enabled = from.flag("enabled", true);
    let max_age = from.seconds("max_age", Bounds::new(0.0, CENTURY, 30.0 * DAY));
    let executions = from.count("max_executions", Bounds::new(0, 1 << 40, 100_000));
    let bytes = from.count("max_bytes", Bounds::new(0, 1 << 50, 2 << 30));
    let min_age = from.seconds("min_age", Bounds::new(0.0, CENTURY, 3600.0));
    let interval = from.seconds("interval", Bounds::new(0.05, DAY, 600.0));
    section.finish();
    let keep = Keep {
        max_age: Some(max_age).filter(|age| !age.is_zero()),
        max_executions: Some(executions).filter(|count| *count > 0),
        max_bytes: Some(bytes).filter(|bytes| *bytes > 0),
        min_age,
    };
    is_enabled.then_some(Retention { keep, interval })
}
