//! Push targets of an execution, and the state of their delivery.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::access::endpoint_config::ProtocolVersion;
use super::id::{ExecutionId, PrincipalId};

/// Secret text that must not be shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    /// Hides the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Credentials of a push: `Authorization: <scheme> <credentials>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushCredentials {
    /// Authentication scheme.
    pub scheme: String,
    /// Text after the scheme; without it the push has no header.
    pub credentials: Option<Secret>,
}

/// Push target of an execution. The address is a secret too: many addresses contain a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushTarget {
    /// Id of the target within the execution.
    pub id: String,
    /// Id of the execution.
    pub execution: ExecutionId,
    /// Principal that registered the target.
    pub owner: PrincipalId,
    /// Protocol version of the notifications.
    pub version: ProtocolVersion,
    /// Id of this registration. Setting the same target id again creates another registration.
    pub registration_id: Uuid,
    /// Address of the receiver.
    pub url: Secret,
    /// Token in each notification, by which the receiver recognizes its own notifications.
    pub token: Option<Secret>,
    /// Credentials in each notification, by which the receiver authenticates the sender.
    pub authentication: Option<PushCredentials>,
    /// Time of the registration.
    pub created_at: DateTime<Utc>,
}

/// Stage of the delivery to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryStage {
    /// The target receives notifications.
    Open,
    /// The target has received the outcome of the execution.
    Finished,
    /// The target was unreachable for too long.
    Abandoned,
}

impl DeliveryStage {
    /// Returns the stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Finished => "finished",
            Self::Abandoned => "given-up",
        }
    }

    /// Parses the stored name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Open, Self::Finished, Self::Abandoned].into_iter().find(|it| it.as_str() == word)
    }
}

/// Delivery state of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryProgress {
    /// Number of the last delivered event.
    pub last_delivered_event: u64,
    /// Number of failed deliveries of the next event.
    pub next_event_failures: u32,
    /// Time of the first failed delivery of the next event.
    pub failing_since: Option<DateTime<Utc>>,
    /// Time of the next delivery.
    pub due_at: DateTime<Utc>,
    /// Stage of the delivery.
    pub stage: DeliveryStage,
}

/// Target for which an event may be pending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingTarget {
    /// Id of the execution.
    pub execution: ExecutionId,
    /// Id of the target within the execution.
    pub id: String,
    /// Id of the registration.
    pub registration_id: Uuid,
    /// Owner of the target.
    pub owner: PrincipalId,
    /// Delivery state of the target.
    pub progress: DeliveryProgress,
    /// True if the execution has ended, so that no further events follow.
    pub has_execution_ended: bool,
}
