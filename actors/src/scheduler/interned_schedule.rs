//! Interned form of an idle schedule: data shared by many schedules is stored once.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::decide::schedule::due::{DueRule, ON_TIME_TOLERANCE};
use crate::model::id::ScheduleId;
use crate::model::schedule::recurrence::RecurrenceRule;
use crate::model::schedule::{Schedule, ScheduleSpec};

/// Interned schedule, which needs a tenth of the memory of the full form.
pub(super) struct InternedSchedule {
    pub(super) id: ScheduleId,
    shared_fields: Arc<Schedule>,
    recurrence: Arc<RecurrenceRule>,
    /// Name, followed by the input.
    concatenated_texts: Box<str>,
    name_len: u32,
    pub(super) paused: bool,
    decided_until: UnixMicros,
    created_at: UnixMicros,
    changed_at: UnixMicros,
}

/// Time in microseconds, as stored by ledgers, in two thirds of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UnixMicros(i64);

impl From<DateTime<Utc>> for UnixMicros {
    fn from(time: DateTime<Utc>) -> Self {
        Self(time.timestamp_micros())
    }
}

impl From<UnixMicros> for DateTime<Utc> {
    fn from(UnixMicros(micros): UnixMicros) -> Self {
        Self::from_timestamp_micros(micros).unwrap_or_default()
    }
}

/// Interned data that schedules share.
#[derive(Default)]
pub(super) struct ScheduleInterner {
    schedules: HashSet<Arc<Schedule>>,
    recurrences: HashSet<Arc<RecurrenceRule>>,
}

impl InternedSchedule {
    pub(super) fn new(schedule: Schedule, interner: &mut ScheduleInterner) -> Self {
        let Schedule { paused, decided_until, created_at, changed_at, .. } = schedule;
        let ScheduleSpec { id, name, input, .. } = &schedule.spec;
        let texts = [name.as_str(), input].concat().into();
        // A text is no longer than a request may be.
        let name_len = u32::try_from(name.len()).unwrap_or(u32::MAX);
        let id = id.clone();
        let recurrence = intern(&mut interner.recurrences, schedule.spec.recurrence.clone());
        Self {
            id,
            recurrence,
            concatenated_texts: texts,
            name_len,
            paused,
            decided_until: decided_until.into(),
            created_at: created_at.into(),
            changed_at: changed_at.into(),
            shared_fields: interner.intern_shared(schedule),
        }
    }

    /// Returns the shared data: all but id, name, recurrence, input, times, and the paused state.
    pub(super) fn shared_fields(&self) -> &Schedule {
        &self.shared_fields
    }

    pub(super) fn name(&self) -> &str {
        self.name_and_input().0
    }

    fn name_and_input(&self) -> (&str, &str) {
        self.concatenated_texts.split_at_checked(self.name_len as usize).unwrap_or_default()
    }

    /// Returns the time up to which every occurrence is decided.
    pub(super) fn decided_until(&self) -> DateTime<Utc> {
        self.decided_until.into()
    }

    /// Sets the time up to which every occurrence is decided.
    pub(super) fn set_decided_until(&mut self, decided_until: DateTime<Utc>) {
        self.decided_until = decided_until.into();
    }

    /// Returns true if the schedule is enabled and not paused.
    pub(super) fn is_active(&self) -> bool {
        self.shared_fields.spec.enabled && !self.paused
    }

    /// Returns the parts that determine the due times.
    pub(super) fn due_rule(&self) -> DueRule<'_> {
        let ScheduleSpec { jitter, missed, .. } = self.shared_fields.spec;
        DueRule { id: &self.id, recurrence: &self.recurrence, jitter, missed_policy: missed }
    }

    /// Returns the longest delay after which an occurrence is still submitted.
    pub(super) fn max_submission_delay(&self) -> Duration {
        self.shared_fields.spec.missed.window().max(ON_TIME_TOLERANCE)
    }

    /// Returns the specification in its full form.
    pub(super) fn to_spec(&self) -> ScheduleSpec {
        let (id, (name, input)) = (self.id.clone(), self.name_and_input());
        let (name, input) = (name.to_owned(), input.to_owned());
        let recurrence = (*self.recurrence).clone();
        ScheduleSpec { id, name, input, recurrence, ..self.shared_fields.spec.clone() }
    }

    /// Returns the schedule in its full form.
    pub(super) fn to_schedule(&self) -> Schedule {
        let Schedule { owner, origin, .. } = *self.shared_fields;
        Schedule {
            spec: self.to_spec(),
            text_sealing: self.shared_fields.text_sealing.clone(),
            owner,
            origin,
            paused: self.paused,
            decided_until: self.decided_until(),
            created_at: self.created_at.into(),
            changed_at: self.changed_at.into(),
        }
    }
}

impl ScheduleInterner {
    fn intern_shared(&mut self, mut schedule: Schedule) -> Arc<Schedule> {
        let epoch = DateTime::UNIX_EPOCH;
        // Only what differs between alike schedules is cleared, so that their patterns are equal.
        (schedule.decided_until, schedule.created_at, schedule.changed_at) = (epoch, epoch, epoch);
        (schedule.paused, schedule.spec.id) = (false, ScheduleId::reserved_id());
        (schedule.spec.name, schedule.spec.input) = (String::new(), String::new());
        schedule.spec.recurrence = RecurrenceRule::hourly();
        intern(&mut self.schedules, schedule)
    }

    /// Drops interned data that no schedule uses.
    pub(super) fn drop_unused(&mut self) {
        // The set itself holds one reference.
        self.schedules.retain(|interned| Arc::strong_count(interned) > 1);
        self.recurrences.retain(|interned| Arc::strong_count(interned) > 1);
    }
}

/// Returns the interned value.
fn intern<T: Hash + Eq>(interned_values: &mut HashSet<Arc<T>>, value: T) -> Arc<T> {
    if let Some(interned) = interned_values.get(&value) {
        return Arc::clone(interned);
    }
    let interned = Arc::new(value);
    interned_values.insert(Arc::clone(&interned));
    interned
}
