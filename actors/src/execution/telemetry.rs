//! Telemetry and log lines of an execution: ids, numbers, and sentences without secrets.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::attempt::BegunAttempt;
use super::context::ExecutionContext;
use crate::decide::execution::ExecutionEnd;
use crate::decide::notification::alert::AlertInput;
use crate::model::code::Code;
use crate::model::execution::event::{DeadlineKind, EventKind};
use crate::model::execution::{AttemptId, Outcome};
use crate::model::observation::telemetry_events::{
    EndedAttempt, EndedExecution, TelemetryEvent, TelemetrySubject, TokenCounts,
};

impl ExecutionContext {
    /// Returns the subject of the telemetry events.
    fn subject(&self) -> TelemetrySubject {
        TelemetrySubject {
            execution: self.id,
            agent: self.spec.id.clone(),
            context: self.request.context.clone(),
            asked: self.request.origin.trace.clone(),
        }
    }

    /// Reports the end of an attempt.
    pub(super) fn report_attempt(
        &self,
        attempt: BegunAttempt,
        code: Option<Code>,
        exit_code: Option<i32>,
    ) {
        let BegunAttempt { attempt_id, begun } = attempt;
        let (of, at) = (self.subject(), self.now());
        let ended = EndedAttempt { of, attempt_id, begun, at, code, exit_code };
        self.services.observer.record(TelemetryEvent::AttemptEnded(ended));
    }

    /// Reports the outcome of the execution to the observer and the monitor.
    pub(super) fn report_end(
        &self,
        ending: &ExecutionEnd,
        attempt_id: AttemptId,
        tokens: TokenCounts,
        at: DateTime<Utc>,
    ) {
        let outcome = ending.outcome;
        let code = ending.failure.as_ref().map(|failure| failure.code);
        let of = self.subject();
        let accepted = of.execution.accepted_at().unwrap_or(at);
        let ended = EndedExecution { of, attempt_id, accepted, at, outcome, code, tokens };
        self.services.observer.record(TelemetryEvent::ExecutionEnded(ended));
        let agent = self.spec.id.clone();
        match outcome {
            Outcome::Completed => self.services.monitor.observe(AlertInput::Ended(agent, true)),
            Outcome::Failed | Outcome::Timeout => {
                self.services.monitor.observe(AlertInput::Ended(agent, false));
            }
            Outcome::Cancelled => {} // A cancellation is no failure of the agent.
        }
    }

    /// Logs that a deadline is near. Returns the event for followers.
    pub(super) fn warn(
        &self,
        at: DateTime<Utc>,
        limit: DeadlineKind,
        left: Duration,
        message: String,
    ) -> EventKind {
        let left = TimeDelta::from_std(left).unwrap_or_default();
        let ends_at = at.checked_add_signed(left).unwrap_or(at);
        tracing::warn!(execution = %self.id, agent = %self.spec.id, limit = limit.as_str(), "deadline is near");
        EventKind::DeadlineApproaching { limit, ends_at, message }
    }

    /// Logs the end. The duration is measured from the first attempt of this process, in microseconds; an execution
    /// that never started has none.
    pub(super) fn log_end(&self, ending: &ExecutionEnd, took: Option<Duration>) {
        let (outcome, failure) = (ending.outcome, ending.failure.as_ref());
        let code = failure.map(|failure| failure.code.as_str());
        let why = failure.map(|failure| self.services.redactor.now().redact(&failure.message));
        let duration_us = took.map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        tracing::info!(
            execution = %self.id,
            agent = %self.spec.id,
            %outcome,
            code,
            why = why.as_deref(),
            duration_us,
            "ended"
        );
    }
}
