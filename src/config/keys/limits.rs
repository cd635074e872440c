//! Bounds of other settings, which `[limits]` changes.

use crate::config::table::{Section, ValueBounds};

/// Greatest bound of a time in seconds that `[limits]` may set: thirty days.
const MAX_BOUND_SECONDS: f64 = 2_592_000.0;
/// Greatest bound of a number that `[limits]` may set.
const MAX_BOUND_COUNT: u64 = 1 << 40;

/// Bounds of every number of an agent, with its defaults.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentSettingBounds {
    pub(crate) timeout: ValueBounds<f64>,
    pub(crate) idle_timeout: ValueBounds<f64>,
    pub(crate) start_timeout: ValueBounds<f64>,
    pub(crate) stop_grace: ValueBounds<f64>,
    pub(crate) answer_timeout: ValueBounds<f64>,
    pub(crate) heartbeat: ValueBounds<f64>,
    pub(crate) session_timeout: ValueBounds<f64>,
    pub(crate) dedup_window: ValueBounds<f64>,
    pub(crate) max_concurrent: ValueBounds<u64>,
    pub(crate) queue: QueueBounds,
    pub(crate) retry: RetryBounds,
    pub(crate) sizes: SizeBounds,
}

/// Bounds of the queue of an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueBounds {
    pub(crate) depth: ValueBounds<u64>,
    pub(crate) timeout: ValueBounds<f64>,
}

/// Bounds of the retries of an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryBounds {
    pub(crate) max: ValueBounds<u64>,
    pub(crate) base: ValueBounds<f64>,
}

/// Bounds of the texts of an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizeBounds {
    pub(crate) input: ValueBounds<u64>,
    pub(crate) output: ValueBounds<u64>,
}

impl AgentSettingBounds {
    /// Reads `[limits]`.
    pub(crate) fn read(mut table: Section<'_>) -> Self {
        let section = &mut table;
        let bounds = Self {
            timeout: time_range(section, ["timeout_min", "timeout_max"], [60.0, 3600.0, 300.0]),
            idle_timeout: time_range(
                section,
                ["idle_timeout_min", "idle_timeout_max"],
                [1.0, 86_400.0, 86_400.0],
            ),
            start_timeout: time_range(
                section,
                ["start_timeout_min", "start_timeout_max"],
                [0.1, 600.0, 30.0],
            ),
            stop_grace: time_range(section, ["stop_grace_min", "stop_grace_max"], [0.1, 60.0, 5.0]),
            answer_timeout: time_range(
                section,
                ["answer_timeout_min", "answer_timeout_max"],
                [1.0, 2_592_000.0, 86_400.0],
            ),
            heartbeat: time_range(section, ["heartbeat_min", "heartbeat_max"], [1.0, 3600.0, 30.0]),
            session_timeout: time_range(
                section,
                ["session_timeout_min", "session_timeout_max"],
                [60.0, 86_400.0, 1800.0],
            ),
            dedup_window: time_range(
                section,
                ["dedup_window_min", "dedup_window_max"],
                [0.1, 3600.0, 60.0],
            ),
            max_concurrent: count_range(section, "max_concurrent_max", [1, 1000, 10]),
            queue: QueueBounds {
                depth: count_range(section, "queue_depth_max", [0, 1000, 10]),
                timeout: time_range(
                    section,
                    ["queue_timeout_min", "queue_timeout_max"],
                    [1.0, 86_400.0, 1800.0],
                ),
            },
            retry: RetryBounds {
                max: count_range(section, "retry_max", [0, 10, 3]),
                base: time_range(section, ["retry_base_min", "retry_base_max"], [0.0, 3600.0, 1.0]),
            },
            sizes: SizeBounds {
                input: count_range(section, "max_input_bytes_max", [1, 64 << 20, 1 << 20]),
                output: count_range(section, "max_output_bytes_max", [1, 1 << 30, 10 << 20]),
            },
        };
        table.finish();
        bounds
    }
}

/// Reads the bounds of a time, given as minimum, maximum and default; the default is clamped to changed bounds.
fn time_range(
    section: &mut Section<'_>,
    keys: [&'static str; 2],
    bounds: [f64; 3],
) -> ValueBounds<f64> {
    let ([min_key, max_key], [min, max, default]) = (keys, bounds);
    let min_position = section.entry(min_key).map(|entry| entry.position);
    let min = section.seconds(min_key, ValueBounds::new(0.0, MAX_BOUND_SECONDS, min)).as_secs_f64();
    let max = section.seconds(max_key, ValueBounds::new(0.0, MAX_BOUND_SECONDS, max)).as_secs_f64();
    if min > max {
        let position =
            min_position.unwrap_or_else(|| section.position.below(min_key).unprintable());
        section.reader.error(&position, format!("must not be more than {max_key}, which is {max}"));
        return ValueBounds::new(max, max, max);
    }
    ValueBounds::new(min, max, default.clamp(min, max))
}

/// Reads the bounds of a number whose minimum is fixed.
fn count_range(
    section: &mut Section<'_>,
    max_key: &'static str,
    bounds: [u64; 3],
) -> ValueBounds<u64> {
    let [min, max, default] = bounds;
    let max = section.count(max_key, ValueBounds::new(min, MAX_BOUND_COUNT, max));
    ValueBounds::new(min, max, default.clamp(min, max))
}
