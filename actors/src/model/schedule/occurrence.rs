//! Occurrences: the record of each planned time of a schedule.

use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::code::Code;
use crate::model::execution::Outcome;
use crate::model::id::{AgentId, ExecutionId, PrincipalId, ScheduleId};

/// Cause of an occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OccurrenceCause")]
#[serde(rename_all = "kebab-case")]
pub enum OccurrenceCause {
    /// The planned time came.
    Due,
    /// The planned time passed unnoticed and is caught up.
    CatchUp,
    /// A caller triggered the schedule.
    Manual,
}

impl OccurrenceCause {
    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::CatchUp => "catch-up",
            Self::Manual => "manual",
        }
    }

    /// Parses the published name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Due, Self::CatchUp, Self::Manual].into_iter().find(|it| it.as_str() == word)
    }
}

/// Decision about an occurrence.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum OccurrenceStatus {
    /// The occurrence will be submitted: it waits for the previous run, or for capacity.
    Pending,
    /// The occurrence was submitted and became an execution.
    Fired,
    /// The previous run was still in progress.
    Skipped,
    /// The planned time passed unnoticed, too long ago.
    Missed,
    /// A later occurrence replaces this one.
    Coalesced,
    /// The occurrence was submitted and rejected.
    Refused,
}

impl OccurrenceStatus {
    /// Every status.
    pub const ALL: &[Self] =
        &[Self::Pending, Self::Fired, Self::Skipped, Self::Missed, Self::Coalesced, Self::Refused];

    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Fired => "fired",
            Self::Skipped => "skipped",
            Self::Missed => "missed",
            Self::Coalesced => "coalesced",
            Self::Refused => "refused",
        }
    }

    /// Parses the published name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| status.as_str() == word)
    }
}

/// Planned time of a schedule with its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// Id of the schedule.
    pub schedule: ScheduleId,
    /// Planned time; unique within a schedule.
    pub planned_at: DateTime<Utc>,
    /// Time of submission: the planned time plus the jitter.
    pub due_at: DateTime<Utc>,
    /// Cause of the occurrence.
    pub cause: OccurrenceCause,
    /// Decision about the occurrence.
    pub status: OccurrenceStatus,
    /// Explanation of the decision, if it is not obvious.
    pub reason: Option<String>,
    /// Number of planned times that the occurrence represents: 1, except for a run of old times that were missed
    /// together.
    pub planned_time_count: u32,
    /// Time of the decision.
    pub decided_at: DateTime<Utc>,
    /// Agent that executes the work.
    pub agent: AgentId,
    /// Owner of the execution.
    pub owner: PrincipalId,
    /// Time at which the service accepted the submission.
    pub fired_at: Option<DateTime<Utc>>,
    /// Execution that the occurrence became.
    pub execution: Option<ExecutionId>,
    /// Time by which the execution must have ended.
    pub deadline: Option<DateTime<Utc>>,
    /// End of the execution.
    pub end: Option<OccurrenceEnd>,
}

/// End of an occurrence's execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OccurrenceEnd {
    /// Outcome of the execution.
    pub outcome: Outcome,
    /// Error code, if the execution failed.
    pub code: Option<Code>,
    /// True if an earlier attempt had failed.
    pub had_failed_attempt: bool,
    /// End time.
    pub at: DateTime<Utc>,
}

impl Occurrence {
    /// Returns the message id of the request, which is never accepted twice.
    #[must_use]
    pub fn message_id(&self) -> String {
        let Self { schedule, planned_at: planned, .. } = self;
        format!("schedule:{schedule}:{}", planned.format("%Y%m%dT%H%M%S%.6fZ"))
    }

    /// Returns the delay between the due time and the acceptance.
    #[must_use]
    pub fn delay(&self) -> Option<TimeDelta> {
        Some(self.fired_at? - self.due_at)
    }

    /// Returns true if the occurrence is not finished.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        match self.status {
            OccurrenceStatus::Pending => true,
            OccurrenceStatus::Fired => self.end.is_none(),
            OccurrenceStatus::Skipped
            | OccurrenceStatus::Missed
            | OccurrenceStatus::Coalesced
            | OccurrenceStatus::Refused => false,
        }
    }
}

/// Filter for a list of occurrences, the latest planned time first.
#[derive(Debug, Clone, Default)]
pub struct OccurrenceQuery {
    /// Restricts the list to this schedule.
    pub schedule: Option<ScheduleId>,
    /// Restricts the list to this owner.
    pub owner: Option<PrincipalId>,
    /// Restricts the list to these agents.
    pub agents: Option<Vec<AgentId>>,
    /// Restricts the list to this status.
    pub status: Option<OccurrenceStatus>,
    /// Restricts the list to planned times at or after this one.
    pub since: Option<DateTime<Utc>>,
    /// Restricts the list to occurrences before this one.
    pub before: Option<(DateTime<Utc>, ScheduleId)>,
    /// Maximum number of results.
    pub limit: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrence_words_survive_a_round_trip() {
        for status in OccurrenceStatus::ALL {
            assert_eq!(OccurrenceStatus::parse(status.as_str()), Some(*status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        for cause in [OccurrenceCause::Due, OccurrenceCause::CatchUp, OccurrenceCause::Manual] {
            assert_eq!(OccurrenceCause::parse(cause.as_str()), Some(cause));
        }
    }
}
