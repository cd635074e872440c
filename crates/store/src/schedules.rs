//! Schedule store on the same database.

mod commands;
mod occurrences;

use algonius_actors::model::id::ScheduleId;
use algonius_actors::model::schedule::Schedule;
use algonius_actors::model::schedule::occurrence::{Occurrence, OccurrenceEnd, OccurrenceQuery};
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::ports::schedule_store::{
    OccurrenceStatusChange, ScheduleEvaluation, ScheduleStore,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};

use self::commands::{
    PutSchedules, RecordOccurrenceEnd, RecordScheduleEvaluations, RecordStatusChanges,
    RemoveOccurrences, RemoveSchedules,
};
use super::Store;
use super::engine::error::ledger_error;

#[async_trait]
impl ScheduleStore for Store {
    async fn schedules(&self) -> Result<Vec<Schedule>, LedgerError> {
        commands::load_schedules(&self.readers).await.map_err(ledger_error)
    }

    async fn put_schedules(&self, schedules: Vec<Schedule>) -> Result<(), LedgerError> {
        self.writer.submit(PutSchedules(schedules)).await
    }

    async fn remove_schedules(&self, ids: Vec<ScheduleId>) -> Result<(), LedgerError> {
        self.writer.submit(RemoveSchedules(ids)).await
    }

    async fn record_evaluations(
        &self,
        evaluations: Vec<ScheduleEvaluation>,
    ) -> Result<Vec<Vec<Occurrence>>, LedgerError> {
        self.writer.submit(RecordScheduleEvaluations(evaluations)).await
    }

    async fn record_status_changes(
        &self,
        status_changes: Vec<OccurrenceStatusChange>,
    ) -> Result<(), LedgerError> {
        self.writer.submit(RecordStatusChanges(status_changes)).await
    }

    async fn record_end(
        &self,
        schedule: &ScheduleId,
        planned_at: DateTime<Utc>,
        end: OccurrenceEnd,
    ) -> Result<(), LedgerError> {
        self.writer
            .submit(RecordOccurrenceEnd { schedule: schedule.clone(), planned_at, end })
            .await
    }

    async fn open_occurrences(&self) -> Result<Vec<Occurrence>, LedgerError> {
        occurrences::list_open(&self.readers).await.map_err(ledger_error)
    }

    async fn occurrences(&self, query: OccurrenceQuery) -> Result<Vec<Occurrence>, LedgerError> {
        occurrences::list_page(&self.readers, query).await.map_err(ledger_error)
    }

    async fn occurrences_since(
        &self,
        schedule: &ScheduleId,
        since: DateTime<Utc>,
    ) -> Result<Vec<Occurrence>, LedgerError> {
        occurrences::list_since(&self.readers, schedule, since).await.map_err(ledger_error)
    }

    async fn remove_occurrences(
        &self,
        before: DateTime<Utc>,
        limit: u32,
    ) -> Result<u64, LedgerError> {
        self.writer.submit(RemoveOccurrences { before, limit }).await
    }
}
