//! Evaluation of a schedule: which planned times are due, and the decision about each.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest, Sha256};

use crate::model::id::ScheduleId;
use crate::model::schedule::occurrence::{OccurrenceCause, OccurrenceStatus};
use crate::model::schedule::recurrence::RecurrenceRule;
use crate::model::schedule::{MissedPolicy, OverlapPolicy, ScheduleSpec};

/// Longest delay of an occurrence that still counts as on time.
pub const ON_TIME_TOLERANCE: Duration = Duration::from_secs(30);
/// Minimum backward clock change that reopens decided times.
const MIN_CLOCK_SETBACK: TimeDelta = TimeDelta::minutes(1);
/// Maximum number of planned times that are counted one by one, of those that are too old to be caught up and of those
/// within the window. If there are more, only those that are caught up are examined.
const MAX_COUNTED_TIMES: usize = 5_000;
/// Maximum number of waiting occurrences of one schedule.
pub const MAX_WAITING_OCCURRENCES: usize = 100;

/// Parts of a schedule that determine its due times.
#[derive(Debug, Clone, Copy)]
pub struct DueRule<'s> {
    /// Id of the schedule.
    pub id: &'s ScheduleId,
    /// Planned times.
    pub recurrence: &'s RecurrenceRule,
    /// Maximum delay of an occurrence.
    pub jitter: Duration,
    /// Policy for missed occurrences.
    pub missed_policy: MissedPolicy,
}

impl<'s> From<&'s ScheduleSpec> for DueRule<'s> {
    fn from(spec: &'s ScheduleSpec) -> Self {
        let ScheduleSpec { id, recurrence, jitter, missed, .. } = spec;
        Self { id, recurrence, jitter: *jitter, missed_policy: *missed }
    }
}

/// Result of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueEvaluation {
    /// Occurrences to submit, in order: each with its planned time and its due time.
    pub to_submit: Vec<(DateTime<Utc>, DateTime<Utc>, OccurrenceCause)>,
    /// Missed or coalesced occurrences, in order.
    pub unsubmitted_ranges: Vec<UnsubmittedRange>,
    /// Time up to which every occurrence is decided.
    pub decided_until: DateTime<Utc>,
    /// Time of the next evaluation; `None` if there is no further planned time.
    pub next_evaluation_at: Option<DateTime<Utc>>,
}

/// Run of occurrences that are not submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsubmittedRange {
    /// First planned time.
    pub first: DateTime<Utc>,
    /// Last planned time.
    pub last: DateTime<Utc>,
    /// Number of planned times.
    pub planned_time_count: u32,
    /// Status: missed, or coalesced into a later one.
    pub status: OccurrenceStatus,
    /// Reason of the decision.
    pub reason: &'static str,
}

/// Planned time and due time.
type ScheduledTime = (DateTime<Utc>, DateTime<Utc>);

/// Due occurrences, by their delay.
#[derive(Default)]
struct DueTimes {
    expired: Option<UnsubmittedRange>,
    late: Vec<ScheduledTime>,
    /// True if there are more late times than `late` has, all of them before the latest ones.
    is_late_count_incomplete: bool,
    punctual: Vec<ScheduledTime>,
}

/// Evaluates a schedule at one instant.
#[must_use]
pub fn evaluate_schedule(
    due_rule: DueRule<'_>,
    cursor: DateTime<Utc>,
    now: DateTime<Utc>,
) -> DueEvaluation {
    let start = if cursor - now > MIN_CLOCK_SETBACK { now } else { cursor };
    let (due_times, decided_until, next) = find_due_times(due_rule, start, now);
    let DueTimes { expired, late, is_late_count_incomplete, punctual } = due_times;
    let mut unsubmitted_ranges: Vec<_> = expired.into_iter().collect();
    let mut to_submit = Vec::new();
    let late_decisions = decide_late_occurrences(
        due_rule.missed_policy,
        (late.len(), is_late_count_incomplete),
        !punctual.is_empty(),
    );
    for ((planned, due), decision) in late.into_iter().zip(late_decisions) {
        match decision {
            None => to_submit.push((planned, due, OccurrenceCause::CatchUp)),
            Some((status, reason)) => {
                record_unsubmitted(&mut unsubmitted_ranges, planned, status, reason);
            }
        }
    }
    to_submit
        .extend(punctual.into_iter().map(|(planned, due)| (planned, due, OccurrenceCause::Due)));
    DueEvaluation { to_submit, unsubmitted_ranges, decided_until, next_evaluation_at: next }
}

