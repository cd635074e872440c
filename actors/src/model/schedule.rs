//! Work that is asked for at set times, and the account of each time.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::agent::Access;
use super::code::Code;
use super::execution::Outcome;
use super::id::{AgentId, ExecutionId, IdError, PrincipalId};
use super::timetable::Timetable;

/// A schedule's id: 1 to 64 of the characters `A-Z a-z 0-9 _ -`, so that it fits in a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ScheduleId(String);

impl ScheduleId {
    /// Checks a text and takes it as an id.
    ///
    /// # Errors
    /// When the text is empty, longer than 64 bytes, or has another character.
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        AgentId::new(text).map(|id| Self(id.as_str().to_owned())) // The same characters.
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ScheduleId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        Self::new(text)
    }
}

impl fmt::Display for ScheduleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What becomes of an occurrence whose time passed while nobody looked: the service was down, the
/// machine slept, or its clock was set forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "policy")]
pub enum Missed {
    /// It is noted as missed.
    Skip,
    /// The latest of those within the window is made up for; it stands for the others.
    Once {
        /// How late it may be.
        window: Duration,
    },
    /// Each of those within the window is made up for, but no more than `max`, the latest of them.
    All {
        /// How many.
        max: u32,
        /// How late they may be.
        window: Duration,
    },
}

impl Default for Missed {
    fn default() -> Self {
        Self::Once { window: Duration::from_secs(3600) }
    }
}

impl Missed {
    /// How late an occurrence may be and still be made up for.
    #[must_use]
    pub const fn window(self) -> Duration {
        match self {
            Self::Skip => Duration::ZERO,
            Self::Once { window } | Self::All { window, .. } => window,
        }
    }
}

/// What becomes of an occurrence while the one before it is still worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It is noted as skipped.
    Skip,
    /// It waits for the end of the one before.
    Queue,
    /// The one before is called off; it begins when that has ended.
    CancelPrevious,
    /// It is asked for beside the other.
    Allow,
}

impl Overlap {
    /// What is right where nobody says: what changes things is not heaped up, what only reads is
    /// not lost, and all that is to be made up for must be able to wait.
    #[must_use]
    pub const fn usual(missed: Missed, access: Access) -> Self {
        match (missed, access) {
            (Missed::All { .. }, _) | (_, Access::ReadOnly) => Self::Queue,
            (_, Access::ReadWrite) => Self::Skip,
        }
    }

    /// Whether it loses what `missed` makes up for.
    #[must_use]
    pub const fn loses(self, missed: Missed) -> bool {
        matches!(missed, Missed::All { .. }) && matches!(self, Self::Skip | Self::CancelPrevious)
    }

    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::CancelPrevious => "cancel_previous",
            Self::Allow => "allow",
        }
    }
}

/// A schedule as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleSpec {
    /// Its id.
    pub id: ScheduleId,
    /// Its name, which no other schedule has.
    pub name: String,
    /// The agent that is asked.
    pub agent: AgentId,
    /// When.
    #[serde(flatten)]
    pub timetable: Timetable,
    /// What is said: a template, in which `{{ planned }}` and the like have values.
    pub input: String,
    /// Parameters of the request.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// What becomes of times that nobody saw.
    pub missed: Missed,
    /// What becomes of times at which it is still busy.
    pub overlap: Overlap,
    /// By how much each occurrence is put off at most, by a measure of its own that never changes.
    #[serde(default)]
    pub jitter: Duration,
    /// How long after it was due its work may go on; then it is called off.
    #[serde(default)]
    pub deadline: Option<Duration>,
    /// Failures in a row that are told as an alert; 0 is never.
    pub alert_after: u32,
    /// Whether it is due at all.
    pub enabled: bool,
}

/// A schedule of the configuration, and the name of whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configured {
    /// What it says.
    pub spec: ScheduleSpec,
    /// The name of a principal.
    pub owner: String,
}

/// Where a schedule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The configuration, which alone can change what it says.
    Configuration,
    /// A caller of the API.
    Api,
}

/// A schedule, who it belongs to, and how far it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// What it says.
    pub spec: ScheduleSpec,
    /// Whose executions its occurrences are.
    pub owner: PrincipalId,
    /// Where it comes from.
    pub origin: Origin,
    /// Whether somebody holds it back.
    pub paused: bool,
    /// Up to when each of its times is decided.
    pub cursor: DateTime<Utc>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub changed_at: DateTime<Utc>,
}

impl Schedule {
    /// Whether it is due at its times.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.spec.enabled && !self.paused
    }
}

/// What made an occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

/// Where a schedule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It is written, and switched off.
    Created,
    /// It waits for its time.
    Active,
    /// Work that it asked for is not over.
    Executing,
    /// Somebody holds it back.
    Paused,
}

/// A schedule as it is at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleView {
    /// What it says, whose it is, how far it has come.
    pub schedule: Schedule,
    /// Where it is.
    pub standing: Standing,
    /// When it is due next.
    pub next: Option<DateTime<Utc>>,
    /// The executions of it that have not ended.
    pub working: Vec<ExecutionId>,
    /// Its occurrences that wait.
    pub waiting: usize,
    /// Failures in a row, as far as they are known since the start.
    pub streak: u32,
}

/// Which occurrences to list, the latest time first.
#[derive(Debug, Clone, Default)]
pub struct OccurrenceQuery {
    /// Of this schedule only.
    pub schedule: Option<ScheduleId>,
    /// Of this owner only.
    pub owner: Option<PrincipalId>,
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
