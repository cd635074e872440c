//! Events of an execution: a numbered stream, and the text to which the events refer.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::content::StoredPart;
use super::hop::HopStage;
use super::message_details::{MessageDetails, StoredContent};
use super::step::{StepPlan, StepRecord};
pub use super::text_range::{TextChannel, TextRange};
use super::usage::{ResourceUsage, UsageReading};
use super::{AttemptId, StateChange};
use crate::model::agent::budget::Charge;
use crate::model::agent::quota::Deferral;
use crate::model::agent::team::TeamPlan;
use crate::model::failure::Failure;
use crate::model::interaction::{AnswerSource, InteractionId, InteractionState, QuestionKind};
use crate::model::permission::PermissionVerdict;

/// Longest text of one chunk, in bytes.
pub const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// Chunk of redacted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChunk {
    /// Attempt that wrote the text.
    pub attempt_id: AttemptId,
    /// Channel that the chunk continues.
    pub channel: TextChannel,
    /// Number of the chunk within the channel, from 0.
    pub number: u32,
    /// Offset of the chunk in the channel, in bytes of redacted text.
    pub offset: u64,
    /// Text of at most [`MAX_CHUNK_BYTES`] bytes.
    pub text: String,
}

/// Id and name of the artifact that contains the text of the answer.
pub const ANSWER_ARTIFACT_ID: &str = "answer";

/// Author of a message and its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MessageRole {
    /// Message of the caller to the agent.
    User,
    /// Message of the agent about its progress.
    AgentProgress,
    /// Question of the agent, which waits for the answer.
    AgentQuestion,
    /// Message of the agent about its outcome.
    AgentOutcome,
    /// Answer of the agent as a message, without an artifact.
    AgentAnswer,
}

/// Deadline that ends an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Deadline")]
#[serde(rename_all = "kebab-case")]
pub enum DeadlineKind {
    /// Longest run time.
    Run,
    /// Longest time without output.
    Idle,
}

impl DeadlineKind {
    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Idle => "idle",
        }
    }
}

/// Step of an agent on its way to the answer. A step contains no text of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum AgentStep {
    /// The agent reasons.
    Thinking,
    /// The agent calls a tool, or has called it.
    ToolCall {
        /// Id that the agent gave to the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Name of the tool.
        tool: String,
        /// Stage of the call.
        stage: ToolStage,
    },
    /// The agent changed a file.
    FileChange {
        /// Path of the file below the working folder; the file name alone for a file elsewhere.
        path: String,
        /// Kind of the change.
        change: FileChange,
    },
    /// The agent was denied a tool.
    Denied {
        /// Name of the tool.
        tool: String,
    },
}

/// Stage of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToolStage {
    /// The call has started.
    Started,
    /// The call succeeded.
    Completed,
    /// The call failed.
    Failed,
}

/// Kind of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileChange {
    /// The file was created.
    Created,
    /// The content of the file was modified.
    Modified,
    /// The file was deleted.
    Deleted,
}

