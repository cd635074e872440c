//! Background tasks of an execution: timers, readings and the clean-up.

use std::time::Duration;

use ractor::ActorRef;
use tokio::task::JoinSet;
use tracing::{Instrument, Span};

use super::ExecutionMsg;
use crate::decide::execution::ExecutionEvent;
use crate::services::panic_guard::run_with_panic_guard;

/// Background tasks of one actor. Dropping them ends them, so that no timer outlives its actor.
pub(super) struct ExecutionBackgroundTasks {
    actor: ActorRef<ExecutionMsg>,
    span: Span,
    running_tasks: JoinSet<()>,
}

impl ExecutionBackgroundTasks {
    /// Creates an empty set; each task runs in the span of the execution.
    pub(super) fn new(actor: ActorRef<ExecutionMsg>, span: Span) -> Self {
        Self { actor, span, running_tasks: JoinSet::new() }
    }

    /// Returns the span of the execution.
    pub(super) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Spawns a task whose message the actor receives, if there is one. A panic of the task stops the actor, because
    /// the phase would wait for its result forever.
    pub(super) fn spawn(
        &mut self,
        task: impl Future<Output = Option<ExecutionMsg>> + Send + 'static,
    ) {
        while self.running_tasks.try_join_next().is_some() {} // Drops finished tasks.
        let (actor, actor_on_panic) = (self.actor.clone(), self.actor.clone());
        let reporting_future = async move {
            if let Some(msg) = task.await {
                _ = actor.cast(msg); // Fails if the actor has stopped.
            }
        };
        let task = reporting_future.instrument(self.span.clone());
        self.running_tasks.spawn(run_with_panic_guard(task, move || {
            _ = actor_on_panic.cast(ExecutionMsg::BackgroundFuturePanicked);
        }));
    }

    /// Sends the actor an event after a delay.
    pub(super) fn send_after(&mut self, delay: Duration, event: ExecutionEvent) {
        self.spawn(async move {
            tokio::time::sleep(delay).await;
            Some(ExecutionMsg::Event(event))
        });
    }
}
