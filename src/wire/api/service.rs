//! Small shapes of the service itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// That the service answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Liveness {
    /// `ok`.
    pub status: String,
}

/// Whether work can be taken now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Readiness {
    /// Whether it can.
    pub status: Ready,
    /// Why it cannot, in a word each: `draining`, `tree`, `ledger`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// Whether work can be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ready {
    /// It can.
    Ready,
    /// It cannot.
    Unready,
}

/// That something was done about which there is nothing to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}
