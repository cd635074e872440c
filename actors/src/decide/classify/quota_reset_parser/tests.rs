//! Tests with reset times as programs write them.

use chrono::{DateTime, Utc};
use proptest::prelude::*;

use super::find_reset_time;

fn now() -> DateTime<Utc> {
    "2026-11-22T14:00:00Z".parse().unwrap()
}

fn reset_time(text: &str) -> Option<String> {
    find_reset_time(text, now()).map(|at| at.format("%m-%d %H:%M:%S").to_string())
}

#[test]
fn every_notation_of_a_reset_time_is_parsed() {
    for (text, at) in [
        ("quota resets at 2026-11-23T04:00:00Z, wait", "11-23 04:00:00"),
        (r#"{"resetsAt":"2026-11-23T04:00:00.123+01:00"}"#, "11-23 03:00:00"),
        ("retry after 2026-11-22 15:30 UTC", "11-22 15:30:00"),
        (r#"{"type":"rate_limit","resets_at": 1795359600}"#, "11-22 15:00:00"),
        ("usage limit reached|1795359600", "11-22 15:00:00"),
        (r#""resetsAt":1795359600000"#, "11-22 15:00:00"),
        ("Retry-After: 90", "11-22 14:01:30"),
        (r#"{"retry_after": 2.5}"#, "11-22 14:00:02"),
        (r#"{"retry_after_ms": 2500}"#, "11-22 14:00:02"),
        ("Please try again in 1h 20m.", "11-22 15:20:00"),
        ("try again in 1h20m30s", "11-22 15:20:30"),
        ("Try again in 3 days 4 hours 5 minutes.", "11-25 18:05:00"),
        ("try again in 2 hours, 5 minutes and 3 seconds", "11-22 16:05:03"),
        ("Please retry in 27.33s.", "11-22 14:00:27"),
        (r#""retryDelay":"27s""#, "11-22 14:00:27"),
        ("the limit resets in about 5 min", "11-22 14:05:00"),
        ("resets 3pm (Europe/Zurich)", "11-23 14:00:00"),
        ("Your limit resets at 3:30pm (Europe/Zurich)", "11-22 14:30:00"),
        ("resets at 16:45 UTC", "11-22 16:45:00"),
        ("try again at 1:05 PM.", "11-23 13:05:00"),
        ("try again at Nov 25th, 2026 3:00 PM.", "11-25 15:00:00"),
        ("resets Dec 1 at 12am (America/New_York)", "12-01 05:00:00"),
        ("first try again in 5s, then try again in 9s", "11-22 14:00:09"),
    ] {
        assert_eq!(reset_time(text).as_deref(), Some(at), "{text}");
    }
}

#[test]
fn text_without_a_future_time_gives_no_reset_time() {
    for text in [
        "",
        "please try again later",
        "try again in a moment",
        "2026-11-23T04:00:00Z",
        "reset at 2020-01-01T00:00:00Z",
        "resets at 1595359600",
        "retry after 99999999d",
        "resets at 3pm (Nowhere/Land)",
        "resets at 25:00",
        "the answer took 18347 ms",
    ] {
        assert_eq!(reset_time(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_gives_a_future_reset_time_or_none(
        text in r"(try again in |resets at |retry-after: |until |[0-9]{1,14}|h|m|s|pm| |:|-|T|Z|\PC){0,24}",
    ) {
        if let Some(at) = find_reset_time(&text, now()) {
            prop_assert!(at > now());
        }
    }
}
