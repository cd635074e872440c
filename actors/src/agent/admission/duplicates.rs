//! Detection of duplicate requests: the decision of the agent's actor about a request that it has recorded.
//!
//! The ledger compares the keys of a request with those of earlier ones in the transaction that records it, so that no
//! crash and no second process can record a message twice. The actor decides what follows from the result.

use crate::agent::RecordResult;
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ExecutionId};
use crate::ports::ledger::LedgerError;

/// Decision about a request after its recording.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::agent) enum RecordDecision {
    /// The request takes its place in the queue.
    Admit,
    /// The request takes the result of this execution, which had the same content and has succeeded.
    TakeResult(ExecutionId),
    /// The request waits for the end of this execution, which has the same content and is in progress.
    Follow(ExecutionId),
    /// The same message was sent before: the submitter receives this earlier execution.
    Join(ExecutionId),
    /// The request is not recorded.
    Reject(Failure),
}

impl RecordDecision {
    /// Returns true if the request is recorded.
    pub(in crate::agent) const fn is_recorded(&self) -> bool {
        match self {
            Self::Admit | Self::TakeResult(_) | Self::Follow(_) => true,
            Self::Join(_) | Self::Reject(_) => false,
        }
    }
}

/// Decides about a request by the result of its recording.
pub(in crate::agent) fn decide(
    agent: &AgentId,
    result: Result<RecordResult, LedgerError>,
) -> RecordDecision {
    match result {
        Ok(RecordResult::Recorded) => RecordDecision::Admit,
        Ok(RecordResult::EquivalentSucceeded(source)) => RecordDecision::TakeResult(source),
        Ok(RecordResult::Equivalent(source)) => RecordDecision::Follow(source),
        Ok(RecordResult::Duplicate(original)) => RecordDecision::Join(original),
        Ok(RecordResult::Conflict) => RecordDecision::Reject(message_reused()),
        Ok(RecordResult::QuestionClosed) => RecordDecision::Reject(no_open_question()),
        Err(error) => {
            tracing::error!(%agent, %error, "accept failed");
            RecordDecision::Reject(request_not_recorded())
        }
    }
}

/// Returns the rejection of a message whose id was used before.
pub(crate) fn message_reused() -> Failure {
    Failure::new(Code::MessageReused, "this message id or key was used for another message")
}

/// Returns the rejection of an answer without an open question.
pub(crate) fn no_open_question() -> Failure {
    Failure::new(Code::Unsupported, "the task has not asked for input")
}

/// Returns the rejection of a request that the ledger did not record.
fn request_not_recorded() -> Failure {
    let message =
        "the request was not recorded, because the disk of the ledger is full or cannot be written";
    Failure::new(Code::LedgerUnavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_joins_and_an_equal_request_follows() {
        let (agent, other) = (AgentId::new("worker").unwrap(), ExecutionId::fresh());
        let decided = |result| decide(&agent, Ok(result));
        assert_eq!(decided(RecordResult::Recorded), RecordDecision::Admit);
        assert_eq!(decided(RecordResult::Duplicate(other)), RecordDecision::Join(other));
        assert_eq!(decided(RecordResult::Equivalent(other)), RecordDecision::Follow(other));
        assert_eq!(
            decided(RecordResult::EquivalentSucceeded(other)),
            RecordDecision::TakeResult(other)
        );
        assert_eq!(decided(RecordResult::Conflict), RecordDecision::Reject(message_reused()));
        assert_eq!(
            decided(RecordResult::QuestionClosed),
            RecordDecision::Reject(no_open_question())
        );
    }
}
