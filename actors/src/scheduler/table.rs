//! Table of the schedules, with their next due times.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Bound::{Excluded, Unbounded};

use chrono::{DateTime, Utc};

use super::SchedulerSnapshot;
use super::interned_schedule::{InternedSchedule, ScheduleInterner};
use super::loaded_schedule::LoadedSchedule;
use super::timer_queue::{TimerEntry, TimerQueue};
use crate::decide::schedule::due::due_time;
use crate::model::id::ScheduleId;
use crate::model::schedule::Schedule;

/// Schedules in memory. An active schedule with a next due time has one entry in the timer queue.
#[derive(Default)]
pub(super) struct ScheduleTable {
    schedules: BTreeMap<ScheduleId, LoadedSchedule>,
    interner: ScheduleInterner,
}

impl ScheduleTable {
    pub(super) fn get(&self, id: &ScheduleId) -> Option<&LoadedSchedule> {
        self.schedules.get(id)
    }

    pub(super) fn schedule_mut(&mut self, id: &ScheduleId) -> Option<&mut LoadedSchedule> {
        self.schedules.get_mut(id)
    }

    pub(super) fn contains(&self, id: &ScheduleId) -> bool {
        self.schedules.contains_key(id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.schedules.is_empty()
    }

    /// Iterates over the schedules in the order of their ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = &LoadedSchedule> {
        self.schedules.values()
    }

    /// Iterates over the schedules after an id, in the order of their ids.
    pub(super) fn iter_after(
        &self,
        id: Option<ScheduleId>,
    ) -> impl Iterator<Item = &LoadedSchedule> {
        let from = id.map_or(Unbounded, Excluded);
        self.schedules.range((from, Unbounded)).map(|(_, entry)| entry)
    }

    /// Returns the interned form of a schedule, to be inserted later.
    pub(super) fn intern(&mut self, schedule: Schedule) -> InternedSchedule {
        InternedSchedule::new(schedule, &mut self.interner)
    }

    /// Inserts schedules at the start, before their first evaluation.
    pub(super) fn insert_all(&mut self, interned: Vec<InternedSchedule>) {
        let entry =
            |schedule: InternedSchedule| (schedule.id.clone(), LoadedSchedule::new(schedule));
        let mut entries: BTreeMap<_, _> = interned.into_iter().map(entry).collect(); // Bulk-built B-trees are full.
        self.schedules.append(&mut entries);
    }

    /// Schedules the evaluation of every schedule.
    pub(super) fn add_evaluation_timers(&self, now: DateTime<Utc>, timers: &mut TimerQueue) {
        for id in self.schedules.keys() {
            timers.add(now, TimerEntry::Evaluate(id.clone()));
        }
    }

    /// Inserts a stored schedule, or replaces its earlier form. The schedule is evaluated at once.
    pub(super) fn put(&mut self, schedule: Schedule, now: DateTime<Utc>, timers: &mut TimerQueue) {
        let id = schedule.spec.id.clone();
        let (spec, decided_until) = (&schedule.spec, schedule.decided_until);
        // The evaluation follows after the reply; the caller receives the next time now.
        let first_due = spec
            .recurrence
            .planned_times_after(decided_until)
            .next()
            .map(|next| due_time(&id, spec.jitter, next));
        let interned = self.intern(schedule);
        match self.schedules.get_mut(&id) {
            None => {
                let entry =
                    LoadedSchedule { next_evaluation: first_due, ..LoadedSchedule::new(interned) };
                self.schedules.insert(id.clone(), entry);
            }
            Some(entry) => {
                entry.schedule = interned;
                // The entry of the earlier recurrence would evaluate the schedule twice.
                if let Some(replaced_evaluation) =
                    mem::replace(&mut entry.next_evaluation, first_due)
                {
                    timers.remove(replaced_evaluation, TimerEntry::Evaluate(id.clone()));
                }
            }
        }
        timers.add(now, TimerEntry::Evaluate(id));
    }

    /// Removes a schedule. Returns the time of its timer.
    pub(super) fn remove(&mut self, id: &ScheduleId) -> Option<DateTime<Utc>> {
        self.schedules.remove(id).and_then(|entry| entry.next_evaluation)
    }

    /// Drops interned data that no schedule uses.
    pub(super) fn drop_unused_interned_data(&mut self) {
        self.interner.drop_unused();
    }

    /// Returns the snapshot of all schedules.
    pub(super) fn snapshot(&self, started_at: DateTime<Utc>) -> SchedulerSnapshot {
        let active_count = self.iter().filter(|entry| entry.schedule.is_active()).count();
        let mut first_by_agent = BTreeMap::new();
        for due in self.iter().filter_map(LoadedSchedule::next_due) {
            // One due time for each agent: the status would grow with the number of schedules otherwise.
            let earliest = first_by_agent.entry(due.agent.clone()).or_insert_with(|| due.clone());
            if due.at < earliest.at {
                *earliest = due;
            }
        }
        let due = first_by_agent.into_values().collect();
        let unreadable_input_count =
            self.iter().filter(|entry| entry.schedule.shared_fields().has_sealed_texts()).count();
        SchedulerSnapshot {
            started_at,
            active_count,
            schedule_count: self.schedules.len(),
            unreadable_input_count,
            next_due: due,
        }
    }
}
