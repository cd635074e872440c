//! Evaluation of a schedule: which planned times are due, and the decision about each.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest, Sha256};

use crate::model::id::ScheduleId;
use crate::model::schedule::occurrence::{OccurrenceCause, OccurrenceStatus};
use crate::model::schedule::recurrence::Timetable;
use crate::model::schedule::{Missed, Overlap, ScheduleSpec};

/// Longest delay of an occurrence that still counts as on time.
pub const ON_TIME: Duration = Duration::from_secs(30);
/// Minimum backward clock change that reopens decided times.
const SET_BACK: TimeDelta = TimeDelta::minutes(1);
/// Maximum number of planned times that one evaluation inspects; of older times only the latest matter.
const STEPS: usize = 5_000;
/// Maximum number of waiting occurrences of one schedule.
pub const WAITING: usize = 100;

/// Parts of a schedule that determine its due times.
#[derive(Debug, Clone, Copy)]
pub struct Recurrence<'s> {
    /// Id of the schedule.
    pub id: &'s ScheduleId,
    /// Planned times.
    pub timetable: &'s Timetable,
    /// Maximum delay of an occurrence.
    pub jitter: Duration,
    /// Policy for missed occurrences.
    pub missed: Missed,
}

impl<'s> From<&'s ScheduleSpec> for Recurrence<'s> {
    fn from(spec: &'s ScheduleSpec) -> Self {
        let ScheduleSpec { id, timetable, jitter, missed, .. } = spec;
        Self { id, timetable, jitter: *jitter, missed: *missed }
    }
}

/// Result of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueEvaluation {
    /// Occurrences to submit, in order: each with its planned time and its due time.
    pub fires: Vec<(DateTime<Utc>, DateTime<Utc>, OccurrenceCause)>,
    /// Missed or coalesced occurrences, in order.
    pub passed: Vec<Passed>,
    /// Time up to which every occurrence is decided.
    pub cursor: DateTime<Utc>,
    /// Time of the next evaluation; `None` if there is no further planned time.
    pub next: Option<DateTime<Utc>>,
}

/// Run of occurrences that are not submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// First planned time.
    pub first: DateTime<Utc>,
    /// Last planned time.
    pub last: DateTime<Utc>,
    /// Number of planned times.
    pub times: u32,
    /// Status: missed, or coalesced into a later one.
    pub verdict: OccurrenceStatus,
    /// Reason of the decision.
    pub reason: &'static str,
}

/// Planned time and due time.
type ScheduledTime = (DateTime<Utc>, DateTime<Utc>);

/// Due occurrences, by their delay.
#[derive(Default)]
struct DueTime {
    old: Option<Passed>,
    late: VecDeque<ScheduledTime>,
    punctual: Vec<ScheduledTime>,
}

/// Evaluates a schedule at one instant.
#[must_use]
pub fn evaluate(
    rhythm: Recurrence<'_>,
    cursor: DateTime<Utc>,
    now: DateTime<Utc>,
) -> DueEvaluation {
    let begin = if cursor - now > SET_BACK { now } else { cursor };
    let (come, cursor, next) = walk(rhythm, begin, now);
    let DueTime { old, late, punctual } = come;
    let mut passed: Vec<_> = old.into_iter().collect();
    let mut fires = Vec::new();
    let made_up = catch_up(rhythm.missed, late.len(), !punctual.is_empty());
    for ((planned, due), reason) in late.into_iter().zip(made_up) {
        match reason {
            None => fires.push((planned, due, OccurrenceCause::CatchUp)),
            Some((verdict, reason)) => note(&mut passed, planned, verdict, reason),
        }
    }
    fires.extend(punctual.into_iter().map(|(planned, due)| (planned, due, OccurrenceCause::Due)));
    DueEvaluation { fires, passed, cursor, next }
}

