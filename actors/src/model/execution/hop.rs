//! Hops: the requests of a team's run to its members, as facts in the events of the run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Outcome;
use crate::model::code::Code;
use crate::model::id::{AgentId, ExecutionId};

/// Stage of a hop, with the facts that are known from this stage on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "stage", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum HopStage {
    /// The run has decided to send the request. The request follows once this is recorded.
    Planned {
        /// Id of the step in the plan.
        step: String,
        /// Member that receives the request.
        agent: AgentId,
        /// Keyed digest of the request's content.
        input: String,
    },
    /// The member has accepted the request.
    Taken {
        /// Execution of the request.
        execution: ExecutionId,
    },
    /// The request has ended, or the member refused it.
    Ended {
        /// Outcome of the request.
        outcome: Outcome,
        /// Code of its failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
    },
}

/// Position of an execution in a run: the execution is a hop of its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HopPosition {
    /// Execution of the run.
    pub parent: ExecutionId,
    /// Execution of the outermost run, which a caller, a schedule or a probe started.
    pub root: ExecutionId,
    /// Number of the hop in its run, from 1.
    pub number: u32,
}
