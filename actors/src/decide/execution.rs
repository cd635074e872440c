//! State machine of one attempt of an execution, from its claim to its end. After a failure the agent's actor decides
//! with [`retry`](super::retry) what follows.

pub mod paused_deadlines;
mod pending;
mod running;
mod settlement;
mod waiting;

use std::time::Duration;

use crate::model::agent::quota::Deferral;
use crate::model::agent::{AgentSpec, PhaseTimeouts};
use crate::model::execution::event::DeadlineKind;
use crate::model::execution::{AttemptId, ExecutionState, Interruption, Outcome};
use crate::model::failure::Failure;

pub use self::settlement::transitions_to_end;

/// Settings of the agent that apply to an execution. A running execution keeps the settings of its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExecutionPolicy {
    /// Time limits of the phases.
    pub timeouts: PhaseTimeouts,
    /// Interval of the resource usage readings.
    pub heartbeat_interval: Option<Duration>,
    /// Longest wait before an attempt.
    pub queue_timeout: Duration,
}

impl ExecutionPolicy {
    /// Returns the settings of an agent.
    #[must_use]
    pub fn from_spec(spec: &AgentSpec) -> Self {
        Self {
            timeouts: spec.limits.timeouts,
            heartbeat_interval: spec.heartbeat_interval(),
            queue_timeout: spec.limits.capacity.queue_timeout,
        }
    }
}

/// Longest pause before the next claim of a busy resource.
pub const MAX_CLAIM_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Time beyond the grace period after which a driver that does not stop is given up.
pub const DRIVER_STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the time of the warning before a deadline: nine tenths of the limit.
fn delay_until_warning(limit: Duration) -> Duration {
    limit - limit / 10
}

/// Phase of the execution with the data of that phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutionPhase {
    /// No action was taken yet.
    Idle,
    /// The claim of a slot is pending; until the ledger answers, an end can only be noted.
    Claiming {
        /// Attempt that starts after the claim.
        attempt_id: AttemptId,
        /// State before the claim.
        from: ExecutionState,
        /// End that was requested meanwhile.
        requested_end: Option<ExecutionEnd>,
    },
    /// The driver was requested to start.
    Starting {
        /// Id of the attempt.
        attempt_id: AttemptId,
    },
    /// The work runs.
    Running {
        /// Id of the attempt.
        attempt_id: AttemptId,
    },
    /// The work was requested to stop, and its end is pending.
    Stopping {
        /// Id of the attempt.
        attempt_id: AttemptId,
        /// State from which the execution ends.
        from: ExecutionState,
        /// End of the execution, whatever the work reports.
        ending: ExecutionEnd,
    },
    /// The attempt failed, and the agent's actor decides what follows.
    AwaitingRetryDecision {
        /// Attempt that failed.
        attempt_id: AttemptId,
        /// State in which it failed.
        from: ExecutionState,
        /// Failure of the attempt.
        failure: Failure,
    },
    /// The agent requested input, and the execution holds no resources.
    Waiting {
        /// Turn of the question.
        attempt_id: AttemptId,
    },
    /// The attempt failed, and another one follows after a pause or a deferral.
    Paused {
        /// Attempt that failed.
        attempt_id: AttemptId,
    },
    /// The work is suspended, and continues after the next start of the service.
    Suspended {
        /// Id of the attempt.
        attempt_id: AttemptId,
    },
    /// The execution has ended; its record and its clean-up are in progress.
    Finalizing {
        /// Last attempt.
        attempt_id: AttemptId,
        /// Outcome of the execution.
        outcome: Outcome,
        /// True if the ledger has recorded the outcome.
        settled: bool,
        /// True if the clean-up is complete.
        cleaned: bool,
    },
    /// No action is left.
    Done {
        /// Outcome; `None` if another actor settled the execution.
        outcome: Option<Outcome>,
    },
}

/// End of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionEnd {
    /// Outcome of the execution.
    pub outcome: Outcome,
    /// Failure; `None` only for a success.
    pub failure: Option<Failure>,
}

/// Continuation after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextAttempt {
    /// No other attempt: the execution fails.
    None,
    /// Another attempt after a pause.
    AfterPause,
    /// Another attempt after a deferral.
    AfterDeferral(Deferral),
}

/// Kind of deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionDeadline {
    /// Deadline of the start.
    Start,
    /// Deadline of the run time.
    Run,
    /// Deadline for the next output.
    Idle,
    /// Deadline for the end after a stop request.
    Stop,
    /// Deadline for the answer to a question.
    Answer,
}

