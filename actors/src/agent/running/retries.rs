//! Retry and backoff of an agent's executions: the decision about each failed attempt, and the pause before the next.
//!
//! The ledger enforces the decision: it records the failed attempt before the pause begins, and grants the next attempt
//! only under the claim of the failed one.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

use super::{ExecutionStart, RunningExecution, RunningExecutions};
use crate::agent::queue::QueuedRequest;
use crate::agent::tasks::AgentBackgroundTasks;
use crate::agent::{AgentArgs, AgentMsg};
use crate::decide::execution::{ExecutionEvent, NextAttempt};
use crate::decide::retry::{RetryDecision, RetryHistory, RetryPolicy, decide_retry};
use crate::execution::recovery::{ContinuedWork, cancel_suspended};
use crate::execution::{ExecutionMsg, FailedAttemptReport, StartingPoint};
use crate::model::agent::AgentSpec;
use crate::model::agent::quota::Deferral;
use crate::model::execution::record::ExecutionRecord;
use crate::model::execution::{AttemptId, ExecutionState};
use crate::model::id::ExecutionId;
use crate::model::observation::status::{ExecutionStatus, Health};
use crate::services::credential_breakers::BreakerProbe;

/// Retries of one execution: their policy, their counts, and the failed attempt that another one follows.
#[derive(Debug)]
pub(super) struct ExecutionRetries {
    policy: RetryPolicy,
    history: RetryHistory,
    /// Failed attempt after which the agent has decided to try again.
    retried_attempt: Option<RetriedAttempt>,
}

/// Failed attempt that another one follows.
#[derive(Debug)]
struct RetriedAttempt {
    report: FailedAttemptReport,
    /// Pause before the next attempt; `None` for a deferral, during which the execution is in the queue.
    pause: Option<Duration>,
    /// Begin and end of the pause, once the actor of the failed attempt has stopped.
    pause_period: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

impl ExecutionRetries {
    /// Creates the retries of an execution with this definition and starting point. Deferrals of an earlier process
    /// count, so that a restart of the service does not begin the backoff anew.
    pub(super) const fn new(spec: &AgentSpec, starting_point: &StartingPoint) -> Self {
        let policy = RetryPolicy::from_spec(spec);
        let policy = if starting_point.has_original_input {
            policy
        } else {
            policy.without_further_attempts()
        };
        Self { policy, history: starting_point.retry_history, retried_attempt: None }
    }

    /// Decides what follows a failed attempt.
    fn decide_next_attempt(
        &mut self,
        report: FailedAttemptReport,
        now: DateTime<Utc>,
    ) -> NextAttempt {
        let FailedAttemptReport { failed_attempt, failure, .. } = &report;
        self.history.count_program_retries(failure);
        let (next_attempt, pause) =
            match decide_retry(&self.policy, self.history, *failed_attempt, failure) {
                RetryDecision::GiveUp => return NextAttempt::None,
                RetryDecision::Retry(pause) => (NextAttempt::AfterPause, Some(pause)),
                RetryDecision::Defer(wait, cause) => {
                    let end = (end_of_wait(now, wait), cause);
                    let deferral =
                        self.history.record_deferral(failed_attempt.number, failure, end);
                    (NextAttempt::AfterDeferral(deferral), None)
                }
            };
        self.retried_attempt = Some(RetriedAttempt { report, pause, pause_period: None });
        next_attempt
    }

    /// Begins the pause after the failed attempt. Returns the attempt and the pause; `None` if no attempt follows.
    fn begin_pause(&mut self, now: DateTime<Utc>) -> Option<(AttemptId, Duration)> {
        let retried_attempt = self.retried_attempt.as_mut()?;
        let pause = retried_attempt.pause?;
        retried_attempt.pause_period = Some((now, end_of_wait(now, pause)));
        Some((retried_attempt.report.attempt_id, pause))
    }

    /// Returns true if the execution pauses between two attempts.
    pub(super) fn is_pausing(&self) -> bool {
        self.retried_attempt.as_ref().is_some_and(|failed| failed.pause_period.is_some())
    }

