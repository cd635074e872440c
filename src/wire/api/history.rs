//! Shapes of one execution: its request, attempts, events and texts.

use std::collections::BTreeMap;

use algonius_actors::model::agent::Access;
use algonius_actors::model::agent::queue::Queued;
use algonius_actors::model::execution::event::{Event, TextChannel};
use algonius_actors::model::execution::request::Trigger;
use algonius_actors::model::execution::usage::{ResourceUsage, UsageReading};
use algonius_actors::model::execution::{AttemptId, ExecutionState};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::{ErrorBody, ExecutionEntry};

/// Execution with all recorded details. Texts are redacted, and very long texts are shortened.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionDetail {
    /// Entry of the execution as in a list.
    #[serde(flatten)]
    pub entry: ExecutionEntry,
    /// Id of the message, chosen by the caller.
    pub message_id: String,
    /// Id of the caller.
    pub owner: String,
    /// Name of the caller.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub caller: Option<String>,
    /// Id of the trace to which the execution belongs: 32 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trace_id: Option<String>,
    /// Source of the execution with its details.
    pub made_by: Trigger,
    /// Access of the agent to files.
    pub access: Access,
    /// True if the service can retry the execution from its record.
    pub replayable: bool,
    /// Text of the request.
    pub input: String,
    /// Values for the agent's templates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub parameters: BTreeMap<String, String>,
    /// Working directory that the caller chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// Environment variables that the caller set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub environment: BTreeMap<String, String>,
    /// Request of the agent to its caller while the execution waits for the answer: a text and, if the agent names
    /// one, the address of a page, each on its own lines.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request: Option<String>,
    /// Answer of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Number of bytes that are missing in the middle of an answer that is longer than the agent's limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output_dropped: Option<u64>,
    /// Standard error of the last attempt.
    pub stderr: String,
    /// Names of the shortened texts among `input`, `request`, `output` and `stderr`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cut: Vec<String>,
    /// Attempts of the execution, oldest first.
    #[serde(default)]
    pub attempts: Vec<AttemptEntry>,
    /// Texts of the execution with their lengths; the text endpoint returns their content.
    #[serde(default)]
    pub texts: Vec<TextEntry>,
    /// First events of the execution, at most 1000.
    pub events: Vec<Event>,
    /// Number of the last event in this document if the execution has more events.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub events_after: Option<u64>,
}

/// Attempt of an execution.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptEntry {
    /// Turn and attempt number.
    #[serde(flatten)]
    pub attempt_id: AttemptId,
    /// Time at which the attempt started.
    pub started_at: DateTime<Utc>,
    /// Time at which the work of the attempt ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended_at: Option<DateTime<Utc>>,
    /// State in which the attempt ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended_in: Option<ExecutionState>,
    /// Id of the process, which may have ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pid: Option<u32>,
    /// Exit code of the process; known only for the last attempt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    /// Error of the attempt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<ErrorBody>,
    /// Latest measurement of the resources that the attempt uses.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<UsageReading>,
    /// Resources that the attempt used until its end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub spent: Option<ResourceUsage>,
    /// Counters that the agent reported, such as `input_tokens`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub used: BTreeMap<String, Number>,
    /// Number of bytes that were not stored, for each text that is longer than the agent's limit.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub dropped: BTreeMap<String, u64>,
    /// Warnings of the execution, one sentence each; they do not change the outcome.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
}

/// Text of an execution with its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextEntry {
    /// Attempt that wrote the text.
    #[serde(flatten)]
    pub attempt_id: AttemptId,
    /// Channel of the text.
    pub channel: TextChannel,
    /// Current length of the text, in bytes.
    pub bytes: u64,
}

/// Part of a text, consisting of complete characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextPart {
    /// Text to which the part belongs, with its current length.
    #[serde(flatten)]
    pub entry: TextEntry,
    /// Position of the first byte of the part.
    pub from: u64,
    /// Position after the last byte of the part, at which the next part starts.
    pub to: u64,
    /// Content of the part.
    pub text: String,
}

/// Piece of a text of an execution, sent while the text grows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextUpdate {
    /// Attempt that wrote the text.
    #[serde(flatten)]
    pub attempt_id: AttemptId,
    /// Channel of the text.
    pub channel: TextChannel,
    /// Position of the first byte of the piece in the text. If it is 0, all earlier pieces of this text of the
    /// attempt are void.
    pub from: u64,
    /// Position after the last byte of the piece.
    pub to: u64,
    /// Content of the piece, consisting of complete characters.
    pub text: String,
}

/// Page of events of an execution, in order.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventList {
    /// Events on this page.
    pub events: Vec<Event>,
    /// Number of the last event on this page, or the requested number if the page is empty: pass it as `after` for
    /// the next page.
    pub after: u64,
    /// True if the execution has more events at present.
    pub more: bool,
    /// State of the execution.
    pub state: ExecutionState,
    /// Latest attempt.
    #[serde(flatten)]
    pub attempt_id: AttemptId,
    /// True if the execution has ended.
    pub ended: bool,
}

/// Execution of an export, one JSON document per line.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportLine {
    /// Entry of the execution as in a list.
    #[serde(flatten)]
    pub entry: ExecutionEntry,
    /// Id of the caller.
    pub owner: String,
    /// Id of the message, chosen by the caller.
    pub message_id: String,
    /// Values for the agent's templates.
    pub parameters: BTreeMap<String, String>,
    /// Source of the execution with its details.
    pub made_by: Trigger,
    /// Events of the execution.
    pub events: Vec<Event>,
    /// Texts of the execution, present only if requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub texts: Option<Vec<ExportText>>,
}

/// Text of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExportText {
    /// Channel, attempt and length of the text.
    #[serde(flatten)]
    pub entry: TextEntry,
    /// Content of the text.
    pub text: String,
}

/// Queue position of an execution in an event stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingPosition {
    /// Position and reason.
    pub queue: Queued,
    /// Position and reason as a sentence.
    pub message: String,
}
