//! Shapes of health checks and of empty responses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of the health check: the service responds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthStatus {
    /// The word `ok`.
    pub status: String,
}

/// Readiness of the service for new work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Readiness {
    /// Readiness of the service.
    pub status: ReadinessStatus,
    /// Reasons why the service is not ready: `draining`, `tree`, `ledger`, `runtime-folder`, `data-folder`,
    /// `process-holder`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// Readiness of the service for new work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReadinessStatus {
    /// The service accepts work.
    Ready,
    /// The service does not accept work.
    Unready,
}

/// Empty response of an operation that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}
