//! What schedules there are, and the account of each of their times.
//!
//! An implementation commits before it answers. No schedule has two occurrences of one time.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::ledger::LedgerError;
use crate::model::id::ExecutionId;
use crate::model::occurrence::{Ending, Occurrence, OccurrenceQuery, Verdict};
use crate::model::schedule::{Schedule, ScheduleId};

/// What a look at one schedule decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advance {
    /// The schedule.
    pub schedule: ScheduleId,
    /// Up to when each of its times is decided now.
    pub cursor: DateTime<Utc>,
    /// What was decided about them, in order.
    pub occurrences: Vec<Occurrence>,
}

/// What became of an occurrence that was noted as pending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The schedule.
    pub schedule: ScheduleId,
    /// Its time.
    pub planned: DateTime<Utc>,
    /// What it is now: never pending.
    pub verdict: Verdict,
    /// Why, where it is not plain.
    pub reason: Option<String>,
    /// What it became.
    pub execution: Option<ExecutionId>,
    /// When.
    pub at: DateTime<Utc>,
}

/// The schedules and their times.
#[async_trait]
pub trait Timebook: Send + Sync + 'static {
    /// Every schedule.
    ///
    /// # Errors
    /// When they could not be read.
    async fn schedules(&self) -> Result<Vec<Schedule>, LedgerError>;

    /// Makes schedules, or puts them in the place of those with the same id. What has happened at
    /// the times of those stays known.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn put(&self, schedules: Vec<Schedule>) -> Result<(), LedgerError>;

    /// Removes schedules. What has happened at their times stays known.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn remove(&self, ids: Vec<ScheduleId>) -> Result<(), LedgerError>;

    /// Notes decisions and moves the cursors, all or nothing. Answers for each, in order, which of
    /// its occurrences are new: one whose time is known already stays as it is. A schedule that is
    /// gone has none.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn advance(&self, advances: Vec<Advance>) -> Result<Vec<Vec<Occurrence>>, LedgerError>;

    /// Notes what became of pending occurrences; what is not pending any more stays as it is.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn settle(&self, settled: Vec<Settled>) -> Result<(), LedgerError>;

    /// Notes how the execution of an occurrence ended.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn end(
        &self,
        schedule: &ScheduleId,
        planned: DateTime<Utc>,
        ending: Ending,
    ) -> Result<(), LedgerError>;

    /// Every occurrence about which something is still to be done, by schedule and time.
    ///
    /// # Errors
    /// When they could not be read.
    async fn open(&self) -> Result<Vec<Occurrence>, LedgerError>;

    /// Occurrences, the latest time first.
    ///
    /// # Errors
    /// When they could not be read.
    async fn occurrences(&self, query: OccurrenceQuery) -> Result<Vec<Occurrence>, LedgerError>;

    /// The occurrences of a schedule whose time is at or after the given one, whatever their number:
    /// what each was and how it ended.
    ///
    /// # Errors
    /// When they could not be read.
    async fn tally(
        &self,
        schedule: &ScheduleId,
        since: DateTime<Utc>,
    ) -> Result<Vec<Occurrence>, LedgerError>;

    /// Forgets what happened at times before the given one, but nothing that is open; at most so
    /// many rows. Answers how many.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn forget(&self, before: DateTime<Utc>, limit: u32) -> Result<u64, LedgerError>;
}
