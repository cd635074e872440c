//! State machine of the open occurrences, which are decided to be submitted and have not ended yet. Each method changes
//! the occurrences, and returns the effects that the actor carries out, in their order.

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::watch;

use super::OccurrenceKey;
use super::authorization::format_refusal_reason;
use super::loaded_schedule::{OccurrencePhase, OpenOccurrence};
use super::result_writer::OccurrenceResult;
use super::table::ScheduleTable;
use super::timer_queue::TimerEntry;
use crate::decide::schedule::due::{OverlapDecision, decide_overlap};
use crate::model::execution::progress::Progress;
use crate::model::failure::Failure;
use crate::model::id::{ExecutionId, PrincipalId, ScheduleId};
use crate::model::schedule::OverlapPolicy;
use crate::model::schedule::occurrence::{Occurrence, OccurrenceStatus};

mod open_occurrences;
mod replacement;
mod resume;

pub(super) use self::open_occurrences::OpenOccurrences;
use self::replacement::request_acceptance_check;

/// Pause before the cancellation of an occurrence is repeated whose execution is not known yet.
const CANCEL_RETRY_PAUSE: TimeDelta = TimeDelta::seconds(1);

/// State machine of the open occurrences.
#[derive(Default)]
pub(super) struct OccurrenceMachine {
    open_occurrences: OpenOccurrences,
}

/// Effect of a step of an occurrence.
pub(super) enum OccurrenceEffect {
    /// Submit the occurrence, as soon as the number of pending requests permits.
    Submit(OccurrenceKey),
    /// Check whether the agent would accept the occurrence, which is to replace others.
    CheckAcceptance(OccurrenceKey),
    /// Store a result.
    Record(OccurrenceResult),
    /// Perform an action at this instant.
    SetTimer(DateTime<Utc>, TimerEntry),
    /// Wait for the end of the execution.
    Observe(OccurrenceExecution),
    /// Cancel the execution.
    Cancel(ExecutionCancellation),
}

/// Execution that an occurrence became.
pub(super) struct OccurrenceExecution {
    pub(super) key: OccurrenceKey,
    pub(super) execution: ExecutionId,
    /// Progress of the execution, if an actor holds it.
    pub(super) progress: Option<watch::Receiver<Progress>>,
}

/// Cancellation of the execution of an occurrence.
pub(super) struct ExecutionCancellation {
    pub(super) key: OccurrenceKey,
    pub(super) execution: ExecutionId,
    pub(super) owner: PrincipalId,
    /// Reason for the log.
    pub(super) reason: &'static str,
}

/// Kind of the timer that repeats a submission or a check.
type Repetition = fn(Box<OccurrenceKey>) -> TimerEntry;

/// Effects of the present step.
type Effects = Vec<OccurrenceEffect>;

impl OccurrenceMachine {
    /// Returns the open occurrences.
    pub(super) const fn open_occurrences(&self) -> &OpenOccurrences {
        &self.open_occurrences
    }

    /// Returns an open occurrence whose request is about to be submitted or checked, and counts that.
    pub(super) fn begin_submission(&mut self, key: &OccurrenceKey) -> Option<&OpenOccurrence> {
        let open_occurrence = self.open_occurrences.occurrence_mut(key)?;
        open_occurrence.submission_count += 1;
        Some(open_occurrence)
    }

    /// Drops the occurrences of a removed schedule. Their executions are still observed.
    pub(super) fn drop_occurrences_of(&mut self, id: &ScheduleId) {
        self.open_occurrences.drop_occurrences_of(id);
    }

    /// Adds stored occurrences of a schedule, and starts those that may proceed.
    pub(super) fn add_occurrences(
        &mut self,
        id: &ScheduleId,
        occurrences: Vec<Occurrence>,
        table: &ScheduleTable,
    ) -> Effects {
        let mut effects = Vec::new();
        for occurrence in occurrences.into_iter().filter(Occurrence::is_open) {
            effects.extend(deadline_effect(&occurrence));
            if occurrence.status == OccurrenceStatus::Pending {
                let open_occurrence = OpenOccurrence::new(occurrence);
                self.open_occurrences.insert_if_schedule_exists(open_occurrence, table);
            }
        }
        self.start_ready_occurrences(id, table, &mut effects);
        effects
    }

