//! A schedule as it is kept while nothing is done with it: what many have in common is there once.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::model::schedule::{Schedule, ScheduleId, ScheduleSpec};

/// A schedule in a tenth of the room that it takes when it is spelled out.
pub(super) struct Kept {
    pub(super) id: ScheduleId,
    alike: Arc<Schedule>,
    /// Its name, then its input.
    texts: Box<str>,
    name: u32,
    pub(super) paused: bool,
    pub(super) cursor: DateTime<Utc>,
    created_at: DateTime<Utc>,
    changed_at: DateTime<Utc>,
}

/// What schedules have in common, each kind once.
#[derive(Default)]
pub(super) struct Patterns(HashSet<Arc<Schedule>>);

impl Kept {
    pub(super) fn new(schedule: Schedule, patterns: &mut Patterns) -> Self {
        let Schedule { paused, cursor, created_at, changed_at, .. } = schedule;
        let ScheduleSpec { id, name, input, .. } = &schedule.spec;
        let texts = [name.as_str(), input].concat().into();
        // A text is no longer than a request may be.
        let name = u32::try_from(name.len()).unwrap_or(u32::MAX);
        let id = id.clone();
        Self {
            id,
            texts,
            name,
            paused,
            cursor,
            created_at,
            changed_at,
            alike: patterns.of(schedule),
        }
    }

    /// What it has in common with others: all but id, name, input, times, and whether it is held back.
    pub(super) fn alike(&self) -> &Schedule {
        &self.alike
    }

    pub(super) fn name(&self) -> &str {
        self.parts().0
    }

    fn parts(&self) -> (&str, &str) {
        self.texts.split_at_checked(self.name as usize).unwrap_or_default()
    }

    /// Whether it is due at its times.
    pub(super) fn is_active(&self) -> bool {
        self.alike.spec.enabled && !self.paused
    }

    /// What it says, spelled out.
    pub(super) fn spec(&self) -> ScheduleSpec {
        let (name, input) = self.parts();
        let spec = self.alike.spec.clone();
        ScheduleSpec { id: self.id.clone(), name: name.to_owned(), input: input.to_owned(), ..spec }
    }

    /// All of it, spelled out.
    pub(super) fn whole(&self) -> Schedule {
        let Self { paused, cursor, created_at, changed_at, .. } = *self;
        let Schedule { owner, origin, .. } = *self.alike;
        Schedule { spec: self.spec(), owner, origin, paused, cursor, created_at, changed_at }
    }
}

impl Patterns {
    fn of(&mut self, mut schedule: Schedule) -> Arc<Schedule> {
        let epoch = DateTime::UNIX_EPOCH;
        (schedule.cursor, schedule.created_at, schedule.changed_at) = (epoch, epoch, epoch);
        (schedule.paused, schedule.spec.id) = (false, ScheduleId::blank());
        (schedule.spec.name, schedule.spec.input) = (String::new(), String::new());
        match self.0.get(&schedule) {
            Some(known) => Arc::clone(known),
            None => {
                let fresh = Arc::new(schedule);
                self.0.insert(Arc::clone(&fresh));
                fresh
            }
        }
    }

    /// Forgets what nobody has any more.
    pub(super) fn tidy(&mut self) {
        self.0.retain(|pattern| Arc::strong_count(pattern) > 1);
    }
}
