//! Storage of the occurrences' results, in batches.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::tasks::SchedulerBackgroundTasks;
use super::{OccurrenceKey, SchedulerMsg};
use crate::model::id::ExecutionId;
use crate::model::schedule::occurrence::OccurrenceStatus;
use crate::ports::schedule_store::{OccurrenceStatusChange, ScheduleStore};

/// Pause before a failed write is retried: the disk may have space then.
pub(super) const WRITE_RETRY_PAUSE: Duration = Duration::from_secs(5);

/// Result of an occurrence that was stored as pending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OccurrenceResult {
    pub(super) key: OccurrenceKey,
    /// New status: never pending.
    pub(super) status: OccurrenceStatus,
    /// Explanation, if it is not obvious.
    pub(super) reason: Option<String>,
    /// Execution that the occurrence became.
    pub(super) execution: Option<ExecutionId>,
}

/// Writer of the results. One write is in progress at a time, so a later result of an occurrence is never stored before
/// an earlier one.
#[derive(Default)]
pub(super) struct ResultWriter {
    unwritten_results: Vec<OccurrenceStatusChange>,
    is_writing: bool,
}

impl ResultWriter {
    /// Adds a result, which the next write stores.
    pub(super) fn add(&mut self, result: OccurrenceResult, at: DateTime<Utc>) {
        let OccurrenceResult { key, status, reason, execution } = result;
        let OccurrenceKey { schedule, planned_at: planned } = key;
        self.unwritten_results.push(OccurrenceStatusChange {
            schedule,
            planned_at: planned,
            status,
            reason,
            execution,
            at,
        });
    }

    /// Writes all pending results, and retries until they are stored. Later results follow in the next batch.
    pub(super) fn flush(
        &mut self,
        store: &Arc<dyn ScheduleStore>,
        tasks: &mut SchedulerBackgroundTasks,
    ) {
        if self.is_writing || self.unwritten_results.is_empty() {
            return;
        }
        self.is_writing = true;
        let (batch, store) = (mem::take(&mut self.unwritten_results), Arc::clone(store));
        tasks.spawn_and_send_result(async move {
            // Without end: a lost result would leave the occurrence pending in the store.
            while let Err(error) = store.record_status_changes(batch.clone()).await {
                tracing::error!(%error, "failed to record occurrence of schedule");
                tokio::time::sleep(WRITE_RETRY_PAUSE).await;
            }
            SchedulerMsg::ResultsStored
        });
    }

    /// Handles the end of a write.
    pub(super) const fn finish_write(&mut self) {
        self.is_writing = false;
    }
}
