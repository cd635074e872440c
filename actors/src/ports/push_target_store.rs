//! Port to the push targets of executions and the progress of their delivery.
//!
//! An implementation commits before it returns, and stores addresses and credentials sealed.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::ledger::LedgerError;
use crate::model::id::ExecutionId;
use crate::model::push::{DeliveryProgress, PendingTarget, PushTarget};

/// Result of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistrationResult {
    /// The registration is recorded.
    Registered,
    /// The execution already has the maximum number of targets.
    Full,
    /// The execution does not exist.
    ExecutionMissing,
}

/// Targets with pending events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueTargets {
    /// Targets, the one that waits for longest first.
    pub pending: Vec<PendingTarget>,
    /// True if any target is open, whether it is due or not.
    pub has_open_targets: bool,
}

/// Store of the push targets and of the progress of their deliveries.
#[async_trait]
pub trait PushTargetStore: Send + Sync + 'static {
    /// Registers a target that omits the events up to `last_omitted_event`. It replaces a target with the same id and
    /// keeps that target's delivery state. At most `max_targets` targets for each execution.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn register(
        &self,
        target: PushTarget,
        last_omitted_event: u64,
        max_targets: u32,
    ) -> Result<RegistrationResult, LedgerError>;

    /// Returns one target.
    ///
    /// # Errors
    /// Returns an error if the target could not be read.
    async fn get(
        &self,
        execution_id: ExecutionId,
        target_id: &str,
    ) -> Result<Option<PushTarget>, LedgerError>;

    /// Returns all targets of an execution, the oldest first.
    ///
    /// # Errors
    /// Returns an error if the targets could not be read.
    async fn list(&self, execution_id: ExecutionId) -> Result<Vec<PushTarget>, LedgerError>;

    /// Deletes a target. Returns true if it existed.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn delete(&self, execution_id: ExecutionId, target_id: &str)
    -> Result<bool, LedgerError>;

    /// Returns the open targets that are due at `now` and have undelivered events, or whose executions have ended. A
    /// target whose due time lies more than `clock_tolerance` in the future is due too, because only a clock that was
    /// set back explains it. At most `max_per_owner` targets for each owner.
    ///
    /// # Errors
    /// Returns an error if the targets could not be read.
    async fn due_targets(
        &self,
        now: DateTime<Utc>,
        clock_tolerance: chrono::TimeDelta,
        max_per_owner: u32,
    ) -> Result<DueTargets, LedgerError>;

    /// Records the delivery state of a registration. Returns true if the registration still exists.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn record_progress(
        &self,
        registration: Uuid,
        progress: DeliveryProgress,
    ) -> Result<bool, LedgerError>;
}
