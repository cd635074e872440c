//! The account of one time of a schedule.

use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::code::Code;
use super::execution::Outcome;
use super::id::{AgentId, ExecutionId, PrincipalId};
use super::schedule::ScheduleId;

/// What made an occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OccurrenceCause")]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Its time came.
    Due,
    /// Its time had passed unseen.
    CatchUp,
    /// Somebody asked for it now.
    Manual,
}

impl Cause {
    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::CatchUp => "catch-up",
            Self::Manual => "manual",
        }
    }

    /// Reads the published word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Due, Self::CatchUp, Self::Manual].into_iter().find(|it| it.as_str() == word)
    }
}

/// What was decided about an occurrence.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It will be asked for: it waits for the one before it, or for room.
    Pending,
    /// It was asked for, and is an execution.
    Fired,
    /// The one before it was still worked on.
    Skipped,
    /// Its time passed while nobody looked, too long ago.
    Missed,
    /// A later one stands for it.
    Coalesced,
    /// It was asked for and not taken.
    Refused,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: &[Self] =
        &[Self::Pending, Self::Fired, Self::Skipped, Self::Missed, Self::Coalesced, Self::Refused];

    /// The published word.
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

    /// Reads the published word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|verdict| verdict.as_str() == word)
    }
}

/// One time of a schedule, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The schedule.
    pub schedule: ScheduleId,
    /// Its time; no schedule has two of one time.
    pub planned: DateTime<Utc>,
    /// When it is to be asked for: its time, put off by its jitter.
    pub due: DateTime<Utc>,
    /// What made it.
    pub cause: Cause,
    /// What was decided.
    pub verdict: Verdict,
    /// Why, where it is not plain.
    pub reason: Option<String>,
    /// How many times it stands for: 1, but for a row of old ones that were missed together.
    pub times: u32,
    /// When that was decided.
    pub decided_at: DateTime<Utc>,
    /// Who is asked.
    pub agent: AgentId,
    /// Who asks.
    pub owner: PrincipalId,
    /// When it was taken.
    pub fired_at: Option<DateTime<Utc>>,
    /// What it became.
    pub execution: Option<ExecutionId>,
    /// When its work must have ended.
    pub deadline: Option<DateTime<Utc>>,
    /// How that ended.
    pub ending: Option<Ending>,
}

/// How an occurrence's execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// How.
    pub outcome: Outcome,
    /// Why it did not work.
    pub code: Option<Code>,
    /// Whether an earlier attempt had failed.
    pub recovered: bool,
    /// When.
    pub at: DateTime<Utc>,
}

impl Occurrence {
    /// The name of its request: the same one is never taken twice.
    #[must_use]
    pub fn message(&self) -> String {
        let Self { schedule, planned, .. } = self;
        format!("schedule:{schedule}:{}", planned.format("%Y%m%dT%H%M%S%.6fZ"))
    }

    /// By how much it was taken later than it was due.
    #[must_use]
    pub fn deviation(&self) -> Option<TimeDelta> {
        Some(self.fired_at? - self.due)
    }

    /// Whether something is still to be done about it.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        match self.verdict {
            Verdict::Pending => true,
            Verdict::Fired => self.ending.is_none(),
            Verdict::Skipped | Verdict::Missed | Verdict::Coalesced | Verdict::Refused => false,
        }
    }
}

/// Which occurrences to list, the latest time first.
#[derive(Debug, Clone, Default)]
pub struct OccurrenceQuery {
    /// Of this schedule only.
    pub schedule: Option<ScheduleId>,
    /// Of this owner only.
    pub owner: Option<PrincipalId>,
    /// Of these agents only.
    pub agents: Option<Vec<AgentId>>,
    /// With this verdict only.
    pub verdict: Option<Verdict>,
    /// Only those whose time is at or after this.
    pub since: Option<DateTime<Utc>>,
    /// Only those before this one.
    pub before: Option<(DateTime<Utc>, ScheduleId)>,
    /// At most so many.
    pub limit: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for verdict in Verdict::ALL {
            assert_eq!(Verdict::parse(verdict.as_str()), Some(*verdict));
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.as_str());
        }
        for cause in [Cause::Due, Cause::CatchUp, Cause::Manual] {
            assert_eq!(Cause::parse(cause.as_str()), Some(cause));
        }
    }
}
