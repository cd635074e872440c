//! Who is to be told about executions, and how far the telling has come.
//!
//! An implementation commits before it answers, and keeps addresses and credentials sealed.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::ledger::LedgerError;
use crate::model::id::ExecutionId;
use crate::model::push::{Pending, PushTarget, Standing};

/// What became of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placing {
    /// It is recorded.
    Placed,
    /// The execution has as many targets as it may.
    Full,
    /// There is no such execution.
    Unknown,
}

/// What there is to tell now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The targets, the one that waits longest first.
    pub pending: Vec<Pending>,
    /// Whether any target is open, now due or not.
    pub any_open: bool,
}

/// The outbox.
#[async_trait]
pub trait Outbox: Send + Sync + 'static {
    /// Registers a target that knows the events up to `known`. A target of the same id is
    /// replaced; what the old one knows, the new one knows. At most `limit` of an execution.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn set(&self, target: PushTarget, known: u64, limit: u32)
    -> Result<Placing, LedgerError>;

    /// One target.
    ///
    /// # Errors
    /// When it could not be read.
    async fn get(&self, id: ExecutionId, target: &str) -> Result<Option<PushTarget>, LedgerError>;

    /// All targets of an execution, the oldest first.
    ///
    /// # Errors
    /// When they could not be read.
    async fn list(&self, id: ExecutionId) -> Result<Vec<PushTarget>, LedgerError>;

    /// Forgets a target. Answers whether there was one.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn delete(&self, id: ExecutionId, target: &str) -> Result<bool, LedgerError>;

    /// Open targets with unknown events, or of executions that have ended, that may be told by
    /// `now`. One that may be told only after more than `patience` may be told too, since only a
    /// clock that was set back explains it. Of each owner at most `share`.
    ///
    /// # Errors
    /// When they could not be read.
    async fn due(
        &self,
        now: DateTime<Utc>,
        patience: chrono::TimeDelta,
        share: u32,
    ) -> Result<Due, LedgerError>;

    /// Notes how far a registration has been told. Answers whether it is still there.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn note(&self, registration: Uuid, standing: Standing) -> Result<bool, LedgerError>;
}
