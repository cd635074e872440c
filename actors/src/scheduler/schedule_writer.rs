//! Writer of the schedules and of the decisions about them.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::authorization::TokenSnapshot;
use super::changes::{ChangeWriteResult, PlannedChange};
use super::tasks::SchedulerBackgroundTasks;
use super::{ChangeReplyPort, SchedulerMsg};
use crate::gateway::requests::RequestHandle;
use crate::model::id::ScheduleId;
use crate::model::schedule::occurrence::Occurrence;
use crate::ports::ledger::LedgerError;
use crate::ports::schedule_store::{ScheduleEvaluation, ScheduleStore};
use crate::services::Services;

/// Number of rows that are deleted at a time.
const DELETION_BATCH_ROWS: u32 = 5000;

/// Decisions that were stored, or whose write failed.
pub struct DecisionWriteResult {
    /// Decided schedules, in the order of the results.
    pub(super) cursors: Vec<ScheduleCursor>,
    /// Tokens at the time of the decisions.
    pub(super) tokens: Arc<TokenSnapshot>,
    /// New occurrences of each schedule.
    pub(super) result: Result<Vec<Vec<Occurrence>>, LedgerError>,
}

/// Time up to which every occurrence of a schedule is decided.
pub(super) struct ScheduleCursor {
    pub(super) schedule: ScheduleId,
    pub(super) decided_until: DateTime<Utc>,
}

/// Writer of changes and decisions. One write is in progress at a time: a decision is made on the stored state, which a
/// concurrent change would replace.
pub(super) struct ScheduleWriter {
    store: Arc<dyn ScheduleStore>,
    is_writing: bool,
}

impl ScheduleWriter {
    pub(super) const fn new(store: Arc<dyn ScheduleStore>) -> Self {
        Self { store, is_writing: false }
    }

    pub(super) const fn store(&self) -> &Arc<dyn ScheduleStore> {
        &self.store
    }

    /// Returns true while a write is in progress.
    pub(super) const fn is_writing(&self) -> bool {
        self.is_writing
    }

    /// Handles the end of a write.
    pub(super) const fn finish_write(&mut self) {
        self.is_writing = false;
    }

    /// Stores a change. Its reply follows once the scheduler has applied it.
    pub(super) fn store_change(
        &mut self,
        change: PlannedChange,
        reply: ChangeReplyPort,
        services: &Services,
        tasks: &mut SchedulerBackgroundTasks,
    ) {
        self.is_writing = true;
        let (store, services) = (Arc::clone(&self.store), services.clone());
        tasks.spawn_and_send_result(async move {
            let result = change.write(&services, &*store).await;
            SchedulerMsg::ChangeWriteFinished(Box::new(ChangeWriteResult { change, result, reply }))
        });
    }

    /// Stores decisions. Unauthorized occurrences are stored as rejected, with the tokens as they are now.
    pub(super) fn store_decisions(
        &mut self,
        mut batch: Vec<ScheduleEvaluation>,
        request_handle: &RequestHandle,
        tasks: &mut SchedulerBackgroundTasks,
    ) {
        self.is_writing = true;
        let schedule_cursor = |evaluation: &ScheduleEvaluation| ScheduleCursor {
            schedule: evaluation.schedule.clone(),
            decided_until: evaluation.decided_until,
        };
        let cursors = batch.iter().map(schedule_cursor).collect();
        let (store, request_handle) = (Arc::clone(&self.store), request_handle.clone());
        tasks.spawn_and_send_result(async move {
            let tokens = Arc::<TokenSnapshot>::default();
            tokens.reject_unauthorized(&request_handle, &mut batch).await;
            let result = store.record_evaluations(batch).await;
            SchedulerMsg::DecisionWriteFinished(Box::new(DecisionWriteResult {
                cursors,
                tokens,
                result,
            }))
        });
    }

    /// Deletes finished occurrences before this time. A failure is repeated with the next deletion.
    pub(super) fn delete_occurrences_before(
        &self,
        before: DateTime<Utc>,
        tasks: &mut SchedulerBackgroundTasks,
    ) {
        let store = Arc::clone(&self.store);
        tasks.spawn(async move {
            while store
                .remove_occurrences(before, DELETION_BATCH_ROWS)
                .await
                .is_ok_and(|rows| rows == u64::from(DELETION_BATCH_ROWS))
            {
                tokio::time::sleep(Duration::from_secs(1)).await; // Lets other writers proceed.
            }
        });
    }
}
