//! Effects of the occurrences' steps: each one is a call of a part.

use std::sync::Arc;

use super::dispatch::{self, DispatchResult};
use super::occurrences::{OccurrenceEffect, OccurrenceExecution, unsubmitted_result};
use super::{OccurrenceKey, SchedulerData};
use crate::decide::notification::alert::AlertInput;
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::schedule::occurrence::{OccurrenceEnding, OccurrenceStatus};
use crate::ports::ledger::LedgerError;

impl SchedulerData {
    /// Carries out the effects of a step, in their order.
    pub(super) fn perform(&mut self, effects: Vec<OccurrenceEffect>) {
        for effect in effects {
            match effect {
                OccurrenceEffect::Submit(key) => self.dispatcher.push(key),
                OccurrenceEffect::CheckAcceptance(key) => {
                    let Self { occurrences, table, args, tasks, .. } = self;
                    dispatch::check_acceptance(key, occurrences, table, args, tasks);
                }
                OccurrenceEffect::Record(result) => self.result_writer.add(result, self.args.now()),
                OccurrenceEffect::SetTimer(at, entry) => self.timers.add(at, entry),
                OccurrenceEffect::Observe(run) => {
                    let (requests, store) = (self.args.requests.clone(), self.writer.store());
                    self.tasks.spawn_reporting(dispatch::observe(run, requests, Arc::clone(store)));
                }
                OccurrenceEffect::Cancel(cancellation) => {
                    dispatch::cancel(cancellation, self.args.requests.clone(), &mut self.tasks);
                }
            }
        }
    }

    /// Resumes the occurrences that an earlier process had decided and not finished.
    pub(super) async fn resume(&mut self) -> Result<(), LedgerError> {
        let now = self.args.now();
        for occurrence in self.writer.store().open_occurrences().await? {
            let effects = self.occurrences.resume(occurrence, &self.table, now);
            self.perform(effects);
        }
        let effects = self.occurrences.proceed_all(&self.table);
        self.perform(effects);
        Ok(())
    }

    /// Handles the result of a request.
    pub(super) fn finish_dispatch(&mut self, key: OccurrenceKey, result: DispatchResult) {
        self.dispatcher.finish_dispatch();
        let (now, table) = (self.args.now(), &self.table);
        let effects = match result {
            DispatchResult::Accepted(execution, progress) => {
                self.occurrences.record_start(OccurrenceExecution { key, execution, progress }, now)
            }
            DispatchResult::Retryable(failure) => {
                self.occurrences.retry(&key, &failure, now, table)
            }
            DispatchResult::Refused(failure) => self.occurrences.refuse(&key, &failure, table),
            DispatchResult::Expired => {
                let reason = "its time passed while the service was down";
                self.occurrences
                    .close(unsubmitted_result(&key, OccurrenceStatus::Missed, reason), table)
            }
        };
        self.perform(effects);
    }

    /// Handles the result of the check before an occurrence replaces others.
    pub(super) fn handle_check(&mut self, key: &OccurrenceKey, refusal: Option<Failure>) {
        let effects = self.occurrences.handle_check(key, refusal, self.args.now(), &self.table);
        self.perform(effects);
    }

    /// Handles the end of an execution; reports the number of consecutive failures to the monitor.
    pub(super) fn handle_end(
        &mut self,
        key: &OccurrenceKey,
        ending: OccurrenceEnding,
        streak: u32,
    ) {
        let OccurrenceKey { schedule, planned } = key;
        let (outcome, code) = (ending.outcome, ending.code.map(Code::as_str));
        tracing::info!(%schedule, %planned, %outcome, code, "scheduled run ended");
        let Some(entry) = self.table.schedule_mut(schedule) else { return };
        entry.failure_streak = streak;
        let limit = entry.schedule.shared().spec.alert_after;
        let alert = AlertInput::ScheduledExecutionEnded(schedule.clone(), streak, limit);
        self.args.services.monitor.observe(alert);
        let effects = self.occurrences.handle_end(key, &self.table);
        self.perform(effects);
    }
}
