//! What happened in an execution: a numbered stream, and the text it refers to.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::budget::Charge;
use super::content::Piece;
use super::execution::{Move, Stamp};
use super::failure::Failure;
use super::quota::Parked;
use super::usage::{Spent, Usage};

/// Which text of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// What was asked, redacted.
    Input,
    /// The program's standard output.
    Stdout,
    /// The program's standard error.
    Stderr,
    /// The answer, where it is not standard output itself.
    Answer,
    /// Parts of what the agent said and made.
    Parts,
}

impl Channel {
    /// Every channel.
    pub const ALL: &[Self] = &[Self::Input, Self::Stdout, Self::Stderr, Self::Answer, Self::Parts];

    /// Reads the published word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|channel| channel.as_str() == word)
    }

    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Answer => "answer",
            Self::Parts => "parts",
        }
    }
}

/// The longest text of one chunk, in bytes.
pub const CHUNK: usize = 64 * 1024;

/// A piece of redacted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The attempt that wrote it.
    pub stamp: Stamp,
    /// Which text it continues.
    pub channel: Channel,
    /// Its number within that text, from 0.
    pub number: u32,
    /// Where it starts in that text, in bytes of redacted text.
    pub offset: u64,
    /// At most [`CHUNK`] bytes.
    pub text: String,
}

/// A range of redacted text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// The attempt that wrote it.
    pub stamp: Stamp,
    /// Which text.
    pub channel: Channel,
    /// First byte.
    pub from: u64,
    /// The byte after the last.
    pub to: u64,
}

/// The id and the name of the artifact that is the answer's text.
pub const ANSWER: &str = "answer";

/// Who says something, and on which occasion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Speaker {
    /// The caller: a message to the agent.
    Caller,
    /// The agent, about its progress.
    Agent,
    /// The agent asks, and waits for the answer.
    AgentAsks,
    /// The agent, about its end.
    AgentEnds,
    /// The agent answers by a word alone, without any artifact.
    AgentReplies,
}

/// A deadline of an attempt that ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Deadline")]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// How long it may run.
    Run,
    /// How long it may be silent.
    Idle,
}

impl Limit {
    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Idle => "idle",
        }
    }
}

/// What an agent does on its way to the answer. Of its words there are none here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    /// It thinks.
    Thinking,
    /// It uses a tool, or has used it.
    ToolCall {
        /// The agent's id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The name of the tool.
        tool: String,
        /// How far it is.
        stage: Stage,
    },
    /// It has changed a file.
    FileChange {
        /// Where, below the folder that it works in; elsewhere the name alone.
        path: String,
        /// How.
        change: Change,
    },
    /// It was not let use a tool.
    Denied {
        /// The name of the tool.
        tool: String,
    },
}

/// How far the use of a tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// It has begun.
    Started,
    /// It went well.
    Completed,
    /// It did not.
    Failed,
}

/// How a file was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It is new.
    Created,
    /// It has other content.
    Modified,
    /// It is gone.
    Deleted,
}

/// A past fact. Stored as JSON, so variants and fields are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fact {
    /// A state was left for another.
    Moved(Move),
    /// A process lives.
    Spawned {
        /// Its process id.
        pid: u32,
    },
    /// An attempt failed.
    AttemptFailed(Failure),
    /// It waits for the quota of its account, and holds nothing meanwhile.
    Parked(Parked),
    /// Somebody said something.
    Said {
        /// Who.
        speaker: Speaker,
        /// The id of the message.
        message: String,
        /// What.
        pieces: Vec<Piece>,
    },
    /// Something was made, or a piece of it.
    Artifact {
        /// Its id within the execution.
        id: String,
        /// Its name for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// What it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// What it is made of.
        pieces: Vec<Piece>,
        /// Whether the pieces follow those that came before under this id.
        append: bool,
        /// Whether nothing more of it will come.
        last: bool,
    },
    /// The agent counted what it used.
    Used {
        /// Numbers by name, such as `input_tokens`.
        numbers: BTreeMap<String, Number>,
        /// Whether they are all that was counted so far, and not only what is new.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cumulative: bool,
    },
    /// So much was used up, and counts on this day.
    Charged {
        /// The day, in the zone of the agent.
        day: NaiveDate,
        /// How much.
        charge: Charge,
    },
    /// The agent did something on its way.
    Stepped {
        /// What.
        step: Step,
    },
    /// The agent said why it stopped.
    Stopped {
        /// A word such as `end_turn`.
        reason: String,
    },
    /// It runs, and takes so much of the machine.
    Heartbeat(Usage),
    /// The program has ended, and took so much.
    Spent(Spent),
    /// The agent named its own session.
    Session {
        /// The agent's id of it.
        id: String,
    },
    /// The stream was longer than allowed: what stands between its ends was drained and counted.
    Truncated {
        /// Which text.
        channel: Channel,
        /// Bytes that were not kept.
        dropped: u64,
    },
    /// A deadline is near.
    Expiring {
        /// Which.
        limit: Limit,
        /// When it will pass, unless a sign of life comes where that is what is missing.
        ends_at: DateTime<Utc>,
        /// One clause.
        message: String,
    },
    /// The program did not go on with the conversation, of which there was more.
    Discontinued {
        /// One clause.
        message: String,
    },
    /// The work did not pass the command that looks at it, which wrote this: the last of it, redacted.
    Checked {
        /// To its standard output.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stdout: String,
        /// To its standard error.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stderr: String,
    },
    /// Something worth knowing that changed nothing.
    Warned {
        /// One clause.
        message: String,
    },
}

impl Fact {
    /// The whole answer, at once.
    #[must_use]
    pub fn answer(text: Piece) -> Self {
        let (id, name) = (ANSWER.to_owned(), Some(ANSWER.to_owned()));
        let pieces = vec![text];
        Self::Artifact { id, name, description: None, pieces, append: false, last: true }
    }
}

/// A fact with its place in the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its number in the execution, from 1, without gaps.
    pub number: u64,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// What happened.
    pub fact: Fact,
}
