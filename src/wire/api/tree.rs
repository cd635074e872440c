//! Shapes of `/api/v1/executions/{id}/tree`: an execution with its hops.

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::{ExecutionState, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ErrorBody;
use super::usage::UsageAmounts;

/// Execution with its hops.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionTree {
    /// Id of the execution.
    pub execution: String,
    /// Id of the agent.
    pub agent: String,
    /// Outcome of an ended execution, otherwise its phase.
    pub state: ExecutionState,
    /// Outcome of an ended execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Time from the start of the first attempt to the end, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<i64>,
    /// Error of the execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// Resources that the execution itself has used, without its hops.
    #[serde(skip_serializing_if = "UsageAmounts::is_zero", default)]
    pub spent: UsageAmounts,
    /// Hops in the order of their numbers; empty for an execution that is no run of a team.
    pub hops: Vec<HopEntry>,
    /// True if further hops were left out, because the tree is too large.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub truncated: bool,
}

/// Hop of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HopEntry {
    /// Number of the hop in its run, from 1.
    pub hop: u32,
    /// Id of the step.
    pub step: String,
    /// Id of the member.
    pub agent: String,
    /// Latest stage of the hop.
    pub stage: HopStageName,
    /// Outcome of a hop that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Code of the failure of a hop that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Id of the execution, once the member has accepted the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<String>,
    /// Execution with its own hops; absent if it was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<Box<ExecutionTree>>,
}

/// Stage of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HopStage")]
#[serde(rename_all = "kebab-case")]
pub enum HopStageName {
    /// The run has decided to send the request.
    Planned,
    /// The member has accepted the request.
    Taken,
    /// The request has ended, or the member refused it.
    Ended,
}
