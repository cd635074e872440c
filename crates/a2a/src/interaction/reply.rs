//! Answers in a message: which interactions a caller answers, and how.

use std::fmt;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::interaction::AnswerValue;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::json_object::invalid_params;

/// Answer to one interaction.
#[derive(Debug, Clone, PartialEq)]
pub struct InteractionReply {
    /// Id of the interaction or of the tool call; `None` if the caller names none.
    pub id: Option<String>,
    /// Answer of the caller.
    pub answer: ReplyContent,
    /// Digest of the call that the caller has seen.
    pub digest: Option<String>,
}

/// Content of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyContent {
    /// Decision about a tool call.
    Decision {
        /// True if the caller approves the call.
        approved: bool,
        /// Reason for the agent.
        reason: Option<String>,
    },
    /// Texts for each question of an interaction, in the order of the questions.
    Texts(Vec<Vec<String>>),
    /// Answer in the terms of this service.
    Value(AnswerValue),
}

/// Answers of a message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Replies {
    /// Answers, each for another interaction. Empty if the message contains no structured answer.
    pub list: Vec<InteractionReply>,
    /// True if the form of the answers requires a decision for every open permission request.
    pub requires_all_decisions: bool,
}

/// Fault of the answers of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplyFault {
    /// A value has the wrong form.
    Malformed {
        /// Name of the value.
        field: &'static str,
        /// Description of a valid value.
        expected: &'static str,
    },
    /// Two answers are for the same interaction.
    Duplicate,
    /// An open permission request has no decision, or a question has no answer.
    Incomplete,
    /// No open interaction has this id.
    UnknownTarget,
    /// The answer names no interaction, and several are open.
    Ambiguous,
    /// The caller has seen another call than the one that is open.
    ChangedDigest,
}

impl fmt::Display for ReplyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed { field, expected } => {
                return write!(f, "`{field}` must be {expected}");
            }
            Self::Duplicate => "two answers are for the same interaction",
            Self::Incomplete => "an open interaction has no answer",
            Self::UnknownTarget => "no open interaction has this id",
            Self::Ambiguous => "the answer must name the interaction, because several are open",
            Self::ChangedDigest => "the digest is not that of the open tool call",
        })
    }
}

impl std::error::Error for ReplyFault {}

impl From<ReplyFault> for Failure {
    fn from(fault: ReplyFault) -> Self {
        match fault {
            ReplyFault::ChangedDigest => Self::new(Code::InteractionChanged, fault.to_string()),
            _ => invalid_params(fault.to_string()),
        }
    }
}

/// Reads a value into a type.
pub(super) fn parse_value<T: DeserializeOwned>(
    value: &Value,
    field: &'static str,
    expected: &'static str,
) -> Result<T, ReplyFault> {
    T::deserialize(value).map_err(|_details| ReplyFault::Malformed { field, expected })
}

/// Answers to the questions of an interaction.
#[derive(Deserialize)]
pub(super) struct AskUserAnswer {
    /// Chosen or written texts.
    pub(super) answer: Vec<String>,
}

/// Returns a decision. A reason counts for a rejection only, and an empty reason is none.
pub(super) fn decision_answer(approved: bool, reason: Option<String>) -> ReplyContent {
    let reason = reason.filter(|reason| !approved && !reason.is_empty());
    ReplyContent::Decision { approved, reason }
}

/// Returns the texts of answers.
pub(super) fn texts_answer(answers: Vec<AskUserAnswer>) -> ReplyContent {
    ReplyContent::Texts(answers.into_iter().map(|answer| answer.answer).collect())
}
