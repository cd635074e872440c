//! Tests of the retention settings.

use algonius_actors::model::host::storage_stats::RetentionLimits;

use super::*;
use crate::config::RetentionSettings;

const DAY: Duration = Duration::from_secs(86_400);

fn retention(lines: &str) -> Option<RetentionSettings> {
    load_settings(&format!("{CAT}[retention]\n{lines}\n")).retention
}

#[test]
fn history_has_retention_limits_by_default() {
    let defaults = RetentionSettings {
        limits: RetentionLimits {
            max_age: Some(30 * DAY),
            max_executions: Some(100_000),
            max_bytes: Some(2 << 30),
            min_age: DAY / 24,
        },
        interval: Duration::from_secs(600),
    };
    assert_eq!(load_settings(CAT).retention, Some(defaults));
    assert_eq!(retention(""), Some(defaults));
    assert_eq!(retention("enabled = false"), None);
    let configured =
        "max_age = \"7d\"\nmax_executions = 5\nmax_bytes = 1_000\nmin_age = 0\ninterval = 1";
    let RetentionSettings { limits, interval } = retention(configured).unwrap();
    let expected = RetentionLimits {
        max_age: Some(7 * DAY),
        max_executions: Some(5),
        max_bytes: Some(1000),
        min_age: Duration::ZERO,
    };
    assert_eq!((limits, interval), (expected, Duration::from_secs(1)));
    let unlimited = retention("max_age = 0\nmax_executions = 0\nmax_bytes = 0").unwrap().limits;
    assert_eq!(
        (unlimited.max_age, unlimited.max_executions, unlimited.max_bytes),
        (None, None, None)
    );
}
