//! What somebody should look at, though the service goes on.

use std::time::Duration;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why somebody should look.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[schemars(rename = "AlertCause")]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// An endpoint gets more requests within a minute than are expected. None is refused for it.
    RequestRate,
    /// An agent failed too often and is not started again.
    AgentQuarantined,
    /// Executions of an agent fail one after the other.
    FailureStreak,
    /// The work of a schedule fails one time after the other.
    ScheduleFailing,
    /// An agent has used up most of what it may in this day.
    BudgetNearlySpent,
    /// The machine is short of something.
    Pressure,
    /// The disk of the ledger will be full soon.
    LedgerNearlyFull,
    /// Somebody was to be told about an execution and could not be.
    PushGivenUp,
}

impl Cause {
    /// Every cause.
    pub const ALL: &[Self] = &[
        Self::RequestRate,
        Self::AgentQuarantined,
        Self::FailureStreak,
        Self::ScheduleFailing,
        Self::BudgetNearlySpent,
        Self::Pressure,
        Self::LedgerNearlyFull,
        Self::PushGivenUp,
    ];

    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RequestRate => "request-rate",
            Self::AgentQuarantined => "agent-quarantined",
            Self::FailureStreak => "failure-streak",
            Self::ScheduleFailing => "schedule-failing",
            Self::BudgetNearlySpent => "budget-nearly-spent",
            Self::Pressure => "pressure",
            Self::LedgerNearlyFull => "ledger-nearly-full",
            Self::PushGivenUp => "push-given-up",
        }
    }
}

/// Whether it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Turn {
    /// It has begun.
    Opened,
    /// It is over.
    Closed,
}

/// One thing that somebody should look at. It has names of the configuration, and numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alert {
    /// Why.
    pub cause: Cause,
    /// Of what: an agent, an endpoint, what is short; empty where there is but one.
    pub subject: String,
    /// Since when.
    pub since: DateTime<Utc>,
    /// What was counted or measured when it began.
    pub value: u64,
    /// The bound that it crossed; 0 where there is none.
    pub limit: u64,
}

/// Bounds. With 0 nothing is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlertSpec {
    /// Requests of one endpoint within a minute that are expected.
    pub requests_per_minute: u32,
    /// Executions of an agent in a row that fail.
    pub failure_streak: u32,
    /// Bytes that the disk of the ledger should have free.
    pub ledger_free_bytes: u64,
    /// How long what happens once stays open.
    pub linger: Duration,
}

impl Default for AlertSpec {
    fn default() -> Self {
        Self {
            requests_per_minute: 100,
            failure_streak: 5,
            ledger_free_bytes: 2_000_000_000,
            linger: Duration::from_secs(600),
        }
    }
}