    /// Adds a triggered occurrence, which waits for no other one.
    pub(super) fn trigger(&mut self, occurrence: Occurrence, table: &ScheduleTable) -> Effects {
        let mut effects: Effects = deadline_effect(&occurrence).into_iter().collect();
        effects.push(OccurrenceEffect::Submit(OccurrenceKey::for_occurrence(&occurrence)));
        let phase = OccurrencePhase::Submitting;
        let open_occurrence = OpenOccurrence { phase, ..OpenOccurrence::new(occurrence) };
        self.open_occurrences.insert_if_schedule_exists(open_occurrence, table);
        effects
    }

    /// Starts the waiting occurrences of a schedule that may proceed.
    fn start_ready_occurrences(
        &mut self,
        id: &ScheduleId,
        table: &ScheduleTable,
        effects: &mut Effects,
    ) {
        let Some(entry) = table.get(id) else { return };
        let overlap = entry.schedule.shared_fields().spec.overlap;
        let (waiting, busy) =
            (self.open_occurrences.waiting_keys(id), self.open_occurrences.counts(id).busy);
        for (index, key) in waiting.iter().enumerate() {
            let is_last = index + 1 == waiting.len();
            match decide_overlap(overlap, busy, 0) {
                OverlapDecision::Fire if overlap == OverlapPolicy::Allow => {
                    self.submit(key, effects);
                }
                OverlapDecision::Replace if !is_last => {
                    let coalesced_result =
                        unsubmitted_result(key, OccurrenceStatus::Coalesced, COALESCED_REASON);
                    self.close_and_push_effects(coalesced_result, table, effects);
                }
                OverlapDecision::Replace => {
                    effects.extend(request_acceptance_check(&mut self.open_occurrences, key));
                }
                OverlapDecision::Fire if index == 0 => self.submit(key, effects),
                OverlapDecision::Fire | OverlapDecision::Wait | OverlapDecision::Skip(_) => {}
            }
        }
    }

    fn submit(&mut self, key: &OccurrenceKey, effects: &mut Effects) {
        if let Some(open_occurrence) = self.open_occurrences.occurrence_mut(key) {
            open_occurrence.phase = OccurrencePhase::Submitting;
            effects.push(OccurrenceEffect::Submit(key.clone()));
        }
    }

    /// Records that an occurrence became an execution, also if its schedule was removed meanwhile.
    pub(super) fn handle_execution_start(
        &mut self,
        occurrence_execution: OccurrenceExecution,
        now: DateTime<Utc>,
    ) -> Effects {
        let (key, id) = (occurrence_execution.key.clone(), occurrence_execution.execution);
        if let Some(open_occurrence) = self.open_occurrences.occurrence_mut(&key) {
            open_occurrence.record_execution(id, now);
        }
        let status = OccurrenceStatus::Fired;
        let result = OccurrenceResult { key, status, reason: None, execution: Some(id) };
        vec![OccurrenceEffect::Record(result), OccurrenceEffect::Observe(occurrence_execution)]
    }

    /// Repeats a submission or a check that was rejected temporarily, or rejects the occurrence when its time is over.
    pub(super) fn retry(
        &mut self,
        key: &OccurrenceKey,
        failure: &Failure,
        (now, repetition): (DateTime<Utc>, Repetition),
        table: &ScheduleTable,
    ) -> Effects {
        let max_delay = table.get(&key.schedule).map(|entry| entry.schedule.max_submission_delay());
        let max_delay = max_delay.unwrap_or_default(); // A removed schedule has no open occurrence either.
        let open_occurrence = self.open_occurrences.occurrence_mut(key);
        let pause = open_occurrence.and_then(|it| it.plan_retry_pause_seconds(max_delay, now));
        let Some(pause) = pause else { return self.refuse(key, failure, table) };
        let (at, code) = (now + TimeDelta::seconds(pause.into()), failure.code);
        tracing::info!(schedule = %key.schedule, %code, pause, "resubmitting later");
        vec![OccurrenceEffect::SetTimer(at, repetition(key.clone().into()))]
    }