    /// Returns the attempt after which the execution pauses; `None` if it does not pause.
    fn paused_attempt(&self) -> Option<AttemptId> {
        self.retried_attempt
            .as_ref()
            .filter(|_| self.is_pausing())
            .map(|failed| failed.report.attempt_id)
    }

    /// Returns the starting point of the next attempt; `None` if no attempt follows.
    fn next_starting_point(&self) -> Option<StartingPoint> {
        let retried_attempt = self.retried_attempt.as_ref()?;
        Some(StartingPoint::after_failure(&retried_attempt.report, self.history))
    }
}

impl RunningExecution {
    /// Returns the entry of the next attempt after a pause; `None` if no attempt follows.
    fn into_retry_entry(self, now: DateTime<Utc>) -> Option<QueuedRequest> {
        let starting_point = self.retries.next_starting_point()?;
        let entry = QueuedRequest::new(self.request, starting_point, now, Instant::now());
        Some(QueuedRequest {
            progress: self.progress,
            span: self.request_span,
            replay_source: self.replay_source,
            probe: self.probe,
            ..entry
        })
    }

    /// Returns the queue entry of an execution that is deferred after its failed attempt, and its probe of the
    /// credential; `None` if no attempt follows.
    pub(in crate::agent) fn into_deferred_entry_and_probe(
        self,
        deferral: Deferral,
        now: DateTime<Utc>,
    ) -> Option<(QueuedRequest, Option<BreakerProbe>)> {
        let mut entry = self.into_retry_entry(now)?;
        entry.deferral = Some(deferral);
        let probe = entry.probe.take();
        Some((entry, probe))
    }

    /// Returns the status of the execution, if it pauses.
    fn paused_status(&self, id: ExecutionId) -> Option<ExecutionStatus> {
        let retried_attempt = self.retries.retried_attempt.as_ref()?;
        let (since, until) = retried_attempt.pause_period?;
        let progress = self.progress.borrow();
        Some(ExecutionStatus {
            id,
            health: Health::Alive,
            state: Some(progress.state),
            since: Some(since),
            queued: None,
            followers: progress.followers.count(),
            attempt_id: Some(retried_attempt.report.attempt_id),
            pid: None,
            usage: None,
            deadline: Some(until),
        })
    }
}

impl RunningExecutions {
    /// Decides what follows a failed attempt, and replies to its actor.
    pub(in crate::agent) fn decide_next_attempt(
        &mut self,
        id: ExecutionId,
        report: FailedAttemptReport,
        args: &AgentArgs,
    ) {
        let Some(execution) = self.executions.get_mut(&id) else { return };
        let attempt_id = report.attempt_id;
        let next_attempt = execution.retries.decide_next_attempt(report, args.services.clock.now());
        let decided = ExecutionEvent::NextAttemptDecided { attempt_id, next_attempt };
        _ = execution.actor.cast(ExecutionMsg::Event(decided)); // A crashed actor is replaced, and reports again.
    }

    fn paused_attempt(&self, id: ExecutionId) -> Option<AttemptId> {
        self.executions.get(&id)?.retries.paused_attempt()
    }

    /// Returns the statuses of the executions that pause.
    pub(in crate::agent) fn paused_statuses(&self) -> Vec<ExecutionStatus> {
        self.executions.iter().filter_map(|(id, execution)| execution.paused_status(*id)).collect()
    }
}

/// Control of the running executions: their pauses between two attempts, and their cancellation.
pub(in crate::agent) struct ExecutionControl<'a> {
    pub(in crate::agent) running: &'a mut RunningExecutions,
    pub(in crate::agent) args: &'a AgentArgs,
    pub(in crate::agent) tasks: &'a mut AgentBackgroundTasks,
}

