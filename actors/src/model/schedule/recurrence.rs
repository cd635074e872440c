//! Recurrence of a schedule: a cron expression or a fixed interval, in a time zone.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use serde::{Deserialize, Serialize};

/// Longest interval: a year.
const MAX_INTERVAL: Duration = Duration::from_secs(366 * 86_400);

/// Error of a text that is not a valid recurrence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecurrenceError {
    /// The time zone is unknown.
    #[error("`{input}` is not a time zone; use an IANA name such as `Europe/Zurich` or `UTC`")]
    Zone {
        /// Name as given.
        input: String,
    },
    /// The text is not a cron expression.
    #[error("`{input}` is not a cron expression: {cause}")]
    Expression {
        /// Text as given.
        input: String,
        /// Explanation of the parser.
        cause: String,
    },
    /// The expression has a seconds field, which is not allowed.
    #[error("`{input}` has seconds, which `scheduler.seconds = true` would allow")]
    SecondsNotAllowed {
        /// Text as given.
        input: String,
    },
    /// The expression is valid and is never due.
    #[error("`{input}` is never due: no such day exists")]
    NeverDue {
        /// Text as given.
        input: String,
    },
    /// The interval is invalid.
    #[error(
        "`{input}` is not an interval; write `@every` and a time from 1s to 366d, such as `@every 15m`"
    )]
    Interval {
        /// Text as given.
        input: String,
    },
}

/// Recurrence of a schedule.
///
/// A cron expression has five fields (minute, hour, day, month, weekday), six with seconds in front
/// where they are allowed, or is one of `@hourly @daily @weekly @monthly @yearly`. `@every 15m` is
/// due at the multiples of 15 minutes since 1970, so that it stays in step over restarts.
///
/// When the zone's clock moves forward, a due time in the skipped hour becomes due once, at the first instant after
/// that hour. When the clock moves back, a fixed time is due once, the first time; a repeating one (`*/30 * * * *`) is
/// due in both hours.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "StoredRecurrence", into = "StoredRecurrence")]
pub struct RecurrenceRule {
    text: String,
    zone: Tz,
    interval: Option<Duration>,
}

/// Stored form of a recurrence.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredRecurrence {
    cron: String,
    timezone: String,
}

impl RecurrenceRule {
    /// Parses an expression and the name of a time zone. `allows_seconds` permits a sixth field.
    ///
    /// # Errors
    /// Returns an error if the zone is unknown, the expression is invalid, or it is never due.
    pub fn new(text: &str, zone: &str, allows_seconds: bool) -> Result<Self, RecurrenceError> {
        let input = || text.to_owned();
        let zone = zone.parse().map_err(|_error: chrono_tz::ParseError| RecurrenceError::Zone {
            input: zone.to_owned(),
        })?;
        let text = text.trim();
        if let Some(interval) = text.strip_prefix("@every ") {
            let interval = parse_interval(interval.trim())
                .filter(|interval| allows_seconds || interval.as_secs() >= 60);
            let interval = interval.ok_or_else(|| RecurrenceError::Interval { input: input() })?;
            return Ok(Self { text: text.to_owned(), zone, interval: Some(interval) });
        }
        if !allows_seconds && text.split_whitespace().count() == 6 && parse_cron(text).is_ok() {
            return Err(RecurrenceError::SecondsNotAllowed { input: input() });
        }
        let cron = parse_cron(text)
            .map_err(|cause| RecurrenceError::Expression { input: input(), cause })?;
        let epoch = DateTime::<Utc>::UNIX_EPOCH.with_timezone(&zone);
        let is_ever_due = cron.find_next_occurrence(&epoch, false).is_ok();
        let rule = Self { text: text.to_owned(), zone, interval: None };
        is_ever_due.then_some(rule).ok_or_else(|| RecurrenceError::NeverDue { input: input() })
    }

    /// Returns the recurrence of every full hour.
    pub(crate) fn hourly() -> Self {
        Self {
            text: "@every 1h".to_owned(),
            zone: Tz::UTC,
            interval: Some(Duration::from_secs(3600)),
        }
    }

    /// Returns the expression as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the time zone.
    #[must_use]
    pub const fn zone(&self) -> Tz {
        self.zone
    }

    /// Iterates over the due times after the given instant, in order.
    pub fn planned_times_after(
        &self,
        instant: DateTime<Utc>,
    ) -> impl Iterator<Item = DateTime<Utc>> + use<> {
        let mut latest = Some(instant);
        let (interval, zone) = (self.interval, self.zone);
        let cron = if interval.is_none() { parse_cron(&self.text).ok() } else { None };
        std::iter::from_fn(move || {
            let from = latest?;
            latest = match (interval, &cron) {
                (Some(interval), _) => next_interval_time(from, interval),
                (None, Some(cron)) => next_cron_time(cron, from, zone),
                (None, None) => None, // The text was parsed before, so it can be parsed.
            };
            latest
        })
    }

    /// Describes the recurrence in words.
    #[must_use]
    pub fn description(&self) -> String {
        match self.interval {
            Some(interval) => format!("every {} seconds, counted from 1970", interval.as_secs()),
            None => parse_cron(&self.text).map(|cron| cron.describe()).unwrap_or_default(),
        }
    }
}

impl fmt::Display for RecurrenceRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.zone)
    }
}

impl From<RecurrenceRule> for StoredRecurrence {
    fn from(rule: RecurrenceRule) -> Self {
        Self { cron: rule.text, timezone: rule.zone.name().to_owned() }
    }
}

