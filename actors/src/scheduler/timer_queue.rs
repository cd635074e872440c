//! Timer queue of the scheduler.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::OccurrenceKey;
use super::interned_schedule::UnixMicros;
use crate::model::id::ScheduleId;

/// Action at an instant. There is one for each schedule, so rare kinds are boxed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerEntry {
    /// Evaluate a schedule.
    Evaluate(ScheduleId),
    /// Repeat a request.
    Resubmit(Box<OccurrenceKey>),
    /// Check again whether the agent would accept the occurrence, which is to replace others.
    RepeatCheck(Box<OccurrenceKey>),
    /// Cancel an occurrence whose deadline passed.
    Cancel(Box<OccurrenceKey>),
    /// Delete old occurrences.
    DeleteOldOccurrences,
}

/// Pending actions, by instant. No planned time is finer than a millisecond.
#[derive(Default)]
pub(super) struct TimerQueue {
    entries: BTreeSet<(UnixMicros, TimerEntry)>,
    /// True if the latest caller may have left actions that are due.
    may_have_due_entries: bool,
}

impl TimerQueue {
    pub(super) fn add(&mut self, at: DateTime<Utc>, entry: TimerEntry) {
        self.entries.insert((at.into(), entry));
    }

    pub(super) fn remove(&mut self, at: DateTime<Utc>, entry: TimerEntry) {
        self.entries.remove(&(at.into(), entry));
    }

    /// Returns the instant of the first action.
    pub(super) fn first_due(&self) -> Option<DateTime<Utc>> {
        self.entries.first().map(|(at, _)| (*at).into())
    }

    /// Removes and returns the first action that is due.
    pub(super) fn take_due(&mut self, now: DateTime<Utc>) -> Option<TimerEntry> {
        self.may_have_due_entries = self.first_due().is_some_and(|at| at <= now);
        self.may_have_due_entries
            .then(|| self.entries.pop_first())
            .flatten()
            .map(|(_, entry)| entry)
    }

    /// Returns true if the latest [`Self::take_due`] found an action: more may be due at the same instant.
    pub(super) const fn may_have_due_entries(&self) -> bool {
        self.may_have_due_entries
    }

    /// Advances evaluations and repeated requests to the present time, because the clock was set. Deadlines stay: a
    /// clock that was set back must not cancel a run.
    pub(super) fn reschedule_after_clock_change(&mut self, now: DateTime<Utc>) {
        let (all, now) = (std::mem::take(&mut self.entries).into_iter(), UnixMicros::from(now));
        let advanced = all.map(|(at, entry)| match entry {
            TimerEntry::Evaluate(_) | TimerEntry::Resubmit(_) | TimerEntry::RepeatCheck(_) => {
                (at.min(now), entry)
            }
            TimerEntry::Cancel(_) | TimerEntry::DeleteOldOccurrences => (at, entry),
        });
        self.entries = advanced.collect();
    }
}
