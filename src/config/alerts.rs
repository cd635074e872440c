//! `[metrics]` and `[alerts]`: what those who watch the service are shown and told.

use std::time::Duration;

use algonius_actors::model::alert::AlertSpec;

use super::section::Section;
use super::value::Bounds;

/// Reads `[metrics]`: whether the numbers are shown.
pub(super) fn metrics(mut section: Section<'_>) -> bool {
    let is_enabled = section.flag("enabled", true);
    section.finish();
    is_enabled
}

/// Reads `[alerts]`.
pub(super) fn read(mut section: Section<'_>) -> AlertSpec {
    let from = &mut section;
    let usual = AlertSpec::default();
    let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let rate =
        from.count("requests_per_minute", Bounds::new(0, 10_000, usual.requests_per_minute.into()));
    let streak = from.count("failure_streak", Bounds::new(0, 10_000, usual.failure_streak.into()));
    let spec = AlertSpec {
        requests_per_minute: number(rate),
        failure_streak: number(streak),
        ledger_free_bytes: from
            .count("ledger_free_bytes", Bounds::new(0, 1 << 60, usual.ledger_free_bytes)),
        linger: Duration::from_secs(600),
    };
    section.finish();
    spec
}