impl TryFrom<StoredRecurrence> for RecurrenceRule {
    type Error = RecurrenceError;

    /// Parses a stored recurrence, which was valid when it was stored.
    fn try_from(stored: StoredRecurrence) -> Result<Self, RecurrenceError> {
        Self::new(&stored.cron, &stored.timezone, true)
    }
}

fn parse_cron(text: &str) -> Result<Cron, String> {
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    parser.parse(text).map_err(|error| error.to_string())
}

/// Returns the next due time, in whole seconds; no due time lies between two seconds.
fn next_cron_time(cron: &Cron, from: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
    let next_time = cron.find_next_occurrence(&from.with_timezone(&zone), false).ok()?;
    // A skipped or repeated hour must never lead back in time, or the iteration would not advance.
    Some(next_time.with_timezone(&Utc)).filter(|next_time| *next_time > from)
}

fn next_interval_time(from: DateTime<Utc>, interval: Duration) -> Option<DateTime<Utc>> {
    let interval = i64::try_from(interval.as_secs()).ok()?;
    let timestamp = from.timestamp();
    DateTime::from_timestamp(timestamp, 0)?
        .checked_add_signed(TimeDelta::seconds(interval - timestamp.rem_euclid(interval)))
}

/// Parses a duration such as `90s`, `15m`, `6h` or `2d`.
fn parse_interval(text: &str) -> Option<Duration> {
    let unit_start = text.find(|digit: char| !digit.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(unit_start)?;
    let seconds_per_unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    let interval = Duration::from_secs(number.parse::<u64>().ok()?.checked_mul(seconds_per_unit)?);
    (!interval.is_zero() && interval <= MAX_INTERVAL).then_some(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).unwrap().with_timezone(&Utc)
    }

    fn rule(text: &str, zone: &str) -> RecurrenceRule {
        RecurrenceRule::new(text, zone, true).unwrap()
    }

    fn first_times(rule: &RecurrenceRule, from: &str, count: usize) -> Vec<String> {
        let format_time = |instant: DateTime<Utc>| instant.format("%m-%dT%H:%M:%SZ").to_string();
        rule.planned_times_after(at(from)).take(count).map(format_time).collect()
    }

    #[test]
    fn a_skipped_hour_is_made_up_for_once() {
        let nightly = rule("30 2 * * *", "America/New_York");
        let times = first_times(&nightly, "2026-03-07T12:00:00Z", 2);
        assert_eq!(times, ["03-08T07:00:00Z", "03-09T06:30:00Z"], "03:00 local is the first after");
        let steady = rule("*/30 * * * *", "America/New_York");
        let times = first_times(&steady, "2026-03-08T06:00:00Z", 3);
        assert_eq!(times, ["03-08T06:30:00Z", "03-08T07:00:00Z", "03-08T07:30:00Z"]);
    }

    #[test]
    fn a_repeated_hour_fires_fixed_times_once_and_intervals_twice() {
        let fixed = rule("30 1 * * *", "America/New_York");
        let times = first_times(&fixed, "2026-10-31T12:00:00Z", 2);
        assert_eq!(times, ["11-01T05:30:00Z", "11-02T06:30:00Z"]);
        let steady = rule("*/30 * * * *", "America/New_York");
        let times = first_times(&steady, "2026-11-01T05:00:00Z", 4);
        assert_eq!(
            times,
            ["11-01T05:30:00Z", "11-01T06:00:00Z", "11-01T06:30:00Z", "11-01T07:00:00Z"]
        );
    }

    #[test]
    fn an_interval_is_aligned_with_the_epoch() {
        let steady = rule("@every 15m", "Asia/Kolkata");
        let times = first_times(&steady, "2026-05-05T10:07:31Z", 2);
        assert_eq!(times, ["05-05T10:15:00Z", "05-05T10:30:00Z"]);
    }

    #[test]
    fn impossible_and_forbidden_times_are_refused_by_kind() {
        let error_for = |text, zone, allows_seconds| {
            RecurrenceRule::new(text, zone, allows_seconds).unwrap_err()
        };
        assert!(matches!(error_for("0 0 31 2 *", "UTC", false), RecurrenceError::NeverDue { .. }));
        assert!(matches!(error_for("0 0 * * *", "Mars/Base", false), RecurrenceError::Zone { .. }));
        assert!(matches!(
            error_for("* * * * * *", "UTC", false),
            RecurrenceError::SecondsNotAllowed { .. }
        ));
        for text in ["", "* * *", "61 * * * *", "@reboot", "* * * * * * 2030", "daily"] {
            let error = error_for(text, "UTC", false);
            assert!(matches!(error, RecurrenceError::Expression { .. }), "{text}: {error}");
        }
        for text in
            ["@every 0s", "@every 5", "@every 9w", "@every 400d", "@every 10s", "@every -1m"]
        {
            let error = error_for(text, "UTC", false);
            assert!(matches!(error, RecurrenceError::Interval { .. }), "{text}: {error}");
        }
        assert!(RecurrenceRule::new("0 0 29 2 *", "UTC", false).is_ok(), "leap days come");
    }

    #[test]
    fn a_rule_is_stored_as_written() {
        let daily = rule("@daily", "Europe/Zurich");
        let stored = serde_json::to_value(&daily).unwrap();
        assert_eq!(stored, serde_json::json!({"cron": "@daily", "timezone": "Europe/Zurich"}));
        assert_eq!(serde_json::from_value::<RecurrenceRule>(stored).unwrap(), daily);
        assert!(!daily.description().is_empty());
    }
}
