//! Where to tell about an execution, and how far the telling has come.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::exposure::Version;
use super::id::{ExecutionId, PrincipalId};

/// A text that must not be shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    /// Hides the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// How a push proves who sends it: `Authorization: <scheme> <credentials>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushCredentials {
    /// The scheme.
    pub scheme: String,
    /// What follows it; without it no header is sent.
    pub credentials: Option<Secret>,
}

/// Where to tell about an execution. Its address is a secret too: many hold a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushTarget {
    /// Its id within the execution.
    pub id: String,
    /// The execution.
    pub execution: ExecutionId,
    /// Who registered it.
    pub owner: PrincipalId,
    /// In which version.
    pub version: Version,
    /// This registration. Setting the same id again makes another.
    pub registration: Uuid,
    /// The address.
    pub url: Secret,
    /// Sent along, so that the receiver knows that it is meant.
    pub token: Option<Secret>,
    /// Sent along, so that the receiver knows who sends.
    pub authentication: Option<PushCredentials>,
    /// When it was registered.
    pub created_at: DateTime<Utc>,
}

/// Whether a target is still told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PushStage {
    /// It is.
    Open,
    /// It knows how the execution ended.
    Finished,
    /// It could not be reached for too long.
    GivenUp,
}

impl PushStage {
    /// The stored word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Finished => "finished",
            Self::GivenUp => "given-up",
        }
    }

    /// Reads the stored word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Open, Self::Finished, Self::GivenUp].into_iter().find(|it| it.as_str() == word)
    }
}

/// How far a target has been told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The number of the last event that it knows.
    pub delivered: u64,
    /// How often the next one has failed.
    pub failures: u32,
    /// Since when it fails.
    pub failing_since: Option<DateTime<Utc>>,
    /// When it may be told next.
    pub due: DateTime<Utc>,
    /// Whether it still is.
    pub stage: PushStage,
}

/// A target that there may be something to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The execution.
    pub execution: ExecutionId,
    /// The target's id within it.
    pub id: String,
    /// The registration that this is about.
    pub registration: Uuid,
    /// Whose it is.
    pub owner: PrincipalId,
    /// How far it has been told.
    pub standing: Standing,
    /// Whether the execution has ended, so that no event to tell will come.
    pub ended: bool,
}
