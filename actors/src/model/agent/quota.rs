//! Behaviour of an agent when the quota of its account is exhausted.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::queue::QueueReason;

/// Quota policy of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaSpec {
    /// Limits of the deferral.
    pub deferral_policy: DeferralPolicy,
    /// Credential of the agent's account.
    pub credential: QuotaCredential,
    /// True if the agent starts nothing while its credential is known to be unusable.
    pub has_breaker: bool,
    /// Pause after the provider rejected the credential.
    pub credential_refusal_pause: Duration,
}

impl Default for QuotaSpec {
    /// Defers executions, gives the agent its own credential, and pauses for half an hour after a rejection.
    fn default() -> Self {
        let (deferral_policy, credential) = (DeferralPolicy::default(), QuotaCredential::default());
        Self {
            deferral_policy,
            credential,
            has_breaker: true,
            credential_refusal_pause: Duration::from_secs(1800),
        }
    }
}

/// Limits of the deferral of an execution: duration and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeferralPolicy {
    /// Longest wait; zero disables deferral.
    pub max_wait: Duration,
    /// First wait if the provider states no time; it doubles each time. Zero disables deferral in that case.
    pub first_wait: Duration,
    /// Maximum number of deferrals within one turn.
    pub max_deferrals: u32,
}

impl Default for DeferralPolicy {
    /// Allows up to eight deferrals of at most six hours; the first wait is 15 minutes.
    fn default() -> Self {
        Self {
            max_wait: Duration::from_secs(6 * 3600),
            first_wait: Duration::from_secs(900),
            max_deferrals: 8,
        }
    }
}

/// Identity of the account under which an agent works. Agents with an equal value share the account.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum QuotaCredential {
    /// Unknown: the agent has its own account.
    #[default]
    Own,
    /// Name from the configuration.
    Named(String),
    /// Digest of the agent's secret variables. Agents with the same digest share the account.
    SecretDigest([u8; 32]),
}

impl fmt::Debug for QuotaCredential {
    /// Omits the digest: short secrets can be guessed from it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("Own"),
            Self::Named(name) => f.debug_tuple("Named").field(name).finish(),
            Self::SecretDigest(_) => f.write_str("Secret"),
        }
    }
}

/// Display name of a credential: `key:1f2e3d4c`, `agent:helper`, or the name from the configuration.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct CredentialName(pub String);

impl fmt::Display for CredentialName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reason why an execution waits or an account is blocked. Published; values are only added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "AccountCause")]
pub enum DeferralCause {
    /// The quota of the account is exhausted.
    #[default]
    QuotaExhausted,
    /// The credential was rejected.
    CredentialRefused,
    /// The provider limits the rate of requests.
    RateLimited,
    /// The provider is overloaded. This reason gives no information about an account and blocks none.
    Overloaded,
}

impl DeferralCause {
    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QuotaExhausted => "quota-exhausted",
            Self::CredentialRefused => "credential-refused",
            Self::RateLimited => "rate-limited",
            Self::Overloaded => "overloaded",
        }
    }

    /// Returns true if the cause passes without a change by the operator; such a wait does not count towards the queue
    /// timeout.
    #[must_use]
    pub const fn is_temporary(self) -> bool {
        !matches!(self, Self::CredentialRefused)
    }

    /// Returns true if the cause concerns all work under the account, and not one request alone.
    #[must_use]
    pub const fn blocks_account(self) -> bool {
        !matches!(self, Self::Overloaded)
    }

    /// Returns the reason that a waiting execution shows.
    #[must_use]
    pub const fn queue_reason(self) -> QueueReason {
        match self {
            Self::QuotaExhausted => QueueReason::QuotaExhausted,
            Self::CredentialRefused => QueueReason::CredentialRefused,
            Self::RateLimited => QueueReason::RateLimited,
            Self::Overloaded => QueueReason::Overloaded,
        }
    }
}

/// Deferral of an execution that waits for the quota of its account. The execution holds no resources meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deferral {
    /// End of the wait, as stated by the provider or assumed.
    pub until: DateTime<Utc>,
    /// Number of this deferral within the turn, from 1.
    pub times: u32,
    /// Attempt of the turn after which the execution was deferred.
    pub attempt: u32,
    /// Cause of the deferral. Records of earlier releases only contain exhausted quotas.
    #[serde(default)]
    pub cause: DeferralCause,
    /// Number of requests of the turn that the model rejected because it was overloaded. Zero in records of earlier
    /// releases.
    #[serde(default)]
    pub overloads: u32,
}
