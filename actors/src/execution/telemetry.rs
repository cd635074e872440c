//! Telemetry and log lines of an execution: ids, numbers, and sentences without secrets.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::attempt::StartedAttempt;
use super::context::ExecutionContext;
use crate::decide::execution::{ExecutionEnd, ExecutionEvent};
use crate::decide::notification::alert::AlertInput;
use crate::model::agent::quota::Deferral;
use crate::model::code::Code;
use crate::model::execution::event::{DeadlineKind, EventKind};
use crate::model::execution::{AttemptId, Outcome};
use crate::model::observation::telemetry_events::{
    EndedAttempt, EndedExecution, TelemetryEvent, TelemetrySubject, TokenCounts,
};

impl ExecutionContext {
    /// Returns the subject of the telemetry events.
    fn telemetry_subject(&self) -> TelemetrySubject {
        TelemetrySubject {
            execution: self.id,
            agent: self.spec.id.clone(),
            context: self.request.context.clone(),
            request_trace: self.request.origin.trace.clone(),
        }
    }

    /// Reports the end of an attempt.
    pub(super) fn report_attempt_end(
        &self,
        attempt: StartedAttempt,
        code: Option<Code>,
        exit_code: Option<i32>,
    ) {
        let StartedAttempt { attempt_id, started_at } = attempt;
        let (subject, at) = (self.telemetry_subject(), self.now());
        let ended = EndedAttempt { subject, attempt_id, started_at, at, code, exit_code };
        self.services.observer.record(TelemetryEvent::AttemptEnded(ended));
    }

    /// Reports the outcome of the execution to the observer and the monitor.
    pub(super) fn report_execution_end(
        &self,
        ending: &ExecutionEnd,
        attempt_id: AttemptId,
        tokens: TokenCounts,
        at: DateTime<Utc>,
    ) {
        let outcome = ending.outcome;
        let code = ending.failure.as_ref().map(|failure| failure.code);
        let subject = self.telemetry_subject();
        let accepted_at = subject.execution.accepted_at().unwrap_or(at);
        let ended = EndedExecution { subject, attempt_id, accepted_at, at, outcome, code, tokens };
        self.services.observer.record(TelemetryEvent::ExecutionEnded(ended));
        let agent = self.spec.id.clone();
        match outcome {
            Outcome::Completed => {
                self.services.monitor.send_alert_input(AlertInput::ExecutionEnded(agent, true));
            }
            Outcome::Failed | Outcome::Timeout => {
                self.services.monitor.send_alert_input(AlertInput::ExecutionEnded(agent, false));
            }
            Outcome::Cancelled => {} // A cancellation is no failure of the agent.
        }
    }

    /// Logs that a deadline is near. Returns the event for followers.
    pub(super) fn log_and_build_deadline_warning(
        &self,
        at: DateTime<Utc>,
        limit: DeadlineKind,
        remaining: Duration,
        message: String,
    ) -> EventKind {
        let remaining = TimeDelta::from_std(remaining).unwrap_or_default();
        let ends_at = at.checked_add_signed(remaining).unwrap_or(at);
        tracing::warn!(execution = %self.id, agent = %self.spec.id, limit = limit.as_str(), "deadline is near");
        EventKind::DeadlineApproaching { limit, ends_at, message }
    }

    /// Logs an event that changes nothing.
    pub(super) fn log_ignored(&self, event: &ExecutionEvent) {
        tracing::debug!(execution = %self.id, ?event, "ignored");
    }

    /// Logs a deferral.
    pub(super) fn log_deferral(&self, Deferral { until, cause, .. }: Deferral) {
        let (id, agent, cause) = (self.id, &self.spec.id, cause.as_str());
        tracing::info!(execution = %id, %agent, %until, cause, "deferred");
    }

    /// Logs the end. The duration is measured from the first attempt of this process, in microseconds; an execution
    /// that never started has none.
    pub(super) fn log_end(&self, ending: &ExecutionEnd, duration: Option<Duration>) {
        let (outcome, failure) = (ending.outcome, ending.failure.as_ref());
        let code = failure.map(|failure| failure.code.as_str());
        let reason =
            failure.map(|failure| self.services.redactor.current().redact(&failure.message));
        let duration_us =
            duration.map(|duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
        tracing::info!(
            execution = %self.id,
            agent = %self.spec.id,
            %outcome,
            code,
            reason = reason.as_deref(),
            duration_us,
            "ended"
        );
    }
}
