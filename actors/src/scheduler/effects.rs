//! Effects of the occurrences' steps: each one is a call of a part.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::dispatch::{DispatchResult, cancel_execution, check_acceptance, observe_and_record_end};
use super::occurrences::{
    OccurrenceEffect, OccurrenceExecution, OccurrenceMachine, unsubmitted_result,
};
use super::table::ScheduleTable;
use super::timer_queue::TimerEntry;
use super::{OccurrenceKey, SchedulerActorState};
use crate::decide::notification::alert::AlertInput;
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::schedule::occurrence::{OccurrenceEnd, OccurrenceStatus};
use crate::ports::ledger::LedgerError;

impl SchedulerActorState {
    /// Carries out the effects of a step, in their order.
    pub(super) fn perform_effects(&mut self, effects: Vec<OccurrenceEffect>) {
        for effect in effects {
            match effect {
                OccurrenceEffect::Submit(key) => self.dispatcher.push(key),
                OccurrenceEffect::CheckAcceptance(key) => {
                    let Self { occurrences, table, args, tasks, .. } = self;
                    check_acceptance(key, occurrences, table, args, tasks);
                }
                OccurrenceEffect::Record(result) => self.result_writer.add(result, self.args.now()),
                OccurrenceEffect::SetTimer(at, entry) => self.timers.add(at, entry),
                OccurrenceEffect::Observe(execution) => {
                    let request_handle = self.args.request_handle.clone();
                    let store = Arc::clone(self.schedule_writer.store());
                    let observation = observe_and_record_end(execution, request_handle, store);
                    self.tasks.spawn_and_send_result(observation);
                }
                OccurrenceEffect::Cancel(cancellation) => {
                    let request_handle = self.args.request_handle.clone();
                    cancel_execution(cancellation, request_handle, &mut self.tasks);
                }
            }
        }
    }

    /// Resumes the occurrences that an earlier process had decided and not finished.
    pub(super) async fn resume_open_occurrences(&mut self) -> Result<(), LedgerError> {
        let now = self.args.now();
        for occurrence in self.schedule_writer.store().open_occurrences().await? {
            let effects = self.occurrences.resume(occurrence, &self.table, now);
            self.perform_effects(effects);
        }
        let effects = self.occurrences.start_all_ready_occurrences(&self.table);
        self.perform_effects(effects);
        Ok(())
    }

    /// Handles the result of a request.
    pub(super) fn finish_dispatch(&mut self, key: OccurrenceKey, result: DispatchResult) {
        self.dispatcher.finish_dispatch();
        let now = self.args.now();
        let effects = apply_dispatch_result(&mut self.occurrences, key, result, (now, &self.table));
        self.perform_effects(effects);
    }

    /// Handles the result of the check before an occurrence replaces others.
    pub(super) fn handle_acceptance_check(
        &mut self,
        key: &OccurrenceKey,
        refusal: Option<Failure>,
    ) {
        let effects =
            self.occurrences.handle_acceptance_check(key, refusal, self.args.now(), &self.table);
        self.perform_effects(effects);
    }

    /// Handles the end of an execution; reports the number of consecutive failures to the monitor.
    pub(super) fn handle_execution_end(
        &mut self,
        key: &OccurrenceKey,
        end: OccurrenceEnd,
        failure_streak: u32,
    ) {
        let OccurrenceKey { schedule, planned_at: planned } = key;
        let (outcome, code) = (end.outcome, end.code.map(Code::as_str));
        tracing::info!(%schedule, %planned, %outcome, code, "scheduled run ended");
        let Some(entry) = self.table.schedule_mut(schedule) else { return };
        entry.failure_streak = failure_streak;
        let limit = entry.schedule.shared_fields().spec.alert_after;
        let alert = AlertInput::ScheduledExecutionEnded(schedule.clone(), failure_streak, limit);
        self.args.services.monitor.send_alert_input(alert);
        let effects = self.occurrences.handle_execution_end(key, &self.table);
        self.perform_effects(effects);
    }
}

/// Changes an occurrence after the result of its request.
fn apply_dispatch_result(
    occurrences: &mut OccurrenceMachine,
    key: OccurrenceKey,
    result: DispatchResult,
    (now, table): (DateTime<Utc>, &ScheduleTable),
) -> Vec<OccurrenceEffect> {
    match result {
        DispatchResult::Accepted(execution, progress) => occurrences
            .handle_execution_start(OccurrenceExecution { key, execution, progress }, now),
        DispatchResult::Retryable(failure) => {
            occurrences.retry(&key, &failure, (now, TimerEntry::Resubmit), table)
        }
        DispatchResult::Refused(failure) => occurrences.refuse(&key, &failure, table),
        DispatchResult::Expired => {
            let reason = "its time passed while the service was down";
            occurrences.close(unsubmitted_result(&key, OccurrenceStatus::Missed, reason), table)
        }
    }
}
