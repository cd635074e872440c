//! Open occurrences of all schedules, by planned time.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::model::id::ScheduleId;
use crate::model::schedule::ScheduleView;
use crate::scheduler::OccurrenceKey;
use crate::scheduler::loaded_schedule::{
    LoadedSchedule, OccurrencePhase, OpenOccurrence, OpenOccurrenceCounts,
};
use crate::scheduler::table::ScheduleTable;

/// Open occurrences. A schedule without one has no entry, because most schedules are idle.
#[derive(Default)]
pub(in crate::scheduler) struct OpenOccurrences {
    by_schedule: BTreeMap<ScheduleId, BTreeMap<DateTime<Utc>, OpenOccurrence>>,
}

impl OpenOccurrences {
    pub(in crate::scheduler) fn get(&self, key: &OccurrenceKey) -> Option<&OpenOccurrence> {
        self.by_schedule.get(&key.schedule)?.get(&key.planned_at)
    }

    pub(super) fn occurrence_mut(&mut self, key: &OccurrenceKey) -> Option<&mut OpenOccurrence> {
        self.by_schedule.get_mut(&key.schedule)?.get_mut(&key.planned_at)
    }

    /// Returns the schedules with open occurrences, in the order of their ids.
    pub(super) fn schedules(&self) -> Vec<ScheduleId> {
        self.by_schedule.keys().cloned().collect()
    }

    /// Returns the numbers of the open occurrences of a schedule.
    pub(in crate::scheduler) fn counts(&self, id: &ScheduleId) -> OpenOccurrenceCounts {
        let (all, waiting) =
            (self.occurrences_of(id).count(), self.occurrences_of(id).filter(is_waiting).count());
        OpenOccurrenceCounts { busy: all - waiting, waiting }
    }

    /// Returns the displayed form of a schedule.
    pub(in crate::scheduler) fn view(&self, entry: &LoadedSchedule) -> ScheduleView {
        let id = &entry.schedule.id;
        let executions = self
            .occurrences_of(id)
            .filter_map(|open_occurrence| open_occurrence.occurrence.execution)
            .collect();
        entry.view(self.counts(id), executions)
    }

    fn occurrences_of(&self, id: &ScheduleId) -> impl Iterator<Item = &OpenOccurrence> {
        self.by_schedule.get(id).into_iter().flat_map(BTreeMap::values)
    }

    /// Returns the occurrences of a schedule that wait for earlier ones.
    pub(super) fn waiting_keys(&self, id: &ScheduleId) -> Vec<OccurrenceKey> {
        self.occurrences_of(id).filter(is_waiting).map(OpenOccurrence::key).collect()
    }

    /// Returns the occurrences of a schedule that are being submitted, or run.
    pub(in crate::scheduler) fn busy_keys(&self, id: &ScheduleId) -> Vec<OccurrenceKey> {
        self.occurrences_of(id)
            .filter(|open_occurrence| !is_waiting(open_occurrence))
            .map(OpenOccurrence::key)
            .collect()
    }

    /// Inserts an occurrence, unless its schedule was removed meanwhile.
    pub(super) fn insert_if_schedule_exists(
        &mut self,
        open_occurrence: OpenOccurrence,
        table: &ScheduleTable,
    ) {
        if table.contains(&open_occurrence.occurrence.schedule) {
            self.insert(open_occurrence);
        }
    }

    fn insert(&mut self, open_occurrence: OpenOccurrence) {
        let OccurrenceKey { schedule, planned_at: planned } = open_occurrence.key();
        self.by_schedule.entry(schedule).or_default().insert(planned, open_occurrence);
    }

    pub(super) fn remove(&mut self, key: &OccurrenceKey) {
        let Some(occurrences) = self.by_schedule.get_mut(&key.schedule) else { return };
        occurrences.remove(&key.planned_at);
        if occurrences.is_empty() {
            self.by_schedule.remove(&key.schedule);
        }
    }

    /// Drops the occurrences of a removed schedule.
    pub(super) fn drop_occurrences_of(&mut self, id: &ScheduleId) {
        self.by_schedule.remove(id);
    }
}

fn is_waiting(open_occurrence: &&OpenOccurrence) -> bool {
    open_occurrence.phase == OccurrencePhase::Waiting
}
