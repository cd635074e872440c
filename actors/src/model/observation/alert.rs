//! Alerts: conditions that need the attention of an operator although the service continues.

use std::time::Duration;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cause of an alert.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[schemars(rename = "AlertCause")]
#[serde(rename_all = "kebab-case")]
pub enum AlertCause {
    /// An endpoint receives more requests within a minute than expected. The service rejects none of them for it.
    RequestRate,
    /// An agent failed too often and is not restarted.
    AgentQuarantined,
    /// Executions of an agent fail one after the other.
    FailureStreak,
    /// Executions of a schedule fail one after the other.
    ScheduleFailing,
    /// An agent has used most of its budget of this day.
    BudgetNearlySpent,
    /// A precondition of all executions is not fulfilled, so that the service accepts no new work.
    ServiceUnready,
    /// A resource of the machine is short.
    Pressure,
    /// The disk of the ledger is nearly full.
    LedgerNearlyFull,
    /// A push target could not be reached, and the service has given it up.
    PushGivenUp,
}

impl AlertCause {
    /// Every cause.
    pub const ALL: &[Self] = &[
        Self::RequestRate,
        Self::AgentQuarantined,
        Self::FailureStreak,
        Self::ScheduleFailing,
        Self::BudgetNearlySpent,
        Self::ServiceUnready,
        Self::Pressure,
        Self::LedgerNearlyFull,
        Self::PushGivenUp,
    ];

    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RequestRate => "request-rate",
            Self::AgentQuarantined => "agent-quarantined",
            Self::FailureStreak => "failure-streak",
            Self::ScheduleFailing => "schedule-failing",
            Self::BudgetNearlySpent => "budget-nearly-spent",
            Self::ServiceUnready => "service-unready",
            Self::Pressure => "pressure",
            Self::LedgerNearlyFull => "ledger-nearly-full",
            Self::PushGivenUp => "push-given-up",
        }
    }
}

/// Phase of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AlertPhase {
    /// The alert has started.
    Opened,
    /// The alert has ended.
    Closed,
}

/// Alert for the operator. An alert contains names from the configuration and numbers only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alert {
    /// Cause of the alert.
    pub cause: AlertCause,
    /// Subject of the alert: an agent, an endpoint, a precondition or a short resource; empty if the cause has only one
    /// subject.
    pub subject: String,
    /// Start time of the alert.
    pub since: DateTime<Utc>,
    /// Value counted or measured when the alert started.
    pub value: u64,
    /// Limit that the value crossed; 0 if there is none.
    pub limit: u64,
}

/// Limits above which alerts are raised. A limit of 0 disables its alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlertSpec {
    /// Expected requests of one endpoint within a minute.
    pub requests_per_minute: u32,
    /// Number of consecutive failed executions of an agent.
    pub failure_streak: u32,
    /// Bytes that must be free on the disk of the ledger.
    pub min_ledger_free_bytes: u64,
    /// Time for which the alert of a single event stays open.
    pub event_alert_duration: Duration,
}

impl Default for AlertSpec {
    fn default() -> Self {
        Self {
            requests_per_minute: 100,
            failure_streak: 5,
            min_ledger_free_bytes: 2_000_000_000,
            event_alert_duration: Duration::from_secs(600),
        }
    }
}
