//! What is removed of a history, by data alone.

use std::time::Duration;

use algonius_actors::decide::retention::{ClockConfidence, RemovalRange, RetentionProgress};
use algonius_actors::model::host::storage_stats::{RetentionBatch, RetentionLimits, StorageStats};
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
    keep: RetentionLimits,
    stock: StorageStats,
    age_counts: bool,
) -> Vec<(RemovalRange, RetentionBatch)> {
    let mut progress = RetentionProgress::new_pass(now(), age_counts, &stock);
    let mut asked = Vec::new();
    while let Some((source, batch)) = progress.next(&keep, &stock) {
        asked.push((source, batch));
        progress = progress.removed(source, 0);
    }
    asked
}

#[test]
fn only_executions_over_the_maximum_age_are_removed() {
    let batch = RetentionBatch { from: None, before: Some(now() - TimeDelta::days(30)), most: 50 };
    assert_eq!(
        requested_batches(limits(), storage_stats(10, 1), true),
        [(RemovalRange::Age, batch)]
    );
    assert_eq!(requested_batches(limits(), storage_stats(10, 1), false), []);
    let for_ever = RetentionLimits { max_age: None, ..limits() };
    assert_eq!(requested_batches(for_ever, storage_stats(1000, 1 << 20), true), []);
}

#[test]
fn excess_executions_are_removed_except_recent_ones() {
    let keep = RetentionLimits { max_age: None, ..limits() };
    let (future, past) = (now() + TimeDelta::days(1), now() - TimeDelta::hours(1));
    let sweeps = |most| {
        [
            (RemovalRange::Future, RetentionBatch { from: Some(future), before: None, most }),
            (RemovalRange::Past, RetentionBatch { from: None, before: Some(past), most }),
        ]
    };
    assert_eq!(requested_batches(keep, storage_stats(1007, 1), true), sweeps(7));
    assert_eq!(requested_batches(keep, storage_stats(90_000, 1), true), sweeps(50));
    assert_eq!(requested_batches(keep, storage_stats(900, (1 << 20) + 1), true), sweeps(5));
    let free = StorageStats { free_bytes: 1, ..storage_stats(900, (1 << 20) + 1) };
    assert_eq!(requested_batches(keep, free, true), []);
}

#[test]
fn a_pass_removes_a_bounded_share_by_age() {
    let stock = storage_stats(10_000, 1);
    let keep = RetentionLimits { max_executions: None, max_bytes: None, ..limits() };
    let (mut progress, mut removed) = (RetentionProgress::new_pass(now(), true, &stock), 0);
    while let Some((source, batch)) = progress.next(&keep, &stock) {
        removed += u64::from(batch.most);
        progress = progress.removed(source, batch.most.into());
    }
    // A clock change removes nothing at once
    assert_eq!(removed, 500);
}

#[test]
fn executions_below_the_minimum_age_are_never_removed() {
    let keep = RetentionLimits { max_age: Some(HOUR), min_age: DAY, ..limits() };
    let before = Some(now() - TimeDelta::days(1));
    assert_eq!(
        requested_batches(keep, storage_stats(1, 1), true),
        [(RemovalRange::Age, RetentionBatch { from: None, before, most: 50 })]
    );
}

#[test]
fn age_is_ignored_for_a_day_after_a_clock_change() {
    for jump in [TimeDelta::days(365), -TimeDelta::days(365), TimeDelta::hours(2)] {
        let (trust, first) = ClockConfidence::default().evaluate(now(), Duration::ZERO);
        let (trust, steady) = trust.evaluate(now() + TimeDelta::minutes(10), HOUR / 6);
        let set = now() + jump;
        let (trust, set_now) = trust.evaluate(set, HOUR / 3);
        let (trust, later) = trust.evaluate(set + TimeDelta::hours(23), HOUR / 3 + 23 * HOUR);
        let (_, after) = trust.evaluate(set + TimeDelta::hours(24), HOUR / 3 + 24 * HOUR);
        let seen = [first, steady, set_now, later, after];
        // A clock change removes nothing at once
        assert_eq!(seen, [true, true, false, false, true], "{jump}");
    }
}
