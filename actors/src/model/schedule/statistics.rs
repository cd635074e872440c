//! Statistics of a schedule.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::occurrence::OccurrenceStatus;

/// Class of a failure.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[schemars(rename = "FailureClass")]
#[serde(rename_all = "kebab-case")]
pub enum FailureClass {
    /// The execution exceeded a deadline.
    Timeout,
    /// The agent failed.
    Agent,
    /// The supervisor failed.
    System,
    /// Authentication or authorization failed.
    Authentication,
    /// A transient condition did not pass in time.
    Transient,
    /// The execution was cancelled.
    Cancelled,
}

/// Statistics of a schedule over a period.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "ScheduleStatistics")]
#[serde(rename_all = "camelCase")]
pub struct ScheduleStatistics {
    /// Number of occurrences by status.
    pub times: BTreeMap<OccurrenceStatus, u64>,
    /// Number of executions that ended.
    pub ended: u64,
    /// Number of executions that succeeded.
    pub succeeded: u64,
    /// Number of executions that succeeded after a failed attempt.
    pub recovered: u64,
    /// Number of executions that did not succeed, by class.
    pub failed: BTreeMap<FailureClass, u64>,
    /// Share of successes among the executions that ended or were rejected, in thousandths; absent if there were none.
    pub success_permille: Option<u64>,
    /// Share of occurrences submitted within 30 seconds of the due time, in thousandths.
    pub punctual_permille: Option<u64>,
    /// 95th percentile of the delay, in milliseconds.
    pub delay_p95_ms: Option<i64>,
    /// Longest delay in milliseconds.
    pub delay_max_ms: Option<i64>,
}
