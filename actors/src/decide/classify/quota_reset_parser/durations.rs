//! Parser of a duration from now: `try again in 1h 20m`, `Retry-After: 27`, `"retryDelay":"27s"`.

use chrono::{DateTime, TimeDelta, Utc};
use regex::{Captures, Regex};

/// Pattern of a number with its unit.
const QUANTITY_PATTERN: &str = r"\d{1,9}(?:\.\d{1,9})?\s*(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)";

/// Pattern of the text between two of them.
const SEPARATOR_PATTERN: &str = r"\s*,?\s*(?:and\s+)?";

/// Returns the end times of all durations in the text, in their order.
pub(in crate::decide::classify::quota_reset_parser) fn find_end_times(
    text: &str,
    now: DateTime<Utc>,
) -> Vec<DateTime<Utc>> {
    parse_durations(text)
        .into_iter()
        .filter_map(|duration| now.checked_add_signed(duration))
        .collect()
}

fn parse_durations(text: &str) -> Vec<TimeDelta> {
    let pattern = format!(
        r#"(?ix-u)
        (?: \b(?:again|retry|retrying|resets?|renews?|available|wait)(?:\s+again)?
            \s+(?:in|for|after)\s+(?:about\s+|~\s*)?
          | \bretry[-_\s]?(?:delay|after|in)(?P<milli>[-_]?ms)?["'\\]*\s*[:=]\s*["'\\]* )
        (?: (?P<pieces>{QUANTITY_PATTERN}(?:{SEPARATOR_PATTERN}{QUANTITY_PATTERN}){{0,5}})\b | (?P<plain>\d{{1,9}}(?:\.\d{{1,9}})?)(?:[\s,;"'}})\]\\]|$) )"#
    );
    let Ok(pattern) = Regex::new(&pattern) else { return Vec::new() };
    pattern.captures_iter(text).filter_map(|captures| parse_duration(&captures)).collect()
}

/// Parses a duration; a number without a unit is in seconds, as in a header.
fn parse_duration(captures: &Captures<'_>) -> Option<TimeDelta> {
    let Some(bare_number) = captures.name("plain") else {
        return sum_quantities(captures.name("pieces")?.as_str());
    };
    parse_quantity(bare_number.as_str(), if captures.name("milli").is_some() { "ms" } else { "s" })
}

/// Returns the sum of pieces such as `1h 20m`.
fn sum_quantities(text: &str) -> Option<TimeDelta> {
    let pattern = Regex::new(r"(?i-u)(\d+(?:\.\d+)?)\s*([a-z]+)").ok()?;
    let pieces = pattern.captures_iter(text).map(|captures| captures.extract().1);
    let pieces = pieces.filter_map(|[number, unit]| parse_quantity(number, &unit.to_lowercase()));
    pieces.reduce(|sum, piece| sum.checked_add(&piece).unwrap_or(sum))
}

fn parse_quantity(number: &str, unit: &str) -> Option<TimeDelta> {
    let number: f64 = number.parse().ok()?;
    let seconds_per_unit = match unit {
        unit if unit.starts_with("ms") || unit.starts_with("mil") => 0.001,
        unit if unit.starts_with('s') => 1.0,
        unit if unit.starts_with('m') => 60.0,
        unit if unit.starts_with('h') => 3600.0,
        unit if unit.starts_with('d') => 86_400.0,
        unit if unit.starts_with('w') => 604_800.0,
        _ => return None, // A word between the pieces.
    };
    let duration = std::time::Duration::try_from_secs_f64(number * seconds_per_unit).ok()?;
    TimeDelta::from_std(duration).ok()
}
