//! Recurrence of a schedule: a cron expression or a fixed interval, in a time zone.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use serde::{Deserialize, Serialize};

/// Longest interval: a year.
const SLOWEST: Duration = Duration::from_secs(366 * 86_400);

/// Error of a text that is not a valid recurrence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimetableError {
    /// The time zone is unknown.
    #[error("`{given}` is not a time zone; use an IANA name such as `Europe/Zurich` or `UTC`")]
    Zone {
        /// Name as given.
        given: String,
    },
    /// The text is not a cron expression.
    #[error("`{given}` is not a cron expression: {cause}")]
    Expression {
        /// Text as given.
        given: String,
        /// Explanation of the parser.
        cause: String,
    },
    /// The expression has a seconds field, which is not allowed.
    #[error("`{given}` has seconds, which `scheduler.seconds = true` would allow")]
    Seconds {
        /// Text as given.
        given: String,
    },
    /// The expression is valid and is never due.
    #[error("`{given}` is never due: no such day exists")]
    Never {
        /// Text as given.
        given: String,
    },
    /// The interval is invalid.
    #[error(
        "`{given}` is not an interval; write `@every` and a time from 1s to 366d, such as `@every 15m`"
    )]
    Pace {
        /// Text as given.
        given: String,
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
#[serde(try_from = "RecurrenceFile", into = "RecurrenceFile")]
pub struct Timetable {
    text: String,
    zone: Tz,
    pace: Option<Duration>,
}

/// Stored form of a recurrence.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RecurrenceFile {
    cron: String,
    timezone: String,
}

impl Timetable {
    /// Parses an expression and the name of a time zone. `seconds` allows a sixth field.
    ///
    /// # Errors
    /// Returns an error if the zone is unknown, the expression is invalid, or it is never due.
    pub fn new(text: &str, zone: &str, seconds: bool) -> Result<Self, TimetableError> {
        let given = || text.to_owned();
        let zone = zone.parse().map_err(|_unknown: chrono_tz::ParseError| {
            TimetableError::Zone { given: zone.to_owned() }
        })?;
        let text = text.trim();
        if let Some(pace) = text.strip_prefix("@every ") {
            let pace = span(pace.trim()).filter(|pace| seconds || pace.as_secs() >= 60);
            let pace = pace.ok_or_else(|| TimetableError::Pace { given: given() })?;
            return Ok(Self { text: text.to_owned(), zone, pace: Some(pace) });
        }
        if !seconds && text.split_whitespace().count() == 6 && parse(text).is_ok() {
            return Err(TimetableError::Seconds { given: given() });
        }
        let cron =
            parse(text).map_err(|cause| TimetableError::Expression { given: given(), cause })?;
        let epoch = DateTime::<Utc>::UNIX_EPOCH.with_timezone(&zone);
        let is_ever = cron.find_next_occurrence(&epoch, false).is_ok();
        let table = Self { text: text.to_owned(), zone, pace: None };
        is_ever.then_some(table).ok_or_else(|| TimetableError::Never { given: given() })
    }

    /// Returns the recurrence of every full hour.
    pub(crate) fn hourly() -> Self {
        Self { text: "@every 1h".to_owned(), zone: Tz::UTC, pace: Some(Duration::from_secs(3600)) }
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
    pub fn after(&self, instant: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> + use<> {
        let mut last = Some(instant);
        let (pace, zone) = (self.pace, self.zone);
        let cron = if pace.is_none() { parse(&self.text).ok() } else { None };
        std::iter::from_fn(move || {
            let from = last?;
            last = match (pace, &cron) {
                (Some(pace), _) => next_step(from, pace),
                (None, Some(cron)) => next(cron, from, zone),
                (None, None) => None, // The text was parsed before, so it can be parsed.
            };
            last
        })
    }

    /// Describes the recurrence in words.
    #[must_use]
    pub fn notation(&self) -> String {
        match self.pace {
            Some(pace) => format!("every {} seconds, counted from 1970", pace.as_secs()),
            None => parse(&self.text).map(|cron| cron.describe()).unwrap_or_default(),
        }
    }
}

impl fmt::Display for Timetable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.zone)
    }
}

impl From<Timetable> for RecurrenceFile {
    fn from(table: Timetable) -> Self {
        Self { cron: table.text, timezone: table.zone.name().to_owned() }
    }
}

impl TryFrom<RecurrenceFile> for Timetable {
    type Error = TimetableError;

    /// Parses a stored recurrence, which was valid when it was stored.
    fn try_from(written: RecurrenceFile) -> Result<Self, TimetableError> {
        Self::new(&written.cron, &written.timezone, true)
    }
}

fn parse(text: &str) -> Result<Cron, String> {
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    parser.parse(text).map_err(|error| error.to_string())
}

