//! Which times of a schedule have come, and what becomes of each.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest, Sha256};

use crate::model::occurrence::{Cause, Verdict};
use crate::model::schedule::{Missed, Overlap, ScheduleId, ScheduleSpec};
use crate::model::timetable::Timetable;

/// How late something may be asked for and still count as on time.
pub const ON_TIME: Duration = Duration::from_secs(30);
/// How far the clock must have been set back before times that were decided count as open again.
const SET_BACK: TimeDelta = TimeDelta::minutes(1);
/// Times that are looked at one by one, at most; of those before only the latest matter.
const STEPS: usize = 5_000;
/// Occurrences of one schedule that may wait for each other.
pub const WAITING: usize = 100;

/// What of a schedule says when it is due.
#[derive(Debug, Clone, Copy)]
pub struct Rhythm<'s> {
    /// Whose it is.
    pub id: &'s ScheduleId,
    /// Its times.
    pub timetable: &'s Timetable,
    /// By how much each is put off at most.
    pub jitter: Duration,
    /// What becomes of those that passed unseen.
    pub missed: Missed,
}

impl<'s> From<&'s ScheduleSpec> for Rhythm<'s> {
    fn from(spec: &'s ScheduleSpec) -> Self {
        let ScheduleSpec { id, timetable, jitter, missed, .. } = spec;
        Self { id, timetable, jitter: *jitter, missed: *missed }
    }
}

/// What a look at a schedule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The times to ask at, in order: each with the instant at which it was due.
    pub fires: Vec<(DateTime<Utc>, DateTime<Utc>, Cause)>,
    /// The times that passed, in order.
    pub passed: Vec<Passed>,
    /// Up to when each time is decided now.
    pub cursor: DateTime<Utc>,
    /// When to look again; `None` when there is no further time.
    pub next: Option<DateTime<Utc>>,
}

/// Times that passed and are not made up for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// The first of them.
    pub first: DateTime<Utc>,
    /// The last of them.
    pub last: DateTime<Utc>,
    /// How many.
    pub times: u32,
    /// What they are: missed, or coalesced into a later one.
    pub verdict: Verdict,
    /// Why.
    pub reason: &'static str,
}

/// A time, and the instant at which it was due.
type Time = (DateTime<Utc>, DateTime<Utc>);

/// The times that have come, by how late they are.
#[derive(Default)]
struct Come {
    old: Option<Passed>,
    late: VecDeque<Time>,
    punctual: Vec<Time>,
}

/// Looks at a schedule at one instant.
#[must_use]
pub fn look(rhythm: Rhythm<'_>, cursor: DateTime<Utc>, now: DateTime<Utc>) -> Look {
    let begin = if cursor - now > SET_BACK { now } else { cursor };
    let (come, cursor, next) = walk(rhythm, begin, now);
    let Come { old, late, punctual } = come;
    let mut passed: Vec<_> = old.into_iter().collect();
    let mut fires = Vec::new();
    let made_up = make_up(rhythm.missed, late.len(), !punctual.is_empty());
    for ((planned, due), reason) in late.into_iter().zip(made_up) {
        match reason {
            None => fires.push((planned, due, Cause::CatchUp)),
            Some((verdict, reason)) => note(&mut passed, planned, verdict, reason),
        }
    }
    fires.extend(punctual.into_iter().map(|(planned, due)| (planned, due, Cause::Due)));
    Look { fires, passed, cursor, next }
}

/// Goes through the times after the cursor that have come by now. Gives them, how far it went, and
/// when the next is due.
fn walk(
    Rhythm { id, timetable, jitter, missed }: Rhythm<'_>,
    mut cursor: DateTime<Utc>,
    now: DateTime<Utc>,
) -> (Come, DateTime<Utc>, Option<DateTime<Utc>>) {
    let window = missed.window().max(ON_TIME);
    let mut come = Come::default();
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
            come.pass(planned);
        }
        cursor = planned;
        steps += 1;
        if steps == STEPS {
            // So many that nobody will read them: the count is a lower bound from here on.
            let kept = now - TimeDelta::from_std(ON_TIME + jitter).unwrap_or_default();
            come.lose_count();
            cursor = cursor.max(kept);
            times = timetable.after(cursor);
        }
    }
}

impl Come {
    fn pass(&mut self, planned: DateTime<Utc>) {
        let (verdict, reason) = (Verdict::Missed, "its time passed too long ago");
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

/// For each of so many late times: nothing when it is made up for, else what it is and why.
fn make_up(
    missed: Missed,
    count: usize,
    has_punctual: bool,
) -> Vec<Option<(Verdict, &'static str)>> {
    let stands = (Verdict::Coalesced, "a later one stands for it");
    let of = |index: usize| match missed {
        Missed::Skip => Some((Verdict::Missed, "what is missed is not made up for")),
        Missed::Once { .. } => (has_punctual || index + 1 < count).then_some(stands),
        Missed::All { max, .. } => (index + (max as usize) < count)
            .then_some((Verdict::Missed, "more were missed than are made up for")),
    };
    (0..count).map(of).collect()
}

/// Notes a time that passed, together with those like it right before.
fn note(passed: &mut Vec<Passed>, planned: DateTime<Utc>, verdict: Verdict, reason: &'static str) {
    match passed.last_mut().filter(|last| (last.verdict, last.reason) == (verdict, reason)) {
        Some(last) => {
            last.last = planned;
            last.times = last.times.saturating_add(1);
        }
        None => passed.push(Passed { first: planned, last: planned, times: 1, verdict, reason }),
    }
}

/// When a time is to be asked at: put off by a part of the jitter that depends on the schedule and
/// the time alone.
#[must_use]
pub fn due_at(id: &ScheduleId, jitter: Duration, planned: DateTime<Utc>) -> DateTime<Utc> {
    planned + put_off(id, planned, jitter)
}

fn put_off(id: &ScheduleId, planned: DateTime<Utc>, jitter: Duration) -> TimeDelta {
    let most = u64::try_from(jitter.as_millis()).unwrap_or(u64::MAX);
    if most == 0 {
        return TimeDelta::zero();
    }
    let digest =
        Sha256::new().chain_update(id.as_str()).chain_update(planned.timestamp().to_le_bytes());
    let number = digest.finalize().iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte));
    TimeDelta::milliseconds(i64::try_from(number % (most + 1)).unwrap_or_default())
}

/// What is done about an occurrence while others of its schedule are not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It is asked for at once.
    Fire,
    /// It waits.
    Wait,
    /// Those before it are called off, and it waits for their end.
    Replace,
    /// It is not asked for, for this reason.
    Skip(&'static str),
}

/// Chooses it by the number of those that are worked on and of those that wait.
#[must_use]
pub const fn way(overlap: Overlap, working: usize, waiting: usize) -> Way {
    let is_free = working == 0 && waiting == 0;
    match overlap {
        Overlap::Allow => Way::Fire,
        _ if is_free => Way::Fire,
        Overlap::Skip => Way::Skip("the one before it is not over"),
        Overlap::Queue if waiting >= WAITING => Way::Skip("too many wait already"),
        Overlap::Queue => Way::Wait,
        Overlap::CancelPrevious => Way::Replace,
    }
}

#[cfg(test)]
mod tests;
