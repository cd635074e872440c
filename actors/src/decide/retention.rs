//! Retention: selects the executions to remove by age, number and size, and checks whether the clock is reliable.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::model::host::storage_stats::{RetentionBatchSelector, RetentionLimits, StorageStats};

/// Maximum disagreement between the wall clock and the monotonic clock.
const MAX_CLOCK_DISAGREEMENT: TimeDelta = TimeDelta::hours(1);
/// Time for which the age limit is suspended after the wall clock was set: a day, in which an operator may notice.
const CLOCK_DOUBT_PERIOD: Duration = Duration::from_secs(24 * 3600);
/// End times that lie further in the future than this come from before the clock was set back.
const FUTURE_TOLERANCE: TimeDelta = TimeDelta::days(1);
/// Maximum number of executions in one transaction.
const MAX_BATCH_EXECUTIONS: u32 = 50;
/// Divisor of the number of ended executions that one pass removes by age, at least `MAX_BATCH_EXECUTIONS`: a clock
/// that is wrong from the start removes a history in hours, not at once.
const AGE_REMOVAL_DIVISOR: u64 = 20;

/// Confidence in the wall clock, kept from one pass to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockConfidence {
    last_reading: Option<(DateTime<Utc>, Duration)>,
    doubted_until: Option<Duration>,
}

impl ClockConfidence {
    /// Compares the wall clock with the time since the start on a monotonic clock. Returns true if the age limit
    /// applies.
    #[must_use]
    pub fn compare_clocks(self, wall_time: DateTime<Utc>, uptime: Duration) -> (Self, bool) {
        let has_jumped = self.last_reading.is_some_and(|(last_wall_time, last_uptime)| {
            let elapsed =
                TimeDelta::from_std(uptime.saturating_sub(last_uptime)).unwrap_or(TimeDelta::MAX);
            ((wall_time - last_wall_time) - elapsed).abs() > MAX_CLOCK_DISAGREEMENT
        });
        let new_doubt_end = has_jumped.then(|| uptime.saturating_add(CLOCK_DOUBT_PERIOD));
        let doubted_until = new_doubt_end.or(self.doubted_until.filter(|until| uptime < *until));
        (Self { last_reading: Some((wall_time, uptime)), doubted_until }, doubted_until.is_none())
    }
}

/// Criterion by which executions are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalCriterion {
    /// The execution exceeds the age limit.
    OverAgeLimit,
    /// The number or the size exceeds its limit, and the execution ended before the clock was set back: its age is
    /// unknown, but it is older than all later ones.
    EndInFuture,
    /// The number or the size exceeds its limit, and the execution ended first.
    OldestEnded,
}

/// Progress of one pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionProgress {
    now: DateTime<Utc>,
    /// Number of executions that may still be removed by age.
    remaining_age_removals: u64,
    /// Criteria that no further execution meets.
    exhausted_criteria: Vec<RemovalCriterion>,
}

impl RetentionProgress {
    /// Starts a pass.
    #[must_use]
    pub fn new_pass(now: DateTime<Utc>, applies_age_limit: bool, stats: &StorageStats) -> Self {
        let max_age_removals = (stats.ended / AGE_REMOVAL_DIVISOR).max(MAX_BATCH_EXECUTIONS.into());
        Self {
            now,
            remaining_age_removals: if applies_age_limit { max_age_removals } else { 0 },
            exhausted_criteria: Vec::new(),
        }
    }

    /// Returns the next batch to remove; `None` when the pass is complete.
    #[must_use]
    pub fn next_batch(
        &self,
        limits: &RetentionLimits,
        stats: &StorageStats,
    ) -> Option<(RemovalCriterion, RetentionBatchSelector)> {
        let is_open = |criterion: &RemovalCriterion| !self.exhausted_criteria.contains(criterion);
        if let Some(max_age) = limits
            .max_age
            .filter(|_| self.remaining_age_removals > 0 && is_open(&RemovalCriterion::OverAgeLimit))
        {
            let limit = u32::try_from(self.remaining_age_removals)
                .unwrap_or(MAX_BATCH_EXECUTIONS)
                .min(MAX_BATCH_EXECUTIONS);
            let before = self.time_before(max_age.max(limits.min_age))?;
            return Some((
                RemovalCriterion::OverAgeLimit,
                RetentionBatchSelector { from: None, before: Some(before), limit },
            ));
        }
        let limit = excess_batch_limit(limits, stats)?;
        match [RemovalCriterion::EndInFuture, RemovalCriterion::OldestEnded]
            .into_iter()
            .find(is_open)?
        {
            RemovalCriterion::EndInFuture => {
                let from = Some(self.now.checked_add_signed(FUTURE_TOLERANCE)?);
                Some((
                    RemovalCriterion::EndInFuture,
                    RetentionBatchSelector { from, before: None, limit },
                ))
            }
            criterion => {
                let before = Some(self.time_before(limits.min_age)?);
                Some((criterion, RetentionBatchSelector { from: None, before, limit }))
            }
        }
    }

    /// Records the number of removed executions.
    #[must_use]
    pub fn record_removed(mut self, criterion: RemovalCriterion, removed: u64) -> Self {
        if removed == 0 {
            self.exhausted_criteria.push(criterion);
        }
        if criterion == RemovalCriterion::OverAgeLimit {
            self.remaining_age_removals = self.remaining_age_removals.saturating_sub(removed);
        }
        self
    }

    fn time_before(&self, age: Duration) -> Option<DateTime<Utc>> {
        self.now.checked_sub_signed(TimeDelta::from_std(age).ok()?)
    }
}

/// Returns the limit of the next batch: the number of excess executions, or a small number for an excess of size.
fn excess_batch_limit(limits: &RetentionLimits, stats: &StorageStats) -> Option<u32> {
    let excess = limits.max_executions.map_or(0, |max| stats.executions.saturating_sub(max));
    let exceeds_size_limit = limits.max_bytes.is_some_and(|max| stats.used_bytes() > max);
    match u32::try_from(excess).unwrap_or(MAX_BATCH_EXECUTIONS).min(MAX_BATCH_EXECUTIONS) {
        0 if exceeds_size_limit => Some(MAX_BATCH_EXECUTIONS / 10), // Sizes differ, so the size is measured again soon.
        0 => None,
        excess => Some(excess),
    }
}
