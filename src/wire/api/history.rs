//! Shapes of one execution: what was asked, each attempt, its events, its texts in parts.

use std::collections::BTreeMap;

use algonius_actors::model::agent::Access;
use algonius_actors::model::event::{Channel, Event};
use algonius_actors::model::execution::{Stamp, State};
use algonius_actors::model::queue::Queued;
use algonius_actors::model::request::Trigger;
use algonius_actors::model::usage::{Spent, Usage};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::{ExecutionEntry, Trouble};

/// An execution with all that is known of it. Texts are redacted, and cut where they are very long.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionDetail {
    /// What a list has.
    #[serde(flatten)]
    pub entry: ExecutionEntry,
    /// The caller's id of the message.
    pub message_id: String,
    /// Who asked: the id.
    pub owner: String,
    /// Who asked: the name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub caller: Option<String>,
    /// The trace that it belongs to: 32 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trace_id: Option<String>,
    /// What made it, with all that is known of that.
    pub made_by: Trigger,
    /// Whether its agent changes things.
    pub access: Access,
    /// Whether it can be asked once more from its record.
    pub replayable: bool,
    /// What was asked.
    pub input: String,
    /// Values for the agent's templates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub parameters: BTreeMap<String, String>,
    /// The folder that the caller chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// The variables that the caller set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub environment: BTreeMap<String, String>,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Standard error of the last attempt.
    pub stderr: String,
    /// Which of `input`, `output` and `stderr` are longer than they are shown here.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cut: Vec<String>,
    /// Each attempt, the first one first.
    #[serde(default)]
    pub attempts: Vec<AttemptEntry>,
    /// Every text, with its length; it is read in parts.
    #[serde(default)]
    pub texts: Vec<TextEntry>,
    /// What happened, the first thousand.
    pub events: Vec<Event>,
    /// The number of the last event here, where there are more.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub events_after: Option<u64>,
}

/// One attempt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptEntry {
    /// Which.
    #[serde(flatten)]
    pub stamp: Stamp,
    /// When it was told to start.
    pub started_at: DateTime<Utc>,
    /// When its work was over.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended_at: Option<DateTime<Utc>>,
    /// The state in which it ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended_in: Option<State>,
    /// Its process, which may have ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pid: Option<u32>,
    /// The exit code; known of the last attempt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    /// Why it did not work.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<Trouble>,
    /// What it took of the machine, as it was last looked at.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Usage>,
    /// What it took until its end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub spent: Option<Spent>,
    /// What the agent itself counted, such as `input_tokens`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub used: BTreeMap<String, Number>,
}

/// One text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextEntry {
    /// The attempt that wrote it.
    #[serde(flatten)]
    pub stamp: Stamp,
    /// Which.
    pub channel: Channel,
    /// Its length so far.
    pub bytes: u64,
}

/// A part of a text, of whole characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextPart {
    /// Of which text, and how long that is so far.
    #[serde(flatten)]
    pub of: TextEntry,
    /// Its first byte.
    pub from: u64,
    /// The byte after its last: where the next part begins.
    pub to: u64,
    /// The part.
    pub text: String,
}

/// Events of an execution, in order.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventList {
    /// What happened.
    pub events: Vec<Event>,
    /// The number of the last one here, or the one that was named: pass it as `after`.
    pub after: u64,
    /// Whether there are more at present.
    pub more: bool,
    /// Where the execution is.
    pub state: State,
    /// Its latest attempt.
    #[serde(flatten)]
    pub stamp: Stamp,
    /// Whether it has ended.
    pub ended: bool,
}

/// One execution of an export.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportLine {
    /// What a list has.
    #[serde(flatten)]
    pub entry: ExecutionEntry,
    /// Who asked: the id.
    pub owner: String,
    /// The caller's id of the message.
    pub message_id: String,
    /// Values for the agent's templates.
    pub parameters: BTreeMap<String, String>,
    /// What made it, with all that is known of that.
    pub made_by: Trigger,
    /// What happened.
    pub events: Vec<Event>,
    /// Every text, where texts were asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub texts: Option<Vec<ExportText>>,
}

/// One text of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExportText {
    /// Of which text, and how long it is.
    #[serde(flatten)]
    pub of: TextEntry,
    /// The text.
    pub text: String,
}

/// What an execution waits for, as it is told while it is followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// Its place and why it waits.
    pub queue: Queued,
    /// The same in words.
    pub message: String,
}
