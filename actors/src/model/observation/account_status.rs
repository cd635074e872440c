//! Status of the accounts under which agents work.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::agent::quota::{CredentialName, DeferralCause};
use crate::model::id::AgentId;

/// Status of a credential that is temporarily unusable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CredentialStatus {
    /// Display name, which reveals nothing of the credential.
    pub name: CredentialName,
    /// Cause of the block.
    pub cause: DeferralCause,
    /// State of the circuit breaker: `open`: no execution starts; `half-open`: one execution may probe the credential;
    /// `tried`: one execution probes it.
    pub state: String,
    /// Start time of the block.
    pub since: DateTime<Utc>,
    /// End time of the block.
    pub until: DateTime<Utc>,
}

/// State of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AccountState {
    /// The account is usable, as far as known.
    Available,
    /// No execution starts under the account.
    Blocked,
    /// One execution probes the account, or may do so.
    Probing,
}

/// Account under which agents work: a credential that agents share, or that one agent has for itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccountStatus {
    /// Display name, which reveals nothing of the credential.
    pub account: CredentialName,
    /// Agents that work under the account.
    pub agents: Vec<AgentId>,
    /// State of the account.
    pub state: AccountState,
    /// Cause of the present or the latest block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<DeferralCause>,
    /// Start time of the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
    /// End time of the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
}
