//! Access type of an agent.

pub mod endpoint_config;
pub mod principal;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Access type of an agent: read-only or read-write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// The agent only reads; many executions may run at the same time.
    #[default]
    ReadOnly,
    /// The agent modifies files, system state or external resources; exactly one execution runs at a time.
    ReadWrite,
}
