//! Team: an agent that passes each of its requests to other agents, its members.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::id::AgentId;

/// Plan of a team: its steps, in order. A run records the plan at its start, so that a later change of the team does
/// not affect the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TeamPlan {
    /// Steps in the order of their start; never empty in a configured team.
    pub steps: Vec<TeamStep>,
}

impl TeamPlan {
    /// Maximum number of steps of a team.
    pub const MAX_STEPS: usize = 100;
    /// Maximum depth of teams among the members of a team.
    pub const MAX_DEPTH: usize = 3;
}

/// Step of a team: one request to one member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TeamStep {
    /// Id of the step, unique in its team.
    pub id: String,
    /// Member that performs the step.
    pub agent: AgentId,
}
