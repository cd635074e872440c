//! `ExecutionActor`: one per attempt of an execution; performs the effects of
//! [`decide::execution`](crate::decide::execution). It reports a failed attempt to the agent's actor, which decides
//! what follows. If that is another attempt, the actor stops after the clean-up, and another one drives the next
//! attempt.

mod attempt;
mod claim;
mod context;
mod effects;
mod interactions;
mod persistence;
mod phase_machine;
mod published_state;
pub(crate) mod recovery;
mod starting_point;
mod stop;
mod tasks;
mod telemetry;
mod usage;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::sync::watch;
use tracing::Span;

use crate::decide::execution::{ExecutionEvent, ExecutionPolicy};
use crate::driver::Driver;
use crate::driver::report::Report;
use crate::model::agent::AgentSpec;
use crate::model::execution::event::EventKind;
use crate::model::execution::progress::Progress;
use crate::model::execution::request::Request;
use crate::model::execution::usage::UsageReading;
use crate::model::execution::{AttemptId, ExecutionState};
use crate::model::id::ExecutionId;
use crate::model::interaction::{Interaction, InteractionId};
use crate::model::observation::status::ExecutionStatus;
use crate::ports::interaction_store::{CloseInteractionOutcome, OpenInteractionOutcome};
use crate::services::Services;

use self::attempt::CurrentAttempt;
use self::claim::ResourceClaim;
use self::context::ExecutionContext;
use self::interactions::{AttemptInteractions, OpenInteractions};
use self::persistence::Persistence;
use self::phase_machine::{PhaseMachine, end_event};
use self::published_state::PublishedState;
use self::stop::StopPlan;
use self::tasks::ExecutionBackgroundTasks;
use self::usage::{ExecutionUsage, UsageRecorder};

pub use self::claim::{ClaimBlocked, ClaimGranted};
pub use self::starting_point::{ExecutionTotals, FailedAttemptReport, StartingPoint};

/// Actor that drives one attempt of an execution to its end, then stops.
pub struct ExecutionActor;

/// Message to an execution's actor.
pub enum ExecutionMsg {
    /// An event happened. Sent by a timer, by the writer, or by the agent's actor.
    Event(ExecutionEvent),
    /// The ledger granted the resources of the attempt.
    ClaimGranted(ClaimGranted),
    /// A resource of the attempt is in use.
    ClaimBlocked(ClaimBlocked),
    /// The driver reports progress or the end.
    DriverReported(Report),
    /// Resource usage of the work.
    UsageMeasured(AttemptId, UsageReading),
    /// A question of the agent was recorded, is due, or is closed.
    Interaction(InteractionMsg),
    /// All records are written: the actor may stop.
    RecordsWritten,
    /// A task of this actor panicked, so its result never arrives.
    BackgroundFuturePanicked,
    /// Requests the present state. The reply never waits for the work.
    Inspect(RpcReplyPort<ExecutionStatus>),
}

/// Message about an interaction.
pub enum InteractionMsg {
    /// The ledger has recorded a question, or knew it.
    Recorded(Box<Interaction>, OpenInteractionOutcome),
    /// The timer of an interaction fired.
    Due(InteractionId),
    /// The interaction is closed in the ledger, by this call or before.
    Closed(CloseInteractionOutcome),
    /// A caller answered, and the ledger has recorded the answer. The reply follows once the agent's request is no
    /// longer open here, so that the caller does not take the question for a new one.
    Answered(Box<Interaction>, RpcReplyPort<Option<watch::Receiver<Progress>>>),
}

/// Arguments of an execution's actor.
pub struct ExecutionArgs {
    /// Id of the execution.
    pub id: ExecutionId,
    /// Starting point: nothing done yet, a failed attempt, an open question, or held work.
    pub starting_point: StartingPoint,
    /// Decisions of the agent's actor about the execution.
    pub plan: ExecutionPlan,
    /// Start time of the wait.
    pub queued_since: DateTime<Utc>,
    /// Raw request.
    pub request: Arc<Request>,
    /// Present definition of the agent.
    pub spec: Arc<AgentSpec>,
    /// Driver of the work.
    pub driver: Arc<dyn Driver>,
    /// Shared services.
    pub services: Arc<Services>,
    /// Sender of the progress.
    pub progress: watch::Sender<Progress>,
    /// Tracing span with the ids of the execution.
    pub span: Span,
    /// Callback after the clean-up, once the outcome is in the ledger.
    pub on_slot_released: OnSlotReleased,
    /// Callback after a failed attempt.
    pub on_attempt_failed: OnAttemptFailed,
}

/// Decisions of the agent's actor about an execution.
pub struct ExecutionPlan {
    /// First event: `SlotAvailable`, `RetryDue`, `InputReceived` or `TakenOver`, or an end before the start.
    pub first_event: ExecutionEvent,
    /// Time limits.
    pub policy: ExecutionPolicy,
}

/// Callback that reports a free slot.
pub type OnSlotReleased = Box<dyn FnOnce() + Send>;

