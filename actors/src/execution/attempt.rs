//! Present attempt: its work, its readings and its clean-up.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::ExecutionMsg;
use super::context::ExecutionContext;
use super::tasks::ExecutionBackgroundTasks;
use crate::decide::execution::ExecutionEvent;
use crate::driver::report::{
    AttemptContext, BudgetMeter, Liveness, OutputSettings, ReplayFilter, Reporter, WriteBuffer,
};
use crate::driver::{AttemptWork, Lease};
use crate::model::agent::workspace::Workspace;
use crate::model::execution::event::EventKind;
use crate::model::execution::usage::UsageReading;
use crate::model::execution::{AttemptId, Fence};
use crate::model::interaction::{AnswerValue, WireId};
use crate::ports::ledger::WriteBatch;

/// Longest time for which a clean-up waits for the records of the end.
const MAX_RECORD_WAIT: Duration = Duration::from_secs(10);

/// Attempt that starts, runs or is cleaned up.
pub(super) struct CurrentAttempt {
    /// Id of the latest claimed attempt.
    attempt_id: AttemptId,
    /// Attempt whose end is not reported yet.
    attempt_with_unreported_end: Option<StartedAttempt>,
    /// Lease of the work, until the clean-up.
    lease: Option<Lease>,
    pid: Option<u32>,
    /// Exit code of the latest process of any attempt.
    exit_code: Option<i32>,
    /// Latest reading of the resource usage.
    usage_reading: Option<UsageReading>,
    /// Time of the latest output.
    liveness: Liveness,
    /// Events that an earlier process recorded about the resumed attempt.
    recorded_events: Vec<EventKind>,
    is_cleaning: bool,
}

/// Attempt that has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StartedAttempt {
    /// Id of the attempt.
    pub(super) attempt_id: AttemptId,
    /// Start time.
    pub(super) started_at: DateTime<Utc>,
}

impl CurrentAttempt {
    /// Creates the part before the start of the work. An earlier attempt ended with `exit_code`, and an earlier process
    /// recorded the `recorded_events`.
    pub(super) fn new(
        attempt_id: AttemptId,
        exit_code: Option<i32>,
        recorded_events: Vec<EventKind>,
    ) -> Self {
        Self {
            attempt_id,
            attempt_with_unreported_end: None,
            lease: None,
            pid: None,
            exit_code,
            usage_reading: None,
            liveness: Liveness::default(),
            recorded_events,
            is_cleaning: false,
        }
    }

    /// Returns the id of the attempt.
    pub(super) const fn attempt_id(&self) -> AttemptId {
        self.attempt_id
    }

