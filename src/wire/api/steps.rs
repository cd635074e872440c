//! Shapes of `/api/v1/executions/{id}/steps`: the steps of a cognitive agent's run.

use algonius_actors::model::execution::event::TextRange;
use algonius_actors::model::execution::step::StepRecord;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Page of steps.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepList {
    /// Steps in the order of their numbers; empty for an execution that is no run of a cognitive agent.
    pub steps: Vec<StepEntry>,
    /// Value of `after` for the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
}

/// Step of a run with its text.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepEntry {
    /// Facts of the step.
    #[serde(flatten)]
    pub row: StepRecord,
    /// Time of the record.
    pub at: DateTime<Utc>,
    /// State of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<CallState>,
    /// Text of the step, redacted: a thought, arguments, a result or a reason. At most its first 65536 bytes.
    pub text: String,
    /// Location of the whole text.
    pub range: TextRange,
    /// Number of redacted places in the text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redacted: u64,
}

/// State of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CallState {
    /// The call is recorded, and has no end.
    Started,
    /// The call has ended: with a result or with an error.
    Done,
    /// The outcome of the call is unknown.
    Unknown,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
