//! Parser of the time at which a quota or a rate limit resets, from the text of an error message.

mod durations;
mod time_of_day;

use chrono::{DateTime, TimeDelta, Utc};
use regex::Regex;

/// Longest wait that is reported.
const MAX_RESET_DELAY: TimeDelta = TimeDelta::days(400);

/// Words that may precede a time.
const TIME_LEAD_PATTERN: &str =
    r#"(?:resets?|renew(?:s|ed)?|retry|retries|again|available|until|after)"#;

/// Returns the latest reset time in a text, if it lies in the future. A time of day without a zone is in UTC.
#[must_use]
pub fn find_reset_time(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let is_ahead = |time: &DateTime<Utc>| *time > now && *time - now <= MAX_RESET_DELAY;
    let candidates = [
        find_timestamps(text),
        find_unix_times(text),
        durations::find_end_times(text, now),
        time_of_day::find_times(text, now),
    ];
    candidates.into_iter().find_map(|times| times.into_iter().rfind(is_ahead))
}

/// Finds timestamps: `until 2026-11-23T04:00:00Z`, `"resetsAt": "2026-11-23 04:00:00+01:00"`.
fn find_timestamps(text: &str) -> Vec<DateTime<Utc>> {
    let pattern = format!(
        r#"(?i-u){TIME_LEAD_PATTERN}\w*["'\\]*[\s:=]*(?:at|on|is)?[\s"'\\]*(\d{{4}}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s*(Z|UTC|[+-]\d\d:?\d\d)"#
    );
    let parse = |[day, time, zone]: [&str; 3]| {
        let seconds_suffix = if time.len() == 5 { ":00" } else { "" };
        let zone = if zone.starts_with(['+', '-']) { zone } else { "+0000" };
        let timestamp = format!("{day}T{time}{seconds_suffix}{}", zone.replace(':', ""));
        DateTime::parse_from_str(&timestamp, "%Y-%m-%dT%H:%M:%S%z").ok()
    };
    let Ok(pattern) = Regex::new(&pattern) else { return Vec::new() };
    let captured_fields =
        pattern.captures_iter(text).map(|captured_fields| captured_fields.extract().1);
    captured_fields.filter_map(parse).map(|time| time.to_utc()).collect()
}

/// Finds Unix times: `"resetsAt":1795500000`, `limit reached|1795500000`; thirteen digits are milliseconds.
fn find_unix_times(text: &str) -> Vec<DateTime<Utc>> {
    let pattern = format!(
        r#"(?i-u)(?:{TIME_LEAD_PATTERN}\w*["'\\]*[\s:=]*(?:at|on|is)?[\s"'\\]*|limit\sreached\|)(\d{{13}}|\d{{10}})\b"#
    );
    let Ok(pattern) = Regex::new(&pattern) else { return Vec::new() };
    let parse = |digits: &str| {
        let number: i64 = digits.parse().ok()?;
        let millis = if digits.len() == 13 { number } else { number * 1000 };
        DateTime::from_timestamp_millis(millis)
    };
    pattern
        .captures_iter(text)
        .map(|captures| captures.extract::<1>().1)
        .filter_map(|[digits]| parse(digits))
        .collect()
}

#[cfg(test)]
mod tests;
