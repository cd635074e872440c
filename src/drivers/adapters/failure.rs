//! Failure that a program reports, with its details.

use algonius_actors::model::code::Code;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reported failure with its details. An unreadable detail counts as absent.
#[derive(Debug, Default, Deserialize)]
pub(in crate::drivers) struct ReportedFailure {
    /// Message for people.
    #[serde(default)]
    pub(in crate::drivers) message: String,
    /// Kind of the failure: `transient`, `permanent`, `quota`, `rate_limit`, `overload`, `authentication`.
    #[serde(default)]
    pub(in crate::drivers) category: String,
    /// HTTP status with which the provider behind the program answered.
    #[serde(default, deserialize_with = "deserialize_status")]
    pub(in crate::drivers) status: Option<u16>,
    /// Time at which the failure passes: in RFC 3339, or in seconds since 1970.
    pub(in crate::drivers) until: Option<Value>,
    /// Seconds or time until the failure passes, as in the `Retry-After` header.
    pub(in crate::drivers) retry_after: Option<Value>,
    /// Code that replaces the one of the category. Only drivers choose it, never the output of a program.
    #[serde(skip)]
    pub(in crate::drivers) code_override: Option<Code>,
}

impl ReportedFailure {
    /// Returns the error code for the reported kind.
    pub(super) fn code(&self) -> Code {
        if let Some(code_override) = self.code_override {
            return code_override;
        }
        match self.category.as_str() {
            "transient" => Code::TransientFailure,
            "permanent" => Code::PermanentFailure,
            "quota" => Code::QuotaExceeded,
            "rate_limit" => Code::AgentRateLimited,
            "overload" => Code::AgentOverloaded,
            "authentication" => Code::NotAuthenticated,
            _ => Code::Reported,
        }
    }

    /// Returns the time at which the failure passes, if it lies ahead.
    pub(super) fn retry_time(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let until = self.until.as_ref().and_then(parse_time);
        let until = until
            .or_else(|| self.retry_after.as_ref().and_then(|after| parse_retry_after(after, now)));
        until.filter(|until| *until > now)
    }
}

fn parse_time(value: &Value) -> Option<DateTime<Utc>> {
    match value {
        Value::String(text) => DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc()),
        value => DateTime::from_timestamp(value.as_i64()?, 0),
    }
}

/// Parses the value of `Retry-After`: seconds, or a date of HTTP.
pub(in crate::drivers) fn parse_retry_after(
    value: &Value,
    now: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let text = value.as_str().unwrap_or_default();
    let Some(seconds) = value.as_f64().or_else(|| text.parse().ok()) else {
        // `Retry-After` has either seconds or a date of HTTP.
        return DateTime::parse_from_rfc2822(text).ok().map(|at| at.to_utc());
    };
    let delay = std::time::Duration::try_from_secs_f64(seconds).ok()?;
    now.checked_add_signed(TimeDelta::from_std(delay).ok()?)
}

/// Deserializes a number, or its digits as a string.
fn deserialize_status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let status = number.and_then(|number| u16::try_from(number).ok());
    Ok(status.filter(|status| (100..600).contains(status)))
}

#[cfg(test)]
mod tests {
    use algonius_actors::model::code::Code;
    use serde_json::{Value, json};

    use super::ReportedFailure;

    fn parse_status_and_delay(value: Value) -> (Option<u16>, Option<i64>) {
        let failing: ReportedFailure = serde_json::from_value(value).unwrap();
        let now = "2026-11-22T14:00:00Z".parse().unwrap();
        (failing.status, failing.retry_time(now).map(|until| (until - now).num_seconds()))
    }

    #[test]
    fn every_notation_of_a_retry_time_is_parsed() {
        assert_eq!(
            parse_status_and_delay(json!({"status": 429, "retry_after": 9})),
            (Some(429), Some(9))
        );
        assert_eq!(
            parse_status_and_delay(json!({"status": "503", "retry_after": "1.5"})),
            (Some(503), Some(1))
        );
        assert_eq!(
            parse_status_and_delay(json!({"until": "2026-11-22T15:00:00+00:30"})),
            (None, Some(1800))
        );
        assert_eq!(parse_status_and_delay(json!({"until": 1_795_359_600})), (None, Some(3600)));
        let header = json!({"retry_after": "Sun, 22 Nov 2026 14:00:20 GMT"});
        assert_eq!(parse_status_and_delay(header), (None, Some(20)));
    }

    #[test]
    fn malformed_failure_fields_are_ignored() {
        for value in [
            json!({}),
            json!({"status": "so", "until": "then", "retry_after": [1]}),
            json!({"status": 70_000, "until": 5, "retry_after": -1}),
            json!({"status": null, "until": 1e30, "retry_after": 1e300}),
        ] {
            assert_eq!(parse_status_and_delay(value.clone()), (None, None), "{value}");
        }
        let failing: ReportedFailure =
            serde_json::from_value(json!({"category": "cosmic"})).unwrap();
        assert_eq!(failing.code(), Code::Reported);
    }
}
