//! Retention: selects the executions to remove by age, number and size, and checks whether the clock is reliable.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::model::host::storage_stats::{RetentionBatch, RetentionLimits, StorageStats};

/// Maximum disagreement between the wall clock and the monotonic clock.
const MAX_CLOCK_DISAGREEMENT: TimeDelta = TimeDelta::hours(1);
/// Time for which the age limit is suspended after the wall clock was set: a day, in which an operator may notice.
const CLOCK_DOUBT_PERIOD: Duration = Duration::from_secs(24 * 3600);
/// End times that lie further in the future than this come from before the clock was set back.
const FUTURE_TOLERANCE: TimeDelta = TimeDelta::days(1);
/// Maximum number of executions in one transaction.
const MAX_BATCH: u32 = 50;
/// Divisor of the number of ended executions that one pass removes by age, at least `MAX_BATCH`: a clock that is wrong
/// from the start removes a history in hours, not at once.
const AGE_REMOVAL_DIVISOR: u64 = 20;

/// Confidence in the wall clock, kept from one pass to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockConfidence {
    last: Option<(DateTime<Utc>, Duration)>,
    doubted_until: Option<Duration>,
}

impl ClockConfidence {
    /// Compares the wall clock with the time since the start on a monotonic clock. Returns true if the age limit
    /// applies.
    #[must_use]
    pub fn evaluate(self, wall: DateTime<Utc>, since: Duration) -> (Self, bool) {
        let has_jumped = self.last.is_some_and(|(wall_then, then)| {
            let passed = TimeDelta::from_std(since.saturating_sub(then)).unwrap_or(TimeDelta::MAX);
            ((wall - wall_then) - passed).abs() > MAX_CLOCK_DISAGREEMENT
        });
        let fresh = has_jumped.then(|| since.saturating_add(CLOCK_DOUBT_PERIOD));
        let doubted_until = fresh.or(self.doubted_until.filter(|until| since < *until));
        (Self { last: Some((wall, since)), doubted_until }, doubted_until.is_none())
    }
}

/// Reason of a removal, and the range of executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalRange {
    /// The execution exceeds the age limit.
    Age,
    /// The number or the size exceeds its limit, and the execution ended before the clock was set back: its age is
    /// unknown, but it is older than all later ones.
    Future,
    /// The number or the size exceeds its limit, and the execution ended first.
    Past,
}

/// Progress of one pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionProgress {
    now: DateTime<Utc>,
    /// Number of executions that may still be removed by age.
    by_age: u64,
    /// Sources without further executions.
    exhausted: Vec<RemovalRange>,
}

impl RetentionProgress {
    /// Starts a pass.
    #[must_use]
    pub fn new_pass(now: DateTime<Utc>, age_counts: bool, stats: &StorageStats) -> Self {
        let part = (stats.ended / AGE_REMOVAL_DIVISOR).max(MAX_BATCH.into());
        Self { now, by_age: if age_counts { part } else { 0 }, exhausted: Vec::new() }
    }

    /// Returns the next batch to remove; `None` when the pass is complete.
    #[must_use]
    pub fn next(
        &self,
        limits: &RetentionLimits,
        stats: &StorageStats,
    ) -> Option<(RemovalRange, RetentionBatch)> {
        let is_open = |source: &RemovalRange| !self.exhausted.contains(source);
        if let Some(max) = limits.max_age.filter(|_| self.by_age > 0 && is_open(&RemovalRange::Age))
        {
            let limit = u32::try_from(self.by_age).unwrap_or(MAX_BATCH).min(MAX_BATCH);
            let before = self.before(max.max(limits.min_age))?;
            return Some((
                RemovalRange::Age,
                RetentionBatch { from: None, before: Some(before), limit },
            ));
        }
        let limit = excess(limits, stats)?;
        match [RemovalRange::Future, RemovalRange::Past].into_iter().find(is_open)? {
            RemovalRange::Future => {
                let from = Some(self.now.checked_add_signed(FUTURE_TOLERANCE)?);
                Some((RemovalRange::Future, RetentionBatch { from, before: None, limit }))
            }
            source => {
                let before = Some(self.before(limits.min_age)?);
                Some((source, RetentionBatch { from: None, before, limit }))
            }
        }
    }

    /// Records the number of removed executions.
    #[must_use]
    pub fn removed(mut self, source: RemovalRange, removed: u64) -> Self {
        if removed == 0 {
            self.exhausted.push(source);
        }
        if source == RemovalRange::Age {
            self.by_age = self.by_age.saturating_sub(removed);
        }
        self
    }

    fn before(&self, age: Duration) -> Option<DateTime<Utc>> {
        self.now.checked_sub_signed(TimeDelta::from_std(age).ok()?)
    }
}

/// Returns the number of excess executions; for an excess of size, a small number.
fn excess(limits: &RetentionLimits, stats: &StorageStats) -> Option<u32> {
    let over = limits.max_executions.map_or(0, |max| stats.executions.saturating_sub(max));
    let is_large = limits.max_bytes.is_some_and(|max| stats.used() > max);
    match u32::try_from(over).unwrap_or(MAX_BATCH).min(MAX_BATCH) {
        0 if is_large => Some(MAX_BATCH / 10), // Sizes differ, so the size is measured again soon.
        0 => None,
        over => Some(over),
    }
}
