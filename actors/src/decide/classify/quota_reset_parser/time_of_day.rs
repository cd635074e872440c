//! Parser of a time of day, optionally with date and zone: `resets at 3pm (Europe/Zurich)`.

use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use chrono_tz::Tz;
use regex::{Captures, Regex};

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Pattern of the word before the time, the date, the hour in 12-hour or 24-hour form, and the zone.
const TIME_PATTERN: &str = r"(?ix-u)
    \b(?:resets?|renews?|again|until|available|retry)\s+(?:at\s+|on\s+|by\s+)?
    (?: (?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+
        (?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{4}))?(?:,|\s+at|,\s+at)?\s+ )?
    (?: (?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?::\d\d)?\s*(?P<half>am|pm|a\.m\.|p\.m\.)
      | (?P<hour24>\d{1,2}):(?P<minute24>\d\d)(?::\d\d)? )
    (?: \s*\(?(?P<zone>[A-Z][A-Za-z_]+(?:/[A-Za-z_+-]+){1,2}|UTC|GMT)\)? )?";

/// Returns the times in the text, in their order; each is the next instant with that time of day.
pub(in crate::decide::classify::quota_reset_parser) fn find_times(
    text: &str,
    now: DateTime<Utc>,
) -> Vec<DateTime<Utc>> {
    let Ok(pattern) = Regex::new(TIME_PATTERN) else { return Vec::new() };
    pattern.captures_iter(text).filter_map(|captures| parse_time(&captures, now)).collect()
}

fn parse_time(captures: &Captures<'_>, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let capture = |name: &str| captures.name(name).map(|capture| capture.as_str());
    let zone: Tz = capture("zone").map_or(Some(Tz::UTC), |zone| zone.parse().ok())?;
    let today = now.with_timezone(&zone).date_naive();
    let time = parse_time_of_day(captures)?;
    let Some(month) = capture("month") else {
        let today_instant = latest_instant(zone, today.and_time(time))?;
        let tomorrow_instant =
            || latest_instant(zone, today.checked_add_days(Days::new(1))?.and_time(time));
        return if today_instant > now { Some(today_instant) } else { tomorrow_instant() };
    };
    let month_index = MONTHS.iter().position(|known| month.to_lowercase() == *known)?;
    let month = u32::try_from(month_index).ok()? + 1;
    let year = capture("year").and_then(|year| year.parse().ok()).unwrap_or(today.year());
    let date = NaiveDate::from_ymd_opt(year, month, capture("day")?.parse().ok()?)?;
    latest_instant(zone, date.and_time(time))
}

fn parse_time_of_day(captures: &Captures<'_>) -> Option<NaiveTime> {
    let captured_number =
        |name: &str| captures.name(name).and_then(|word| word.as_str().parse::<u32>().ok());
    if let Some(hour) = captured_number("hour24") {
        return NaiveTime::from_hms_opt(hour, captured_number("minute24")?, 0);
    }
    let hour = captured_number("hour").filter(|hour| (1..=12).contains(hour))?;
    let is_pm = captures.name("half")?.as_str().to_lowercase().starts_with('p');
    let hour = hour % 12 + if is_pm { 12 } else { 0 };
    NaiveTime::from_hms_opt(hour, captured_number("minute").unwrap_or(0), 0)
}

/// Returns the later instant of an ambiguous local time, because waiting longer is safe.
fn latest_instant(zone: Tz, local_time: NaiveDateTime) -> Option<DateTime<Utc>> {
    zone.from_local_datetime(&local_time).latest().map(|at| at.to_utc())
}
