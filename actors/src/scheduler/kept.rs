//! A schedule as it is kept while nothing is done with it: what many have in common is there once.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::decide::due::Rhythm;
use crate::model::schedule::{Schedule, ScheduleId, ScheduleSpec};
use crate::model::timetable::Timetable;

/// A schedule in a tenth of the room that it takes when it is spelled out.
pub(super) struct Kept {
    pub(super) id: ScheduleId,
    alike: Arc<Schedule>,
    timetable: Arc<Timetable>,
    /// Its name, then its input.
    texts: Box<str>,
    name: u32,
    pub(super) paused: bool,
    cursor: Micros,
    created_at: Micros,
    changed_at: Micros,
}

/// A time to the microsecond, as ledgers keep it, in two thirds of the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Micros(i64);

impl From<DateTime<Utc>> for Micros {
    fn from(time: DateTime<Utc>) -> Self {
        Self(time.timestamp_micros())
    }
}

impl From<Micros> for DateTime<Utc> {
    fn from(Micros(micros): Micros) -> Self {
        Self::from_timestamp_micros(micros).unwrap_or_default()
    }
}

/// What schedules have in common, each kind once.
#[derive(Default)]
pub(super) struct Patterns {
    schedules: HashSet<Arc<Schedule>>,
    timetables: HashSet<Arc<Timetable>>,
}

impl Kept {
    pub(super) fn new(schedule: Schedule, patterns: &mut Patterns) -> Self {
        let Schedule { paused, cursor, created_at, changed_at, .. } = schedule;
        let ScheduleSpec { id, name, input, .. } = &schedule.spec;
        let texts = [name.as_str(), input].concat().into();
        // A text is no longer than a request may be.
        let name = u32::try_from(name.len()).unwrap_or(u32::MAX);
        let id = id.clone();
        let timetable = shared(&mut patterns.timetables, schedule.spec.timetable.clone());
        Self {
            id,
            timetable,
            texts,
            name,
            paused,
            cursor: cursor.into(),
            created_at: created_at.into(),
            changed_at: changed_at.into(),
            alike: patterns.of(schedule),
        }
    }

    /// What it has in common with others: all but id, name, timetable, input, times, and whether it is
    /// held back.
    pub(super) fn alike(&self) -> &Schedule {
        &self.alike
    }

    pub(super) fn name(&self) -> &str {
        self.parts().0
    }

    fn parts(&self) -> (&str, &str) {
        self.texts.split_at_checked(self.name as usize).unwrap_or_default()
    }

    /// How far it has come.
    pub(super) fn cursor(&self) -> DateTime<Utc> {
        self.cursor.into()
    }

    /// It has come so far.
    pub(super) fn move_to(&mut self, cursor: DateTime<Utc>) {
        self.cursor = cursor.into();
    }

    /// Whether it is due at its times.
    pub(super) fn is_active(&self) -> bool {
        self.alike.spec.enabled && !self.paused
    }

    /// When it is due.
    pub(super) fn rhythm(&self) -> Rhythm<'_> {
        let ScheduleSpec { jitter, missed, .. } = self.alike.spec;
        Rhythm { id: &self.id, timetable: &self.timetable, jitter, missed }
    }

    /// What it says, spelled out.
    pub(super) fn spec(&self) -> ScheduleSpec {
        let (id, (name, input)) = (self.id.clone(), self.parts());
        let (name, input) = (name.to_owned(), input.to_owned());
        let timetable = (*self.timetable).clone();
        ScheduleSpec { id, name, input, timetable, ..self.alike.spec.clone() }
    }

    /// All of it, spelled out.
    pub(super) fn whole(&self) -> Schedule {
        let Schedule { owner, origin, .. } = *self.alike;
        Schedule {
            spec: self.spec(),
            owner,
            origin,
            paused: self.paused,
            cursor: self.cursor(),
            created_at: self.created_at.into(),
            changed_at: self.changed_at.into(),
        }
    }
}

impl Patterns {
    fn of(&mut self, mut schedule: Schedule) -> Arc<Schedule> {
        let epoch = DateTime::UNIX_EPOCH;
        (schedule.cursor, schedule.created_at, schedule.changed_at) = (epoch, epoch, epoch);
        (schedule.paused, schedule.spec.id) = (false, ScheduleId::blank());
        (schedule.spec.name, schedule.spec.input) = (String::new(), String::new());
        schedule.spec.timetable = Timetable::hourly();
        shared(&mut self.schedules, schedule)
    }

    /// Forgets what nobody has any more.
    pub(super) fn tidy(&mut self) {
        self.schedules.retain(|pattern| Arc::strong_count(pattern) > 1);
        self.timetables.retain(|pattern| Arc::strong_count(pattern) > 1);
    }
}

/// The one of its kind.
fn shared<T: Hash + Eq>(known: &mut HashSet<Arc<T>>, value: T) -> Arc<T> {
    if let Some(known) = known.get(&value) {
        return Arc::clone(known);
    }
    let fresh = Arc::new(value);
    known.insert(Arc::clone(&fresh));
    fresh
}
