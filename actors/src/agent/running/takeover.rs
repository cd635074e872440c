//! Takeover of running work: by another actor, or by another process of the service.

use std::time::Duration;

use ractor::{ActorId, ActorProcessingErr};
use tokio::sync::watch;

use super::{ExecutionStart, RunningExecution, RunningExecutions};
use crate::agent::queue::QueuedRequest;
use crate::agent::tasks::AgentBackgroundTasks;
use crate::agent::{AgentArgs, AgentDefinition, AgentMsg};
use crate::decide::execution::ExecutionEvent;
use crate::decide::recovery::restart::RestartDecision;
use crate::execution::StartingPoint;
use crate::execution::recovery::{ContinuedWork, settle_interrupted, take_over_or_settle};
use crate::model::execution::progress::Progress;
use crate::model::id::ExecutionId;

impl RunningExecutions {
    /// Settles an execution without an actor before its slot becomes free, which
    /// [`AgentMsg::InterruptedExecutionSettled`] reports.
    pub(in crate::agent) fn settle_lost(
        &self,
        id: ExecutionId,
        args: &AgentArgs,
        tasks: &mut AgentBackgroundTasks,
    ) {
        let (services, driver) = (args.services.clone(), self.definition(id, args).driver);
        tasks.spawn_and_send_result(async move {
            settle_interrupted(&services, &*driver, id).await;
            AgentMsg::InterruptedExecutionSettled(id)
        });
    }

    /// Handles a crashed execution actor. Another actor takes over its work; an execution whose second actor also
    /// crashes is settled.
    ///
    /// # Errors
    /// Returns the fault if there were too many: that is a fault of this agent.
    pub(in crate::agent) fn handle_crash(
        &mut self,
        actor: ActorId,
        fault: ActorProcessingErr,
        args: &AgentArgs,
        tasks: &mut AgentBackgroundTasks,
    ) -> Result<(), ActorProcessingErr> {
        let Some(id) = self.find_by_actor(actor) else { return Ok(()) };
        tracing::error!(execution = %id, agent = %args.spec.id, %fault, "execution crashed");
        if self.try_mark_replaced(id) {
            let (services, driver) = (args.services.clone(), self.definition(id, args).driver);
            tasks.spawn_and_send_result(async move {
                let work = take_over_or_settle(&services, &*driver, id).await;
                work.map_or(AgentMsg::InterruptedExecutionSettled(id), |work| {
                    AgentMsg::InterruptedWorkTakenOver(Box::new(work))
                })
            });
        } else {
            self.settle_lost(id, args, tasks);
        }
        match self.record_crash_and_decide() {
            RestartDecision::Restart => Ok(()),
            RestartDecision::Quarantine => Err(fault),
        }
    }

    /// Starts a new actor for work that was taken over, in the place of a crashed actor or of one in an earlier
    /// process. The run time comes from the work, or from the wall clock if unknown.
    pub(in crate::agent) fn continue_work(
        &mut self,
        continued: ContinuedWork,
        args: &AgentArgs,
        tasks: &mut AgentBackgroundTasks,
    ) {
        let ContinuedWork { record, request, work_taken_over, recorded_events, has_original_input } =
            continued;
        let (id, definition) = (record.id, self.definition(record.id, args));
        let progress = match self.remove_for_replacement(id) {
            Some(RunningExecution { progress, .. }) => progress,
            None => watch::Sender::new(Progress {
                state: record.state,
                ..Progress::for_new_execution()
            }),
        };
        let run_time =
            work_taken_over.elapsed_run_time.unwrap_or_else(|| args.age(record.changed_at));
        let starting_point =
            StartingPoint::for_continued_work(&record, recorded_events, has_original_input);
        let deadline = args.queue_deadline(Duration::ZERO);
        let entry = QueuedRequest::new(request, starting_point, record.accepted_at, deadline);
        let entry = QueuedRequest { progress, ..entry };
        let first_event = ExecutionEvent::TakenOver { attempt_id: record.attempt_id, run_time };
        self.start(ExecutionStart { id, entry, definition, first_event }, &args.services, tasks);
    }

    /// Returns the definition at the start of an execution; the present one for an execution that has not started.
    fn definition(&self, id: ExecutionId, args: &AgentArgs) -> AgentDefinition {
        self.executions
            .get(&id)
            .map_or_else(|| args.definition(), |execution| execution.definition.clone())
    }
}
