//! What happened in an execution: a numbered stream, and the text it refers to.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::execution::{Move, Stamp};
use super::failure::Failure;

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
}

impl Channel {
    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Answer => "answer",
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
    /// The answer, or a part of it, is there.
    Artifact {
        /// Its id within the execution.
        id: String,
        /// Its name for people.
        name: String,
        /// Where its text stands.
        text: Span,
    },
    /// The stream was longer than allowed; the rest was drained and counted.
    Truncated {
        /// Which text.
        channel: Channel,
        /// Bytes that were not kept.
        dropped: u64,
    },
    /// Something worth knowing that changed nothing.
    Warned {
        /// One clause.
        message: String,
    },
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
