//! Waits of callers for the end of an execution.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::{RequestHandle, log_read_error};
use crate::model::code::Code;
use crate::model::execution::ExecutionState;
use crate::model::execution::progress::{Progress, RawAnswer};
use crate::model::execution::record::ExecutionRecord;
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ExecutionId};

/// Pause before the next search for an execution that lost its actor, or whose question may be answered.
const ACTOR_LOOKUP_PAUSE: Duration = Duration::from_millis(50);
/// Longest time for which a caller waits for the ledger to record an end, or for an execution without an
/// actor. Both are short unless the storage of the ledger fails.
pub(crate) const END_RECORD_TIMEOUT: Duration = Duration::from_secs(10);

impl RequestHandle {
    /// Waits until an execution has ended, or waits for input. Returns early when the service drains before
    /// the execution has started: the execution will run after the next start. Returns the unredacted text of
    /// the answer if the agent is configured so; only the owner may see it.
    ///
    /// # Errors
    /// Returns `ledger-unavailable` if the end cannot be recorded. It is recorded once the storage accepts it.
    pub async fn wait_for_end_or_question(
        &self,
        agent: &AgentId,
        id: ExecutionId,
        progress: Option<watch::Receiver<Progress>>,
    ) -> Result<Option<RawAnswer>, Failure> {
        let progress = self.wait((agent, id), progress, WaitTarget::EndOrQuestion).await?;
        Ok(progress.and_then(|progress| progress.borrow().raw_answer.clone()))
    }

    /// Waits until an execution has ended; an open question is not an end.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::wait_for_end_or_question`].
    pub async fn wait_until_ended(
        &self,
        record: &ExecutionRecord,
        progress: Option<watch::Receiver<Progress>>,
    ) -> Result<(), Failure> {
        self.wait((&record.agent, record.id), progress, WaitTarget::End).await.map(drop)
    }

    async fn wait(
        &self,
        (agent, id): (&AgentId, ExecutionId),
        mut progress: Option<watch::Receiver<Progress>>,
        target: WaitTarget,
    ) -> Result<Option<watch::Receiver<Progress>>, Failure> {
        let mut draining = self.reader.gateway_handle.draining.clone();
        let mut stuck_since: Option<Instant> = None;
        loop {
            tokio::select! {
                outcome = wait_until_reached(&mut progress, target) => match outcome {
                    WaitOutcome::Reached => return Ok(progress),
                    WaitOutcome::StopUnrecorded => {
                        return Err(stop_not_recorded_failure(id, progress.as_ref()));
                    }
                    WaitOutcome::OpenQuestions | WaitOutcome::Continued | WaitOutcome::ActorLost => {}
                },
                () = wait_for_drain_start(&mut draining) => {
                    if !has_started(progress.as_ref()) { return Ok(progress) }
                }
            }
            if self.is_target_reached(id, target).await {
                return Ok(progress);
            }
            if stuck_since.is_some_and(|since| since.elapsed() >= END_RECORD_TIMEOUT) {
                return Err(stop_not_recorded_failure(id, progress.as_ref()));
            }
            tokio::time::sleep(ACTOR_LOOKUP_PAUSE).await;
            progress = self.reader.watch_progress(agent, id).await;
            // During a drain this loop checks repeatedly, so the time is counted here too.
            let is_stuck =
                progress.as_ref().is_none_or(|progress| progress.borrow().has_unrecorded_stop());
            stuck_since = is_stuck.then(|| stuck_since.unwrap_or_else(Instant::now));
        }
    }

    async fn is_target_reached(&self, id: ExecutionId, target: WaitTarget) -> bool {
        match self.reader.services.ledger.execution(id).await {
            Ok(Some(record)) => {
                let has_question = record.awaits_answer() || record.has_open_interactions();
                record.outcome.is_some() || (target == WaitTarget::EndOrQuestion && has_question)
            }
            Ok(None) => true,
            Err(error) => {
                log_read_error(id, &error);
                false
            }
        }
    }
}

/// Event that a caller waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitTarget {
    /// The end of the execution, or a question.
    EndOrQuestion,
    /// The end of the execution.
    End,
}

/// Result of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitOutcome {
    /// The event has happened.
    Reached,
    /// There were open interactions. The answer to the last one is recorded before the progress of a run above the
    /// member shows it, so the ledger decides.
    OpenQuestions,
    /// The work has stopped, and the ledger does not record it.
    StopUnrecorded,
    /// The ledger has recorded a step, and the work continues.
    Continued,
    /// The actor was lost before.
    ActorLost,
}

/// Waits without limit while the work continues, and for a limited time for the record of its end.
async fn wait_until_reached(
    progress: &mut Option<watch::Receiver<Progress>>,
    target: WaitTarget,
) -> WaitOutcome {
    let Some(progress) = progress else { return WaitOutcome::ActorLost };
    let is_reached = |progress: &Progress| {
        let waits =
            target == WaitTarget::EndOrQuestion && progress.state == ExecutionState::Waiting;
        progress.outcome.is_some() || waits
    };
    let has_questions = |progress: &Progress| {
        target == WaitTarget::EndOrQuestion && progress.open_interaction_count > 0
    };
    let should_stop_waiting = |progress: &Progress| {
        is_reached(progress) || has_questions(progress) || progress.has_unrecorded_stop()
    };
    match progress.wait_for(should_stop_waiting).await {
        Ok(progress) if is_reached(&progress) => return WaitOutcome::Reached,
        Ok(progress) if has_questions(&progress) => return WaitOutcome::OpenQuestions,
        Ok(_) => {}
        Err(_lost) => return WaitOutcome::ActorLost,
    }
    let is_recorded = |progress: &Progress| is_reached(progress) || !progress.has_unrecorded_stop();
    match timeout(END_RECORD_TIMEOUT, progress.wait_for(is_recorded)).await {
        Ok(Ok(progress)) if is_reached(&progress) => WaitOutcome::Reached,
        Ok(Ok(_)) => WaitOutcome::Continued,
        Ok(Err(_lost)) => WaitOutcome::ActorLost,
        Err(_elapsed) => WaitOutcome::StopUnrecorded,
    }
}

/// Returns the failure of an execution whose end, or whose last step, cannot be recorded now.
pub(crate) fn stop_not_recorded_failure(
    id: ExecutionId,
    progress: Option<&watch::Receiver<Progress>>,
) -> Failure {
    let record = match progress.is_some_and(|progress| progress.borrow().awaits_ledger) {
        true => "a step",
        false => "the end",
    };
    let message = format!(
        "{record} of execution `{id}` is not recorded yet, because the disk of the ledger is full or cannot be written"
    );
    Failure::new(Code::LedgerUnavailable, message)
}

pub(super) async fn wait_for_drain_start(draining: &mut watch::Receiver<bool>) {
    if draining.wait_for(|draining| *draining).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn has_started(progress: Option<&watch::Receiver<Progress>>) -> bool {
    progress.is_some_and(|progress| progress.borrow().state != ExecutionState::Idle)
}
