//! Lifecycle of an agent: it stops admitting requests because the service stops, or because it was removed from the
//! configuration.

use std::mem;

use ractor::RpcReplyPort;
use tokio::task::AbortHandle;

use super::pending_commands::PendingCommands;
use super::queue::RequestQueue;
use super::running::RunningExecutions;
use super::tasks::AgentBackgroundTasks;
use super::{AgentArgs, AgentMsg};
use crate::execution::recovery::settle_waiting_as_failed;
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::AgentId;

/// Lifecycle of an agent.
pub(super) struct AgentLifecycle {
    /// Reply ports of the callers that wait until nothing runs, if the service is stopping.
    drain_replies: Option<Vec<RpcReplyPort<()>>>,
    /// State of the removal, if the agent was removed from the configuration.
    removal: Option<RemovalState>,
}

/// State of an agent that was removed from the configuration and finishes its work.
#[derive(Default)]
struct RemovalState {
    /// Reply ports of the callers that wait for the end.
    replies: Vec<RpcReplyPort<()>>,
    /// Task that settles the questions that can no longer be answered.
    question_settlement_handle: Option<AbortHandle>,
}

impl Drop for RemovalState {
    /// Stops the settlement: an agent that is configured again keeps its questions.
    fn drop(&mut self) {
        if let Some(settlement) = &self.question_settlement_handle {
            settlement.abort();
        }
    }
}

/// Work that an agent has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemainingWork {
    /// An execution runs, or a submitter waits for its answer.
    Active,
    /// Nothing runs, and at least one request waits.
    Waiting,
    /// No work is left.
    Nothing,
}

impl RemainingWork {
    /// Returns the work that is left in these parts of an agent.
    pub(super) fn new(
        running: &RunningExecutions,
        queue: &RequestQueue,
        pending_commands: &PendingCommands,
    ) -> Self {
        if !running.is_empty() || queue.has_waiting_submitter() {
            Self::Active
        } else if !queue.is_empty() || pending_commands.has_answers() {
            Self::Waiting
        } else {
            Self::Nothing
        }
    }
}

impl AgentLifecycle {
    /// Creates the lifecycle of a new actor; `is_draining` is true if the service is stopping.
    pub(super) fn new(is_draining: bool) -> Self {
        Self { drain_replies: is_draining.then(Vec::new), removal: None }
    }

    /// Returns true if the service is stopping: no further execution starts.
    pub(super) const fn is_draining(&self) -> bool {
        self.drain_replies.is_some()
    }

    /// Returns true if the agent admits no further request.
    pub(super) const fn is_stopping(&self) -> bool {
        self.drain_replies.is_some() || self.removal.is_some()
    }

    /// Checks whether the agent admits requests.
    pub(super) fn check_not_stopping(&self, agent: &AgentId) -> Result<(), Failure> {
        if self.drain_replies.is_some() {
            Err(Failure::new(Code::Draining, "the service is stopping"))
        } else if self.removal.is_some() {
            Err(agent_removed_failure(agent))
        } else {
            Ok(())
        }
    }

    /// Handles the stop of the service. The reply follows with [`Self::report_if_drained`].
    pub(super) fn drain(&mut self, reply: RpcReplyPort<()>) {
        self.drain_replies.get_or_insert_default().push(reply);
    }

    /// Handles the removal from the configuration. The reply follows with [`Self::report_removed`].
    pub(super) fn begin_removal(&mut self, reply: RpcReplyPort<()>) {
        self.removal.get_or_insert_default().replies.push(reply);
    }

    /// Handles a new configuration of the agent: a removal is void, and its callers receive no reply.
    pub(super) fn cancel_removal(&mut self) {
        self.removal = None;
    }

    /// Replies to the drain requests, unless work is active.
    fn report_if_drained(&mut self, remaining: RemainingWork) {
        // Queued requests are in the ledger, and the next start of the service continues them.
        if remaining != RemainingWork::Active {
            // The list stays as the sign that the service is stopping.
            for reply in self.drain_replies.iter_mut().flat_map(mem::take) {
                _ = reply.send(());
            }
        }
    }

