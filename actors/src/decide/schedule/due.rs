//! Evaluation of a schedule: which planned times are due, and the decision about each.

use std::collections::VecDeque;
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
/// Maximum number of planned times that one evaluation inspects; of older times only the latest matter.
const MAX_INSPECTED_TIMES: usize = 5_000;
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
    pub missed: MissedPolicy,
}

impl<'s> From<&'s ScheduleSpec> for DueRule<'s> {
    fn from(spec: &'s ScheduleSpec) -> Self {
        let ScheduleSpec { id, recurrence, jitter, missed, .. } = spec;
        Self { id, recurrence, jitter: *jitter, missed: *missed }
    }
}

/// Result of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueEvaluation {
    /// Occurrences to submit, in order: each with its planned time and its due time.
    pub to_submit: Vec<(DateTime<Utc>, DateTime<Utc>, OccurrenceCause)>,
    /// Missed or coalesced occurrences, in order.
    pub unsubmitted: Vec<UnsubmittedRange>,
    /// Time up to which every occurrence is decided.
    pub cursor: DateTime<Utc>,
    /// Time of the next evaluation; `None` if there is no further planned time.
    pub next: Option<DateTime<Utc>>,
}

/// Run of occurrences that are not submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsubmittedRange {
    /// First planned time.
    pub first: DateTime<Utc>,
    /// Last planned time.
    pub last: DateTime<Utc>,
    /// Number of planned times.
    pub time_count: u32,
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
    late: VecDeque<ScheduledTime>,
    punctual: Vec<ScheduledTime>,
}

/// Evaluates a schedule at one instant.
#[must_use]
pub fn evaluate(due_rule: DueRule<'_>, cursor: DateTime<Utc>, now: DateTime<Utc>) -> DueEvaluation {
    let start = if cursor - now > MIN_CLOCK_SETBACK { now } else { cursor };
    let (due_times, cursor, next) = find_due_times(due_rule, start, now);
    let DueTimes { expired, late, punctual } = due_times;
    let mut passed: Vec<_> = expired.into_iter().collect();
    let mut to_submit = Vec::new();
    let late_decisions = decide_late_occurrences(due_rule.missed, late.len(), !punctual.is_empty());
    for ((planned, due), decision) in late.into_iter().zip(late_decisions) {
        match decision {
            None => to_submit.push((planned, due, OccurrenceCause::CatchUp)),
            Some((status, reason)) => record_unsubmitted(&mut passed, planned, status, reason),
        }
    }
    to_submit
        .extend(punctual.into_iter().map(|(planned, due)| (planned, due, OccurrenceCause::Due)));
    DueEvaluation { to_submit, unsubmitted: passed, cursor, next }
}

/// Iterates over the planned times after the cursor that are due. Returns them, the new cursor, and the next due time.
fn find_due_times(
    DueRule { id, recurrence, jitter, missed }: DueRule<'_>,
    mut cursor: DateTime<Utc>,
    now: DateTime<Utc>,
) -> (DueTimes, DateTime<Utc>, Option<DateTime<Utc>>) {
    let window = missed.window().max(ON_TIME_TOLERANCE);
    let mut due_times = DueTimes::default();
    let mut planned_times = recurrence.planned_times_after(cursor);
    let mut inspected_times = 0;
    loop {
        let Some(planned) = planned_times.next() else { return (due_times, cursor, None) };
        let due = due_at(id, jitter, planned);
        if due > now {
            return (due_times, cursor, Some(due));
        }
        let delay = (now - due).to_std().unwrap_or_default();
        if delay <= ON_TIME_TOLERANCE {
            due_times.punctual.push((planned, due));
        } else if delay <= window {
            due_times.late.push_back((planned, due));
        } else {
            due_times.record_expired(planned);
        }
        cursor = planned;
        inspected_times += 1;
        if inspected_times == MAX_INSPECTED_TIMES {
            // A list of so many occurrences is not useful: the count is a lower bound from here on.
            let cutoff = now - TimeDelta::from_std(ON_TIME_TOLERANCE + jitter).unwrap_or_default();
            due_times.mark_count_incomplete();
            cursor = cursor.max(cutoff);
            planned_times = recurrence.planned_times_after(cursor);
        }
    }
}

impl DueTimes {
    fn record_expired(&mut self, planned: DateTime<Utc>) {
        let (status, reason) = (OccurrenceStatus::Missed, "its time passed too long ago");
        let mut expired: Vec<_> = self.expired.take().into_iter().collect();
        record_unsubmitted(&mut expired, planned, status, reason);
        self.expired = expired.pop();
    }

    fn mark_count_incomplete(&mut self) {
        if let Some(expired) = &mut self.expired {
            expired.reason = "its time passed too long ago, like that of more than are counted";
        }
    }
}

/// Returns for each late occurrence `None` if it is caught up, else its status and the reason.
fn decide_late_occurrences(
    missed: MissedPolicy,
    count: usize,
    has_punctual: bool,
) -> Vec<Option<(OccurrenceStatus, &'static str)>> {
    let coalesced = (OccurrenceStatus::Coalesced, "a later one stands for it");
    let late_decision = |index: usize| match missed {
        MissedPolicy::Skip => Some((OccurrenceStatus::Missed, "what is missed is not made up for")),
        MissedPolicy::Once { .. } => (has_punctual || index + 1 < count).then_some(coalesced),
        MissedPolicy::All { max, .. } => (index + (max as usize) < count)
            .then_some((OccurrenceStatus::Missed, "more were missed than are made up for")),
    };
    (0..count).map(late_decision).collect()
}

/// Records an occurrence that is not submitted, merged with equal ones directly before it.
fn record_unsubmitted(
    unsubmitted: &mut Vec<UnsubmittedRange>,
    planned: DateTime<Utc>,
    status: OccurrenceStatus,
    reason: &'static str,
) {
    match unsubmitted.last_mut().filter(|run| (run.status, run.reason) == (status, reason)) {
        Some(run) => {
            run.last = planned;
            run.time_count = run.time_count.saturating_add(1);
        }
        None => {
            unsubmitted.push(UnsubmittedRange {
                first: planned,
                last: planned,
                time_count: 1,
                status,
                reason,
            });
        }
    }
}

/// Returns the due time of a planned time: delayed by a part of the jitter that depends on the schedule and the planned
/// time alone.
#[must_use]
pub fn due_at(id: &ScheduleId, jitter: Duration, planned: DateTime<Utc>) -> DateTime<Utc> {
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
    let is_free = running == 0 && waiting == 0;
    match overlap {
        OverlapPolicy::Allow => OverlapDecision::Fire,
        _ if is_free => OverlapDecision::Fire,
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
