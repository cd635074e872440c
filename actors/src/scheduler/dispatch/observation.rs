//! Observation of the execution that an occurrence became, until its end is stored.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

use crate::gateway::requests::RequestHandle;
use crate::model::code::Code;
use crate::model::execution::Outcome;
use crate::model::execution::progress::Progress;
use crate::model::execution::record::ExecutionRecord;
use crate::model::id::ExecutionId;
use crate::model::schedule::occurrence::{
    Occurrence, OccurrenceEnd, OccurrenceQuery, OccurrenceStatus,
};
use crate::ports::ledger::LedgerError;
use crate::ports::schedule_store::ScheduleStore;
use crate::scheduler::occurrences::OccurrenceExecution;
use crate::scheduler::result_writer::WRITE_RETRY_PAUSE;
use crate::scheduler::{OccurrenceKey, SchedulerMsg};

/// Maximum number of consecutive failures that are counted.
const MAX_COUNTED_FAILURES: u32 = 100;

/// Waits for the end of an execution, stores it, and returns it with the number of consecutive failures.
pub(in crate::scheduler) async fn observe_and_record_end(
    occurrence_execution: OccurrenceExecution,
    request_handle: RequestHandle,
    store: Arc<dyn ScheduleStore>,
) -> SchedulerMsg {
    let OccurrenceExecution { key, execution, progress } = occurrence_execution;
    let end = wait_for_end(&request_handle, execution, progress).await;
    // Stored before it is counted: the latest occurrences are read from the store.
    while let Err(error) = store.record_end(&key.schedule, key.planned_at, end).await {
        tracing::error!(%error, "failed to record result of scheduled run");
        tokio::time::sleep(WRITE_RETRY_PAUSE).await;
    }
    let streak = loop {
        match fired_occurrences_for_streak(&*store, &key, end).await {
            Ok(latest) => break failure_streak(&latest),
            Err(error) => tracing::error!(%error, "failed to count results of scheduled runs"),
        }
        tokio::time::sleep(WRITE_RETRY_PAUSE).await;
    };
    SchedulerMsg::ExecutionEnded(key, end, streak)
}

/// Waits until an execution has ended, also after failures of its actors.
async fn wait_for_end(
    request_handle: &RequestHandle,
    execution: ExecutionId,
    mut progress: Option<watch::Receiver<Progress>>,
) -> OccurrenceEnd {
    loop {
        match request_handle.reader.services.ledger.execution(execution).await {
            Ok(Some(record)) if record.outcome.is_some() => return end_from_record(&record),
            Ok(Some(record)) => {
                if progress.is_none() {
                    progress = request_handle.reader.watch_progress(&record.agent, record.id).await;
                }
                _ = request_handle.wait_until_ended(&record, progress.take()).await; // The record is read again in any case.
            }
            Ok(None) => return end_of_removed_execution(request_handle.reader.now()),
            Err(error) => tracing::error!(%execution, %error, "read failed"),
        }
        tokio::time::sleep(Duration::from_millis(250)).await; // Only if it has not ended.
    }
}

fn end_from_record(record: &ExecutionRecord) -> OccurrenceEnd {
    OccurrenceEnd {
        outcome: record.outcome.unwrap_or(Outcome::Failed),
        code: record.failure.as_ref().map(|failure| failure.code),
        had_failed_attempt: record.outcome == Some(Outcome::Completed)
            && record.attempt_id.attempt > 1,
        at: record.ended_at.unwrap_or(record.changed_at),
    }
}

/// Returns the end of an execution that was removed.
const fn end_of_removed_execution(at: DateTime<Utc>) -> OccurrenceEnd {
    OccurrenceEnd {
        outcome: Outcome::Failed,
        code: Some(Code::ExecutionUnknown),
        had_failed_attempt: false,
        at,
    }
}

/// Returns the latest occurrences of a schedule that ran, as far as they matter for consecutive failures: a success
/// ends every earlier sequence of failures. Skipped and missed ones, of which there may be many between two runs, are
/// no results.
async fn fired_occurrences_for_streak(
    store: &dyn ScheduleStore,
    key: &OccurrenceKey,
    end: OccurrenceEnd,
) -> Result<Vec<Occurrence>, LedgerError> {
    let since = (end.outcome == Outcome::Completed).then_some(key.planned_at);
    let schedule = Some(key.schedule.clone());
    let status = Some(OccurrenceStatus::Fired);
    let query = OccurrenceQuery {
        schedule,
        status,
        since,
        limit: MAX_COUNTED_FAILURES,
        ..Default::default()
    };
    store.occurrences(query).await
}

/// Returns the number of consecutive failures, the latest first.
fn failure_streak(latest: &[Occurrence]) -> u32 {
    let endings = latest.iter().filter_map(|occurrence| occurrence.end);
    let count = endings.take_while(|ending| ending.outcome != Outcome::Completed).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}
