//! Shapes of `/api/v1/schedules`.

use std::collections::BTreeMap;
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::Outcome;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::occurrence::{Cause, Occurrence, Verdict};
use algonius_actors::model::schedule::{
    Missed, Origin, Overlap, ScheduleId, ScheduleSpec, Standing,
};
use algonius_actors::model::statistics::Statistics;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::whole;

/// The longest span of time that a caller may set, in seconds: a week.
pub const LONGEST: u64 = 7 * 86_400;
/// The most missed times that are made up for.
pub const MOST_MISSED: u32 = 1000;
/// The most times that are told at once.
pub const MOST_TIMES: u32 = 1000;

/// What becomes of times that nobody saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MissedWord {
    /// They are noted.
    Skip,
    /// One is made up for.
    Once,
    /// Each is made up for.
    All,
}

/// A schedule as a caller writes it. Spans of time are seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScheduleBody {
    /// Its id.
    #[schemars(with = "ScheduleId")]
    pub id: String,
    /// Its name; its id where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub name: Option<String>,
    /// The agent that is asked.
    #[schemars(with = "AgentId")]
    pub agent: String,
    /// When: a cron expression.
    #[schemars(length(min = 1))]
    pub cron: String,
    /// Its zone; that of the service where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub timezone: Option<String>,
    /// What is said: a template. It is not blank.
    #[schemars(regex(pattern = r"\S"))]
    pub input: String,
    /// Parameters.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// What becomes of times that nobody saw; `once` where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<MissedWord>,
    /// How late such a time may be; an hour where nothing is said, a week at most.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::maybe")]
    #[schemars(range(max = LONGEST))]
    pub missed_window: Option<u64>,
    /// How many such times are made up for, with `all`; 10 where nothing is said, 1000 at most.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::maybe")]
    #[schemars(range(min = 1, max = MOST_MISSED))]
    pub missed_max: Option<u32>,
    /// What becomes of times at which it is still busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// By how much it is put off at most.
    #[serde(default, deserialize_with = "whole::number")]
    #[schemars(range(max = LONGEST))]
    pub jitter: u64,
    /// How long after it was due its work may go on.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::maybe")]
    #[schemars(range(max = LONGEST))]
    pub deadline: Option<u64>,
    /// Failures in a row that are told as an alert; 3 where nothing is said, 0 is never.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::maybe")]
    #[schemars(range(max = u32::MAX))]
    pub alert_after: Option<u32>,
    /// Whether it is due at all.
    #[serde(default = "yes")]
    pub enabled: bool,
}

const fn yes() -> bool {
    true
}

impl ScheduleBody {
    /// How a schedule would be written.
    #[must_use]
    pub fn of(spec: &ScheduleSpec) -> Self {
        let (missed, window, max) = match spec.missed {
            Missed::Skip => (MissedWord::Skip, None, None),
            Missed::Once { window } => (MissedWord::Once, Some(window), None),
            Missed::All { max, window } => (MissedWord::All, Some(window), Some(max)),
        };
        Self {
            id: spec.id.to_string(),
            name: Some(spec.name.clone()),
            agent: spec.agent.to_string(),
            cron: spec.timetable.text().to_owned(),
            timezone: Some(spec.timetable.zone().name().to_owned()),
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

    /// What becomes of times that nobody saw.
    #[must_use]
    pub fn missed(&self) -> Missed {
        let window = Duration::from_secs(self.missed_window.unwrap_or(3600));
        match self.missed.unwrap_or(MissedWord::Once) {
            MissedWord::Skip => Missed::Skip,
            MissedWord::Once => Missed::Once { window },
            MissedWord::All => Missed::All { max: self.missed_max.unwrap_or(10), window },
        }
    }
}

/// A schedule in a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleEntry {
    /// What it says.
    #[serde(flatten)]
    pub body: ScheduleBody,
    /// Whose it is.
    pub owner: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Where it is.
    pub standing: Standing,
    /// When it is due next.
    pub next: Option<DateTime<Utc>>,
    /// The executions of it that have not ended.
    pub working: Vec<String>,
    /// Its times that wait.
    pub waiting: usize,
    /// Failures in a row, as far as they are known since the start.
    pub failures_in_a_row: u32,
    /// Whether these are so many that they are told as an alert.
    pub alert: bool,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub changed_at: DateTime<Utc>,
}

/// A page of schedules.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleList {
    /// The schedules.
    pub schedules: Vec<ScheduleEntry>,
    /// Where the next page begins, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A schedule with all that is known of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleDetail {
    /// The schedule.
    #[serde(flatten)]
    pub entry: ScheduleEntry,
    /// When it is due, in words.
    pub words: String,
    /// Its next times.
    pub upcoming: Vec<Upcoming>,
    /// How it did in the last thirty days.
    pub statistics: Statistics,
}

/// A time to come.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Upcoming {
    /// The time.
    pub planned: DateTime<Utc>,
    /// The time in the schedule's zone.
    pub local: String,
    /// When it will be asked for, by its jitter.
    pub due: DateTime<Utc>,
}

/// What is to be explained.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewBody {
    /// A cron expression.
    #[schemars(length(min = 1))]
    pub cron: String,
    /// Its zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub timezone: Option<String>,
    /// From when on; now where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<DateTime<Utc>>,
    /// How many times; 10 where nothing is said, 1000 at most.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::maybe")]
    #[schemars(range(min = 1, max = MOST_TIMES))]
    pub count: Option<u32>,
}

/// When something is due.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Preview {
    /// In words.
    pub words: String,
    /// The next times.
    pub upcoming: Vec<Upcoming>,
}

/// What became of a time.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OccurrenceEntry {
    /// The schedule.
    pub schedule: String,
    /// The time.
    pub planned: DateTime<Utc>,
    /// When it was to be asked for.
    pub due: DateTime<Utc>,
    /// What made it.
    pub cause: Cause,
    /// What was decided.
    pub verdict: Verdict,
    /// Why, where it is not plain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many times it stands for.
    pub times: u32,
    /// When that was decided.
    pub decided_at: DateTime<Utc>,
    /// When it was taken.
    pub fired_at: Option<DateTime<Utc>>,
    /// By how many milliseconds that was later than it was due.
    pub deviation_ms: Option<i64>,
    /// The execution.
    pub execution: Option<String>,
    /// How that ended.
    pub outcome: Option<Outcome>,
    /// Why it did not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
}

impl From<&Occurrence> for OccurrenceEntry {
    fn from(it: &Occurrence) -> Self {
        Self {
            schedule: it.schedule.to_string(),
            planned: it.planned,
            due: it.due,
            cause: it.cause,
            verdict: it.verdict,
            reason: it.reason.clone(),
            times: it.times,
            decided_at: it.decided_at,
            fired_at: it.fired_at,
            deviation_ms: it.deviation().map(|late| late.num_milliseconds()),
            execution: it.execution.map(|id| id.to_string()),
            outcome: it.ending.map(|ending| ending.outcome),
            code: it.ending.and_then(|ending| ending.code),
            ended_at: it.ending.map(|ending| ending.at),
        }
    }
}

/// What became of times, the latest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct OccurrenceList {
    /// The occurrences.
    pub occurrences: Vec<OccurrenceEntry>,
    /// What `before` must be for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<DateTime<Utc>>,
}
