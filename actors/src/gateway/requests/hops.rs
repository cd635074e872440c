//! Handle of a run: what the run needs of the tree, and its requests to other agents. The run acts for its owner, who
//! needs no right to these agents.

use std::time::Duration;

use super::RequestHandle;
use super::wait::wait_for_drain_start;
use tokio::sync::watch;

use crate::agent::SubmitReply;
use crate::execution::recovery::{read_request, settle_execution};
use crate::gateway::reader::ExecutionReader;
use crate::model::code::Code;
use crate::model::execution::progress::Progress;
use crate::model::execution::record::{ExecutionFilter, ExecutionRecord, TriggerFilter};
use crate::model::execution::request::Request;
use crate::model::execution::{ExecutionState, Outcome};
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ExecutionId};
use crate::ports::ledger::LedgerError;
use crate::services::Services;

/// Pause before a failed read or write is repeated.
const LEDGER_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Time after which a cancellation is sent again.
const CANCELLATION_INTERVAL: Duration = Duration::from_secs(5);
/// Pause before another cancellation of a hop that no actor has.
const CANCELLATION_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// State of a hop, as far as its run is concerned.
pub(crate) enum HopState {
    /// The hop has ended.
    Ended(Box<ExecutionRecord>),
    /// The member waits for an answer between two turns.
    AwaitsNextTurn(Box<ExecutionRecord>),
    /// The hop is waiting, or it runs.
    Open(Box<ExecutionRecord>),
    /// The execution was removed.
    Removed,
}

/// Handle that a run uses: it reads the ledger, and sends hops, reads them and ends them.
#[derive(Clone)]
pub(crate) struct RunRequestHandle {
    request_handle: RequestHandle,
}

impl RunRequestHandle {
    /// Creates the handle of a run.
    pub(crate) const fn new(request_handle: RequestHandle) -> Self {
        Self { request_handle }
    }

    /// Returns the reader of executions.
    pub(crate) const fn reader(&self) -> &ExecutionReader {
        &self.request_handle.reader
    }

    /// Returns the services of the tree.
    pub(crate) const fn services(&self) -> &Services {
        &self.request_handle.reader.services
    }

    /// Waits until a hop has ended or has a question; see [`RequestHandle::wait_for_end_or_question`].
    ///
    /// # Errors
    /// Returns an error if the end cannot be recorded now.
    pub(crate) async fn wait_for_end_or_question(
        &self,
        record: &ExecutionRecord,
        progress: Option<watch::Receiver<Progress>>,
    ) -> Result<(), Failure> {
        self.request_handle
            .wait_for_end_or_question(&record.agent, record.id, progress)
            .await
            .map(drop)
    }

    /// Sends a hop to its member. Returns once the request is recorded. A hop that was sent before is found by its key.
    ///
    /// # Errors
    /// Returns an error if the request is rejected; then nothing was recorded.
    pub(crate) async fn submit_hop(&self, request: Request) -> Result<SubmitReply, Failure> {
        let request_identity = self.services().keyed_hasher.request_identity(&request);
        self.request_handle.send(request, request_identity, None).await
    }

    /// Returns true if the original input of an execution is still known.
    ///
    /// # Errors
    /// Returns an error if the input could not be read.
    pub(crate) async fn has_original_input(&self, id: ExecutionId) -> Result<bool, LedgerError> {
        let services = self.services();
        match services.ledger.execution(id).await? {
            Some(record) => Ok(read_request(services, &record).await?.is_ok()),
            None => Ok(false),
        }
    }

    /// Returns the present state of a hop.
    ///
    /// # Errors
    /// Returns an error if the execution could not be read.
    pub(crate) async fn hop_state(&self, id: ExecutionId) -> Result<HopState, LedgerError> {
        let record = self.services().ledger.execution(id).await?;
        Ok(match record.map(Box::new) {
            None => HopState::Removed,
            Some(record) if record.outcome.is_some() => HopState::Ended(record),
            Some(record) if record.awaits_answer() => HopState::AwaitsNextTurn(record),
            Some(record) => HopState::Open(record),
        })
    }