/// Callback that reports a failed attempt. The agent's actor replies with `NextAttemptDecided`.
pub type OnAttemptFailed = Arc<dyn Fn(FailedAttemptReport) + Send + Sync>;

/// State of the actor: the parts of an execution, which it only connects. The workspace, the memory and the lease are
/// released when their parts are dropped, because ractor drops the state on every exit, also after a kill or a panic,
/// while `post_stop` runs only after a stop.
pub struct ExecutionActorState {
    context: ExecutionContext,
    machine: PhaseMachine,
    published: PublishedState,
    claim: ResourceClaim,
    stop: StopPlan,
    attempt: CurrentAttempt,
    open_interactions: OpenInteractions,
    usage: ExecutionUsage,
    persistence: Persistence,
    tasks: ExecutionBackgroundTasks,
}

impl Actor for ExecutionActor {
    type Msg = ExecutionMsg;
    type State = ExecutionActorState;
    type Arguments = ExecutionArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<ExecutionMsg>,
        args: ExecutionArgs,
    ) -> Result<ExecutionActorState, ActorProcessingErr> {
        let (first_event, span) = (args.plan.first_event.clone(), args.span.clone());
        let state = span.in_scope(|| ExecutionActorState::new(&myself, args));
        myself.cast(ExecutionMsg::Event(first_event))?;
        Ok(state)
    }

    async fn handle(
        &self,
        _myself: ActorRef<ExecutionMsg>,
        msg: ExecutionMsg,
        state: &mut ExecutionActorState,
    ) -> Result<(), ActorProcessingErr> {
        let span = state.tasks.span();
        span.in_scope(|| {
            match msg {
                ExecutionMsg::Event(event) => state.apply_event(event),
                ExecutionMsg::ClaimGranted(grant) => state.apply_claim(grant),
                ExecutionMsg::ClaimBlocked(blocked) => state.handle_blocked_claim(blocked),
                ExecutionMsg::DriverReported(report) => state.handle_report(report),
                ExecutionMsg::UsageMeasured(attempt_id, usage) => {
                    state.record_usage_reading(attempt_id, usage);
                }
                ExecutionMsg::Interaction(msg) => {
                    if let Some(event) = state.interactions().handle(msg) {
                        state.apply_event(event);
                    }
                }
                ExecutionMsg::RecordsWritten => state.handle_records_written(),
                ExecutionMsg::Inspect(reply) => {
                    _ = reply.send(state.published.status(state.context.id, &state.attempt));
                }
                ExecutionMsg::BackgroundFuturePanicked => {
                    return Err("a task of the execution panicked".into());
                }
            }
            Ok(())
        })
    }
}

impl ExecutionActorState {
    fn new(myself: &ActorRef<ExecutionMsg>, args: ExecutionArgs) -> Self {
        let context = ExecutionContext::new(myself, &args);
        let (since, memory) = (context.now(), context.spec.expected_memory());
        let waited = (since - args.queued_since).to_std().unwrap_or_default();
        let ExecutionArgs { starting_point, plan, span, on_slot_released, .. } = args;
        let resources = &context.services.attempt_resources;
        let StartingPoint { attempt_id, fence, phase, state, totals, recorded_events, .. } =
            starting_point;
        let wait_and_first_grant = (waited, totals.first_granted_at);
        Self {
            claim: ResourceClaim::new(context.id, memory, resources, wait_and_first_grant),
            persistence: Persistence::new(fence, context.start_writer()),
            machine: PhaseMachine::new(phase, plan.policy),
            published: PublishedState::new(state, since, context.progress.clone()),
            stop: StopPlan::new(on_slot_released),
            attempt: CurrentAttempt::new(attempt_id, totals.exit_code, recorded_events),
            open_interactions: OpenInteractions::new(),
            usage: ExecutionUsage::new(totals.spent, totals.tokens),
            tasks: ExecutionBackgroundTasks::new(myself.clone(), span),
            context,
        }
    }