/// Event of an execution. Stored as JSON, so kinds and fields are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum EventKind {
    /// The state changed.
    StateChanged(StateChange),
    /// A process started.
    ProcessStarted {
        /// Process id.
        pid: u32,
    },
    /// An attempt failed.
    AttemptFailed(Failure),
    /// The execution waits for the quota of its account and holds no resources meanwhile.
    Deferred(Deferral),
    /// The caller or the agent sent a message.
    Message {
        /// Author of the message and its purpose.
        speaker: MessageRole,
        /// Id of the message.
        message: String,
        /// Content of the message.
        pieces: Vec<StoredPart>,
        /// Metadata and references of a caller's message, unless they contain something that looks like a secret.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Box<MessageDetails>>,
    },
    /// The agent produced an artifact or a part of one.
    Artifact {
        /// Id of the artifact within the execution.
        id: String,
        /// Display name of the artifact.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Description of the artifact.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Content of the artifact.
        pieces: Vec<StoredPart>,
        /// True if the pieces follow those sent earlier under this id.
        append: bool,
        /// True if these are the last pieces of the artifact.
        last: bool,
    },
    /// The agent reported its usage.
    UsageReported {
        /// Counters by name, such as `input_tokens`.
        counters: BTreeMap<String, Number>,
        /// True if the counters are totals so far; false if they only count what is new.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cumulative: bool,
    },
    /// Used amounts were charged to the budget of a day.
    BudgetCharged {
        /// Day in the time zone of the agent.
        day: NaiveDate,
        /// Charged amounts.
        charge: Charge,
    },
    /// The agent took a step on its way to the answer.
    Step {
        /// Step of the agent.
        step: AgentStep,
    },
    /// The agent reported why it stopped.
    Stopped {
        /// Reason as a word, such as `end_turn`.
        reason: String,
    },
    /// The process runs, with this resource usage.
    Heartbeat(UsageReading),
    /// The program has ended, with this resource usage.
    ResourceUsage(ResourceUsage),
    /// The agent reported the id of its session.
    Session {
        /// Session id of the agent.
        id: String,
    },
    /// The output was longer than allowed: the text between its start and its end was drained and counted.
    OutputTruncated {
        /// Channel of the text.
        channel: TextChannel,
        /// Bytes that were dropped.
        dropped: u64,
    },
    /// A deadline is near.
    DeadlineApproaching {
        /// Kind of the deadline.
        limit: DeadlineKind,
        /// Time of the deadline; output of the program postpones an idle deadline.
        ends_at: DateTime<Utc>,
        /// Explanation in one clause.
        message: String,
    },
    /// The program did not resume its session although the conversation has earlier messages.
    SessionLost {
        /// Explanation in one clause.
        message: String,
    },
    /// The check command rejected the result and wrote this output: its last part, redacted.
    CheckOutput {
        /// Standard output of the check command.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stdout: String,
        /// Standard error of the check command.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stderr: String,
    },
    /// A line of the program's output should have been an event and is none. The output channel keeps the line.
    MalformedLine {
        /// Number of the line in the output of the attempt, from 1; 0 for a message that is not a line.
        line: u64,
        /// Reason why the line is not an event, as a clause that follows "the line".
        reason: String,
        /// Start of the line, redacted; empty if the line was too long to be read.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
    },
    /// The agent asks a person, and its process waits for the answer.
    InteractionOpened {
        /// Id of the interaction.
        interaction: InteractionId,
        /// Kind of the question.
        question: QuestionKind,
        /// Question in one sentence.
        message: String,
        /// Name of the tool, if the question is about a tool call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// Time at which the interaction expires.
        due_at: DateTime<Utc>,
    },
    /// An interaction has ended; the agent continues with the answer, or without one.
    InteractionClosed {
        /// Id of the interaction.
        interaction: InteractionId,
        /// State after the end.
        state: InteractionState,
        /// Word for the answer, such as `allow` or `deny`; `None` without an answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
        /// Origin of the answer or of the end.
        by: AnswerSource,
    },
    /// A rule decided about a tool call.
    PermissionDecided {
        /// Name of the tool.
        tool: String,
        /// Verdict of the rule: allow or deny.
        verdict: PermissionVerdict,
        /// Rule that decided.
        rule: String,
    },
    /// The run of a team began, with this plan.
    Planned {
        /// Plan of the team.
        plan: TeamPlan,
    },
    /// A hop of a team's run reached a stage.
    Hop {
        /// Number of the hop in the run, from 1.
        hop: u32,
        /// Stage with its facts.
        #[serde(flatten)]
        stage: HopStage,
    },
    /// The run of a cognitive agent began, with this plan.
    StepsPlanned {
        /// Plan of the run.
        plan: StepPlan,
    },
    /// The run of a cognitive agent took a step.
    RunStep {
        /// Step with its facts.
        #[serde(flatten)]
        row: StepRecord,
        /// Text of the step: a thought, arguments, a result or a reason.
        text: StoredPart,
    },
    /// A condition worth reporting that changed nothing.
    Warning {
        /// Explanation in one clause.
        message: String,
    },
}

impl EventKind {
    /// Returns the message of a caller.
    #[must_use]
    pub fn caller_message(message_id: String, content: StoredContent) -> Self {
        let StoredContent { parts: pieces, details } = content;
        Self::Message { speaker: MessageRole::User, message: message_id, pieces, details }
    }

    /// Returns a message without details, as agents send them.
    #[must_use]
    pub const fn message(speaker: MessageRole, message: String, pieces: Vec<StoredPart>) -> Self {
        Self::Message { speaker, message, pieces, details: None }
    }

    /// Creates the artifact event of a whole answer.
    #[must_use]
    pub fn answer_artifact(text: StoredPart) -> Self {
        let (id, name) = (ANSWER_ARTIFACT_ID.to_owned(), Some(ANSWER_ARTIFACT_ID.to_owned()));
        let pieces = vec![text];
        Self::Artifact { id, name, description: None, pieces, append: false, last: true }
    }
}

/// Event with its position in the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Number of the event in the execution, from 1, without gaps.
    pub number: u64,
    /// Time of the record.
    pub at: DateTime<Utc>,
    /// Kind of the event and its data.
    pub data: EventKind,
}
