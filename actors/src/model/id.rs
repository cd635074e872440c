//! Names of things, one type each, so that one cannot be passed for another.

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What an id looks like that stands in a path, for those who check it themselves.
pub(super) const PATTERN: &str = "^[A-Za-z0-9_-]{1,64}$";

/// Why a text is not an agent's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not an id: 1 to 64 of the characters A-Z a-z 0-9 _ -")]
pub struct IdError {
    /// The text as given.
    pub given: String,
}

/// An agent's id: 1 to 64 of the characters `A-Z a-z 0-9 _ -`, so that it fits in a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct AgentId(String);

impl AgentId {
    /// Checks a text and takes it as an id.
    ///
    /// # Errors
    /// When the text is empty, longer than 64 bytes, or has another character.
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        let given = text.into();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if (1..=64).contains(&given.len()) && given.bytes().all(plain) {
            Ok(Self(given))
        } else {
            Err(IdError { given })
        }
    }

    /// The id as text.
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
        json_schema!({"type": "string", "pattern": PATTERN, "description": description})
    }
}

/// An execution's id: a version 7 UUID, so that ids sort by the time of acceptance.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct ExecutionId(pub Uuid);

impl ExecutionId {
    /// A new id. Later ids sort after earlier ones of the same process.
    #[must_use]
    pub fn fresh() -> Self {
        Self(Uuid::now_v7())
    }

    /// Reads an id as callers write it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::parse_str(text).ok().map(Self)
    }

    /// When it was accepted, to the millisecond; `None` for an id that tells no time.
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

/// Who owns a row: a person or program that keeps its identity when its tokens change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PrincipalId(pub Uuid);

impl fmt::Display for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Groups executions of one conversation; given by the caller or made here.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContextId(pub String);

impl ContextId {
    /// A new id.
    #[must_use]
    pub fn fresh() -> Self {
        Self(Uuid::now_v7().to_string())
    }
}

/// The caller's own id of its message; the same id from the same caller is the same request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MessageId(pub String);
