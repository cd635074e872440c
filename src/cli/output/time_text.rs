//! Times and durations as text for people.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// Formats a time for people.
pub(crate) fn format_time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// Formats a duration for people.
pub(crate) fn format_duration(microseconds: i64) -> String {
    let duration = Duration::from_micros(microseconds.unsigned_abs());
    match duration.as_secs() {
        0 if duration.as_millis() == 0 => format!("{microseconds} µs"),
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{:.1} s", duration.as_secs_f64()),
        60..3600 => format!("{} min {} s", duration.as_secs() / 60, duration.as_secs() % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Returns the time between two moments in its largest unit.
pub(crate) fn format_interval(later: DateTime<Utc>, earlier: DateTime<Utc>) -> String {
    let seconds = (later - earlier).num_seconds().max(0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}
