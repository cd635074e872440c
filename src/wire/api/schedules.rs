//! Shapes of `/api/v1/schedules`.

use std::collections::BTreeMap;
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::Outcome;
use algonius_actors::model::id::{AgentId, ScheduleId};
use algonius_actors::model::schedule::occurrence::{Occurrence, OccurrenceCause, OccurrenceStatus};
use algonius_actors::model::schedule::statistics::ScheduleStatistics;
use algonius_actors::model::schedule::{
    MissedPolicy, OverlapPolicy, ScheduleOrigin, ScheduleSpec, ScheduleState,
};

use crate::wire::integer;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum duration that a caller may set, in seconds: one week.
pub const MAX_DURATION_SECONDS: u64 = 7 * 86_400;
/// Maximum number of missed occurrences that a schedule makes up for.
pub const MAX_MISSED: u32 = 1000;
/// Maximum number of times in one response.
pub const MAX_UPCOMING_OCCURRENCES: u32 = 1000;

/// Policy for occurrences that the service missed, for example because it was not running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "MissedPolicy")]
pub enum MissedPolicyName {
    /// Records missed occurrences and does not run them.
    Skip,
    /// Runs one of the missed occurrences.
    Once,
    /// Runs each missed occurrence.
    All,
}

/// Schedule as a caller defines it. Durations are in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScheduleRequest {
    /// Id of the schedule.
    #[schemars(with = "ScheduleId")]
    pub id: String,
    /// Name of the schedule; by default its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub name: Option<String>,
    /// Id of the agent.
    #[schemars(with = "AgentId")]
    pub agent: String,
    /// Cron expression for the times of the schedule.
    #[schemars(length(min = 1))]
    pub cron: String,
    /// Time zone of the cron expression; by default that of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub timezone: Option<String>,
    /// Input for the agent: a template that is not blank.
    #[schemars(regex(pattern = r"\S"))]
    pub input: String,
    /// Values for the agent's templates.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// Policy for missed occurrences; by default `once`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<MissedPolicyName>,
    /// Maximum age of a missed occurrence that still runs, in seconds; by default one hour, at most one week.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "integer::optional"
    )]
    #[schemars(range(max = MAX_DURATION_SECONDS))]
    pub missed_window: Option<u64>,
    /// Maximum number of missed occurrences that run under the policy `all`; by default 10, at most 1000.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "integer::optional"
    )]
    #[schemars(range(min = 1, max = MAX_MISSED))]
    pub missed_max: Option<u32>,
    /// Policy for occurrences that fall due while an earlier one still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<OverlapPolicy>,
    /// Maximum random delay of an occurrence, in seconds.
    #[serde(default, deserialize_with = "integer::non_null")]
    #[schemars(range(max = MAX_DURATION_SECONDS))]
    pub jitter: u64,
    /// Time after the due time at which an execution of the schedule is stopped, in seconds.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "integer::optional"
    )]
    #[schemars(range(max = MAX_DURATION_SECONDS))]
    pub deadline: Option<u64>,
    /// Number of consecutive failures that raises an alert; by default 3; 0 disables alerts.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "integer::optional"
    )]
    #[schemars(range(max = u32::MAX))]
    pub alert_after: Option<u32>,
    /// True if the schedule is enabled.
    #[serde(default = "enabled_by_default")]
    pub enabled: bool,
}

const fn enabled_by_default() -> bool {
    true
}

impl ScheduleRequest {
    /// Returns the request that defines this schedule.
    #[must_use]
    pub fn from_spec(spec: &ScheduleSpec) -> Self {
        // Members that the policy does not use are absent, so that a client can send the answer back unchanged.
        let (missed, window, max) = match spec.missed {
            MissedPolicy::Skip => (MissedPolicyName::Skip, None, None),
            MissedPolicy::Once { window } => (MissedPolicyName::Once, Some(window), None),
            MissedPolicy::All { max, window } => (MissedPolicyName::All, Some(window), Some(max)),
        };
        Self {
            id: spec.id.to_string(),
            // Defaults are written out: a client that sends the answer back must not fall under a later change of
            // them.
            name: Some(spec.name.clone()),
            agent: spec.agent.to_string(),
            cron: spec.recurrence.text().to_owned(),
            timezone: Some(spec.recurrence.zone().name().to_owned()),
            input: spec.input.clone(),
            params: spec.params.clone(),
            missed: Some(missed),
            missed_window: window.map(|window| window.as_secs()),
            missed_max: max,
            overlap: Some(spec.overlap),
            jitter: spec.jitter.as_secs(),
            deadline: spec.deadline.map(|deadline| deadline.as_secs()),
            alert_after: Some(spec.alert_after),
            enabled: spec.enabled,
        }
    }

    /// Returns the policy for missed occurrences with its defaults.
    #[must_use]
    pub fn missed_policy(&self) -> MissedPolicy {
        let window = Duration::from_secs(self.missed_window.unwrap_or(3600));
        match self.missed.unwrap_or(MissedPolicyName::Once) {
            MissedPolicyName::Skip => MissedPolicy::Skip,
            MissedPolicyName::Once => MissedPolicy::Once { window },
            MissedPolicyName::All => {
                MissedPolicy::All { max: self.missed_max.unwrap_or(10), window }
            }
        }
    }
}