    /// Handles a change of the remaining work, for which a drain or a removal may wait.
    pub(super) fn handle_work_change(
        &mut self,
        remaining: RemainingWork,
        args: &AgentArgs,
        tasks: &mut AgentBackgroundTasks,
    ) {
        self.report_if_drained(remaining);
        self.settle_questions_when_idle(remaining, args, tasks);
    }

    /// Starts to settle the open questions of a removed agent, once no work is left.
    pub(super) fn settle_questions_when_idle(
        &mut self,
        remaining: RemainingWork,
        args: &AgentArgs,
        tasks: &mut AgentBackgroundTasks,
    ) {
        if let Some(removal) = self.removal_to_settle(remaining) {
            let (services, agent) = (args.services.clone(), args.spec.id.clone());
            removal.question_settlement_handle = Some(tasks.spawn_and_send_result(async move {
                settle_waiting_as_failed(&services, &agent, &agent_removed_failure(&agent)).await;
                AgentMsg::QuestionsSettled
            }));
        }
    }

    /// Returns the removal whose questions must be settled now.
    fn removal_to_settle(&mut self, remaining: RemainingWork) -> Option<&mut RemovalState> {
        let removal = self.removal.as_mut();
        removal.filter(|removal| {
            remaining == RemainingWork::Nothing && removal.question_settlement_handle.is_none()
        })
    }

    /// Replies to the removal requests, because nothing is left.
    pub(super) fn report_removed(&mut self) {
        for reply in self.removal.iter_mut().flat_map(|removal| mem::take(&mut removal.replies)) {
            _ = reply.send(());
        }
    }
}

/// Returns the rejection by an agent that was removed from the configuration.
pub(crate) fn agent_removed_failure(agent: &AgentId) -> Failure {
    let message = format!("agent `{agent}` was removed from the configuration");
    Failure::new(Code::AgentRemoved, message)
}

#[cfg(test)]
mod tests {
    use ractor::concurrency::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_drain_is_reported_once_nothing_is_active() {
        let mut lifecycle = AgentLifecycle::new(false);
        let (reply, mut drained) = oneshot();
        lifecycle.drain(reply.into());
        assert!(lifecycle.is_draining() && lifecycle.is_stopping());
        lifecycle.report_if_drained(RemainingWork::Active);
        assert!(drained.try_recv().is_err());
        lifecycle.report_if_drained(RemainingWork::Waiting);
        assert_eq!(drained.try_recv(), Ok(()));
        assert!(lifecycle.is_draining(), "the service does not start again");
    }

    #[tokio::test]
    async fn questions_are_settled_once_after_all_work() {
        let mut lifecycle = AgentLifecycle::new(false);
        assert!(lifecycle.removal_to_settle(RemainingWork::Nothing).is_none());
        let (reply, mut ended) = oneshot();
        lifecycle.begin_removal(reply.into());
        assert!(lifecycle.removal_to_settle(RemainingWork::Waiting).is_none());
        let task = tokio::spawn(std::future::pending::<()>());
        let removal = lifecycle.removal_to_settle(RemainingWork::Nothing).unwrap();
        removal.question_settlement_handle = Some(task.abort_handle());
        assert!(lifecycle.removal_to_settle(RemainingWork::Nothing).is_none());
        lifecycle.report_removed();
        assert_eq!(ended.try_recv(), Ok(()));
    }

    #[tokio::test]
    async fn a_restored_agent_stops_its_settlement() {
        let mut lifecycle = AgentLifecycle::new(false);
        let (reply, ended) = oneshot();
        lifecycle.begin_removal(reply.into());
        let task = tokio::spawn(std::future::pending::<()>());
        let removal = lifecycle.removal_to_settle(RemainingWork::Nothing).unwrap();
        removal.question_settlement_handle = Some(task.abort_handle());
        lifecycle.cancel_removal();
        assert!(task.await.is_err_and(|error| error.is_cancelled()));
        assert!(ended.await.is_err(), "the removal is void");
        assert!(!lifecycle.is_stopping());
    }
}
