//! Dispatch of due occurrences to the agents.

mod observation;
mod submission;

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::watch;

use super::authorization::TokenSnapshot;
use super::loaded_schedule::{OpenOccurrence, SubmissionMode};
use super::occurrences::{ExecutionCancellation, OccurrenceMachine};
use super::table::ScheduleTable;
use super::tasks::SchedulerBackgroundTasks;
use super::{OccurrenceKey, SchedulerArgs, SchedulerMsg};
use crate::gateway::requests::RequestHandle;
use crate::model::execution::progress::Progress;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;

pub(super) use self::observation::observe_and_record_end;
use self::submission::{OccurrenceSubmission, scheduler_caller};

/// Maximum number of pending requests of schedules.
const MAX_PENDING_REQUESTS: usize = 64;

/// Result of a request.
pub enum DispatchResult {
    /// The request became an execution.
    Accepted(ExecutionId, Option<watch::Receiver<Progress>>),
    /// The request was rejected permanently.
    Refused(Failure),
    /// The request was rejected temporarily.
    Retryable(Failure),
    /// The request was never accepted, and its time is over.
    Expired,
}

/// Dispatcher of occurrences: those that are ready, and the number of pending requests.
#[derive(Default)]
pub(super) struct Dispatcher {
    /// Occurrences to submit, as soon as the number of pending requests permits.
    ready_keys: VecDeque<OccurrenceKey>,
    /// Tokens, as read for the latest stored decisions.
    tokens: Option<Arc<TokenSnapshot>>,
    /// Number of pending requests.
    pending_request_count: usize,
}

impl Dispatcher {
    /// Adds an occurrence that is ready.
    pub(super) fn push(&mut self, key: OccurrenceKey) {
        self.ready_keys.push_back(key);
    }

    /// Sets the tokens with which the next occurrences are submitted.
    pub(super) fn set_tokens(&mut self, tokens: Arc<TokenSnapshot>) {
        self.tokens = Some(tokens);
    }

    /// Records that a request has its result.
    pub(super) const fn finish_dispatch(&mut self) {
        self.pending_request_count = self.pending_request_count.saturating_sub(1);
    }

    /// Submits ready occurrences, up to the limit of pending requests.
    pub(super) fn dispatch(
        &mut self,
        occurrences: &mut OccurrenceMachine,
        table: &ScheduleTable,
        args: &SchedulerArgs,
        tasks: &mut SchedulerBackgroundTasks,
    ) {
        // Tokens may be revoked at any time: a snapshot serves only the occurrences that are submitted right after it.
        let tokens = self.tokens.take();
        if self.ready_keys.is_empty() {
            return;
        }
        let tokens = tokens.unwrap_or_default();
        // Bounded, because many schedules may be due at the same minute.
        while self.pending_request_count < MAX_PENDING_REQUESTS {
            let Some(key) = self.ready_keys.pop_front() else { return };
            // The schedule may have been removed, or the occurrence closed, since it was ready.
            let Some(open_occurrence) = occurrences.begin_submission(&key) else { continue };
            let mode = open_occurrence.submission_mode;
            let Some(submission) = build_submission(open_occurrence, mode, &tokens, table) else {
                continue;
            };
            self.pending_request_count += 1;
            let (renderer, request_handle) =
                (args.config.renderer.clone(), args.request_handle.clone());
            tasks.spawn_and_send_result(async move {
                let input = submission.render_input(&*renderer);
                SchedulerMsg::DispatchFinished(key, submission.submit(&request_handle, input).await)
            });
        }
    }
}

/// Checks whether the agent would accept an occurrence.
pub(super) fn check_acceptance(
    key: OccurrenceKey,
    occurrences: &mut OccurrenceMachine,
    table: &ScheduleTable,
    args: &SchedulerArgs,
    tasks: &mut SchedulerBackgroundTasks,
) {
    let Some(open_occurrence) = occurrences.begin_submission(&key) else { return };
    let Some(submission) =
        build_submission(open_occurrence, SubmissionMode::First, &Arc::default(), table)
    else {
        return;
    };
    let (renderer, request_handle) = (args.config.renderer.clone(), args.request_handle.clone());
    tasks.spawn_and_send_result(async move {
        let input = submission.render_input(&*renderer);
        SchedulerMsg::AcceptanceChecked(key, submission.find_refusal(&request_handle, input).await)
    });
}

/// Cancels the execution of an occurrence. Its end is observed separately.
pub(super) fn cancel_execution(
    cancellation: ExecutionCancellation,
    request_handle: RequestHandle,
    tasks: &mut SchedulerBackgroundTasks,
) {
    let ExecutionCancellation { key, execution, owner, reason } = cancellation;
    tracing::warn!(schedule = %key.schedule, %execution, reason, "cancelling scheduled run");
    tasks.spawn(async move {
        _ = request_handle.cancel(&scheduler_caller(owner, "the schedule"), execution).await;
    });
}

/// Returns the submission of an occurrence; `None` if its schedule was removed.
fn build_submission(
    open_occurrence: &OpenOccurrence,
    mode: SubmissionMode,
    tokens: &Arc<TokenSnapshot>,
    table: &ScheduleTable,
) -> Option<OccurrenceSubmission> {
    let schedule = &table.get(&open_occurrence.occurrence.schedule)?.schedule;
    Some(OccurrenceSubmission {
        occurrence: open_occurrence.occurrence.clone(),
        spec: schedule.to_spec(),
        has_unreadable_texts: schedule.shared_fields().has_sealed_texts(),
        mode,
        tokens: Arc::clone(tokens),
    })
}
