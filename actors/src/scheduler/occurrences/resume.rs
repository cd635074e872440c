//! Resumption of the occurrences that an earlier process had decided and not finished.

use chrono::{DateTime, Utc};

use super::{
    Effects, OccurrenceEffect, OccurrenceExecution, OccurrenceMachine, deadline_effect,
    unsubmitted_result,
};
use crate::model::id::ExecutionId;
use crate::model::schedule::OverlapPolicy;
use crate::model::schedule::occurrence::{Occurrence, OccurrenceStatus};
use crate::scheduler::OccurrenceKey;
use crate::scheduler::interned_schedule::InternedSchedule;
use crate::scheduler::loaded_schedule::{OccurrencePhase, OpenOccurrence, SubmissionMode};
use crate::scheduler::table::ScheduleTable;

impl OccurrenceMachine {
    /// Resumes an unfinished occurrence.
    pub(in crate::scheduler) fn resume(
        &mut self,
        occurrence: Occurrence,
        table: &ScheduleTable,
        now: DateTime<Utc>,
    ) -> Effects {
        let key = OccurrenceKey::for_occurrence(&occurrence);
        let entry = table.get(&key.schedule);
        match (entry, occurrence.status, occurrence.execution) {
            (None, OccurrenceStatus::Pending, _) => {
                let refused_result =
                    unsubmitted_result(&key, OccurrenceStatus::Refused, "its schedule was removed");
                self.close(refused_result, table)
            }
            (None, _, execution) => observe_effect(key, execution).into_iter().collect(),
            (Some(entry), OccurrenceStatus::Pending, _) => {
                self.resume_pending(occurrence, &entry.schedule, table, now)
            }
            (Some(_), _, execution) => {
                let mut effects: Effects = deadline_effect(&occurrence).into_iter().collect();
                effects.extend(observe_effect(key, execution));
                let open_occurrence = OpenOccurrence::new(occurrence);
                self.open_occurrences.insert_if_schedule_exists(open_occurrence, table);
                effects
            }
        }
    }

    /// Submits an occurrence again that may have been submitted before: the agent knows whether it was.
    fn resume_pending(
        &mut self,
        occurrence: Occurrence,
        schedule: &InternedSchedule,
        table: &ScheduleTable,
        now: DateTime<Utc>,
    ) -> Effects {
        let mut effects: Effects = deadline_effect(&occurrence).into_iter().collect();
        let mut open_occurrence = OpenOccurrence::new(occurrence);
        // Queued occurrences keep their place, however long they wait.
        let may_submit = schedule.shared_fields().spec.overlap == OverlapPolicy::Queue
            || open_occurrence.is_in_time(schedule.max_submission_delay(), now);
        if may_submit {
            (open_occurrence.submission_mode, open_occurrence.phase) =
                (SubmissionMode::Repeated, OccurrencePhase::Waiting);
        } else {
            // The crash may have happened after the submission, so its execution must still be found.
            (open_occurrence.submission_mode, open_occurrence.phase) =
                (SubmissionMode::FindOnly, OccurrencePhase::Submitting);
            effects.push(OccurrenceEffect::Submit(open_occurrence.key()));
        }
        self.open_occurrences.insert_if_schedule_exists(open_occurrence, table);
        effects
    }

    /// Starts the resumed occurrences that may proceed. All must be known before: a running one keeps others waiting.
    pub(in crate::scheduler) fn start_all_ready_occurrences(
        &mut self,
        table: &ScheduleTable,
    ) -> Effects {
        let mut effects = Vec::new();
        for id in self.open_occurrences.schedules() {
            self.start_ready_occurrences(&id, table, &mut effects);
        }
        effects
    }
}

/// Returns the observation of an execution that an earlier process started.
fn observe_effect(key: OccurrenceKey, execution: Option<ExecutionId>) -> Option<OccurrenceEffect> {
    let execution = execution?;
    Some(OccurrenceEffect::Observe(OccurrenceExecution { key, execution, progress: None }))
}
