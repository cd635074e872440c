//! Bounds of other settings, which `[limits]` changes.

use crate::config::table::{RangeWithDefault, Section};

/// Greatest bound of a time in seconds that `[limits]` may set: thirty days.
const MAX_BOUND_SECONDS: f64 = 2_592_000.0;
/// Greatest bound of a number that `[limits]` may set.
const MAX_BOUND_COUNT: u64 = 1 << 40;

/// Bounds of every number of an agent, with its defaults.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentSettingBounds {
    pub(crate) timeout: RangeWithDefault<f64>,
    pub(crate) idle_timeout: RangeWithDefault<f64>,
    pub(crate) start_timeout: RangeWithDefault<f64>,
    pub(crate) stop_grace: RangeWithDefault<f64>,
    pub(crate) answer_timeout: RangeWithDefault<f64>,
    pub(crate) heartbeat: RangeWithDefault<f64>,
    pub(crate) session_timeout: RangeWithDefault<f64>,
    pub(crate) dedup_window: RangeWithDefault<f64>,
    pub(crate) max_concurrent: RangeWithDefault<u64>,
    pub(crate) queue: QueueBounds,
    pub(crate) retry: RetryBounds,
    pub(crate) sizes: SizeBounds,
}

/// Bounds of the queue of an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueBounds {
    pub(crate) depth: RangeWithDefault<u64>,
    pub(crate) timeout: RangeWithDefault<f64>,
}

/// Bounds of the retries of an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryBounds {
    pub(crate) max_retries: RangeWithDefault<u64>,
    pub(crate) base_delay: RangeWithDefault<f64>,
}

/// Bounds of the texts of an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizeBounds {
    pub(crate) input: RangeWithDefault<u64>,
    pub(crate) output: RangeWithDefault<u64>,
}

impl AgentSettingBounds {
    /// Reads `[limits]`.
    pub(crate) fn read(mut table: Section<'_>) -> Self {
        let section = &mut table;
        let bounds = Self {
            timeout: read_time_bounds(
                section,
                ["timeout_min", "timeout_max"],
                [60.0, 3600.0, 300.0],
            ),
            idle_timeout: read_time_bounds(
                section,
                ["idle_timeout_min", "idle_timeout_max"],
                [1.0, 86_400.0, 86_400.0],
            ),
            start_timeout: read_time_bounds(
                section,
                ["start_timeout_min", "start_timeout_max"],
                [0.1, 600.0, 30.0],
            ),
            stop_grace: read_time_bounds(
                section,
                ["stop_grace_min", "stop_grace_max"],
                [0.1, 60.0, 5.0],
            ),
            answer_timeout: read_time_bounds(
                section,
                ["answer_timeout_min", "answer_timeout_max"],
                [1.0, 2_592_000.0, 86_400.0],
            ),
            heartbeat: read_time_bounds(
                section,
                ["heartbeat_min", "heartbeat_max"],
                [1.0, 3600.0, 30.0],
            ),
            session_timeout: read_time_bounds(
                section,
                ["session_timeout_min", "session_timeout_max"],
                [60.0, 86_400.0, 1800.0],
            ),
            dedup_window: read_time_bounds(
                section,
                ["dedup_window_min", "dedup_window_max"],
                [0.1, 3600.0, 60.0],
            ),
            max_concurrent: read_count_bounds(section, "max_concurrent_max", [1, 1000, 10]),
            queue: QueueBounds::read(section),
            retry: RetryBounds::read(section),
            sizes: SizeBounds::read(section),
        };
        table.report_unknown_keys();
        bounds
    }
}

impl QueueBounds {
    /// Reads the bounds of the queue.
    fn read(section: &mut Section<'_>) -> Self {
        Self {
            depth: read_count_bounds(section, "queue_depth_max", [0, 1000, 10]),
            timeout: read_time_bounds(
                section,
                ["queue_timeout_min", "queue_timeout_max"],
                [1.0, 86_400.0, 1800.0],
            ),
        }
    }
}

impl RetryBounds {
    /// Reads the bounds of the retries.
    fn read(section: &mut Section<'_>) -> Self {
        Self {
            max_retries: read_count_bounds(section, "retry_max", [0, 10, 3]),
            base_delay: read_time_bounds(
                section,
                ["retry_base_min", "retry_base_max"],
                [0.0, 3600.0, 1.0],
            ),
        }
    }
}

impl SizeBounds {
    /// Reads the bounds of the texts.
    fn read(section: &mut Section<'_>) -> Self {
        Self {
            input: read_count_bounds(section, "max_input_bytes_max", [1, 64 << 20, 1 << 20]),
            output: read_count_bounds(section, "max_output_bytes_max", [1, 1 << 30, 10 << 20]),
        }
    }
}

/// Reads the bounds of a time, given as minimum, maximum and default; the default is clamped to changed bounds.
fn read_time_bounds(
    section: &mut Section<'_>,
    keys: [&'static str; 2],
    bounds: [f64; 3],
) -> RangeWithDefault<f64> {
    let ([min_key, max_key], [min, max, default]) = (keys, bounds);
    let min_position = section.entry(min_key).map(|entry| entry.position);
    let min =
        section.duration(min_key, RangeWithDefault::new(0.0, MAX_BOUND_SECONDS, min)).as_secs_f64();
    let max =
        section.duration(max_key, RangeWithDefault::new(0.0, MAX_BOUND_SECONDS, max)).as_secs_f64();
    if min > max {
        let position =
            min_position.unwrap_or_else(|| section.position.child(min_key).without_excerpt());
        section
            .reader
            .report_error(&position, format!("must not be more than {max_key}, which is {max}"));
        return RangeWithDefault::new(max, max, max);
    }
    RangeWithDefault::new(min, max, default.clamp(min, max))
}

/// Reads the bounds of a number whose minimum is fixed.
fn read_count_bounds(
    section: &mut Section<'_>,
    max_key: &'static str,
    bounds: [u64; 3],
) -> RangeWithDefault<u64> {
    let [min, max, default] = bounds;
    let max = section.count(max_key, RangeWithDefault::new(min, MAX_BOUND_COUNT, max));
    RangeWithDefault::new(min, max, default.clamp(min, max))
}