    /// Returns the id of the running process.
    pub(super) const fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Returns the exit code of the latest process.
    pub(super) const fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }

    /// Returns the latest reading of the resource usage.
    pub(super) const fn usage_reading(&self) -> Option<UsageReading> {
        self.usage_reading
    }

    /// Makes a claimed attempt the present one. Reports of earlier attempts are late from now on.
    pub(super) const fn apply_claim(&mut self, attempt_id: AttemptId) {
        self.attempt_id = attempt_id;
    }

    /// Starts the work of an attempt.
    pub(super) fn start(
        &mut self,
        attempt_id: AttemptId,
        context: &ExecutionContext,
        fence: Fence,
        workspace: Option<Workspace>,
    ) {
        let reporter = self.reset_and_create_reporter(attempt_id, context, fence, Vec::new());
        let work = attempt_work(attempt_id, context, workspace);
        self.lease = Some(context.driver.start(work, reporter));
    }

    /// Resumes the work of an attempt that an earlier process or actor started.
    pub(super) fn resume(
        &mut self,
        attempt_id: AttemptId,
        context: &ExecutionContext,
        fence: Fence,
        workspace: Option<Workspace>,
    ) {
        // Only the first attempt after a restart is replayed; later ones report nothing that is recorded already.
        let recorded_events = mem::take(&mut self.recorded_events);
        let reporter = self.reset_and_create_reporter(attempt_id, context, fence, recorded_events);
        let work = attempt_work(attempt_id, context, workspace);
        self.lease = Some(context.driver.resume(work, reporter));
    }

    /// Resets the readings for an attempt. Returns its reporter.
    fn reset_and_create_reporter(
        &mut self,
        attempt_id: AttemptId,
        context: &ExecutionContext,
        fence: Fence,
        recorded_events: Vec<EventKind>,
    ) -> Reporter {
        let services = &context.services;
        self.attempt_with_unreported_end =
            Some(StartedAttempt { attempt_id, started_at: context.now() });
        (self.liveness, self.usage_reading) = (Liveness::default(), None);
        let attempt_context = AttemptContext {
            execution_id: context.id,
            attempt_id,
            fence,
            ledger: Arc::clone(&services.ledger),
            clock: Arc::clone(&services.clock),
            // The redactor of this moment: after a reload a new attempt uses the new rules, and a running text is not
            // redacted by two.
            redactor: services.redactor.current(),
            output_settings: OutputSettings {
                max_channel_bytes: context.spec.limits.sizes.max_output_bytes,
                publishes_raw_answer: context.spec.endpoint_config.returns_raw_answers,
            },
            progress: context.progress.clone(),
            liveness: self.liveness.clone(),
            replay_filter: ReplayFilter::new(recorded_events),
            budget_meter: BudgetMeter::new(&context.spec, &services.budget_usages),
            write_buffer: WriteBuffer::default(),
        };
        let actor = context.actor.clone();
        Reporter::new(attempt_context, move |report| {
            _ = actor.cast(ExecutionMsg::DriverReported(report)); // A late report is dropped.
        })
    }

    /// Records the start of the process. Returns true if the report belongs to the present attempt.
    pub(super) fn record_start_if_current(
        &mut self,
        attempt_id: AttemptId,
        pid: Option<u32>,
    ) -> bool {
        let is_current = attempt_id == self.attempt_id;
        if is_current {
            self.pid = pid;
        }
        is_current
    }

    /// Records the end of the process. Returns its last records that count: of an attempt that is not the present one,
    /// text is kept and events are dropped.
    pub(super) fn apply_end_and_filter_batch(
        &mut self,
        attempt_id: AttemptId,
        exit_code: Option<i32>,
        mut batch: WriteBatch,
    ) -> WriteBatch {
        if attempt_id == self.attempt_id {
            (self.pid, self.exit_code) = (None, exit_code);
        } else {
            // The batch is written under the fence of the later attempt, for which these events did not happen.
            batch.events.clear();
        }
        batch
    }

    /// Returns the attempt whose end is not reported yet.
    pub(super) const fn attempt_with_unreported_end(&self) -> Option<StartedAttempt> {
        self.attempt_with_unreported_end
    }

    /// Returns the start of an attempt whose end is to be reported; `None` if it was reported before.
    pub(super) fn take_attempt_with_unreported_end(
        &mut self,
        attempt_id: AttemptId,
    ) -> Option<StartedAttempt> {
        self.attempt_with_unreported_end.take_if(|started| started.attempt_id == attempt_id)
    }

    /// Requests the work to stop.
    pub(super) fn stop(&self) {
        self.lease.iter().for_each(|lease| lease.stop());
    }

    /// Sends the answer to a question to the work.
    pub(super) fn send_answer(&self, wire_id: WireId, answer: Option<AnswerValue>) {
        if let Some(lease) = &self.lease {
            lease.send_answer(wire_id, answer);
        }
    }

    /// Records a sign of life of the work.
    pub(super) fn record_activity(&self) {
        self.liveness.record_activity();
    }

    /// Starts a reading by the lease. A failed reading is not reported.
    pub(super) fn start_usage_reading(
        &self,
        tasks: &mut ExecutionBackgroundTasks,
        attempt_id: AttemptId,
    ) {
        let Some(reading) = self.lease.as_ref().map(|lease| lease.measure_usage()) else { return };
        tasks.spawn(async move { Some(ExecutionMsg::UsageMeasured(attempt_id, reading.await?)) });
    }

    /// Records a reading of the present attempt. Returns true if it belongs to it. A reading does not count as output:
    /// a silent program may use much processor time.
    pub(super) fn record_reading_if_current(
        &mut self,
        attempt_id: AttemptId,
        usage: UsageReading,
    ) -> bool {
        let is_current = attempt_id == self.attempt_id;
        if is_current {
            self.usage_reading = Some(usage);
        }
        is_current
    }

    /// Reports the duration of the attempt's silence after a delay.
    pub(super) fn schedule_silence_check(
        &self,
        tasks: &mut ExecutionBackgroundTasks,
        attempt_id: AttemptId,
        delay: Duration,
    ) {
        let liveness = self.liveness.clone();
        tasks.spawn(async move {
            tokio::time::sleep(delay).await;
            let silence = liveness.idle_time();
            Some(ExecutionMsg::Event(ExecutionEvent::SilenceMeasured { attempt_id, silence }))
        });
    }

    /// Starts the clean-up, unless one runs, which reports its end too. It waits until the records of the end are
    /// `written`: after a crash before that, the next process instance needs what the clean-up removes.
    pub(super) fn start_clean_up(
        &mut self,
        tasks: &mut ExecutionBackgroundTasks,
        attempt_id: AttemptId,
        records_written: Option<oneshot::Receiver<()>>,
    ) {
        // A cancellation and the end of the attempt may both request it.
        if mem::replace(&mut self.is_cleaning, true) {
            return;
        }
        // The clean-up may take seconds, so it must not run in the handler of the actor.
        let lease = self.lease.take();
        tasks.spawn(async move {
            if let Some(lease) = lease {
                if !wait_for_records(records_written).await {
                    return None; // The next actor of this execution claims the work.
                }
                lease.clean_up().await;
            }
            Some(ExecutionMsg::Event(ExecutionEvent::CleanUpCompleted { attempt_id }))
        });
    }

    /// Returns true while a clean-up runs.
    pub(super) const fn is_cleaning(&self) -> bool {
        self.is_cleaning
    }

    /// Records the end of the clean-up.
    pub(super) const fn record_clean_up_end(&mut self) {
        self.is_cleaning = false;
    }
}

