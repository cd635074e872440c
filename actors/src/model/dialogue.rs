//! How a program is spoken to while it runs, over a standard input that stays open.

use std::collections::BTreeMap;
use std::time::Duration;

use regex::Regex;
use serde_json::{Map, Value};

/// What is said to a program, and how its answer is known to be over.
///
/// In each `Value` the texts are templates: what they are filled in with stays within its text.
#[derive(Debug, Clone, PartialEq)]
pub enum Dialogue {
    /// Calls of JSON-RPC 2.0.
    Rpc(Box<RpcSpec>),
    /// One message and one answer after the other.
    Turns(Box<TurnSpec>),
}

/// How messages of JSON-RPC are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// Each stands on a line.
    #[default]
    Lines,
    /// Each comes after a header that tells its length, as in the Language Server Protocol.
    ContentLength,
}

/// The calls of a program that speaks JSON-RPC.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcSpec {
    /// How messages are told apart.
    pub framing: Framing,
    /// The call before all others.
    pub initialize: Option<Call>,
    /// The notification that follows its answer.
    pub initialized: Option<Call>,
    /// The call that asks.
    pub ask: Call,
    /// The notification that calls a call off.
    pub cancel: Option<Call>,
    /// Where the answer stands in the result, as an RFC 6901 pointer.
    pub result: String,
    /// Where the program's own id of its session stands in a result.
    pub session: Option<String>,
    /// Where numbers of what was used stand in the result.
    pub usage: Option<String>,
    /// What notifications tell, by their methods. Others tell nothing.
    pub notices: BTreeMap<String, Notice>,
    /// Numbers of errors that may pass by themselves.
    pub transient_codes: Vec<i64>,
}

/// A call, or a notification.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Its method.
    pub method: String,
    /// A template of its parameters.
    pub params: Value,
}

/// What a notification tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it is.
    pub kind: NoticeKind,
    /// Where it stands in the parameters.
    pub pointer: String,
}

/// What a notification may tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// The answer goes on.
    Text,
    /// A word about the progress.
    Status,
    /// Numbers of what was used.
    Usage,
    /// The program's own id of its session.
    Session,
}

/// The turns of a program that takes one message after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnSpec {
    /// How a message is written.
    pub message: Utterance,
    /// How the end of an answer looks.
    pub end: TurnEnd,
    /// What lets the program break an answer off; without it, it is ended.
    pub interrupt: Option<Utterance>,
}

/// What is written to a program.
#[derive(Debug, Clone, PartialEq)]
pub enum Utterance {
    /// The template of a text.
    Text(String),
    /// The template of a JSON document, which is written on a line.
    Json(Value),
}

impl Utterance {
    /// The input on a line.
    pub const LINE: &str = "{{ input }}\n";

    /// The usual message.
    #[must_use]
    pub fn usual() -> Self {
        Self::Text(Self::LINE.to_owned())
    }

    /// Whether it takes a line and no more.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        matches!(self, Self::Text(text) if text == Self::LINE)
    }
}

/// How the end of an answer looks.
#[derive(Debug, Clone)]
pub enum TurnEnd {
    /// This line, which is no part of the answer.
    Line(String),
    /// A line that matches, which is no part of the answer.
    Regex(Regex),
    /// A line that is a JSON object with these members among others. It is read as any other.
    Json(Map<String, Value>),
}

impl PartialEq for TurnEnd {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Line(one), Self::Line(other)) => one == other,
            (Self::Regex(one), Self::Regex(other)) => one.as_str() == other.as_str(),
            (Self::Json(one), Self::Json(other)) => one == other,
            _ => false,
        }
    }
}

/// How programs are kept between the messages of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// How long one is kept after its last answer.
    pub idle: Duration,
    /// How many live at once; the one that is idle for longest goes first.
    pub most: usize,
}
