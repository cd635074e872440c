//! Wait of a run for the end of a hop.

use std::convert::Infallible;
use std::mem;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::decide::runs::team::HopEnd;
use crate::driver::report::{Reporter, report_ledger_wait};
use crate::gateway::requests::{HopState, RunRequestHandle};
use crate::model::code::Code;
use crate::model::execution::Outcome;
use crate::model::execution::progress::Progress;
use crate::model::execution::record::ExecutionRecord;
use crate::model::id::{AgentId, ExecutionId};
use crate::ports::ledger::LedgerError;
use crate::runs::attempt::{RunExit, RunStopReceiver};

/// Interval of the checks of a hop while the service stops.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of the checks of a hop whose member waits for an answer.
const QUESTION_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Pause before an end that cannot be recorded is awaited again.
const RECORD_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Time after which the callers of a run learn that the end of a hop is not recorded. Usually the record follows soon.
const UNRECORDED_END_DELAY: Duration = Duration::from_secs(1);
/// Reason in the history of a hop that requested input.
const INPUT_REQUEST_REASON: &str = "it requested input, which its team does not pass on";

/// Result of a wait for a hop.
pub(super) enum HopWaitResult {
    /// The hop has ended.
    Ended(HopEnd),
    /// The run has to stop. Or the service stops, and no actor performs the hop before the next start.
    RunExited(RunExit),
}

/// Waiter for one hop of a run.
pub(super) struct HopWaiter<'r> {
    request_handle: &'r RunRequestHandle,
    reporter: &'r Reporter,
    /// Questions of the hop that were reported last. An earlier actor may have reported others.
    reported_questions: Option<OpenQuestions>,
    /// True if the state of the hop was read.
    has_read_state: bool,
}

/// Open questions of a hop. Two values differ if one question has followed another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenQuestions {
    count: u32,
    last_event_number: u64,
}

impl OpenQuestions {
    const NONE: Self = Self { count: 0, last_event_number: 0 };

    /// Returns the open questions in the record of a hop.
    const fn from_record(record: &ExecutionRecord) -> Self {
        match record.has_open_interactions() {
            true => Self {
                count: record.requested_input.open_interaction_count,
                last_event_number: record.last_event_number,
            },
            false => Self::NONE,
        }
    }
}

impl<'r> HopWaiter<'r> {
    pub(super) const fn new(request_handle: &'r RunRequestHandle, reporter: &'r Reporter) -> Self {
        Self { request_handle, reporter, reported_questions: None, has_read_state: false }
    }

    /// Waits for the end of a hop, or until the run has to stop or to be suspended.
    pub(super) async fn wait_for_hop(
        mut self,
        (member, execution): (&AgentId, ExecutionId),
        progress: Option<watch::Receiver<Progress>>,
        stop: &mut RunStopReceiver,
    ) -> Result<HopWaitResult, LedgerError> {
        let observer = EndRecordObserver {
            request_handle: self.request_handle,
            reporter: self.reporter,
            hop: (member, execution),
        };
        let result = tokio::select! {
            biased;
            result = self.wait_for_end_or_interruption(execution, progress.clone(), stop) => result,
            never = observer.report_unrecorded_ends(progress) => match never {},
        };
        if matches!(result, Ok(HopWaitResult::Ended(_))) {
            report_ledger_wait(self.reporter, false); // An earlier report of this wait may be in force.
        }
        // Otherwise the question stays open, and another waiter follows.
        if matches!(
            result,
            Ok(HopWaitResult::Ended(_) | HopWaitResult::RunExited(RunExit::Stopped))
        ) {
            self.report_questions(OpenQuestions::NONE);
        }
        result
    }

    async fn wait_for_end_or_interruption(
        &mut self,
        execution: ExecutionId,
        progress: Option<watch::Receiver<Progress>>,
        stop: &mut RunStopReceiver,
    ) -> Result<HopWaitResult, LedgerError> {
        let request_handle = self.request_handle;
        tokio::select! {
            biased;
            () = stop.wait() => Ok(HopWaitResult::RunExited(RunExit::Stopped)),
            result = self.wait_for_end_or_cancel(execution, progress) => result,
            () = request_handle.wait_for_drain_start() => tokio::select! {
                biased;
                () = stop.wait() => Ok(HopWaitResult::RunExited(RunExit::Stopped)),
                result = self.wait_while_draining(execution) => result,
            },
        }
    }

