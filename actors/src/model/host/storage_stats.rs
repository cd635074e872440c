//! Storage statistics of the ledger, and the removal of executions.

use std::time::Duration;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Storage statistics of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Ledger")]
#[serde(rename_all = "camelCase")]
pub struct StorageStats {
    /// Number of executions.
    pub executions: u64,
    /// Number of executions that have ended.
    pub ended: u64,
    /// Acceptance time of the oldest execution.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub oldest: Option<DateTime<Utc>>,
    /// Size of the database in bytes.
    pub bytes: u64,
    /// Unused bytes of the database.
    pub free_bytes: u64,
    /// Size of the write-ahead log in bytes.
    pub log_bytes: u64,
}

impl StorageStats {
    /// Returns the used bytes of the database.
    #[must_use]
    pub const fn used_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.free_bytes)
    }
}

/// Retention limits for executions that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Longest age; `None` is unlimited.
    pub max_age: Option<Duration>,
    /// Maximum number of executions; `None` is unlimited.
    pub max_executions: Option<u64>,
    /// Maximum size of the database in bytes; `None` is unlimited.
    pub max_bytes: Option<u64>,
    /// Shortest age: younger executions are always kept.
    pub min_age: Duration,
}

/// Batch of executions to remove, the earliest ended first. The batch never contains an execution that has not ended,
/// or that has pending push notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionBatchSelector {
    /// Restricts the batch to executions that ended at this time or later.
    pub from: Option<DateTime<Utc>>,
    /// Restricts the batch to executions that ended before this time.
    pub before: Option<DateTime<Utc>>,
    /// Maximum number of executions; fewer if the executions are large.
    pub limit: u32,
}

/// Result of a request to remove one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionOutcome {
    /// The execution and all its data were removed.
    Removed,
    /// The execution has not ended, and was kept.
    NotEnded,
    /// The execution does not exist.
    Unknown,
}

/// Latest retention pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RetentionPass")]
#[serde(rename_all = "camelCase")]
pub struct RetentionPass {
    /// End time of the pass.
    pub at: DateTime<Utc>,
    /// Number of executions that the pass removed.
    pub removed: u64,
    /// Bytes of the database that the pass returned to the system.
    pub freed_bytes: u64,
    /// True if the pass applied the age limit; it does not for a day after the clock was set.
    pub by_age: bool,
}
