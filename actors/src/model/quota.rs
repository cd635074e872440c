//! What an agent does when the account behind it has used up what it may.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an agent goes about the quota of its account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaSpec {
    /// What of it is parked.
    pub parking: Parking,
    /// Under which credential it works.
    pub credential: Credential,
    /// Whether it begins nothing while its credential is known to be of no use.
    pub breaker: bool,
    /// How long nothing is begun after its credential was refused.
    pub refused: Duration,
}

impl Default for QuotaSpec {
    /// It parks, under a credential of its own, and leaves one that was refused alone for half an hour.
    fn default() -> Self {
        let (parking, credential) = (Parking::default(), Credential::default());
        Self { parking, credential, breaker: true, refused: Duration::from_secs(1800) }
    }
}

/// For how long and how often an execution may be parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parking {
    /// The longest wait; zero parks nothing.
    pub max: Duration,
    /// The first wait where nobody says for how long; it doubles each time. Zero parks nothing then.
    pub usual: Duration,
    /// How often in one turn.
    pub times: u32,
}

impl Default for Parking {
    /// Up to six hours, a quarter of an hour at first, eight times.
    fn default() -> Self {
        Self { max: Duration::from_secs(6 * 3600), usual: Duration::from_secs(900), times: 8 }
    }
}

/// By what agents are known to work under one account.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum Credential {
    /// Nobody knows: the agent has one of its own.
    #[default]
    Own,
    /// The configuration names it.
    Named(String),
    /// The digest of its secret variables. Agents with the same ones share it.
    Secret([u8; 32]),
}

impl fmt::Debug for Credential {
    /// Leaves the digest out: short secrets can be guessed back from one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("Own"),
            Self::Named(name) => f.debug_tuple("Named").field(name).finish(),
            Self::Secret(_) => f.write_str("Secret"),
        }
    }
}

/// The shown name of a credential: `key:1f2e3d4c`, `agent:helper`, or as the configuration names it.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct CredentialName(pub String);

impl fmt::Display for CredentialName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a credential is of no use for now. Published; words are only added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Its quota is used up.
    UsedUp,
    /// It is not accepted.
    Refused,
}

impl Cause {
    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UsedUp => "used-up",
            Self::Refused => "refused",
        }
    }
}

/// An execution that waits for the quota of its account; it holds nothing meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parked {
    /// Until when, as it was told or taken.
    pub until: DateTime<Utc>,
    /// The how manieth time in its turn, from 1.
    pub times: u32,
    /// After which attempt of the turn.
    pub attempt: u32,
}
