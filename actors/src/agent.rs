//! `AgentActor`: one per agent; admits requests to its queue and owns their executions.
//!
//! It decides how a duplicate is answered (`admission/duplicate_cache.rs`, `admission/duplicates.rs`, and
//! `coalescer.rs` for equal contents). It also decides what follows a failed attempt: another one after a pause or a
//! deferral, or the end (`running/retries.rs`). The ledger enforces both: it compares the keys in the transaction that
//! records a request, and refuses a claim whose precondition no longer holds.

mod admission;
mod backpressure;
mod budget;
mod coalescer;
mod credential_gate;
mod definition;
mod executions;
mod lifecycle;
mod pending_commands;
mod queue;
mod queue_waits;
mod running;
mod snapshot;
mod submit;
mod tasks;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::sync::watch;

use crate::decide::admission::AdmissionEvent;
use crate::driver::Driver;
use crate::execution::FailedAttemptReport;
use crate::execution::recovery::{ContinuedWork, RecoveredExecution, recover_unfinished};
use crate::model::agent::AgentSpec;
use crate::model::agent::quota::Deferral;
use crate::model::execution::AttemptId;
use crate::model::execution::progress::Progress;
use crate::model::execution::record::ExecutionRecord;
use crate::model::execution::request::{Request, RequestIdentity};
use crate::model::failure::Failure;
use crate::model::host::host_fault::HostCondition;
use crate::model::id::ExecutionId;
use crate::model::interaction::Interaction;
use crate::model::observation::status::LastOutcome;
use crate::ports::ledger::LedgerError;
use crate::services::Services;

use self::admission::RequestAdmission;
use self::coalescer::Coalescer;
use self::lifecycle::AgentLifecycle;
use self::pending_commands::PendingCommands;
use self::queue::QueuedRequest;
use self::running::RunningExecutions;
use self::tasks::AgentBackgroundTasks;

pub(crate) use self::admission::{message_reused_failure, no_open_question_failure};
pub use self::definition::AgentDefinition;
pub(crate) use self::lifecycle::agent_removed_failure;
pub use self::snapshot::AgentSnapshot;

/// Actor that owns all work of one agent.
pub struct AgentActor;

/// Answer to a submission: the execution's id, and its progress.
#[derive(Debug, Clone)]
pub struct SubmitReply {
    /// Id of the execution.
    pub execution: ExecutionId,
    /// True if the execution existed before, because the same message was sent earlier.
    pub is_duplicate: bool,
    /// Receiver of the execution's progress, while an actor holds it.
    pub progress_receiver: Option<watch::Receiver<Progress>>,
    /// Record of an execution that has ended, if the gateway has read it.
    pub ended_record: Option<Box<ExecutionRecord>>,
}

impl SubmitReply {
    /// Creates the answer to a repeated request, with the progress of its execution while an actor holds it.
    #[must_use]
    pub const fn for_existing_execution(
        execution: ExecutionId,
        progress_receiver: Option<watch::Receiver<Progress>>,
    ) -> Self {
        Self { execution, is_duplicate: true, progress_receiver, ended_record: None }
    }
}

/// Message to an agent's actor.
pub enum AgentMsg {
    /// Submits a request. The reply follows once the request is recorded, not once it has run.
    Submit(Box<Submission>),
    /// Checks whether the agent would accept a request now.
    CheckAdmission(Box<Request>, RpcReplyPort<Result<(), Failure>>),
    /// Result of recording an admitted request.
    RecordingFinished(ExecutionId, Result<RecordingResult, LedgerError>),
    /// The equal request has ended; the second id is the execution whose result is taken, if any.
    CoalescedReleased(ExecutionId, Option<ExecutionId>),
    /// The queue timeout of the first entry may have expired.
    QueueTimeoutDue,
    /// The entries of a long queue must be notified of their positions.
    PositionNoticesDue,
    /// The machine no longer permits new work, or permits it again.
    HostConditionChanged,
    /// A credential became unusable or usable again, or may be probed.
    BreakerChanged,
    /// An attempt of an execution has failed: what follows must be decided.
    AttemptFailed(ExecutionId, Box<FailedAttemptReport>),
    /// The pause of an execution after this attempt is over.
    RetryDue(ExecutionId, AttemptId),
    /// The deferral of an execution is over.
    DeferralOver(ExecutionId, Deferral),
    /// Cancels an execution, if it is here. The reply does not wait for its end.
    Cancel {
        /// Record of the execution.
        record: Box<ExecutionRecord>,
        /// Reason for its history.
        reason: String,
        /// Progress of the execution; `None` if it is not here.
        reply: RpcReplyPort<Option<watch::Receiver<Progress>>>,
    },
    /// A caller answered an interaction of an execution, and the ledger has recorded the answer.
    InteractionAnswered(Box<Interaction>, RpcReplyPort<Option<watch::Receiver<Progress>>>),
    /// Requests the progress of an execution; `None` if it is not here.
    WatchProgress(ExecutionId, RpcReplyPort<Option<watch::Receiver<Progress>>>),
    /// The deadline for the answer to a question passed.
    AnswerTimedOut(Box<ExecutionRecord>),
    /// Cancels an execution with an open question, for this reason.
    CancelAfterActorStop(Box<ExecutionRecord>, String),
    /// The clean-up of an execution is complete, and its outcome is in the ledger.
    SlotReleased(ExecutionId),
    /// The actor of an execution did not start.
    SpawnFailed(ExecutionId),
    /// The driver has taken over the work of a crashed execution actor.
    InterruptedWorkTakenOver(Box<ContinuedWork>),
    /// The leftovers of a lost execution are settled.
    InterruptedExecutionSettled(ExecutionId),
    /// Replaces the agent's definition. Running executions keep the old one; queued ones start with the new one.
    Reconfigure(AgentDefinition),
    /// Stops accepting requests. The reply follows once all work has ended; it does not follow if the agent is
    /// configured again before.
    Remove(RpcReplyPort<()>),
    /// The open questions of a removed agent are settled.
    QuestionsSettled,
    /// No further messages follow.
    StopActor,
    /// Stops accepting requests and starting executions. The reply follows once nothing runs.
    Drain(RpcReplyPort<()>),
    /// Cancels all running executions.
    CancelAll {
        /// Reason for their history.
        reason: String,
    },
    /// A task of this actor panicked, so its result never arrives.
    BackgroundFuturePanicked,
    /// Requests a snapshot. The reply never waits for the work.
    Inspect(RpcReplyPort<AgentSnapshot>),
}

