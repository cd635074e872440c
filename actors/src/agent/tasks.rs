//! Tasks of an agent's actor, which end with it.

use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use tokio::task::{AbortHandle, JoinSet};

use super::AgentMsg;
use crate::model::id::ExecutionId;
use crate::ports::ledger::Ledger;
use crate::services::panic_guard::run_with_panic_guard;

/// Running tasks of an agent's actor. A panic of a task stops the actor, because the result of the task never arrives.
pub(super) struct AgentBackgroundTasks {
    agent: ActorRef<AgentMsg>,
    running_tasks: JoinSet<()>,
}

impl AgentBackgroundTasks {
    /// Creates an empty set of tasks, which report to this actor.
    pub(super) fn new(agent: ActorRef<AgentMsg>) -> Self {
        Self { agent, running_tasks: JoinSet::new() }
    }

    /// Returns the actor to which the tasks report.
    pub(super) const fn agent(&self) -> &ActorRef<AgentMsg> {
        &self.agent
    }

    /// Starts a task that ends with the actor.
    pub(super) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        while self.running_tasks.try_join_next().is_some() {} // Drops finished tasks.
        let agent = self.agent.clone();
        self.running_tasks.spawn(run_with_panic_guard(task, move || {
            _ = agent.cast(AgentMsg::BackgroundFuturePanicked);
        }))
    }

    /// Starts a task that completes even if the actor stops.
    pub(super) fn spawn_detached(&self, task: impl Future<Output = ()> + Send + 'static) {
        let agent = self.agent.clone();
        tokio::spawn(run_with_panic_guard(task, move || {
            _ = agent.cast(AgentMsg::BackgroundFuturePanicked);
        }));
    }

    /// Starts a task whose result is a message to the actor.
    pub(super) fn spawn_and_send_result(
        &mut self,
        task: impl Future<Output = AgentMsg> + Send + 'static,
    ) -> AbortHandle {
        let agent = self.agent.clone();
        self.spawn(async move { _ = agent.cast(task.await) }) // A new actor reads the ledger.
    }

    /// Sends a message to the actor after this time.
    pub(super) fn send_after(&mut self, delay: Duration, msg: AgentMsg) {
        self.spawn_and_send_result(async move {
            tokio::time::sleep(delay).await;
            msg
        });
    }

    /// Reads an execution with an open question after this time, and reports it as unanswered.
    pub(super) fn schedule_answer_timeout(
        &mut self,
        ledger: Arc<dyn Ledger>,
        id: ExecutionId,
        delay: Duration,
    ) {
        let agent = self.agent.clone();
        self.spawn(async move {
            tokio::time::sleep(delay).await;
            match ledger.execution(id).await {
                Ok(Some(record)) => _ = agent.cast(AgentMsg::AnswerTimedOut(Box::new(record))),
                Ok(None) => {}
                Err(error) => tracing::error!(execution = %id, %error, "read failed"),
            }
        });
    }

    /// Reads an execution whose actor has stopped before it was cancelled, and reports the cancellation.
    pub(super) fn spawn_cancel_after_actor_stop(
        &mut self,
        ledger: Arc<dyn Ledger>,
        id: ExecutionId,
        reason: String,
    ) {
        let agent = self.agent.clone();
        self.spawn(async move {
            if let Ok(Some(record)) = ledger.execution(id).await {
                _ = agent.cast(AgentMsg::CancelAfterActorStop(Box::new(record), reason)); // The record as it is now.
            }
        });
    }
}