    /// Waits for the end of a hop, or cancels it if it waits for an answer between two turns.
    async fn wait_for_end_or_cancel(
        &mut self,
        execution: ExecutionId,
        mut progress: Option<watch::Receiver<Progress>>,
    ) -> Result<HopWaitResult, LedgerError> {
        loop {
            let state = self.request_handle.hop_state(execution).await?;
            if !mem::replace(&mut self.has_read_state, true) {
                // The action before may have failed because of the ledger, which can be read again.
                report_ledger_wait(self.reporter, false);
            }
            let record = match state {
                HopState::Ended(record) => return Ok(HopWaitResult::Ended(hop_end(&record))),
                HopState::Removed => return Ok(removed_hop_result()),
                HopState::AwaitsNextTurn(record) => {
                    return self.cancel_hop_between_turns(&record).await;
                }
                HopState::Open(record) => record,
            };
            // The ledger counts the questions with the run too. The report wakes the callers that wait for the run.
            self.report_questions(OpenQuestions::from_record(&record));
            if record.has_open_interactions() {
                sleep(QUESTION_CHECK_INTERVAL).await;
                continue;
            }
            let wait = self.request_handle.wait_for_end_or_question(&record, progress.take()).await;
            if let Err(failure) = wait {
                tracing::warn!(%execution, %failure, "end of hop not recorded, waiting");
                sleep(RECORD_RETRY_PAUSE).await;
            }
        }
    }

    fn report_questions(&mut self, questions: OpenQuestions) {
        if self.reported_questions.replace(questions) != Some(questions) {
            self.reporter.report_member_questions(questions.count);
        }
    }

    /// Waits for the end of a hop that is performed now. A hop that waits is performed after the next start.
    async fn wait_while_draining(
        &mut self,
        execution: ExecutionId,
    ) -> Result<HopWaitResult, LedgerError> {
        loop {
            let is_active = match self.request_handle.hop_state(execution).await? {
                HopState::Ended(record) => return Ok(HopWaitResult::Ended(hop_end(&record))),
                HopState::Removed => return Ok(removed_hop_result()),
                HopState::AwaitsNextTurn(_) => false,
                HopState::Open(record) => {
                    self.report_questions(OpenQuestions::from_record(&record));
                    self.request_handle.is_hop_active(&record).await
                }
            };
            if !is_active {
                // The hop may have ended between the two reads.
                return Ok(match self.request_handle.hop_state(execution).await? {
                    HopState::Ended(record) => HopWaitResult::Ended(hop_end(&record)),
                    _ => HopWaitResult::RunExited(RunExit::Suspended),
                });
            }
            sleep(DRAIN_CHECK_INTERVAL).await;
        }
    }

    /// Ends a hop that requested input of the caller between two turns.
    async fn cancel_hop_between_turns(
        &self,
        record: &ExecutionRecord,
    ) -> Result<HopWaitResult, LedgerError> {
        self.request_handle.cancel_hop(record.id, INPUT_REQUEST_REASON).await;
        Ok(match self.request_handle.hop_state(record.id).await? {
            // The question was answered in the meantime.
            HopState::Ended(record) if record.outcome != Some(Outcome::Cancelled) => {
                HopWaitResult::Ended(hop_end(&record))
            }
            _ => {
                let (outcome, code) = (Outcome::Cancelled, Some(Code::Unsupported));
                HopWaitResult::Ended(HopEnd { outcome, code })
            }
        })
    }
}

/// Observer of the record of a hop's end. Without it, each level of a team would learn that an end is not recorded only
/// when the wait of the level below has failed.
struct EndRecordObserver<'r> {
    request_handle: &'r RunRequestHandle,
    reporter: &'r Reporter,
    hop: (&'r AgentId, ExecutionId),
}

impl EndRecordObserver<'_> {
    /// Reports to the callers of the run while the end of the hop is not recorded.
    async fn report_unrecorded_ends(
        self,
        mut progress: Option<watch::Receiver<Progress>>,
    ) -> Infallible {
        loop {
            if let Some(mut progress) = progress {
                self.follow(&mut progress).await;
            }
            // The hop gets another actor, unless it has ended.
            sleep(RECORD_RETRY_PAUSE).await;
            progress = self.request_handle.watch_hop(self.hop.0, self.hop.1).await;
        }
    }

    /// Follows one actor of the hop until that actor ends.
    async fn follow(&self, progress: &mut watch::Receiver<Progress>) {
        let is_recorded = |progress: &Progress| !progress.has_unrecorded_stop();
        while progress.wait_for(Progress::has_unrecorded_stop).await.is_ok() {
            let record = progress.wait_for(is_recorded);
            match timeout(UNRECORDED_END_DELAY, record).await.map(|result| result.is_ok()) {
                Ok(true) => continue,
                Ok(false) => return,
                Err(_elapsed) => {}
            }
            report_ledger_wait(self.reporter, true);
            let has_actor = progress.wait_for(is_recorded).await.is_ok();
            report_ledger_wait(self.reporter, false);
            if !has_actor {
                return;
            }
        }
    }
}

/// Returns the end of a hop by the record of its execution, which has ended.
pub(super) fn hop_end(record: &ExecutionRecord) -> HopEnd {
    let code = record.failure.as_ref().map(|failure| failure.code);
    HopEnd { outcome: record.outcome.unwrap_or(Outcome::Failed), code }
}

/// Returns the end of a hop whose execution was removed.
fn removed_hop_result() -> HopWaitResult {
    HopWaitResult::Ended(HopEnd { outcome: Outcome::Failed, code: Some(Code::ExecutionUnknown) })
}
