//! Executions of an agent that hold a slot.

pub(crate) mod replay_driver;
mod retries;
mod start;
mod takeover;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ractor::{ActorId, ActorRef, RpcReplyPort};
use tokio::sync::watch;
use tokio::time::Instant;

use super::AgentDefinition;
use crate::decide::recovery::restart::{
    RestartDecision, RestartHistory, RestartLimit, decide_restart,
};
use crate::execution::{ExecutionMsg, InteractionMsg};
use crate::model::execution::progress::Progress;
use crate::model::execution::request::Request;
use crate::model::id::ExecutionId;
use crate::model::interaction::Interaction;
use crate::services::credential_breakers::BreakerProbe;

pub(super) use self::retries::ExecutionControl;
use self::retries::ExecutionRetries;
pub(super) use self::start::ExecutionStart;

/// Executions that hold a slot, and the crashes of their actors. An execution has an actor, unless it pauses between
/// two attempts. Maps that are seldom used are B-trees, which are
/// small while they are empty: most agents are idle.
pub(super) struct RunningExecutions {
    executions: HashMap<ExecutionId, RunningExecution>,
    by_actor: BTreeMap<ActorId, ExecutionId>,
    /// Executions whose actor has crashed and was replaced.
    executions_with_new_actor: BTreeSet<ExecutionId>,
    /// Crashes of executions; too many within a period are a fault of the agent.
    crashes: RestartHistory,
    /// Start of the agent's actor, from which the times of crashes count.
    started_at: Instant,
}

/// Execution that holds a slot.
pub(super) struct RunningExecution {
    /// Actor of the latest attempt, which has stopped if the execution pauses.
    actor: ActorRef<ExecutionMsg>,
    pub(super) progress: watch::Sender<Progress>,
    /// Definition of the agent at the start of the execution.
    definition: AgentDefinition,
    /// Raw request, for the next attempt.
    pub(super) request: Arc<Request>,
    /// Tracing span of the request, the parent of the spans of its attempts.
    pub(super) request_span: tracing::Span,
    /// Execution whose result is taken, if any.
    replay_source: Option<ExecutionId>,
    /// Retries of the execution.
    retries: ExecutionRetries,
    /// Reason of a requested cancellation, which the actor may have stopped without reading.
    cancellation: Option<String>,
    /// Probe of the credential, which is given back when the execution is dropped.
    probe: Option<BreakerProbe>,
}

impl RunningExecutions {
    /// Creates an empty set.
    pub(super) fn new() -> Self {
        Self {
            executions: HashMap::new(),
            by_actor: BTreeMap::new(),
            executions_with_new_actor: BTreeSet::new(),
            crashes: RestartHistory::default(),
            started_at: Instant::now(),
        }
    }

    /// Adds an execution whose actor has just started.
    fn insert(&mut self, id: ExecutionId, execution: RunningExecution) {
        self.by_actor.insert(execution.actor.get_id(), id);
        self.executions.insert(id, execution);
    }

    /// Returns true if the execution holds a slot.
    pub(super) fn contains(&self, id: ExecutionId) -> bool {
        self.executions.contains_key(&id)
    }

    /// Returns true if no execution holds a slot.
    pub(super) fn is_empty(&self) -> bool {
        self.executions.is_empty()
    }

    /// Returns the execution of an actor.
    pub(super) fn find_by_actor(&self, actor: ActorId) -> Option<ExecutionId> {
        self.by_actor.get(&actor).copied()
    }

    /// Returns the executions that have an actor, with their actors.
    pub(super) fn actors(&self) -> Vec<(ExecutionId, ActorRef<ExecutionMsg>)> {
        let with_actor =
            self.executions.iter().filter(|(_, execution)| !execution.retries.is_pausing());
        with_actor.map(|(id, execution)| (*id, execution.actor.clone())).collect()
    }

    /// Returns the number of executions with an outcome, whose attempts are being cleaned up.
    pub(super) fn count_in_clean_up(&self) -> usize {
        let has_outcome =
            |execution: &&RunningExecution| execution.progress.borrow().outcome.is_some();
        self.executions.values().filter(has_outcome).count()
    }

    /// Returns the present progress of an execution.
    pub(super) fn progress(&self, id: ExecutionId) -> Option<Progress> {
        self.executions.get(&id).map(|execution| execution.progress.borrow().clone())
    }

    /// Subscribes to the progress of an execution.
    pub(super) fn watch(&self, id: ExecutionId) -> Option<watch::Receiver<Progress>> {
        self.executions.get(&id).map(|execution| execution.progress.subscribe())
    }

    /// Forwards an answer to the actor of its execution, which replies. A dropped reply port is an answer too. Without
    /// an actor nothing is lost: the work that is resumed later asks again, and the ledger then knows the answer.
    pub(super) fn forward_answer(
        &self,
        interaction: Box<Interaction>,
        reply: RpcReplyPort<Option<watch::Receiver<Progress>>>,
    ) {
        if let Some(execution) = self.executions.get(&interaction.request_key.execution) {
            let answered = InteractionMsg::Answered(interaction, reply);
            _ = execution.actor.cast(ExecutionMsg::Interaction(answered));
        }
    }

    /// Removes an execution that has ended or holds no slot any more.
    pub(super) fn remove(&mut self, id: ExecutionId) -> Option<RunningExecution> {
        self.executions_with_new_actor.remove(&id);
        self.remove_for_replacement(id)
    }

    /// Removes an execution whose actor is about to be replaced.
    fn remove_for_replacement(&mut self, id: ExecutionId) -> Option<RunningExecution> {
        let execution = self.executions.remove(&id)?;
        self.by_actor.remove(&execution.actor.get_id());
        Some(execution)
    }

    /// Returns true if another actor may replace the crashed one of an execution, which is permitted once.
    fn try_mark_replaced(&mut self, id: ExecutionId) -> bool {
        self.executions_with_new_actor.insert(id)
    }

    /// Records a crash, and decides about the agent.
    fn record_crash_and_decide(&mut self) -> RestartDecision {
        // `decide_restart` takes the history by value and returns the next one.
        let crashes = std::mem::take(&mut self.crashes);
        let (crashes, decision) =
            decide_restart(crashes, self.started_at.elapsed(), RestartLimit::default());
        self.crashes = crashes;
        decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_execution_is_replaced_once_until_it_is_removed() {
        let (mut running, id) = (RunningExecutions::new(), ExecutionId::generate());
        assert!(running.try_mark_replaced(id));
        assert!(running.remove_for_replacement(id).is_none());
        assert!(!running.try_mark_replaced(id), "the second actor crashed too");
        assert!(running.remove(id).is_none());
        assert!(running.try_mark_replaced(id));
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_crashes_in_a_minute_are_a_fault_of_the_agent() {
        let mut running = RunningExecutions::new();
        let limit = RestartLimit::default();
        for _ in 0..limit.max_restarts {
            assert_eq!(running.record_crash_and_decide(), RestartDecision::Restart);
        }
        assert_eq!(running.record_crash_and_decide(), RestartDecision::Quarantine);
        tokio::time::advance(2 * limit.period).await;
        assert_eq!(running.record_crash_and_decide(), RestartDecision::Restart);
    }
}
