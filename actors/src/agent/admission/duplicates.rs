//! Detection of duplicate requests: the decision of the agent's actor about a request that it has recorded.
//!
//! The ledger compares the keys of a request with those of earlier ones in the transaction that records it, so that no
//! crash and no second process can record a message twice. The actor decides what follows from the result.

use crate::agent::RecordingResult;
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ExecutionId};
use crate::ports::ledger::LedgerError;

/// Decision about a request after its recording.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::agent) enum AdmissionDecision {
    /// The request takes its place in the queue.
    Admit,
    /// The request takes the result of this execution, which had the same content and has succeeded.
    TakeResult(ExecutionId),
    /// The request waits for the end of this execution, which has the same content and is in progress.
    Coalesce(ExecutionId),
    /// The same message was sent before: the submitter receives this earlier execution.
    ReturnOriginal(ExecutionId),
    /// The request is not recorded.
    Reject(Failure),
}

impl AdmissionDecision {
    /// Returns true if the request is recorded.
    pub(in crate::agent) const fn is_recorded(&self) -> bool {
        match self {
            Self::Admit | Self::TakeResult(_) | Self::Coalesce(_) => true,
            Self::ReturnOriginal(_) | Self::Reject(_) => false,
        }
    }
}

/// Decides about a request by the result of its recording.
pub(in crate::agent) fn decide_after_recording(
    agent: &AgentId,
    result: Result<RecordingResult, LedgerError>,
) -> AdmissionDecision {
    match result {
        Ok(RecordingResult::Recorded) => AdmissionDecision::Admit,
        Ok(RecordingResult::EquivalentSucceeded(source)) => AdmissionDecision::TakeResult(source),
        Ok(RecordingResult::EquivalentInProgress(source)) => AdmissionDecision::Coalesce(source),
        Ok(RecordingResult::Duplicate(original)) => AdmissionDecision::ReturnOriginal(original),
        Ok(RecordingResult::Conflict) => AdmissionDecision::Reject(message_reused_failure()),
        Ok(RecordingResult::QuestionClosed) => {
            AdmissionDecision::Reject(no_open_question_failure())
        }
        Err(error) => {
            tracing::error!(%agent, %error, "accept failed");
            AdmissionDecision::Reject(request_not_recorded_failure())
        }
    }
}

/// Returns the rejection of a message whose id was used before.
pub(crate) fn message_reused_failure() -> Failure {
    Failure::new(Code::MessageReused, "this message id or key was used for another message")
}

/// Returns the rejection of an answer without an open question.
pub(crate) fn no_open_question_failure() -> Failure {
    Failure::new(Code::Unsupported, "the task has not asked for input")
}

/// Returns the rejection of a request that the ledger did not record.
fn request_not_recorded_failure() -> Failure {
    let message =
        "the request was not recorded, because the disk of the ledger is full or cannot be written";
    Failure::new(Code::LedgerUnavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_joins_and_an_equal_request_follows() {
        let (agent, other) = (AgentId::new("worker").unwrap(), ExecutionId::generate());
        let decided = |result| decide_after_recording(&agent, Ok(result));
        assert_eq!(decided(RecordingResult::Recorded), AdmissionDecision::Admit);
        assert_eq!(
            decided(RecordingResult::Duplicate(other)),
            AdmissionDecision::ReturnOriginal(other)
        );
        assert_eq!(
            decided(RecordingResult::EquivalentInProgress(other)),
            AdmissionDecision::Coalesce(other)
        );
        assert_eq!(
            decided(RecordingResult::EquivalentSucceeded(other)),
            AdmissionDecision::TakeResult(other)
        );
        assert_eq!(
            decided(RecordingResult::Conflict),
            AdmissionDecision::Reject(message_reused_failure())
        );
        assert_eq!(
            decided(RecordingResult::QuestionClosed),
            AdmissionDecision::Reject(no_open_question_failure())
        );
    }
}
