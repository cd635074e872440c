//! What happened in an execution: a numbered stream, and the text it refers to.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::content::Piece;
use super::execution::{Move, Stamp};
use super::failure::Failure;
use super::usage::{Spent, Usage};

/// Which text of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// A past fact. Stored as JSON, so variants and fields are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its number in the execution, from 1, without gaps.
    pub number: u64,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// What happened.
    pub fact: Fact,
}
