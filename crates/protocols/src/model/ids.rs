//! Ids of sessions and of requests.

use std::fmt;

use serde_json::Value;

/// Key of a session within its connection. The caller chooses it in [`crate::Command::Open`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey(pub u32);

/// Id that the agent gave to its request. Ids of the agent and ids of the client are separate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestId {
    /// Number.
    Number(i64),
    /// Text.
    Text(String),
}

impl RequestId {
    /// Returns the id in JSON, or `None` if JSON-RPC does not permit the value as an id.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::Text(text.clone())),
            other => other.as_i64().map(Self::Number),
        }
    }

    /// Returns the id as JSON.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Number(number) => Value::from(*number),
            Self::Text(text) => Value::from(text.as_str()),
        }
    }
}

/// Writes the id as JSON, so that `5` and `"5"` differ.
impl fmt::Display for RequestId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(out)
    }
}
