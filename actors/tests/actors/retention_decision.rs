//! The decision which records of a history are removed.

use std::time::Duration;

use algonius_actors::decide::retention::{ClockConfidence, RemovalCriterion, RetentionProgress};
use algonius_actors::model::host::storage_stats::{
    RetentionBatchSelector, RetentionLimits, StorageStats,
};
use chrono::{DateTime, TimeDelta, Utc};

const DAY: Duration = Duration::from_secs(24 * 3600);
const HOUR: Duration = Duration::from_secs(3600);

fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(1_800_000_000)
}

fn limits() -> RetentionLimits {
    RetentionLimits {
        max_age: Some(30 * DAY),
        max_executions: Some(1000),
        max_bytes: Some(1 << 20),
        min_age: HOUR,
    }
}

fn storage_stats(executions: u64, bytes: u64) -> StorageStats {
    StorageStats { executions, ended: executions, bytes, ..StorageStats::default() }
}

/// What a pass asks for when each of its batches finds nothing.
fn requested_batches(
    limits: RetentionLimits,
    stats: StorageStats,
    is_age_reliable: bool,
) -> Vec<(RemovalCriterion, RetentionBatchSelector)> {
    let mut progress = RetentionProgress::new_pass(now(), is_age_reliable, &stats);
    let mut requested = Vec::new();
    while let Some((criterion, batch)) = progress.next_batch(&limits, &stats) {
        requested.push((criterion, batch));
        progress = progress.record_removed(criterion, 0);
    }
    requested
}

#[test]
fn only_executions_over_the_maximum_age_are_removed() {
    let batch =
        RetentionBatchSelector { from: None, before: Some(now() - TimeDelta::days(30)), limit: 50 };
    assert_eq!(
        requested_batches(limits(), storage_stats(10, 1), true),
        [(RemovalCriterion::OverAgeLimit, batch)]
    );
    assert_eq!(requested_batches(limits(), storage_stats(10, 1), false), []);
    let unlimited_age = RetentionLimits { max_age: None, ..limits() };
    assert_eq!(requested_batches(unlimited_age, storage_stats(1000, 1 << 20), true), []);
}

#[test]
fn excess_executions_are_removed_except_recent_ones() {
    let limits = RetentionLimits { max_age: None, ..limits() };
    let (future, past) = (now() + TimeDelta::days(1), now() - TimeDelta::hours(1));
    let batches = |limit| {
        [
            (
                RemovalCriterion::EndInFuture,
                RetentionBatchSelector { from: Some(future), before: None, limit },
            ),
            (
                RemovalCriterion::OldestEnded,
                RetentionBatchSelector { from: None, before: Some(past), limit },
            ),
        ]
    };
    assert_eq!(requested_batches(limits, storage_stats(1007, 1), true), batches(7));
    assert_eq!(requested_batches(limits, storage_stats(90_000, 1), true), batches(50));
    assert_eq!(requested_batches(limits, storage_stats(900, (1 << 20) + 1), true), batches(5));
    let stats_with_free_pages = StorageStats { free_bytes: 1, ..storage_stats(900, (1 << 20) + 1) };
    assert_eq!(requested_batches(limits, stats_with_free_pages, true), []);
}

#[test]
fn a_pass_removes_a_bounded_share_by_age() {
    let stats = storage_stats(10_000, 1);
    let limits = RetentionLimits { max_executions: None, max_bytes: None, ..limits() };
    let (mut progress, mut removed_count) = (RetentionProgress::new_pass(now(), true, &stats), 0);
    while let Some((criterion, batch)) = progress.next_batch(&limits, &stats) {
        removed_count += u64::from(batch.limit);
        progress = progress.record_removed(criterion, batch.limit.into());
    }
    // A clock change removes nothing at once
    assert_eq!(removed_count, 500);
}

#[test]
fn executions_below_the_minimum_age_are_never_removed() {
    let limits = RetentionLimits { max_age: Some(HOUR), min_age: DAY, ..limits() };
    let before = Some(now() - TimeDelta::days(1));
    assert_eq!(
        requested_batches(limits, storage_stats(1, 1), true),
        [(
            RemovalCriterion::OverAgeLimit,
            RetentionBatchSelector { from: None, before, limit: 50 }
        )]
    );
}

#[test]
fn age_is_ignored_for_a_day_after_a_clock_change() {
    for jump in [TimeDelta::days(365), -TimeDelta::days(365), TimeDelta::hours(2)] {
        let (confidence, first) = ClockConfidence::default().compare_clocks(now(), Duration::ZERO);
        let (confidence, second) =
            confidence.compare_clocks(now() + TimeDelta::minutes(10), HOUR / 6);
        let now_after_jump = now() + jump;
        let (confidence, at_jump) = confidence.compare_clocks(now_after_jump, HOUR / 3);
        let (confidence, later) =
            confidence.compare_clocks(now_after_jump + TimeDelta::hours(23), HOUR / 3 + 23 * HOUR);
        let (_, after) =
            confidence.compare_clocks(now_after_jump + TimeDelta::hours(24), HOUR / 3 + 24 * HOUR);
        let results = [first, second, at_jump, later, after];
        // A clock change removes nothing at once
        assert_eq!(results, [true, true, false, false, true], "{jump}");
    }
}
