//! Telemetry events for metrics, traces and alerts: ids, names and numbers, never text.

use chrono::{DateTime, Utc};

use super::alert::{Alert, AlertPhase};
use crate::model::code::Code;
use crate::model::execution::trace::TraceContext;
use crate::model::execution::{AttemptId, Outcome};
use crate::model::id::{AgentId, ContextId, ExecutionId};

/// Telemetry event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TelemetryEvent {
    /// An attempt ended.
    AttemptEnded(EndedAttempt),
    /// An execution reached its outcome.
    ExecutionEnded(EndedExecution),
    /// An alert started or ended.
    AlertChanged(AlertPhase, Alert),
}

/// Execution to which a telemetry event belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetrySubject {
    /// Id of the execution.
    pub execution: ExecutionId,
    /// Id of the agent.
    pub agent: AgentId,
    /// Id of the conversation.
    pub context: ContextId,
    /// Trace context of the request.
    pub request_trace: Option<TraceContext>,
}

/// Attempt that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedAttempt {
    /// Execution of the attempt.
    pub subject: TelemetrySubject,
    /// Id of the attempt.
    pub attempt_id: AttemptId,
    /// Time at which the attempt started or was resumed.
    pub started_at: DateTime<Utc>,
    /// End time of the attempt.
    pub at: DateTime<Utc>,
    /// Error code, if the attempt failed.
    pub code: Option<Code>,
    /// Exit code of the program, if there was one.
    pub exit_code: Option<i32>,
}

/// Execution that reached its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedExecution {
    /// Execution that ended.
    pub subject: TelemetrySubject,
    /// Id of the latest attempt.
    pub attempt_id: AttemptId,
    /// Time of acceptance.
    pub accepted_at: DateTime<Utc>,
    /// End time.
    pub at: DateTime<Utc>,
    /// Outcome of the execution.
    pub outcome: Outcome,
    /// Error code, if the execution failed.
    pub code: Option<Code>,
    /// Tokens that the agent reported since the start of the service process.
    pub tokens: TokenCounts,
}

/// Tokens of language models, as counted by agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenCounts {
    /// Input tokens of models.
    pub input: u64,
    /// Output tokens of models.
    pub output: u64,
}

impl TokenCounts {
    /// Returns the sum of both counts.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        let input = self.input.saturating_add(other.input);
        Self { input, output: self.output.saturating_add(other.output) }
    }
}
