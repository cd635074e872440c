//! How much the ledger holds, and what is taken out of it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much the ledger holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Ledger")]
#[serde(rename_all = "camelCase")]
pub struct Stock {
    /// All executions.
    pub executions: u64,
    /// Those that have ended.
    pub ended: u64,
    /// When the oldest was accepted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub oldest: Option<DateTime<Utc>>,
    /// Bytes of the database.
    pub bytes: u64,
    /// Bytes of it that hold nothing at present.
    pub free_bytes: u64,
    /// Bytes of the log that is written before it.
    pub log_bytes: u64,
}

impl Stock {
    /// Bytes that hold something.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.bytes.saturating_sub(self.free_bytes)
    }
}

/// How much is kept of what has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// For how long; `None` is for ever.
    pub max_age: Option<Duration>,
    /// How many; `None` is any number.
    pub max_executions: Option<u64>,
    /// In how many bytes of the database; `None` is any number.
    pub max_bytes: Option<u64>,
    /// For so long in any case.
    pub min_age: Duration,
}

/// Which executions to take out, those first that ended first. What has not ended, and what somebody
/// has still to be told about, is never among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweep {
    /// Only those that ended then or later.
    pub from: Option<DateTime<Utc>>,
    /// Only those that ended before.
    pub before: Option<DateTime<Utc>>,
    /// At most so many; fewer when they are large.
    pub most: u32,
}

/// What became of an order to remove one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is gone, with all that belonged to it.
    Removed,
    /// It has not ended, and stays.
    Unfinished,
    /// There was none.
    Unknown,
}

/// The latest pass over what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RetentionPass")]
#[serde(rename_all = "camelCase")]
pub struct Pass {
    /// When it was over.
    pub at: DateTime<Utc>,
    /// How many executions it removed.
    pub removed: u64,
    /// Bytes of the database that it gave back to the system.
    pub freed_bytes: u64,
    /// Whether age counted: for a day after the clock was set it does not.
    pub by_age: bool,
}