/// Iterates over the planned times after the cursor that are due. Returns them, the new cursor, and the next due time.
fn walk(
    Recurrence { id, timetable, jitter, missed }: Recurrence<'_>,
    mut cursor: DateTime<Utc>,
    now: DateTime<Utc>,
) -> (DueTime, DateTime<Utc>, Option<DateTime<Utc>>) {
    let window = missed.window().max(ON_TIME);
    let mut come = DueTime::default();
    let mut times = timetable.after(cursor);
    let mut steps = 0;
    loop {
        let Some(planned) = times.next() else { return (come, cursor, None) };
        let due = due_at(id, jitter, planned);
        if due > now {
            return (come, cursor, Some(due));
        }
        let late = (now - due).to_std().unwrap_or_default();
        if late <= ON_TIME {
            come.punctual.push((planned, due));
        } else if late <= window {
            come.late.push_back((planned, due));
        } else {
            come.skip(planned);
        }
        cursor = planned;
        steps += 1;
        if steps == STEPS {
            // A list of so many occurrences is not useful: the count is a lower bound from here on.
            let kept = now - TimeDelta::from_std(ON_TIME + jitter).unwrap_or_default();
            come.lose_count();
            cursor = cursor.max(kept);
            times = timetable.after(cursor);
        }
    }
}

impl DueTime {
    fn skip(&mut self, planned: DateTime<Utc>) {
        let (verdict, reason) = (OccurrenceStatus::Missed, "its time passed too long ago");
        let mut old: Vec<_> = self.old.take().into_iter().collect();
        note(&mut old, planned, verdict, reason);
        self.old = old.pop();
    }

    fn lose_count(&mut self) {
        if let Some(old) = &mut self.old {
            old.reason = "its time passed too long ago, like that of more than are counted";
        }
    }
}

/// Returns for each late occurrence `None` if it is caught up, else its status and the reason.
fn catch_up(
    missed: Missed,
    count: usize,
    has_punctual: bool,
) -> Vec<Option<(OccurrenceStatus, &'static str)>> {
    let stands = (OccurrenceStatus::Coalesced, "a later one stands for it");
    let of = |index: usize| match missed {
        Missed::Skip => Some((OccurrenceStatus::Missed, "what is missed is not made up for")),
        Missed::Once { .. } => (has_punctual || index + 1 < count).then_some(stands),
        Missed::All { max, .. } => (index + (max as usize) < count)
            .then_some((OccurrenceStatus::Missed, "more were missed than are made up for")),
    };
    (0..count).map(of).collect()
}

/// Records an occurrence that is not submitted, merged with equal ones directly before it.
fn note(
    passed: &mut Vec<Passed>,
    planned: DateTime<Utc>,
    verdict: OccurrenceStatus,
    reason: &'static str,
) {
    match passed.last_mut().filter(|last| (last.verdict, last.reason) == (verdict, reason)) {
        Some(last) => {
            last.last = planned;
            last.times = last.times.saturating_add(1);
        }
        None => passed.push(Passed { first: planned, last: planned, times: 1, verdict, reason }),
    }
}

/// Returns the due time of a planned time: delayed by a part of the jitter that depends on the schedule and the planned
/// time alone.
#[must_use]
pub fn due_at(id: &ScheduleId, jitter: Duration, planned: DateTime<Utc>) -> DateTime<Utc> {
    planned + jitter_delay(id, planned, jitter)
}

fn jitter_delay(id: &ScheduleId, planned: DateTime<Utc>, jitter: Duration) -> TimeDelta {
    let most = u64::try_from(jitter.as_millis()).unwrap_or(u64::MAX);
    if most == 0 {
        return TimeDelta::zero();
    }
    let digest =
        Sha256::new().chain_update(id.as_str()).chain_update(planned.timestamp().to_le_bytes());
    let number = digest.finalize().iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte));
    TimeDelta::milliseconds(i64::try_from(number % (most + 1)).unwrap_or_default())
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
pub const fn way(overlap: Overlap, working: usize, waiting: usize) -> OverlapDecision {
    let is_free = working == 0 && waiting == 0;
    match overlap {
        Overlap::Allow => OverlapDecision::Fire,
        _ if is_free => OverlapDecision::Fire,
        Overlap::Skip => OverlapDecision::Skip("the one before it is not over"),
        Overlap::Queue if waiting >= WAITING => OverlapDecision::Skip("too many wait already"),
        Overlap::Queue => OverlapDecision::Wait,
        Overlap::CancelPrevious => OverlapDecision::Replace,
    }
}

#[cfg(test)]
mod tests;
