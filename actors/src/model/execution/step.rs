//! Steps of a cognitive agent's run, as facts in the events of its execution.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Type of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepType {
    /// Text of the model beside its calls, or instead of them.
    Thought,
    /// Call of a tool. Its arguments are the text of the step.
    ToolCall,
    /// Result of a call.
    Observation,
    /// Failure of a call, or of a reply of the model.
    Error,
}

impl StepType {
    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Thought => "thought",
            Self::ToolCall => "tool-call",
            Self::Observation => "observation",
            Self::Error => "error",
        }
    }
}

/// Cause of a step that is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepErrorCause {
    /// The reply of the model could not be used.
    UnusableReply,
    /// The reply of the model has no call, or a call that is not allowed. None of its calls was sent.
    RefusedReply,
    /// The tool failed.
    ToolFailed,
    /// The outcome of the call is unknown, because a crash interrupted it.
    Interrupted,
}

impl StepErrorCause {
    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnusableReply => "unusable-reply",
            Self::RefusedReply => "refused-reply",
            Self::ToolFailed => "tool-failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Step of a run: one row of its history. The text is separate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepRecord {
    /// Number of the step in the run, from 1, without gaps.
    pub number: u32,
    /// Number of the model turn to which the step belongs, from 1.
    pub turn: u32,
    /// Type of the step.
    pub step_type: StepType,
    /// Name of the tool, if the step belongs to a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Number of the call's step, if this step is the result or the failure of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// True if the call may be repeated after a crash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
    /// Cause of an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<StepErrorCause>,
    /// Time of the call in milliseconds, if this step ends a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl StepRecord {
    /// Creates a step without facts about a call.
    #[must_use]
    pub const fn new(number: u32, turn: u32, step_type: StepType) -> Self {
        let (tool, call, cause, duration_ms) = (None, None, None, None);
        Self { number, turn, step_type, tool, call, idempotent: false, cause, duration_ms }
    }
}

/// Plan of a cognitive agent's run. The run records it at its start, so that a later change of the agent does not
/// affect the limit of a run that has started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepPlan {
    /// Model at the start of the run, as `prefix/name`. A resumed run uses the model of the present configuration.
    pub model: String,
    /// Greatest number of model turns.
    pub max_steps: u32,
}
