//! Recovery of an execution that an earlier supervisor, or a crashed actor, left unfinished.

pub mod restart;

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::model::agent::quota::Deferral;
use crate::model::code::Code;
use crate::model::execution::ExecutionState;
use crate::model::execution::record::ExecutionRecord;
use crate::model::failure::Failure;

/// Reason why the raw input of an execution is unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputLoss {
    /// Redaction changed the input, and no sealed copy exists: the execution has ended since, or an earlier release
    /// accepted it.
    NotStored,
    /// The key of the sealed input no longer exists.
    KeyMissing,
    /// The sealed input is damaged.
    Damaged,
}

impl InputLoss {
    /// Returns the reason as a clause without text of the input.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotStored => "its input held secrets that are not stored",
            Self::KeyMissing => {
                "its input was sealed and the key is gone; a key in `inputs.key_file` outlives a reboot"
            }
            Self::Damaged => "its sealed input is damaged",
        }
    }
}

/// Decision about the execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryDecision {
    /// The execution was not started and its input is available: it returns to its position in the queue.
    Requeue,
    /// The execution waits for input, which needs no process.
    KeepWaiting,
    /// The execution waits for the quota of its account, and its input is available: it continues to wait.
    Defer(Deferral),
    /// The process holder still holds the work of the execution: the execution continues.
    Resume,
    /// The execution fails now.
    Fail(Failure),
}

/// Decides about one unfinished execution.
///
/// An execution that was started is never started again automatically, because its progress is unknown. If
/// its work `is_work_held`, the execution continues. An execution that was not started needs its raw input, unless
/// `input_loss` states why the input is unavailable.
#[must_use]
pub fn decide_recovery(
    record: &ExecutionRecord,
    now: DateTime<Utc>,
    queue_timeout: Duration,
    is_work_held: bool,
    input_loss: Option<InputLoss>,
) -> RecoveryDecision {
    if let Some(deferral) = record.deferral() {
        return input_loss.map_or(RecoveryDecision::Defer(deferral), |input_loss| {
            RecoveryDecision::Fail(deferred_input_lost_failure(input_loss))
        });
    }
    match record.state {
        ExecutionState::Starting | ExecutionState::Running if is_work_held => {
            RecoveryDecision::Resume
        }
        ExecutionState::Waiting if !record.requested_input.has_pending_turn => {
            RecoveryDecision::KeepWaiting
        }
        ExecutionState::Idle | ExecutionState::Waiting
            if has_queue_timeout_expired(record, now, queue_timeout) =>
        {
            RecoveryDecision::Fail(Failure::new(
                Code::QueueTimeout,
                "it waited in the queue for longer than allowed",
            ))
        }
        ExecutionState::Idle | ExecutionState::Waiting => input_loss
            .map_or(RecoveryDecision::Requeue, |input_loss| {
                RecoveryDecision::Fail(lost_input_failure(input_loss))
            }),
        ExecutionState::Starting
        | ExecutionState::Running
        | ExecutionState::Completed
        | ExecutionState::Failed
        | ExecutionState::Timeout
        | ExecutionState::Cancelled
        | ExecutionState::Cleanup => RecoveryDecision::Fail(interruption_failure()),
    }
}

/// Returns the failure of an interrupted execution.
#[must_use]
pub fn interruption_failure() -> Failure {
    Failure::new(Code::Interrupted, "the service was interrupted while it ran")
}

/// Returns the failure of an execution that did not run and can no longer run.
fn lost_input_failure(input_loss: InputLoss) -> Failure {
    let message = format!("the service stopped before it ran, and {}", input_loss.reason());
    Failure::new(Code::InterruptedNotRun, message)
}

/// Returns the failure of a deferred execution whose input is unavailable.
fn deferred_input_lost_failure(input_loss: InputLoss) -> Failure {
    let message =
        format!("the service stopped while it waited for a quota, and {}", input_loss.reason());
    Failure::new(Code::NotReplayable, message)
}

fn has_queue_timeout_expired(
    record: &ExecutionRecord,
    now: DateTime<Utc>,
    queue_timeout: Duration,
) -> bool {
    (now - queued_since(record)).to_std().is_ok_and(|waited| waited > queue_timeout)
}

/// Returns the start time of the wait in the queue.
fn queued_since(record: &ExecutionRecord) -> DateTime<Utc> {
    if record.requested_input.has_pending_turn { record.changed_at } else { record.accepted_at }
}
