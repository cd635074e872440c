//! A failure that a program tells, and what is known of it.

use algonius_actors::model::code::Code;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A failure, and what is known of it. What of it cannot be read is as if it were not there.
#[derive(Debug, Default, Deserialize)]
pub(in crate::drive) struct Failing {
    /// What went wrong, for people.
    #[serde(default)]
    pub(in crate::drive) message: String,
    /// What kind of failure it is: `transient`, `permanent`, `quota`, `authentication`.
    #[serde(default)]
    pub(in crate::drive) category: String,
    /// The HTTP status with which what is behind the program has answered it.
    #[serde(default, deserialize_with = "status")]
    pub(in crate::drive) status: Option<u16>,
    /// When it will pass: in RFC 3339, or in seconds since 1970.
    pub(in crate::drive) until: Option<Value>,
    /// In how many seconds it will pass, or when, as in the header of that name.
    pub(in crate::drive) retry_after: Option<Value>,
}

impl Failing {
    /// What kind of failure it says that it is.
    pub(super) fn code(&self) -> Code {
        match self.category.as_str() {
            "transient" => Code::TransientFailure,
            "permanent" => Code::PermanentFailure,
            "quota" => Code::QuotaExceeded,
            "authentication" => Code::NotAuthenticated,
            _ => Code::Reported,
        }
    }

    /// When it will pass, where that is ahead.
    pub(super) fn until(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let until = self.until.as_ref().and_then(moment);
        let until = until.or_else(|| self.retry_after.as_ref().and_then(|after| later(after, now)));
        until.filter(|until| *until > now)
    }
}

fn moment(value: &Value) -> Option<DateTime<Utc>> {
    match value {
        Value::String(text) => DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc()),
        value => DateTime::from_timestamp(value.as_i64()?, 0),
    }
}

fn later(value: &Value, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let text = value.as_str().unwrap_or_default();
    let Some(seconds) = value.as_f64().or_else(|| text.parse().ok()) else {
        return DateTime::parse_from_rfc2822(text).ok().map(|at| at.to_utc());
    };
    let span = std::time::Duration::try_from_secs_f64(seconds).ok()?;
    now.checked_add_signed(TimeDelta::from_std(span).ok()?)
}

/// A number, or its digits as a text.
fn status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let status = number.and_then(|number| u16::try_from(number).ok());
    Ok(status.filter(|status| (100..600).contains(status)))
}

#[cfg(test)]
mod tests {
    use algonius_actors::model::code::Code;
    use serde_json::{Value, json};

    use super::Failing;

    fn read(value: Value) -> (Option<u16>, Option<i64>) {
        let failing: Failing = serde_json::from_value(value).unwrap();
        let now = "2026-11-22T14:00:00Z".parse().unwrap();
        (failing.status, failing.until(now).map(|until| (until - now).num_seconds()))
    }

    #[test]
    fn a_time_is_read_however_it_is_told() {
        assert_eq!(read(json!({"status": 429, "retry_after": 9})), (Some(429), Some(9)));
        assert_eq!(read(json!({"status": "503", "retry_after": "1.5"})), (Some(503), Some(1)));
        assert_eq!(read(json!({"until": "2026-11-22T15:00:00+00:30"})), (None, Some(1800)));
        assert_eq!(read(json!({"until": 1_795_359_600})), (None, Some(3600)));
        let header = json!({"retry_after": "Sun, 22 Nov 2026 14:00:20 GMT"});
        assert_eq!(read(header), (None, Some(20)));
    }

    #[test]
    fn what_cannot_be_read_is_not_there() {
        for value in [
            json!({}),
            json!({"status": "so", "until": "then", "retry_after": [1]}),
            json!({"status": 70_000, "until": 5, "retry_after": -1}),
            json!({"status": null, "until": 1e30, "retry_after": 1e300}),
        ] {
            assert_eq!(read(value.clone()), (None, None), "{value}");
        }
        let failing: Failing = serde_json::from_value(json!({"category": "cosmic"})).unwrap();
        assert_eq!(failing.code(), Code::Reported);
    }
}
