//! Start of an execution's actor.

use std::sync::Arc;

use ractor::ActorRef;

use super::retries::ExecutionRetries;
use super::{RunningExecution, RunningExecutions};
use crate::agent::queue::QueuedRequest;
use crate::agent::running::replay_driver::ReplayDriver;
use crate::agent::tasks::AgentBackgroundTasks;
use crate::agent::{AgentDefinition, AgentMsg};
use crate::decide::execution::{ExecutionEvent, ExecutionPolicy};
use crate::execution::{ExecutionActor, ExecutionArgs, ExecutionPlan};
use crate::model::execution::record::ExecutionRecord;
use crate::model::execution::trace::TraceContext;
use crate::model::id::ExecutionId;
use crate::services::Services;

/// Start of an execution's actor.
pub(in crate::agent) struct ExecutionStart {
    /// Id of the execution.
    pub(in crate::agent) id: ExecutionId,
    /// Request, which has left the queue.
    pub(in crate::agent) entry: QueuedRequest,
    /// Definition of the agent with which the execution runs.
    pub(in crate::agent) definition: AgentDefinition,
    /// First event of the execution.
    pub(in crate::agent) first_event: ExecutionEvent,
}

impl ExecutionStart {
    /// Creates the start that ends an execution with an open question.
    pub(in crate::agent) fn for_ending_open_question(
        record: &ExecutionRecord,
        definition: AgentDefinition,
        first_event: ExecutionEvent,
    ) -> Self {
        Self {
            id: record.id,
            entry: QueuedRequest::for_ending_open_question(record),
            definition,
            first_event,
        }
    }
}

impl RunningExecutions {
    /// Starts the actor of an execution. A failure is reported as [`AgentMsg::SpawnFailed`].
    pub(in crate::agent) fn start(
        &mut self,
        start: ExecutionStart,
        services: &Arc<Services>,
        tasks: &mut AgentBackgroundTasks,
    ) {
        let ExecutionStart { id, entry, definition, first_event } = start;
        let QueuedRequest {
            request,
            progress,
            starting_point,
            replay_source,
            queued_since,
            probe,
            ..
        } = entry;
        let request_span = entry.span;
        let AgentDefinition { spec, driver } = definition.clone();
        let driver = match replay_source {
            None => driver,
            Some(source) => Arc::new(ReplayDriver { source, ledger: Arc::clone(&services.ledger) }),
        };
        // The span has the highest level, so that no log filter omits its ids.
        let trace_id = TraceContext::for_execution(request.origin.trace.as_ref(), id).id;
        let span = tracing::error_span!(parent: &request_span, "execution", execution = %id, agent = %spec.id, %trace_id);
        progress.send_if_modified(|progress| {
            progress.deferral = None;
            progress.set_queue_position(None) // The execution has left the queue.
        });
        let retries = ExecutionRetries::new(&spec, &starting_point);
        let (agent, agent_for_failures) = (tasks.agent().clone(), tasks.agent().clone());
        let args = ExecutionArgs {
            id,
            plan: ExecutionPlan { first_event, policy: ExecutionPolicy::from_spec(&spec) },
            starting_point,
            queued_since,
            request: Arc::clone(&request),
            spec,
            driver,
            services: services.clone(),
            progress: progress.clone(),
            span,
            on_slot_released: Box::new(move || _ = agent.cast(AgentMsg::SlotReleased(id))),
            on_attempt_failed: Arc::new(move |report| {
                _ = agent_for_failures.cast(AgentMsg::AttemptFailed(id, Box::new(report)));
            }),
        };
        if let Some(actor) = spawn_execution_actor(args, tasks) {
            self.insert(
                id,
                RunningExecution {
                    actor,
                    progress,
                    definition,
                    request,
                    request_span,
                    replay_source,
                    retries,
                    cancellation: None,
                    probe,
                },
            );
        }
    }
}

/// Spawns the actor of an execution.
fn spawn_execution_actor(
    args: ExecutionArgs,
    tasks: &mut AgentBackgroundTasks,
) -> Option<ActorRef<crate::execution::ExecutionMsg>> {
    let (id, agent) = (args.id, tasks.agent().clone());
    let supervisor = agent.get_cell();
    let spawned =
        ractor::ActorRuntime::spawn_linked_instant(None, ExecutionActor, args, supervisor);
    let (actor, startup) = spawned.ok()?; // Only a duplicate name is rejected, and this actor has no name.
    tasks.spawn(async move {
        if !matches!(startup.await, Ok(Ok(_))) {
            _ = agent.cast(AgentMsg::SpawnFailed(id)); // No other event reports this.
        }
    });
    Some(actor)
}