/// Returns the next due time, in whole seconds; no due time lies between two seconds.
fn next(cron: &Cron, from: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
    let found = cron.find_next_occurrence(&from.with_timezone(&zone), false).ok()?;
    // A skipped or repeated hour must never lead back in time, or the iteration would not advance.
    Some(found.with_timezone(&Utc)).filter(|found| *found > from)
}

fn next_step(from: DateTime<Utc>, pace: Duration) -> Option<DateTime<Utc>> {
    let pace = i64::try_from(pace.as_secs()).ok()?;
    let at = from.timestamp();
    DateTime::from_timestamp(at, 0)?
        .checked_add_signed(TimeDelta::seconds(pace - at.rem_euclid(pace)))
}

/// Parses a duration such as `90s`, `15m`, `6h` or `2d`.
fn span(text: &str) -> Option<Duration> {
    let digits = text.find(|digit: char| !digit.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(digits)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    let span = Duration::from_secs(number.parse::<u64>().ok()?.checked_mul(seconds)?);
    (!span.is_zero() && span <= SLOWEST).then_some(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).unwrap().with_timezone(&Utc)
    }

    fn table(text: &str, zone: &str) -> Timetable {
        Timetable::new(text, zone, true).unwrap()
    }

    fn firsts(table: &Timetable, from: &str, count: usize) -> Vec<String> {
        let show = |instant: DateTime<Utc>| instant.format("%m-%dT%H:%M:%SZ").to_string();
        table.after(at(from)).take(count).map(show).collect()
    }

    #[test]
    fn a_skipped_hour_is_made_up_for_once() {
        let nightly = table("30 2 * * *", "America/New_York");
        let found = firsts(&nightly, "2026-03-07T12:00:00Z", 2);
        assert_eq!(found, ["03-08T07:00:00Z", "03-09T06:30:00Z"], "03:00 local is the first after");
        let steady = table("*/30 * * * *", "America/New_York");
        let found = firsts(&steady, "2026-03-08T06:00:00Z", 3);
        assert_eq!(found, ["03-08T06:30:00Z", "03-08T07:00:00Z", "03-08T07:30:00Z"]);
    }

    #[test]
    fn a_repeated_hour_fires_fixed_times_once_and_intervals_twice() {
        let fixed = table("30 1 * * *", "America/New_York");
        let found = firsts(&fixed, "2026-10-31T12:00:00Z", 2);
        assert_eq!(found, ["11-01T05:30:00Z", "11-02T06:30:00Z"]);
        let steady = table("*/30 * * * *", "America/New_York");
        let found = firsts(&steady, "2026-11-01T05:00:00Z", 4);
        assert_eq!(
            found,
            ["11-01T05:30:00Z", "11-01T06:00:00Z", "11-01T06:30:00Z", "11-01T07:00:00Z"]
        );
    }

    #[test]
    fn an_interval_is_aligned_with_the_epoch() {
        let steady = table("@every 15m", "Asia/Kolkata");
        let found = firsts(&steady, "2026-05-05T10:07:31Z", 2);
        assert_eq!(found, ["05-05T10:15:00Z", "05-05T10:30:00Z"]);
    }

    #[test]
    fn impossible_and_forbidden_times_are_refused_by_kind() {
        let refused = |text, zone, seconds| Timetable::new(text, zone, seconds).unwrap_err();
        assert!(matches!(refused("0 0 31 2 *", "UTC", false), TimetableError::Never { .. }));
        assert!(matches!(refused("0 0 * * *", "Mars/Base", false), TimetableError::Zone { .. }));
        assert!(matches!(refused("* * * * * *", "UTC", false), TimetableError::Seconds { .. }));
        for text in ["", "* * *", "61 * * * *", "@reboot", "* * * * * * 2030", "daily"] {
            let error = refused(text, "UTC", false);
            assert!(matches!(error, TimetableError::Expression { .. }), "{text}: {error}");
        }
        for text in
            ["@every 0s", "@every 5", "@every 9w", "@every 400d", "@every 10s", "@every -1m"]
        {
            let error = refused(text, "UTC", false);
            assert!(matches!(error, TimetableError::Pace { .. }), "{text}: {error}");
        }
        assert!(Timetable::new("0 0 29 2 *", "UTC", false).is_ok(), "leap days come");
    }

    #[test]
    fn a_timetable_is_stored_as_written() {
        let daily = table("@daily", "Europe/Zurich");
        let stored = serde_json::to_value(&daily).unwrap();
        assert_eq!(stored, serde_json::json!({"cron": "@daily", "timezone": "Europe/Zurich"}));
        assert_eq!(serde_json::from_value::<Timetable>(stored).unwrap(), daily);
        assert!(!daily.notation().is_empty());
    }
}