/// Schedule in a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleEntry {
    /// Definition of the schedule.
    #[serde(flatten)]
    pub definition: ScheduleRequest,
    /// Owner of the schedule.
    pub owner: String,
    /// Origin of the schedule.
    pub origin: ScheduleOrigin,
    /// State of the schedule.
    pub state: ScheduleState,
    /// Due time of the next occurrence.
    pub next: Option<DateTime<Utc>>,
    /// Ids of the executions of the schedule that have not ended.
    pub working: Vec<String>,
    /// Number of occurrences that wait.
    pub waiting: usize,
    /// Number of consecutive failures since the start of the service.
    pub failures_in_a_row: u32,
    /// True if the number of consecutive failures has raised an alert.
    pub alert: bool,
    /// True if its name, input or parameters are shown redacted. If a caller sends the redacted values back, the
    /// stored values stay unchanged.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub redacted: bool,
    /// True if its sealed input can no longer be read: its occurrences are refused as `input-sealed` until a caller
    /// sends its input again.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub input_lost: bool,
    /// Time at which the schedule was created.
    pub created_at: DateTime<Utc>,
    /// Time of the last change.
    pub changed_at: DateTime<Utc>,
}

/// Page of schedules.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleList {
    /// Schedules on this page.
    pub schedules: Vec<ScheduleEntry>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Schedule with all details.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleDetail {
    /// Entry of the schedule as in a list.
    #[serde(flatten)]
    pub entry: ScheduleEntry,
    /// Times of the schedule in words.
    pub description: String,
    /// Next occurrences.
    pub upcoming: Vec<Upcoming>,
    /// Statistics of the last thirty days.
    pub statistics: ScheduleStatistics,
}

/// Future occurrence of a schedule.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Upcoming {
    /// Planned time of the occurrence.
    pub planned: DateTime<Utc>,
    /// Planned time in the time zone of the schedule.
    pub local: String,
    /// Due time: the planned time and the random delay.
    pub due: DateTime<Utc>,
}

/// Request for a preview of a cron expression.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewRequest {
    /// Cron expression.
    #[schemars(length(min = 1))]
    pub cron: String,
    /// Time zone of the cron expression; by default that of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub timezone: Option<String>,
    /// Start of the preview; by default the current time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<DateTime<Utc>>,
    /// Number of occurrences; by default 10, at most 1000.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "integer::optional"
    )]
    #[schemars(range(min = 1, max = MAX_UPCOMING_OCCURRENCES))]
    pub count: Option<u32>,
}

/// Preview of a cron expression.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Preview {
    /// Cron expression in words.
    pub description: String,
    /// Next occurrences.
    pub upcoming: Vec<Upcoming>,
}

/// Occurrence of a schedule and its result.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OccurrenceEntry {
    /// Id of the schedule.
    pub schedule: String,
    /// Planned time of the occurrence.
    pub planned: DateTime<Utc>,
    /// Due time: the planned time and the random delay.
    pub due: DateTime<Utc>,
    /// Cause of the occurrence.
    pub cause: OccurrenceCause,
    /// Decision of the service about the occurrence.
    pub status: OccurrenceStatus,
    /// Reason for the decision, if it is not obvious.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of planned times that this entry represents.
    pub times: u32,
    /// Time of the decision.
    pub decided_at: DateTime<Utc>,
    /// Time at which the occurrence started.
    pub fired_at: Option<DateTime<Utc>>,
    /// Delay of the start after the due time, in milliseconds.
    pub delay_ms: Option<i64>,
    /// Id of the execution.
    pub execution: Option<String>,
    /// Outcome of the execution.
    pub outcome: Option<Outcome>,
    /// Error code of the execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Time at which the execution ended.
    pub ended_at: Option<DateTime<Utc>>,
}

impl From<&Occurrence> for OccurrenceEntry {
    fn from(occurrence: &Occurrence) -> Self {
        Self {
            schedule: occurrence.schedule.to_string(),
            planned: occurrence.planned_at,
            due: occurrence.due_at,
            cause: occurrence.cause,
            status: occurrence.status,
            reason: occurrence.reason.clone(),
            times: occurrence.planned_time_count,
            decided_at: occurrence.decided_at,
            fired_at: occurrence.fired_at,
            delay_ms: occurrence.delay().map(|late| late.num_milliseconds()),
            execution: occurrence.execution.map(|id| id.to_string()),
            outcome: occurrence.end.map(|ending| ending.outcome),
            code: occurrence.end.and_then(|ending| ending.code),
            ended_at: occurrence.end.map(|ending| ending.at),
        }
    }
}

/// Page of occurrences, latest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct OccurrenceList {
    /// Occurrences on this page.
    pub occurrences: Vec<OccurrenceEntry>,
    /// Value of `before` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<DateTime<Utc>>,
}
