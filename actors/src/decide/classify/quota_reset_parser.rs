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
pub fn find(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let ahead = |at: &DateTime<Utc>| *at > now && *at - now <= MAX_RESET_DELAY;
    let candidates = [
        timestamps(text),
        unix_times(text),
        durations::end_times(text, now),
        time_of_day::find_times(text, now),
    ];
    candidates.into_iter().find_map(|found| found.into_iter().rfind(ahead))
}

/// Finds timestamps: `until 2026-11-23T04:00:00Z`, `"resetsAt": "2026-11-23 04:00:00+01:00"`.
fn timestamps(text: &str) -> Vec<DateTime<Utc>> {
    let form = format!(
        r#"(?i-u){TIME_LEAD_PATTERN}\w*["'\\]*[\s:=]*(?:at|on|is)?[\s"'\\]*(\d{{4}}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s*(Z|UTC|[+-]\d\d:?\d\d)"#
    );
    let read = |[day, time, zone]: [&str; 3]| {
        let seconds = if time.len() == 5 { ":00" } else { "" };
        let zone = if zone.starts_with(['+', '-']) { zone } else { "+0000" };
        let timestamp = format!("{day}T{time}{seconds}{}", zone.replace(':', ""));
        DateTime::parse_from_str(&timestamp, "%Y-%m-%dT%H:%M:%S%z").ok()
    };
    let Ok(form) = Regex::new(&form) else { return Vec::new() };
    let found = form.captures_iter(text).map(|found| found.extract().1);
    found.filter_map(read).map(|at| at.to_utc()).collect()
}

/// Finds Unix times: `"resetsAt":1795500000`, `limit reached|1795500000`; thirteen digits are milliseconds.
fn unix_times(text: &str) -> Vec<DateTime<Utc>> {
    let form = format!(
        r#"(?i-u)(?:{TIME_LEAD_PATTERN}\w*["'\\]*[\s:=]*(?:at|on|is)?[\s"'\\]*|limit\sreached\|)(\d{{13}}|\d{{10}})\b"#
    );
    let Ok(form) = Regex::new(&form) else { return Vec::new() };
    let read = |digits: &str| {
        let number: i64 = digits.parse().ok()?;
        let millis = if digits.len() == 13 { number } else { number * 1000 };
        DateTime::from_timestamp_millis(millis)
    };
    form.captures_iter(text)
        .map(|found| found.extract::<1>().1)
        .filter_map(|[it]| read(it))
        .collect()
}

#[cfg(test)]
mod tests;