/// Waits until records are written. Returns false if their writer failed. Without a ledger the wait ends too: the
/// processes and the slot of an attempt are more important than its end.
async fn wait_for_records(records_written: Option<oneshot::Receiver<()>>) -> bool {
    match records_written {
        Some(written) => !matches!(timeout(MAX_RECORD_WAIT, written).await, Ok(Err(_))),
        None => true,
    }
}

/// Returns the work of an attempt.
fn attempt_work(
    attempt_id: AttemptId,
    context: &ExecutionContext,
    workspace: Option<Workspace>,
) -> AttemptWork {
    let (spec, request) = (Arc::clone(&context.spec), Arc::clone(&context.request));
    AttemptWork { execution: context.id, attempt_id, spec, request, workspace }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_ATTEMPT: AttemptId = AttemptId { attempt: 2, ..AttemptId::FIRST };

    fn started_attempt(attempt_id: AttemptId) -> StartedAttempt {
        StartedAttempt { attempt_id, started_at: DateTime::UNIX_EPOCH }
    }

    fn last_records() -> WriteBatch {
        let usage = EventKind::Heartbeat(UsageReading::default());
        WriteBatch { chunks: Vec::new(), events: vec![(DateTime::UNIX_EPOCH, usage)] }
    }

    #[test]
    fn late_reports_of_an_earlier_attempt_change_nothing() {
        let mut attempt = CurrentAttempt::new(AttemptId::FIRST, None, Vec::new());
        assert!(attempt.record_start_if_current(AttemptId::FIRST, Some(7)));
        attempt.apply_claim(SECOND_ATTEMPT);
        assert!(attempt.record_start_if_current(SECOND_ATTEMPT, Some(8)));
        assert!(!attempt.record_start_if_current(AttemptId::FIRST, Some(9)));
        assert!(
            attempt
                .apply_end_and_filter_batch(AttemptId::FIRST, Some(1), last_records())
                .is_empty()
        );
        assert!(!attempt.record_reading_if_current(AttemptId::FIRST, UsageReading::default()));
        assert_eq!(
            (attempt.pid(), attempt.exit_code(), attempt.usage_reading()),
            (Some(8), None, None)
        );
        assert_eq!(
            attempt.apply_end_and_filter_batch(SECOND_ATTEMPT, Some(3), last_records()),
            last_records()
        );
        assert_eq!((attempt.pid(), attempt.exit_code()), (None, Some(3)));
    }

    #[test]
    fn the_end_of_an_attempt_is_reported_once() {
        let mut attempt = CurrentAttempt::new(AttemptId::FIRST, None, Vec::new());
        assert_eq!(
            attempt.take_attempt_with_unreported_end(AttemptId::FIRST),
            None,
            "it has not started"
        );
        attempt.attempt_with_unreported_end = Some(started_attempt(SECOND_ATTEMPT));
        assert_eq!(
            attempt.take_attempt_with_unreported_end(AttemptId::FIRST),
            None,
            "a later attempt runs"
        );
        assert_eq!(attempt.attempt_with_unreported_end(), Some(started_attempt(SECOND_ATTEMPT)));
        assert_eq!(
            attempt.take_attempt_with_unreported_end(SECOND_ATTEMPT),
            Some(started_attempt(SECOND_ATTEMPT))
        );
        assert_eq!(
            attempt.take_attempt_with_unreported_end(SECOND_ATTEMPT),
            None,
            "its end was reported before"
        );
    }
}