/// Submitted request.
pub struct Submission {
    /// Request to execute.
    pub request: Request,
    /// Keys of the request.
    pub request_identity: RequestIdentity,
    /// Record of the execution that the request continues.
    pub continued_record: Option<ExecutionRecord>,
    /// Tracing span of the request.
    pub span: tracing::Span,
    /// Reply port for the answer.
    pub reply: RpcReplyPort<Result<SubmitReply, Failure>>,
}

/// Result of recording an admitted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingResult {
    /// The request is recorded.
    Recorded,
    /// The request is recorded, and this execution with the same content is in progress.
    EquivalentInProgress(ExecutionId),
    /// The request is recorded, and this execution with the same content has succeeded.
    EquivalentSucceeded(ExecutionId),
    /// The request duplicates an earlier one.
    Duplicate(ExecutionId),
    /// The message id was used for another message.
    Conflict,
    /// The question that the request answers is no longer open.
    QuestionClosed,
}

impl RecordingResult {
    /// Returns true if a new record exists.
    const fn is_recorded(self) -> bool {
        match self {
            Self::Recorded | Self::EquivalentInProgress(_) | Self::EquivalentSucceeded(_) => true,
            Self::Duplicate(_) | Self::Conflict | Self::QuestionClosed => false,
        }
    }
}

/// Arguments of an agent's actor.
#[derive(Clone)]
pub struct AgentArgs {
    /// Definition of the agent.
    pub spec: Arc<AgentSpec>,
    /// Driver of the agent's work.
    pub driver: Arc<dyn Driver>,
    /// Shared services.
    pub services: Arc<Services>,
    /// True if the ledger has no unfinished execution of the agent, as the root has just read.
    pub skips_recovery: bool,
    /// True if the service is stopping: recovered executions then stay in the ledger.
    pub is_draining: bool,
    /// Condition of the machine.
    pub host_condition: watch::Receiver<HostCondition>,
}

/// State of the actor: its parts decide, and the actor connects them.
pub struct AgentActorState {
    args: AgentArgs,
    admission: RequestAdmission,
    running: RunningExecutions,
    pending_commands: PendingCommands,
    coalescer: Coalescer,
    lifecycle: AgentLifecycle,
    /// Start of the actor.
    started_at: DateTime<Utc>,
    last_outcome: Option<LastOutcome>,
    tasks: AgentBackgroundTasks,
}

impl Actor for AgentActor {
    type Msg = AgentMsg;
    type State = AgentActorState;
    type Arguments = AgentArgs;

