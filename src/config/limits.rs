//! How far other settings may go; `[limits]` moves these bounds.

use super::section::Section;
use super::value::Bounds;

/// Largest bound of a time that `[limits]` may set: thirty days.
const LONGEST: f64 = 2_592_000.0;
/// Largest bound of a number that `[limits]` may set.
const MOST: u64 = 1 << 40;

/// The bounds of every number of an agent, with its defaults.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) timeout: Bounds<f64>,
    pub(super) idle_timeout: Bounds<f64>,
    pub(super) queue_timeout: Bounds<f64>,
    pub(super) start_timeout: Bounds<f64>,
    pub(super) stop_grace: Bounds<f64>,
    pub(super) answer_timeout: Bounds<f64>,
    pub(super) heartbeat: Bounds<f64>,
    pub(super) session_timeout: Bounds<f64>,
    pub(super) retry_base: Bounds<f64>,
    pub(super) dedup_window: Bounds<f64>,
    pub(super) queue_depth: Bounds<u64>,
    pub(super) max_concurrent: Bounds<u64>,
    pub(super) max_input_bytes: Bounds<u64>,
    pub(super) max_output_bytes: Bounds<u64>,
    pub(super) retry_max: Bounds<u64>,
}

impl Limits {
    /// Reads `[limits]`.
    pub(super) fn read(mut from: Section<'_>) -> Self {
        let section = &mut from;
        let limits = Self {
            timeout: time(section, ["timeout_min", "timeout_max"], [60.0, 3600.0, 300.0]),
            idle_timeout: time(
                section,
                ["idle_timeout_min", "idle_timeout_max"],
                [1.0, 86_400.0, 86_400.0],
            ),
            queue_timeout: time(
                section,
                ["queue_timeout_min", "queue_timeout_max"],
                [1.0, 86_400.0, 1800.0],
            ),
            start_timeout: time(
                section,
                ["start_timeout_min", "start_timeout_max"],
                [0.1, 600.0, 30.0],
            ),
            stop_grace: time(section, ["stop_grace_min", "stop_grace_max"], [0.1, 60.0, 5.0]),
            answer_timeout: time(
                section,
                ["answer_timeout_min", "answer_timeout_max"],
                [1.0, 2_592_000.0, 86_400.0],
            ),
            heartbeat: time(section, ["heartbeat_min", "heartbeat_max"], [1.0, 3600.0, 30.0]),
            session_timeout: time(
                section,
                ["session_timeout_min", "session_timeout_max"],
                [60.0, 86_400.0, 1800.0],
            ),
            retry_base: time(section, ["retry_base_min", "retry_base_max"], [0.0, 3600.0, 1.0]),
            dedup_window: time(
                section,
                ["dedup_window_min", "dedup_window_max"],
                [0.1, 3600.0, 60.0],
            ),
            queue_depth: count(section, "queue_depth_max", [0, 1000, 10]),
            max_concurrent: count(section, "max_concurrent_max", [1, 1000, 10]),
            max_input_bytes: count(section, "max_input_bytes_max", [1, 64 << 20, 1 << 20]),
            max_output_bytes: count(section, "max_output_bytes_max", [1, 1 << 30, 10 << 20]),
            retry_max: count(section, "retry_max", [0, 10, 3]),
        };
        from.finish();
        limits
    }
}

/// Bounds of a time, given as least, most and default; a default beyond moved bounds moves along.
fn time(section: &mut Section<'_>, keys: [&'static str; 2], usual: [f64; 3]) -> Bounds<f64> {
    let ([least, most], [min, max, default]) = (keys, usual);
    let given = section.entry(least).map(|entry| entry.place);
    let min = section.seconds(least, Bounds::new(0.0, LONGEST, min)).as_secs_f64();
    let max = section.seconds(most, Bounds::new(0.0, LONGEST, max)).as_secs_f64();
    if min > max {
        let place = given.unwrap_or_else(|| section.place.below(least).hidden());
        section.reader.error(&place, format!("must not be more than {most}, which is {max}"));
        return Bounds::new(max, max, max);
    }
    Bounds::new(min, max, default.clamp(min, max))
}

/// Bounds of a number whose least value is fixed.
fn count(section: &mut Section<'_>, most: &'static str, usual: [u64; 3]) -> Bounds<u64> {
    let [min, max, default] = usual;
    let max = section.count(most, Bounds::new(min, MOST, max));
    Bounds::new(min, max, default.clamp(min, max))
}
