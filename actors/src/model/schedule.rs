//! Schedules: work that is submitted at planned times.

pub mod occurrence;
pub mod recurrence;
pub mod statistics;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::recurrence::RecurrenceRule;
use super::agent::Access;
use super::id::{AgentId, ExecutionId, PrincipalId, ScheduleId};

/// Policy for an occurrence whose planned time passed unnoticed: the service was down, the machine slept, or the clock
/// was set forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "policy")]
pub enum MissedPolicy {
    /// The occurrence is recorded as missed.
    Skip,
    /// The latest missed occurrence within the window is caught up; it represents the others.
    Once {
        /// Longest delay of an occurrence that is caught up.
        window: Duration,
    },
    /// Each missed occurrence within the window is caught up, but at most the `max` latest ones.
    All {
        /// Maximum number of occurrences.
        max: u32,
        /// Longest delay of an occurrence that is caught up.
        window: Duration,
    },
}

impl Default for MissedPolicy {
    fn default() -> Self {
        Self::Once { window: Duration::from_secs(3600) }
    }
}

impl MissedPolicy {
    /// Returns the longest delay of an occurrence that is still caught up.
    #[must_use]
    pub const fn window(self) -> Duration {
        match self {
            Self::Skip => Duration::ZERO,
            Self::Once { window } | Self::All { window, .. } => window,
        }
    }
}

/// Policy for an occurrence while the previous run is still in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Overlap")]
pub enum OverlapPolicy {
    /// The occurrence is recorded as skipped.
    Skip,
    /// The occurrence waits for the end of the previous run.
    Queue,
    /// The previous run is cancelled; the occurrence starts when that run has ended.
    CancelPrevious,
    /// The occurrence runs in parallel with the previous run.
    Allow,
}

impl OverlapPolicy {
    /// Returns the default policy: modifying work does not pile up, reading work is not lost, and occurrences that must
    /// be caught up can wait.
    #[must_use]
    pub const fn default_for(missed: MissedPolicy, access: Access) -> Self {
        match (missed, access) {
            (MissedPolicy::All { .. }, _) | (_, Access::ReadOnly) => Self::Queue,
            (_, Access::ReadWrite) => Self::Skip,
        }
    }

    /// Returns true if the policy loses occurrences that `missed` catches up.
    #[must_use]
    pub const fn loses_occurrences(self, missed: MissedPolicy) -> bool {
        matches!(missed, MissedPolicy::All { .. })
            && matches!(self, Self::Skip | Self::CancelPrevious)
    }

    /// Returns the published name.
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

/// Specification of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScheduleSpec {
    /// Id of the schedule.
    pub id: ScheduleId,
    /// Name, unique among schedules.
    pub name: String,
    /// Agent that executes the work.
    pub agent: AgentId,
    /// Recurrence of the schedule.
    #[serde(flatten)]
    pub recurrence: RecurrenceRule,
    /// Input of the request: a template in which `{{ planned }}` and similar variables have values.
    pub input: String,
    /// Parameters of the request.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// Policy for occurrences whose planned time passed unnoticed.
    pub missed: MissedPolicy,
    /// Policy for occurrences while the previous run is in progress.
    pub overlap: OverlapPolicy,
    /// Maximum delay of each occurrence. The delay of an occurrence is deterministic.
    #[serde(default)]
    pub jitter: Duration,
    /// Time after the due time at which unfinished work is cancelled.
    #[serde(default)]
    pub deadline: Option<Duration>,
    /// Number of consecutive failures that raises an alert; 0 disables the alert.
    pub alert_after: u32,
    /// True if the schedule is enabled.
    pub enabled: bool,
}

/// Schedule from the configuration with the name of its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredSchedule {
    /// Specification of the schedule.
    pub spec: ScheduleSpec,
    /// Name of a principal.
    pub owner: String,
}

/// Origin of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ScheduleOrigin")]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleOrigin {
    /// The configuration; the specification can only be changed there.
    Configuration,
    /// A caller of the API.
    Api,
}

/// Form of a schedule's name, input and parameters.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub enum TextSealing {
    /// The texts are raw: redaction leaves them unchanged, or the scheduler holds them.
    #[default]
    Unsealed,
    /// The texts were not searched for secrets: an earlier release stored them.
    Unscanned,
    /// The texts of the schedule are redacted, and these bytes hold the raw ones.
    Sealed(Arc<[u8]>),
}

impl fmt::Debug for TextSealing {
    /// Writes sizes only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsealed => f.write_str("Plain"),
            Self::Unscanned => f.write_str("Unchecked"),
            Self::Sealed(bytes) => write!(f, "Sealed({} bytes)", bytes.len()),
        }
    }
}

/// Schedule with its owner and its progress.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// Specification. The ledger stores the texts redacted; the scheduler holds them raw.
    pub spec: ScheduleSpec,
    /// Sealed texts, in the ledger; in the scheduler only if no key opens them.
    pub text_sealing: TextSealing,
    /// Owner of the executions.
    pub owner: PrincipalId,
    /// Origin of the schedule.
    pub origin: ScheduleOrigin,
    /// True if the schedule is paused.
    pub paused: bool,
    /// Time up to which every occurrence is decided.
    pub decided_until: DateTime<Utc>,
    /// Creation time.
    pub created_at: DateTime<Utc>,
    /// Time of the latest change.
    pub changed_at: DateTime<Utc>,
}

impl Schedule {
    /// Returns true if the texts are redacted and their raw form is sealed. A loaded schedule has sealed texts only if
    /// no key opens them.
    #[must_use]
    pub const fn has_sealed_texts(&self) -> bool {
        matches!(self.text_sealing, TextSealing::Sealed(_))
    }

    /// Returns true if the schedule is enabled and not paused.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.spec.enabled && !self.paused
    }
}

/// State of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ScheduleStanding")]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleState {
    /// The schedule exists and is disabled.
    Created,
    /// The schedule waits for its next time.
    Active,
    /// An execution of the schedule has not ended.
    Executing,
    /// The schedule is paused.
    Paused,
}

/// Snapshot of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleView {
    /// Schedule with its owner and its progress.
    pub schedule: Schedule,
    /// State of the schedule.
    pub state: ScheduleState,
    /// Next due time.
    pub next_due_at: Option<DateTime<Utc>>,
    /// Executions of the schedule that have not ended.
    pub running_executions: Vec<ExecutionId>,
    /// Number of waiting occurrences.
    pub waiting_occurrence_count: usize,
    /// Number of consecutive failures, as far as known since the start of the service.
    pub failure_streak: u32,
    /// True if a part of the texts is shown redacted.
    pub is_redacted: bool,
}