    /// Rejects an occurrence.
    pub(super) fn refuse(
        &mut self,
        key: &OccurrenceKey,
        failure: &Failure,
        table: &ScheduleTable,
    ) -> Effects {
        let OccurrenceKey { schedule, planned_at: planned } = key;
        let reason = format_refusal_reason(failure);
        tracing::warn!(%schedule, %planned, reason, "the request was refused");
        self.close(unsubmitted_result(key, OccurrenceStatus::Refused, &reason), table)
    }

    /// Closes an occurrence without an execution.
    pub(super) fn close(&mut self, result: OccurrenceResult, table: &ScheduleTable) -> Effects {
        let mut effects = Vec::new();
        self.close_and_push_effects(result, table, &mut effects);
        effects
    }

    fn close_and_push_effects(
        &mut self,
        result: OccurrenceResult,
        table: &ScheduleTable,
        effects: &mut Effects,
    ) {
        let id = result.key.schedule.clone();
        self.open_occurrences.remove(&result.key);
        effects.push(OccurrenceEffect::Record(result));
        self.start_ready_occurrences(&id, table, effects);
    }

    /// Closes the waiting occurrences of a schedule that is removed or paused.
    pub(super) fn close_waiting_occurrences(
        &mut self,
        id: &ScheduleId,
        status: OccurrenceStatus,
        reason: &str,
        table: &ScheduleTable,
    ) -> Effects {
        let mut effects = Vec::new();
        for key in self.open_occurrences.waiting_keys(id) {
            let result = unsubmitted_result(&key, status, reason);
            self.close_and_push_effects(result, table, &mut effects);
        }
        effects
    }

    /// Handles the end of an execution: the next occurrence may start.
    pub(super) fn handle_execution_end(
        &mut self,
        key: &OccurrenceKey,
        table: &ScheduleTable,
    ) -> Effects {
        let mut effects = Vec::new();
        self.open_occurrences.remove(key);
        self.start_ready_occurrences(&key.schedule, table, &mut effects);
        effects
    }

    /// Cancels the execution of an occurrence, or the execution that it is about to become.
    pub(super) fn cancel(
        &mut self,
        key: &OccurrenceKey,
        reason: &'static str,
        now: DateTime<Utc>,
        table: &ScheduleTable,
    ) -> Effects {
        let Some(open_occurrence) = self.open_occurrences.get(key) else { return Vec::new() };
        let (key, owner) = (key.clone(), open_occurrence.occurrence.owner);
        match (open_occurrence.occurrence.execution, open_occurrence.phase) {
            (Some(execution), _) => {
                let cancellation = ExecutionCancellation { key, execution, owner, reason };
                vec![OccurrenceEffect::Cancel(cancellation)]
            }
            (None, OccurrencePhase::Waiting) => {
                self.close(unsubmitted_result(&key, OccurrenceStatus::Skipped, reason), table)
            }
            // The agent may have accepted the request: the execution is cancelled once its id is known.
            (None, OccurrencePhase::Submitting | OccurrencePhase::Running) => {
                let retry = TimerEntry::Cancel(key.into());
                vec![OccurrenceEffect::SetTimer(now + CANCEL_RETRY_PAUSE, retry)]
            }
        }
    }
}

/// Reason of an occurrence that a later one replaces before it started.
const COALESCED_REASON: &str = "a later one stands for it";

/// Returns the result of an occurrence without an execution.
pub(super) fn unsubmitted_result(
    key: &OccurrenceKey,
    status: OccurrenceStatus,
    reason: &str,
) -> OccurrenceResult {
    OccurrenceResult { key: key.clone(), status, reason: Some(reason.to_owned()), execution: None }
}

/// Returns the cancellation at the deadline of an occurrence.
fn deadline_effect(occurrence: &Occurrence) -> Option<OccurrenceEffect> {
    let cancel = TimerEntry::Cancel(OccurrenceKey::for_occurrence(occurrence).into());
    Some(OccurrenceEffect::SetTimer(occurrence.deadline?, cancel))
}

#[cfg(test)]
mod tests;