    /// Recovers the executions of this agent from the ledger: on the same path after a restart of the service and after
    /// a crash of this actor.
    async fn pre_start(
        &self,
        myself: ActorRef<AgentMsg>,
        args: AgentArgs,
    ) -> Result<AgentActorState, ActorProcessingErr> {
        let recovered = match args.skips_recovery {
            // Saves one read of the ledger for each agent; most agents have nothing to recover.
            true => Vec::new(),
            false => recover_unfinished(&args.services, &args.spec, &*args.driver).await?,
        };
        // Before the first admission, which compares with the amounts that are in memory.
        budget::load_day_charge(&args).await?;
        let mut state = AgentActorState::new(myself, args);
        state.apply_host_condition(); // The root reports each later change.
        state.apply_breaker_state();
        for recovered in recovered {
            match recovered {
                RecoveredExecution::Resumed(work) => {
                    // The slot is taken before anything else starts: the program runs already.
                    state.apply_event(AdmissionEvent::RecoveredRunning(work.record.id));
                    state.control().continue_work(*work);
                }
                RecoveredExecution::Requeued(record, request) => {
                    state.requeue_recovered(&record, request);
                }
                RecoveredExecution::Deferred(record, deferral, request) => {
                    let now = state.args.services.clock.now();
                    let entry = QueuedRequest::restore_deferred(&record, deferral, request, now);
                    state.defer(record.id, entry, deferral);
                }
                RecoveredExecution::AwaitingInput(record) => {
                    let remaining = state.args.remaining_answer_time(&record);
                    let ledger = Arc::clone(&state.args.services.ledger);
                    state.tasks.schedule_answer_timeout(ledger, record.id, remaining);
                }
            }
        }
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<AgentMsg>,
        msg: AgentMsg,
        state: &mut AgentActorState,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            AgentMsg::Submit(submission) => state.submit(*submission),
            AgentMsg::CheckAdmission(request, reply) => {
                let result =
                    state.admission.check_admission(&request, None, &state.lifecycle, &state.args);
                _ = reply.send(result);
            }
            AgentMsg::RecordingFinished(id, result) => state.handle_recording_result(id, result),
            AgentMsg::CoalescedReleased(id, source) => state.end_coalescing(id, source),
            AgentMsg::SlotReleased(id) => state.apply_event(AdmissionEvent::Ended(id)),
            AgentMsg::QueueTimeoutDue => state.end_expired_entries(),
            AgentMsg::PositionNoticesDue => state.admission.send_position_notices(&state.args),
            AgentMsg::HostConditionChanged => state.apply_host_condition(),
            AgentMsg::BreakerChanged => state.apply_breaker_state(),
            AgentMsg::AttemptFailed(id, report) => {
                state.running.decide_next_attempt(id, *report, &state.args);
            }
            AgentMsg::RetryDue(id, attempt_id) => state.control().retry(id, attempt_id),
            AgentMsg::DeferralOver(id, deferral) => state.requeue_deferred(id, deferral),
            AgentMsg::Cancel { record, reason, reply } => {
                _ = reply.send(state.cancel(&record, reason));
            }
            AgentMsg::AnswerTimedOut(record) => state.handle_answer_timeout(&record),
            AgentMsg::CancelAfterActorStop(record, reason) => _ = state.cancel(&record, reason),
            AgentMsg::InteractionAnswered(interaction, reply) => {
                state.running.forward_answer(interaction, reply);
            }
            AgentMsg::WatchProgress(id, reply) => _ = reply.send(state.watch(id)),
            AgentMsg::SpawnFailed(id) => {
                state.running.settle_lost(id, &state.args, &mut state.tasks);
            }
            AgentMsg::InterruptedWorkTakenOver(work) => state.control().continue_work(*work),
            AgentMsg::InterruptedExecutionSettled(id) => state.release_execution(id),
            AgentMsg::Reconfigure(definition) => state.reconfigure(definition),
            AgentMsg::Remove(reply) => state.begin_removal(reply),
            AgentMsg::QuestionsSettled => state.lifecycle.report_removed(),
            AgentMsg::StopActor => myself.stop(None),
            AgentMsg::Drain(reply) => state.drain(reply),
            AgentMsg::CancelAll { reason } => state.control().cancel_all(&reason),
            AgentMsg::BackgroundFuturePanicked => return Err("a task of the agent panicked".into()),
            AgentMsg::Inspect(reply) => _ = reply.send(AgentSnapshot::new(state)),
        }
        Ok(())
    }

    /// Overridden because the default stops the supervisor when any child ends, even normally.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<AgentMsg>,
        event: SupervisionEvent,
        state: &mut AgentActorState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(child, _, _) => {
                if let Some(id) = state.running.find_by_actor(child.get_id()) {
                    state.handle_actor_termination(id);
                }
                Ok(())
            }
            SupervisionEvent::ActorFailed(child, fault) => {
                state.running.handle_crash(child.get_id(), fault, &state.args, &mut state.tasks)
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => Ok(()),
        }
    }
}

impl AgentActorState {
    fn new(myself: ActorRef<AgentMsg>, args: AgentArgs) -> Self {
        Self {
            admission: RequestAdmission::new(&args),
            running: RunningExecutions::new(),
            pending_commands: PendingCommands::default(),
            coalescer: Coalescer::default(),
            lifecycle: AgentLifecycle::new(args.is_draining),
            started_at: args.services.clock.now(),
            last_outcome: None,
            tasks: AgentBackgroundTasks::new(myself),
            args,
        }
    }
}
