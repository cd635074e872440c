//! One schedule in memory: how far it has come, and what of it is not over.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::kept::Kept;
use super::{SchedulerData, Slot};
use crate::model::occurrence::{Occurrence, Verdict};
use crate::model::schedule::{ScheduleId, ScheduleView, Standing};
use crate::model::status::Due;

/// A schedule.
pub(super) struct Entry {
    pub(super) kept: Kept,
    /// When it is looked at next.
    pub(super) next: Option<DateTime<Utc>>,
    /// Its occurrences that are not over, by time.
    pub(super) open: BTreeMap<DateTime<Utc>, Open>,
    /// Failures in a row, as far as this life knows.
    pub(super) streak: u32,
}

/// An occurrence that is not over.
pub(super) struct Open {
    pub(super) occurrence: Occurrence,
    pub(super) phase: Phase,
    /// How often it was asked for.
    pub(super) tries: u32,
    pub(super) how: How,
}

/// How an occurrence is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// For the first time.
    Fresh,
    /// It may have been asked for before.
    Again,
    /// It is only looked for: its time is over.
    Find,
}

/// How far an occurrence has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It waits for those before it.
    Waiting,
    /// It is asked for, or will be again.
    Asking,
    /// It is an execution.
    Working,
}

impl Entry {
    pub(super) const fn new(kept: Kept) -> Self {
        Self { kept, next: None, open: BTreeMap::new(), streak: 0 }
    }

    pub(super) fn count(&self, phase: Phase) -> usize {
        self.open.values().filter(|open| open.phase == phase).count()
    }

    fn standing(&self) -> Standing {
        let is_busy = self.open.values().any(|open| open.phase != Phase::Waiting);
        match (self.kept.alike().spec.enabled, self.kept.paused) {
            _ if is_busy => Standing::Executing,
            (false, _) => Standing::Created,
            (true, true) => Standing::Paused,
            (true, false) => Standing::Active,
        }
    }

    /// What it is due to ask for next.
    pub(super) fn due(&self) -> Option<Due> {
        let at = self.next.filter(|_| self.kept.is_active())?;
        let agent = self.kept.alike().spec.agent.clone();
        Some(Due { schedule: self.kept.id.clone(), agent, at })
    }

    pub(super) fn view(&self) -> ScheduleView {
        let working = self.open.values().filter_map(|open| open.occurrence.execution);
        ScheduleView {
            schedule: self.kept.whole(),
            standing: self.standing(),
            next: self.next.filter(|_| self.kept.is_active()),
            working: working.collect(),
            waiting: self.count(Phase::Waiting),
            streak: self.streak,
        }
    }
}

impl Open {
    pub(super) fn of(occurrence: Occurrence) -> Self {
        let phase = match occurrence.verdict {
            Verdict::Fired => Phase::Working,
            _ => Phase::Waiting,
        };
        Self { occurrence, phase, tries: 0, how: How::Fresh }
    }

    pub(super) fn slot(&self) -> Slot {
        (self.occurrence.schedule.clone(), self.occurrence.planned)
    }
}

impl SchedulerData {
    pub(super) fn show(&self, id: &ScheduleId) -> Option<ScheduleView> {
        self.entries.get(id).map(Entry::view)
    }

    pub(super) fn list(&self, after: Option<ScheduleId>, limit: usize) -> Vec<ScheduleView> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        self.entries.range((from, Unbounded)).take(limit).map(|(_, entry)| entry.view()).collect()
    }

    pub(super) fn open_mut(&mut self, (id, planned): &Slot) -> Option<&mut Open> {
        self.entries.get_mut(id)?.open.get_mut(planned)
    }
}
