//! Ids, one type each, so that the compiler rejects an id of another kind.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Pattern of an id in a path, for clients that validate ids themselves.
const ID_PATTERN: &str = "^[A-Za-z0-9_-]{1,64}$";

/// Error of a text that is not a valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an id: 1 to 64 of the characters A-Z a-z 0-9 _ -")]
pub struct IdError {
    /// Text as given.
    pub text: String,
}

/// Id of an agent: 1 to 64 of the characters `A-Z a-z 0-9 _ -`, so that it fits in a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct AgentId(String);

impl AgentId {
    /// Validates a text as an id.
    ///
    /// # Errors
    /// Returns an error if the text is empty, longer than 64 bytes, or contains another character.
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        let text = text.into();
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if (1..=64).contains(&text.len()) && text.bytes().all(is_allowed) {
            Ok(Self(text))
        } else {
            Err(IdError { text })
        }
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AgentId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        Self::new(text)
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for AgentId {
    fn schema_name() -> Cow<'static, str> {
        "AgentId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let description = "The id of an agent.";
        json_schema!({"type": "string", "pattern": ID_PATTERN, "description": description})
    }
}

/// Id of a schedule: 1 to 64 of the characters `A-Z a-z 0-9 _ -`, so that it fits in a path.
///
/// Copies of one id share the text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ScheduleId(Arc<str>);

impl ScheduleId {
    /// Validates a text as an id.
    ///
    /// # Errors
    /// Returns an error if the text is empty, longer than 64 bytes, or contains another character.
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        AgentId::new(text).map(|id| Self(id.as_str().into())) // Schedule ids use the same characters.
    }

    /// Returns the reserved id that no schedule has.
    pub(crate) fn reserved_id() -> Self {
        Self(Arc::default())
    }

    /// Returns the id as text.
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
        json_schema!({"type": "string", "pattern": ID_PATTERN, "description": description})
    }
}

/// Id of an execution: a version 7 UUID, so that ids sort by the time of acceptance.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct ExecutionId(pub Uuid);

impl ExecutionId {
    /// Creates a new id. Later ids sort after earlier ids of the same process.
    #[must_use]
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// Parses an id as written by a caller.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::parse_str(text).ok().map(Self)
    }

    /// Returns the time of acceptance in milliseconds precision; `None` for an id without a timestamp.
    #[must_use]
    pub fn accepted_at(self) -> Option<DateTime<Utc>> {
        let (seconds, nanos) = self.0.get_timestamp()?.to_unix();
        DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanos)
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Id of the owner of a row: a person or a program that keeps its identity when its tokens change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PrincipalId(pub Uuid);

impl fmt::Display for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Id of a conversation, which groups executions; given by the caller or generated by the service.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContextId(pub String);

impl ContextId {
    /// Creates a new id.
    #[must_use]
    pub fn generate() -> Self {
        Self(Uuid::now_v7().to_string())
    }
}

/// Message id of the caller; the same id from the same caller identifies the same request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MessageId(pub String);

/// Id of an attempt within an execution: its turn and its try. A report with an outdated id has no effect.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct AttemptId {
    /// Number of the prompt that the attempt answers, from 1.
    pub turn: u32,
    /// Number of the try at that prompt, from 1.
    pub attempt: u32,
}

impl AttemptId {
    /// First try of the first turn.
    pub const FIRST: Self = Self { turn: 1, attempt: 1 };

    /// Returns the next try of the same turn.
    #[must_use]
    pub const fn next_attempt(self) -> Self {
        Self { turn: self.turn, attempt: self.attempt + 1 }
    }

    /// Returns the first try of the next turn.
    #[must_use]
    pub const fn next_turn(self) -> Self {
        Self { turn: self.turn + 1, attempt: 1 }
    }
}