/// Event of an execution. `attempt_id` is the attempt to which the event belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant's sentence speaks of its fields")]
pub enum ExecutionEvent {
    /// A slot is free for the execution.
    SlotAvailable,
    /// The ledger granted the slot.
    Claimed { attempt_id: AttemptId },
    /// An earlier process of the service started the attempt `run_time` ago, and the attempt continues.
    TakenOver { attempt_id: AttemptId, run_time: Duration },
    /// A resource that the attempt needs is in use, and the attempt has waited for `waited`.
    ResourceBusy { attempt_id: AttemptId, waited: Duration },
    /// The pause after a busy claim is over.
    ClaimRetryDue { attempt_id: AttemptId },
    /// The claim failed, because the ledger is unavailable.
    ClaimFailed { attempt_id: AttemptId },
    /// Another actor has settled the execution.
    SettledElsewhere,
    /// The work runs.
    Started { attempt_id: AttemptId },
    /// The work has ended.
    Ended { attempt_id: AttemptId, result: Result<(), Failure> },
    /// The work has failed, and a retry would fail again during `retry_after`.
    FailedWithRetryAfter { attempt_id: AttemptId, failure: Failure, retry_after: Duration },
    /// The agent's actor has decided what follows the failed attempt.
    NextAttemptDecided { attempt_id: AttemptId, next_attempt: NextAttempt },
    /// The work exceeded a limit.
    LimitExceeded { attempt_id: AttemptId, failure: Failure },
    /// The work needs input of the caller and has ended.
    NeedsInput { attempt_id: AttemptId, required_input: Interruption },
    /// The work has suspended itself, because the service stops.
    Suspended { attempt_id: AttemptId },
    /// The requested input is available.
    InputReceived,
    /// The run deadline is near.
    RunDeadlineNear { attempt_id: AttemptId },
    /// The work has been silent for `silence`.
    SilenceMeasured { attempt_id: AttemptId, silence: Duration },
    /// A resource usage reading is due.
    UsageReadingDue { attempt_id: AttemptId },
    /// A deadline passed.
    DeadlinePassed { attempt_id: AttemptId, deadline: ExecutionDeadline },
    /// The pause or the deferral before the next attempt is over.
    RetryDue { attempt_id: AttemptId },
    /// The queue timeout expired.
    QueueExpired,
    /// The execution may not start.
    StartRefused { failure: Failure },
    /// A caller or the service cancelled the execution.
    CancelRequested { reason: String },
    /// The ledger has recorded the outcome.
    Settled,
    /// The clean-up of the attempt is complete.
    CleanUpCompleted { attempt_id: AttemptId },
}

/// Effect that the actor must carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant's sentence speaks of its fields")]
pub enum ExecutionEffect {
    /// Claim the slot from the ledger.
    Claim { attempt_id: AttemptId, from: ExecutionState },
    /// Send `ClaimRetryDue` when a resource may be free, and at the latest after `within`.
    RetryClaim { attempt_id: AttemptId, within: Duration },
    /// Start the attempt with the driver.
    StartAttempt { attempt_id: AttemptId },
    /// Resume with the driver an attempt of an earlier process.
    ResumeAttempt { attempt_id: AttemptId },
    /// Request the work to stop.
    StopWork,
    /// Send `event` after a delay.
    SendLater { after: Duration, event: ExecutionEvent },
    /// Send `SilenceMeasured` after a delay, with the duration of the silence at that time.
    CheckSilence { attempt_id: AttemptId, after: Duration },
    /// Read the resource usage, and record it.
    ReadUsage { attempt_id: AttemptId },
    /// Record that a deadline is near.
    RecordDeadlineWarning { deadline_kind: DeadlineKind, remaining: Duration, message: String },
    /// Record a transition; the claim records its own.
    RecordTransition {
        from: ExecutionState,
        to: ExecutionState,
        attempt_id: AttemptId,
        reason: String,
    },
    /// Record the transition from running to waiting, with its reason.
    RecordInputRequest { attempt_id: AttemptId, required_input: Interruption },
    /// Report the failure to the agent's actor, which replies with `NextAttemptDecided`.
    ReportFailure {
        attempt_id: AttemptId,
        failure: Failure,
        retry_after: Option<Duration>,
        may_have_received_input: bool,
    },
    /// Record the failure of an attempt that is not the last.
    RecordFailedAttempt { failure: Failure },
    /// Remove the leftovers of the attempt, then send `CleanUpCompleted`. If `waits_for_end_record` is true, the
    /// attempt reported its end, and the clean-up waits until the ledger has recorded it: a crash before that must not
    /// lose it.
    CleanUp { attempt_id: AttemptId, waits_for_end_record: bool },
    /// Record the end, then send `Settled`.
    Settle { attempt_id: AttemptId, ending: ExecutionEnd },
    /// Stop the actor: the execution waits without an actor, for input, for its next attempt, or for the next start of
    /// the service.
    StopActorAfterCleanUp,
    /// Record the deferral, and stop the actor.
    Defer { deferral: Deferral },
    /// Stop the actor: no action is left.
    Finish,
    /// Do nothing: the event is late or meaningless in this phase.
    Ignore { event: ExecutionEvent },
}

/// Decides the next phase and the effects for an event.
#[must_use]
pub fn apply_event(
    phase: ExecutionPhase,
    event: ExecutionEvent,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    use ExecutionPhase as Phase;
    match phase {
        Phase::Idle => pending::apply_while_idle(event),
        Phase::Claiming { attempt_id, from, requested_end } => {
            pending::apply_while_claiming(attempt_id, from, requested_end, event, policy)
        }
        Phase::Starting { attempt_id } => {
            running::apply_while_active(attempt_id, ExecutionState::Starting, event, policy)
        }
        Phase::Running { attempt_id } => {
            running::apply_while_active(attempt_id, ExecutionState::Running, event, policy)
        }
        Phase::Stopping { attempt_id, from, ending } => {
            running::apply_while_stopping(attempt_id, from, ending, event)
        }
        Phase::AwaitingRetryDecision { attempt_id, from, failure } => {
            running::apply_while_undecided(attempt_id, from, failure, event)
        }
        Phase::Waiting { attempt_id } => waiting::apply_while_waiting(attempt_id, event),
        Phase::Paused { attempt_id } => waiting::apply_while_paused(attempt_id, event),
        Phase::Suspended { attempt_id } => waiting::apply_while_suspended(attempt_id, event),
        Phase::Finalizing { attempt_id, outcome, settled, cleaned } => {
            settlement::apply_after_end(attempt_id, outcome, settled, cleaned, event)
        }
        Phase::Done { outcome } => {
            (Phase::Done { outcome }, vec![ExecutionEffect::Ignore { event }])
        }
    }
}