    /// Returns the interactions of the attempt, with the parts of the execution that they use.
    fn interactions(&mut self) -> AttemptInteractions<'_> {
        AttemptInteractions {
            open_interactions: &mut self.open_interactions,
            is_at_work: self.machine.is_at_work(),
            context: &self.context,
            claim: &self.claim,
            attempt: &mut self.attempt,
            persistence: &mut self.persistence,
            published: &self.published,
            tasks: &mut self.tasks,
        }
    }

    /// Returns the account of the attempt's usage, with the parts of the execution that it changes.
    fn usage_recorder(&mut self) -> UsageRecorder<'_> {
        UsageRecorder {
            is_running: self.published.is_running(),
            usage: &mut self.usage,
            attempt: &mut self.attempt,
            context: &self.context,
            persistence: &self.persistence,
            tasks: &mut self.tasks,
        }
    }

    /// Applies an event. No other function changes the phase or performs effects.
    fn apply_event(&mut self, event: ExecutionEvent) {
        let Some(event) = self.interactions().deadlines().filter_event(event) else { return };
        match event {
            ExecutionEvent::TakenOver { attempt_id, run_time } => {
                self.usage_recorder().measure_and_limit_wall_time(attempt_id, run_time);
            }
            ExecutionEvent::Settled => self.handle_settled(),
            ExecutionEvent::CleanUpCompleted { .. } => {
                self.attempt.record_clean_up_end();
                self.claim.release_memory();
            }
            _ => {}
        }
        for effect in self.machine.apply(event) {
            self.perform(effect);
        }
        // The decision about a failed attempt may settle the execution, and then its last records are part of that.
        if !self.machine.awaits_retry_decision() {
            self.persistence.flush();
        }
        if self.stop.is_due(self.attempt.is_cleaning()) {
            self.finish();
        }
    }

    fn apply_claim(&mut self, ClaimGranted { attempt_id, fence, workspace }: ClaimGranted) {
        // Before the event: its effects write under the new claim, and the ledger refuses the old one.
        self.persistence.set_fence(fence);
        self.attempt.apply_claim(attempt_id);
        self.claim.apply_grant(workspace);
        // The claim wrote the state in the ledger; here it is only published.
        self.publish(ExecutionState::Starting);
        self.apply_event(ExecutionEvent::Claimed { attempt_id });
    }

    /// Handles a claim that failed because a resource is in use.
    fn handle_blocked_claim(&mut self, blocked: ClaimBlocked) {
        let attempt_id = blocked.attempt_id;
        self.published.publish_queue_position(self.claim.handle_blocked_claim(blocked));
        let waited = self.claim.total_wait();
        self.apply_event(ExecutionEvent::ResourceBusy { attempt_id, waited });
    }

    fn handle_report(&mut self, report: Report) {
        match report {
            Report::Started { attempt_id, pid, start_event } => {
                if self.attempt.record_start_if_current(attempt_id, pid) {
                    self.persistence.add_events(start_event);
                }
                self.apply_event(ExecutionEvent::Started { attempt_id });
                self.usage_recorder().measure_and_limit_wall_time(attempt_id, Duration::ZERO);
            }
            Report::UsageReported { attempt_id, tokens, charge } => {
                if let Some(event) = self.usage_recorder().add(attempt_id, tokens, charge) {
                    self.apply_event(event);
                }
            }
            Report::Questions { attempt_id, report } => {
                self.interactions().handle_report(attempt_id, report);
            }
            Report::LedgerWait { attempt_id, .. } if attempt_id != self.attempt.attempt_id() => {}
            Report::LedgerWait { awaits_ledger, .. } => {
                self.published.publish_ledger_wait(awaits_ledger);
            }
            Report::Ended { attempt_id, result, exit_code, batch } => {
                self.persistence
                    .add(self.attempt.apply_end_and_filter_batch(attempt_id, exit_code, batch));
                let code = result.as_ref().err().map(|failure| failure.code);
                self.usage_recorder().charge_and_report_attempt_end(attempt_id, code);
                // A report after a stop request is unreliable.
                if attempt_id == self.attempt.attempt_id() && self.machine.is_at_work() {
                    self.context.report_credential_result(&result);
                }
                self.apply_event(end_event(attempt_id, result, self.context.now()));
            }
            Report::Suspended { attempt_id, batch } => {
                self.persistence
                    .add(self.attempt.apply_end_and_filter_batch(attempt_id, None, batch));
                self.apply_event(ExecutionEvent::Suspended { attempt_id });
            }
            Report::InputRequired { attempt_id, required_input, exit_code, batch } => {
                self.persistence
                    .add(self.attempt.apply_end_and_filter_batch(attempt_id, exit_code, batch));
                self.usage_recorder().charge_and_report_attempt_end(attempt_id, None);
                self.apply_event(ExecutionEvent::NeedsInput { attempt_id, required_input });
            }
        }
    }

    /// Handles a reading; one that arrives after the end of its attempt is ignored.
    fn record_usage_reading(&mut self, attempt_id: AttemptId, usage: UsageReading) {
        let is_running = self.published.is_running() && !self.machine.awaits_retry_decision();
        if is_running && self.attempt.record_reading_if_current(attempt_id, usage) {
            self.persistence.add_event(self.context.now(), EventKind::Heartbeat(usage));
            self.persistence.flush();
        }
    }

    fn handle_settled(&mut self) {
        // Not before the ledger has recorded the end: until then its claim refuses the folder to others.
        self.claim.release_workspace();
        if let Some(outcome) = self.machine.outcome() {
            self.published.publish_outcome(outcome);
        }
    }

    fn finish(&mut self) {
        self.stop.report_free_slot(self.published.has_outcome());
        self.persistence.finish();
    }

    /// Stops the actor once all records are written, unless an execution that was about to pause was cancelled: its end
    /// is another record.
    fn handle_records_written(&self) {
        if self.machine.can_actor_stop() {
            let deferral = self.stop.deferral(&self.published);
            self.published.publish_stop_reason(deferral, self.machine.is_suspended());
            self.context.actor.stop(None);
        }
    }
}
