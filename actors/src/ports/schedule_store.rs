//! Store of the schedules and their occurrences.
//!
//! An implementation commits before it returns. No schedule has two occurrences with the same planned time.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::ledger::LedgerError;
use crate::model::id::{ExecutionId, ScheduleId};
use crate::model::schedule::Schedule;
use crate::model::schedule::occurrence::{
    Occurrence, OccurrenceEnd, OccurrenceQuery, OccurrenceStatus,
};

/// Decisions of one evaluation of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleEvaluation {
    /// Id of the schedule.
    pub schedule: ScheduleId,
    /// Time up to which every occurrence is decided.
    pub decided_until: DateTime<Utc>,
    /// Decided occurrences, in order.
    pub occurrences: Vec<Occurrence>,
}

/// Decision about an occurrence that was recorded as pending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OccurrenceStatusChange {
    /// Id of the schedule.
    pub schedule: ScheduleId,
    /// Planned time.
    pub planned_at: DateTime<Utc>,
    /// New status: never pending.
    pub status: OccurrenceStatus,
    /// Explanation, if it is not obvious.
    pub reason: Option<String>,
    /// Execution that the occurrence became.
    pub execution: Option<ExecutionId>,
    /// Time of the decision.
    pub at: DateTime<Utc>,
}

/// Store of the schedules and their occurrences.
#[async_trait]
pub trait ScheduleStore: Send + Sync + 'static {
    /// Returns every schedule.
    ///
    /// # Errors
    /// Returns an error if the schedules could not be read.
    async fn schedules(&self) -> Result<Vec<Schedule>, LedgerError>;

    /// Creates schedules, or replaces those with the same id. The occurrences of replaced schedules are kept.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn put_schedules(&self, schedules: Vec<Schedule>) -> Result<(), LedgerError>;

    /// Removes schedules. Their occurrences are kept.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn remove_schedules(&self, ids: Vec<ScheduleId>) -> Result<(), LedgerError>;

    /// Records decisions and moves the cursors, all or nothing. Returns for each schedule, in order, which of its
    /// occurrences are new: an occurrence with a known planned time stays unchanged. A schedule that no longer exists
    /// has none.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn record_evaluations(
        &self,
        evaluations: Vec<ScheduleEvaluation>,
    ) -> Result<Vec<Vec<Occurrence>>, LedgerError>;

    /// Records the decisions about pending occurrences; an occurrence that is no longer pending stays unchanged.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn record_status_changes(
        &self,
        status_changes: Vec<OccurrenceStatusChange>,
    ) -> Result<(), LedgerError>;

    /// Records the end of an occurrence's execution.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn record_end(
        &self,
        schedule: &ScheduleId,
        planned_at: DateTime<Utc>,
        end: OccurrenceEnd,
    ) -> Result<(), LedgerError>;

    /// Returns every unfinished occurrence, by schedule and time.
    ///
    /// # Errors
    /// Returns an error if the occurrences could not be read.
    async fn open_occurrences(&self) -> Result<Vec<Occurrence>, LedgerError>;

    /// Returns the matching occurrences, the latest planned time first.
    ///
    /// # Errors
    /// Returns an error if the occurrences could not be read.
    async fn occurrences(&self, query: OccurrenceQuery) -> Result<Vec<Occurrence>, LedgerError>;

    /// Returns all occurrences of a schedule with a planned time at or after the given one, with their status and end.
    ///
    /// # Errors
    /// Returns an error if the occurrences could not be read.
    async fn occurrences_since(
        &self,
        schedule: &ScheduleId,
        since: DateTime<Utc>,
    ) -> Result<Vec<Occurrence>, LedgerError>;

    /// Deletes finished occurrences before the given time, at most `limit` rows. Returns the number of deleted rows.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn remove_occurrences(
        &self,
        before: DateTime<Utc>,
        limit: u32,
    ) -> Result<u64, LedgerError>;
}