impl ExecutionControl<'_> {
    /// Begins the pause of an execution whose actor has stopped after a failed attempt, or cancels the execution.
    /// Without a next attempt the execution is lost.
    pub(in crate::agent) fn pause_before_retry_or_settle(&mut self, id: ExecutionId) {
        let execution = self.running.executions.get_mut(&id);
        // In another state the actor has stopped for another reason: the ledger refused its claim.
        let failed_execution = execution
            .filter(|execution| execution.progress.borrow().state == ExecutionState::Failed);
        let now = self.args.services.clock.now();
        let pause = failed_execution.and_then(|failed| {
            Some((failed.retries.begin_pause(now)?, failed.cancellation.take()))
        });
        match pause {
            None => self.running.settle_lost(id, self.args, self.tasks),
            Some((_, Some(reason))) => self.cancel(id, reason),
            Some(((attempt_id, pause), None)) => {
                self.tasks.send_after(pause, AgentMsg::RetryDue(id, attempt_id));
            }
        }
    }

    /// Starts a new actor for work that was taken over, and that the crashed actor may have been requested to cancel.
    pub(in crate::agent) fn continue_work(&mut self, work: ContinuedWork) {
        let id = work.record.id;
        let crashed_execution = self.running.executions.get_mut(&id);
        let cancellation = crashed_execution.and_then(|crashed| crashed.cancellation.take());
        self.running.continue_work(work, self.args, self.tasks);
        if let Some(reason) = cancellation {
            self.cancel(id, reason);
        }
    }

    /// Starts the attempt that follows this one, because the pause is over. A cancelled execution does not pause any
    /// more.
    pub(in crate::agent) fn retry(&mut self, id: ExecutionId, attempt_id: AttemptId) {
        if self.running.paused_attempt(id) == Some(attempt_id) {
            self.end_pause(id, ExecutionEvent::RetryDue { attempt_id });
        }
    }

    /// Cancels an execution that holds a slot: its actor, or the pause before its next attempt.
    pub(in crate::agent) fn cancel(&mut self, id: ExecutionId, reason: String) {
        if self.running.paused_attempt(id).is_some() {
            self.end_pause(id, ExecutionEvent::CancelRequested { reason });
        } else if let Some(execution) = self.running.executions.get_mut(&id) {
            execution.cancellation = Some(reason.clone());
            let cancel = ExecutionEvent::CancelRequested { reason };
            _ = execution.actor.cast(ExecutionMsg::Event(cancel));
        }
    }

    /// Cancels an execution that has no actor: one with an open question, or suspended work while the service stops.
    pub(in crate::agent) fn cancel_without_actor(
        &mut self,
        record: &ExecutionRecord,
        reason: String,
        is_draining: bool,
    ) {
        let definition = self.args.definition();
        if record.awaits_answer() {
            let cancel = ExecutionEvent::CancelRequested { reason };
            let start = ExecutionStart::for_ending_open_question(record, definition, cancel);
            self.running.start(start, &self.args.services, self.tasks);
        } else if is_draining && record.state.is_at_work() {
            let (services, driver) = (self.args.services.clone(), definition.driver);
            let record = record.clone();
            self.tasks.spawn_detached(async move {
                cancel_suspended(&services, &*driver, &record, reason).await;
            });
        }
    }

    /// Cancels all executions that hold a slot.
    pub(in crate::agent) fn cancel_all(&mut self, reason: &str) {
        for id in self.running.executions.keys().copied().collect::<Vec<_>>() {
            self.cancel(id, reason.to_owned());
        }
    }

    /// Starts another actor for an execution that pauses.
    fn end_pause(&mut self, id: ExecutionId, first_event: ExecutionEvent) {
        let Some(execution) = self.running.remove_for_replacement(id) else { return };
        let definition = execution.definition.clone();
        if let Some(entry) = execution.into_retry_entry(self.args.services.clock.now()) {
            let start = ExecutionStart { id, entry, definition, first_event };
            self.running.start(start, &self.args.services, self.tasks);
        }
    }
}

/// Returns the end of a wait, as wall time, because it is shown or stored.
fn end_of_wait(now: DateTime<Utc>, wait: Duration) -> DateTime<Utc> {
    let wait = TimeDelta::from_std(wait).unwrap_or_default();
    now.checked_add_signed(wait).unwrap_or(now)
}