/// Iterates over the due planned times after `cursor`, the time up to which the schedule is decided. Returns these
/// times, the new value of `cursor`, and the next due time.
fn find_due_times(
    due_rule: DueRule<'_>,
    mut cursor: DateTime<Utc>,
    now: DateTime<Utc>,
) -> (DueTimes, DateTime<Utc>, Option<DateTime<Utc>>) {
    let DueRule { id, recurrence, jitter, missed_policy } = due_rule;
    let window = missed_policy.window().max(ON_TIME_TOLERANCE);
    let mut due_times = DueTimes::default();
    let mut planned_times = recurrence.planned_times_after(cursor);
    loop {
        let Some(planned) = planned_times.next() else { return (due_times, cursor, None) };
        let due = due_time(id, jitter, planned);
        if due > now {
            return (due_times, cursor, Some(due));
        }
        let delay = (now - due).to_std().unwrap_or_default();
        cursor = planned;
        let skip_target = if delay <= ON_TIME_TOLERANCE {
            due_times.punctual.push((planned, due));
            None
        } else if delay <= window {
            due_times.late.push((planned, due));
            let is_full = due_times.late.len() == MAX_COUNTED_TIMES;
            is_full.then(|| catch_up_start(due_rule, (cursor, now)))
        } else {
            due_times.record_expired(planned);
            // A second more, because a time at the very start is within the window.
            let window_start = now - TimeDelta::from_std(window + jitter).unwrap_or_default();
            let is_full = due_times.expired_count() == MAX_COUNTED_TIMES;
            is_full.then(|| window_start - TimeDelta::seconds(1))
        };
        if let Some(skip_target) = skip_target.filter(|target| *target > cursor) {
            due_times.mark_count_incomplete(delay <= window);
            cursor = skip_target;
            planned_times = recurrence.planned_times_after(cursor);
        }
    }
}

/// Returns the latest instant after which there are as many late times as are caught up, or `start` if there are not as
/// many. All planned times up to it are late, also with the greatest jitter.
fn catch_up_start(
    DueRule { id, recurrence, jitter, missed_policy }: DueRule<'_>,
    (start, now): (DateTime<Utc>, DateTime<Utc>),
) -> DateTime<Utc> {
    let catch_up_count = match missed_policy {
        MissedPolicy::Skip => 0,
        MissedPolicy::Once { .. } => 1,
        MissedPolicy::All { max, .. } => max as usize,
    };
    let is_late =
        |due: &DateTime<Utc>| (now - *due).to_std().is_ok_and(|delay| delay > ON_TIME_TOLERANCE);
    let has_enough = |instant| {
        let due_times = recurrence.planned_times_after(instant).map(|it| due_time(id, jitter, it));
        let late_times = due_times.take_while(|due| *due <= now).filter(is_late);
        late_times.take(catch_up_count).count() == catch_up_count
    };
    let max_delay = TimeDelta::from_std(ON_TIME_TOLERANCE + jitter).unwrap_or_default();
    let (mut lower_bound, mut upper_bound) = (start, now - max_delay - TimeDelta::seconds(1));
    while upper_bound - lower_bound > TimeDelta::seconds(1) {
        let middle = lower_bound + (upper_bound - lower_bound) / 2;
        if has_enough(middle) {
            lower_bound = middle;
        } else {
            upper_bound = middle;
        }
    }
    lower_bound
}

impl DueTimes {
    fn record_expired(&mut self, planned: DateTime<Utc>) {
        let expired = self.expired.get_or_insert(UnsubmittedRange {
            first: planned,
            last: planned,
            planned_time_count: 0,
            status: OccurrenceStatus::Missed,
            reason: "its time passed too long ago",
        });
        expired.last = planned;
        expired.planned_time_count = expired.planned_time_count.saturating_add(1);
    }

    fn expired_count(&self) -> usize {
        self.expired.as_ref().map_or(0, |expired| expired.planned_time_count as usize)
    }