    /// Returns the progress of a hop, if it has an actor.
    pub(crate) async fn watch_hop(
        &self,
        member: &AgentId,
        execution: ExecutionId,
    ) -> Option<watch::Receiver<Progress>> {
        self.reader().watch_progress(member, execution).await
    }

    /// Returns true if an actor performs the hop now: it neither waits nor is suspended.
    pub(crate) async fn is_hop_active(&self, record: &ExecutionRecord) -> bool {
        let progress = self.reader().watch_progress(&record.agent, record.id).await;
        progress.is_some_and(|progress| {
            let Progress { state, deferral, is_suspended, .. } = &*progress.borrow();
            !matches!(state, ExecutionState::Idle | ExecutionState::Waiting)
                && deferral.is_none()
                && !is_suspended
        })
    }

    /// Cancels a hop, and returns once it has ended.
    pub(crate) async fn cancel_hop(&self, id: ExecutionId, reason: &str) {
        loop {
            match self.try_cancel_hop(id, reason).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    tracing::error!(execution = %id, %error, "hop not cancelled, trying again");
                    tokio::time::sleep(LEDGER_RETRY_PAUSE).await;
                }
            }
        }
    }

    /// Cancels a hop, and waits for its end for a limited time. Returns true if the hop has ended. The record is read
    /// each time, because the hop may change its state before the cancellation arrives.
    async fn try_cancel_hop(&self, id: ExecutionId, reason: &str) -> Result<bool, LedgerError> {
        let services = self.services();
        let record = match self.hop_state(id).await? {
            HopState::Ended(_) | HopState::Removed => return Ok(true),
            HopState::AwaitsNextTurn(record) | HopState::Open(record) => record,
        };
        match self.request_handle.send_cancellation(&record, reason.to_owned()).await {
            Some(mut progress) => {
                let is_actor_lost_before_end = async {
                    progress.wait_for(|progress| progress.outcome.is_some()).await.is_err()
                };
                // A crashed actor is replaced, and the next cancellation reaches the other one.
                let wait_result =
                    tokio::time::timeout(CANCELLATION_INTERVAL, is_actor_lost_before_end).await;
                if wait_result == Ok(true) {
                    tokio::time::sleep(CANCELLATION_RETRY_PAUSE).await;
                }
            }
            None if record.awaits_answer() => {
                // Its actor may be stopping. Later the same answer means that no actor will have it, for example
                // because the member is quarantined; it holds nothing but its record.
                tokio::time::sleep(LEDGER_RETRY_PAUSE).await;
                if let HopState::AwaitsNextTurn(record) = self.hop_state(id).await?
                    && self
                        .request_handle
                        .send_cancellation(&record, reason.to_owned())
                        .await
                        .is_none()
                {
                    let failure = Failure::new(Code::Cancelled, reason);
                    settle_execution(services, &record, Outcome::Cancelled, failure).await?;
                }
            }
            None => tokio::time::sleep(CANCELLATION_RETRY_PAUSE).await,
        }
        Ok(false)
    }

    /// Cancels all unfinished hops of a run, and returns once they have ended.
    pub(crate) async fn cancel_hops(&self, run: ExecutionId, reason: &str) {
        loop {
            match self.unfinished_hops(run).await {
                Ok(hops) => {
                    for hop in hops {
                        self.cancel_hop(hop.id, reason).await;
                    }
                    return;
                }
                Err(error) => {
                    tracing::error!(execution = %run, %error, "hops not read, trying again");
                    tokio::time::sleep(LEDGER_RETRY_PAUSE).await;
                }
            }
        }
    }

    async fn unfinished_hops(&self, run: ExecutionId) -> Result<Vec<ExecutionRecord>, LedgerError> {
        let filter = ExecutionFilter {
            trigger: Some(TriggerFilter::HopsOf(run)),
            unfinished_only: true,
            ..ExecutionFilter::default()
        };
        self.services().ledger.executions(filter).await
    }

    /// Returns true while the service stops.
    pub(crate) fn is_draining(&self) -> bool {
        *self.reader().gateway_handle.draining.borrow()
    }

    /// Returns once the service begins to drain.
    pub(crate) async fn wait_for_drain_start(&self) {
        wait_for_drain_start(&mut self.reader().gateway_handle.draining.clone()).await;
    }
}
