//! Application of the changes: each one is planned, stored, applied, and then answered.

use crate::model::id::ScheduleId;
use crate::model::schedule::Schedule;
use crate::model::schedule::occurrence::OccurrenceStatus;
use crate::scheduler::timer_queue::TimerEntry;
use crate::scheduler::{SchedulerActorState, SchedulerArgs};

use super::{ChangePlanner, ChangeWriteResult, PendingChange, ScheduleStoreUpdate};

impl SchedulerActorState {
    /// Starts the next change.
    pub(in crate::scheduler) fn start_next_change(&mut self) {
        while let Some(PendingChange { change, reply }) = self.pending_changes.pop_front() {
            let SchedulerArgs { config, services, .. } = &self.args;
            let (renderer, now) = (&*config.renderer, services.clock.now());
            let planner = ChangePlanner { table: &self.table, renderer, now };
            match planner.plan(change) {
                Err(failure) => _ = reply.send(Err(failure)),
                Ok(planned) => {
                    let tasks = &mut self.tasks;
                    return self.schedule_writer.store_change(planned, reply, services, tasks);
                }
            }
        }
    }

    /// Applies a stored change, then replies.
    pub(in crate::scheduler) fn finish_change(&mut self, change_result: ChangeWriteResult) {
        self.schedule_writer.finish_write();
        let ChangeWriteResult { change, result, reply } = change_result;
        if let Err(failure) = result {
            _ = reply.send(Err(failure));
            return;
        }
        match change.update {
            ScheduleStoreUpdate::Schedules { upserts, removals } => {
                removals.iter().for_each(|id| self.remove_schedule(id));
                upserts.into_iter().for_each(|schedule| self.put_schedule(schedule));
                self.table.drop_unused_interned_data();
            }
            ScheduleStoreUpdate::TriggeredOccurrence(evaluation) => {
                for occurrence in evaluation.occurrences {
                    let effects = self.occurrences.trigger(occurrence, &self.table);
                    self.perform_effects(effects);
                }
            }
        }
        _ = reply.send(Ok(change.schedule_in_reply.and_then(|id| self.view(&id))));
    }

    fn remove_schedule(&mut self, id: &ScheduleId) {
        self.close_waiting_occurrences(id, OccurrenceStatus::Refused, "its schedule was removed");
        self.occurrences.drop_occurrences_of(id);
        if let Some(next) = self.table.remove(id) {
            self.timers.remove(next, TimerEntry::Evaluate(id.clone()));
        }
    }

    /// Applies a stored schedule; its open occurrences continue.
    fn put_schedule(&mut self, schedule: Schedule) {
        if schedule.paused {
            let (id, status) = (&schedule.spec.id, OccurrenceStatus::Skipped);
            self.close_waiting_occurrences(id, status, "its schedule was held back");
        }
        self.table.put(schedule, self.args.now(), &mut self.timers);
    }

    fn close_waiting_occurrences(
        &mut self,
        id: &ScheduleId,
        status: OccurrenceStatus,
        reason: &str,
    ) {
        let effects = self.occurrences.close_waiting_occurrences(id, status, reason, &self.table);
        self.perform_effects(effects);
    }
}
