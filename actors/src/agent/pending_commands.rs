//! Commands for an execution that arrived while its actor was still stopping.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::tasks::AgentBackgroundTasks;
use super::{AgentArgs, Submission};
use crate::model::id::ExecutionId;

/// Commands that the agent carries out once the actor of their execution has stopped.
#[derive(Default)]
pub(super) struct PendingCommands {
    /// Answers to questions.
    answers: BTreeMap<ExecutionId, Box<Submission>>,
    /// Reasons of cancellations.
    cancellations: BTreeMap<ExecutionId, String>,
}

impl PendingCommands {
    /// Keeps the answer to the question of an execution.
    pub(super) fn store_answer(&mut self, id: ExecutionId, answer: Submission) {
        self.answers.insert(id, Box::new(answer));
    }

    /// Removes and returns the answer to the question of an execution.
    pub(super) fn take_answer(&mut self, id: ExecutionId) -> Option<Submission> {
        self.answers.remove(&id).map(|answer| *answer)
    }

    /// Returns true if an answer waits.
    pub(super) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Keeps the cancellation of an execution, with its reason.
    pub(super) fn store_cancellation(&mut self, id: ExecutionId, reason: String) {
        self.cancellations.insert(id, reason);
    }

    /// Cancels an execution whose cancellation arrived while its actor stopped.
    pub(super) fn apply_cancellation(
        &mut self,
        id: ExecutionId,
        args: &AgentArgs,
        tasks: &mut AgentBackgroundTasks,
    ) {
        if let Some(reason) = self.take_cancellation(id) {
            tasks.spawn_cancel_after_actor_stop(Arc::clone(&args.services.ledger), id, reason);
        }
    }

    /// Removes the cancellation of an execution, and returns its reason.
    pub(super) fn take_cancellation(&mut self, id: ExecutionId) -> Option<String> {
        self.cancellations.remove(&id)
    }
}