    /// Records that more times passed than are counted, either late or expired ones.
    fn mark_count_incomplete(&mut self, is_late: bool) {
        self.is_late_count_incomplete |= is_late;
        if let Some(expired) = self.expired.as_mut().filter(|_| !is_late) {
            expired.reason = "its time passed too long ago, like that of more than are counted";
        }
    }
}

/// Returns for each late occurrence `None` if it is caught up, else its status and the reason.
fn decide_late_occurrences(
    missed_policy: MissedPolicy,
    (count, is_count_incomplete): (usize, bool),
    has_punctual: bool,
) -> impl Iterator<Item = Option<(OccurrenceStatus, &'static str)>> {
    let (coalesced_reason, missed_reason) = if is_count_incomplete {
        (
            "a later run replaces it; there were more missed times than are counted",
            "only the latest missed times are made up for; there were more than are counted",
        )
    } else {
        ("a later one stands for it", "more were missed than are made up for")
    };
    let coalesced = (OccurrenceStatus::Coalesced, coalesced_reason);
    let late_decision = move |index: usize| match missed_policy {
        MissedPolicy::Skip => Some((OccurrenceStatus::Missed, "what is missed is not made up for")),
        MissedPolicy::Once { .. } => (has_punctual || index + 1 < count).then_some(coalesced),
        MissedPolicy::All { max, .. } => {
            (index + (max as usize) < count).then_some((OccurrenceStatus::Missed, missed_reason))
        }
    };
    (0..count).map(late_decision)
}

/// Records an occurrence that is not submitted, merged with equal ones directly before it.
fn record_unsubmitted(
    unsubmitted_ranges: &mut Vec<UnsubmittedRange>,
    planned: DateTime<Utc>,
    status: OccurrenceStatus,
    reason: &'static str,
) {
    match unsubmitted_ranges
        .last_mut()
        .filter(|range| (range.status, range.reason) == (status, reason))
    {
        Some(range) => {
            range.last = planned;
            range.planned_time_count = range.planned_time_count.saturating_add(1);
        }
        None => {
            unsubmitted_ranges.push(UnsubmittedRange {
                first: planned,
                last: planned,
                planned_time_count: 1,
                status,
                reason,
            });
        }
    }
}

/// Returns the due time of a planned time: delayed by a part of the jitter that depends on the schedule and the planned
/// time alone.
#[must_use]
pub fn due_time(id: &ScheduleId, jitter: Duration, planned: DateTime<Utc>) -> DateTime<Utc> {
    planned + jitter_delay(id, planned, jitter)
}

fn jitter_delay(id: &ScheduleId, planned: DateTime<Utc>, jitter: Duration) -> TimeDelta {
    let max_delay_ms = u64::try_from(jitter.as_millis()).unwrap_or(u64::MAX);
    if max_delay_ms == 0 {
        return TimeDelta::zero();
    }
    let digest =
        Sha256::new().chain_update(id.as_str()).chain_update(planned.timestamp().to_le_bytes());
    let number =
        digest.finalize().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    TimeDelta::milliseconds(i64::try_from(number % (max_delay_ms + 1)).unwrap_or_default())
}

/// Decision about an occurrence while others of its schedule are unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverlapDecision {
    /// Submit the occurrence at once.
    Fire,
    /// Queue the occurrence.
    Wait,
    /// Cancel the previous runs, and queue the occurrence until they end.
    Replace,
    /// Skip the occurrence for this reason.
    Skip(&'static str),
}

/// Returns the decision for a number of running and waiting occurrences.
#[must_use]
pub const fn decide_overlap(
    overlap: OverlapPolicy,
    running: usize,
    waiting: usize,
) -> OverlapDecision {
    let is_schedule_idle = running == 0 && waiting == 0;
    match overlap {
        OverlapPolicy::Allow => OverlapDecision::Fire,
        _ if is_schedule_idle => OverlapDecision::Fire,
        OverlapPolicy::Skip => OverlapDecision::Skip("the one before it is not over"),
        OverlapPolicy::Queue if waiting >= MAX_WAITING_OCCURRENCES => {
            OverlapDecision::Skip("too many wait already")
        }
        OverlapPolicy::Queue => OverlapDecision::Wait,
        OverlapPolicy::CancelPrevious => OverlapDecision::Replace,
    }
}

#[cfg(test)]
mod tests;
