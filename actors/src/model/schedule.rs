//! Work that is asked for at set times, and the account of each time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::agent::Access;
use super::id::{AgentId, ExecutionId, IdError, PATTERN, PrincipalId};
use super::timetable::Timetable;

/// A schedule's id: 1 to 64 of the characters `A-Z a-z 0-9 _ -`, so that it fits in a path.
///
/// Copies of one id share its text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ScheduleId(Arc<str>);

impl ScheduleId {
    /// Checks a text and takes it as an id.
    ///
    /// # Errors
    /// When the text is empty, longer than 64 bytes, or has another character.
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        AgentId::new(text).map(|id| Self(id.as_str().into())) // The same characters.
    }

    /// The id of no schedule.
    pub(crate) fn blank() -> Self {
        Self(Arc::default())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<ScheduleId> for String {
    fn from(id: ScheduleId) -> Self {
        id.as_str().to_owned()
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

impl JsonSchema for ScheduleId {
    fn schema_name() -> Cow<'static, str> {
        "ScheduleId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let description = "The id of a schedule.";
        json_schema!({"type": "string", "pattern": PATTERN, "description": description})
    }
}

/// What becomes of an occurrence whose time passed while nobody looked: the service was down, the
/// machine slept, or its clock was set forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ScheduleOrigin")]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The configuration, which alone can change what it says.
    Configuration,
    /// A caller of the API.
    Api,
}

/// A schedule, who it belongs to, and how far it has come.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

/// Where a schedule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ScheduleStanding")]
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
