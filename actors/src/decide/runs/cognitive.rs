//! Run of a cognitive agent: which action follows, by the steps that the run has recorded.
//!
//! A model turn is one reply of the model, with the results of its calls. The run records each step before the next one
//! begins, so after a crash the run is a fold over the recorded steps. The calls of a reply are sent one after the
//! other: at most one call may have been sent and has no end when a crash interrupts the run.

pub mod arguments;
pub mod conversation;
pub mod reply;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::model::agent::cognitive::FINAL_ANSWER_CALL;
use crate::model::execution::step::{StepErrorCause, StepPlan, StepRecord, StepType};

/// Number of replies in a row that cannot be used before the run fails.
const MAX_UNUSABLE_REPLIES: usize = 3;
/// Greatest length of the text of all steps before another request, in bytes. Each request contains all of it.
const MAX_RUN_BYTES: usize = 8 << 20;
/// Text of the error after a crash that interrupted a call.
const UNKNOWN_OUTCOME_MESSAGE: &str = "outcome unknown: the service was interrupted while the call ran. The call may have had its \
     effect, and is not repeated. Check its effect before you make the call again.";

/// Step with its text. Raw: it may contain secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct RunStep {
    /// Facts of the step.
    pub record: StepRecord,
    /// Text of the step.
    pub text: String,
}

impl std::fmt::Debug for RunStep {
    /// Omits the text.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RunStep").field(&self.record).finish()
    }
}

/// Result of a call: the text of the tool, or the sentence that explains the failure.
pub type ToolCallOutcome = Result<String, String>;

/// Run of a cognitive agent: its plan, and its steps in the order of their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CognitiveRun {
    plan: StepPlan,
    steps: Vec<RunStep>,
    /// True if an earlier process may have sent the first call without an end.
    may_have_sent_call: bool,
}

/// Next action of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CognitiveAction<'r> {
    /// Request the reply of the model for this turn.
    RequestReply(u32),
    /// Send this call to its tool.
    Call(&'r RunStep),
    /// Record that the outcome of this call is unknown.
    RecordUnknownOutcome(&'r RunStep),
    /// End the run with this answer.
    Finish(&'r str),
    /// End the run: no turn is left.
    FailTurnsExhausted,
    /// End the run: the replies of the model cannot be used.
    FailUnusableReplies,
    /// End the run: its steps have too much text for a further request.
    FailTextTooLong,
}

impl CognitiveRun {
    /// Creates a run that has done nothing yet.
    #[must_use]
    pub const fn new(plan: StepPlan) -> Self {
        Self { plan, steps: Vec::new(), may_have_sent_call: false }
    }

    /// Restores a run from its plan and its recorded steps.
    #[must_use]
    pub const fn restore(plan: StepPlan, steps: Vec<RunStep>) -> Self {
        Self { plan, steps, may_have_sent_call: true }
    }

    /// Applies steps that are recorded.
    pub fn apply(&mut self, steps: Vec<RunStep>) {
        self.may_have_sent_call = false;
        self.steps.extend(steps);
    }

    /// Returns the steps, in the order of their numbers.
    #[must_use]
    pub fn steps(&self) -> &[RunStep] {
        &self.steps
    }

    /// Returns the plan.
    #[must_use]
    pub const fn plan(&self) -> &StepPlan {
        &self.plan
    }

    /// Returns the number of the next step.
    #[must_use]
    pub fn next_step_number(&self) -> u32 {
        self.steps.last().map_or(1, |step| step.record.number + 1)
    }

    /// Decides the next action.
    #[must_use]
    pub fn next_action(&self) -> CognitiveAction<'_> {
        if let Some(answer) = self.answer() {
            return CognitiveAction::Finish(answer);
        }
        if let Some(call) = self.first_unfinished_call() {
            let is_repeatable = !self.may_have_sent_call || call.record.idempotent;
            return if is_repeatable {
                CognitiveAction::Call(call)
            } else {
                CognitiveAction::RecordUnknownOutcome(call)
            };
        }
        if self.unusable_reply_count() >= MAX_UNUSABLE_REPLIES {
            return CognitiveAction::FailUnusableReplies;
        }
        if self.steps.iter().map(|step| step.text.len()).sum::<usize>() > MAX_RUN_BYTES {
            return CognitiveAction::FailTextTooLong;
        }
        let turn = self.steps.last().map_or(0, |step| step.record.turn) + 1;
        if turn > self.plan.max_steps {
            CognitiveAction::FailTurnsExhausted
        } else {
            CognitiveAction::RequestReply(turn)
        }
    }

    /// Returns the step that ends a call.
    #[must_use]
    pub fn call_end_step(
        &self,
        call: &StepRecord,
        result: ToolCallOutcome,
        duration: Duration,
    ) -> RunStep {
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let (step_type, cause, text) = match result {
            Ok(text) => (StepType::Observation, None, text),
            Err(reason) => (StepType::Error, Some(StepErrorCause::ToolFailed), reason),
        };
        let record = StepRecord {
            cause,
            duration_ms: Some(duration_ms),
            ..self.call_end_record(call, step_type)
        };
        RunStep { record, text: reply::truncate_result(text) }
    }

    /// Returns the step that records the unknown outcome of a call.
    #[must_use]
    pub fn unknown_outcome_step(&self, call: &StepRecord) -> RunStep {
        let cause = Some(StepErrorCause::Interrupted);
        let record = StepRecord { cause, ..self.call_end_record(call, StepType::Error) };
        RunStep { record, text: UNKNOWN_OUTCOME_MESSAGE.to_owned() }
    }

    fn call_end_record(&self, call: &StepRecord, step_type: StepType) -> StepRecord {
        let tool = call.tool.clone();
        StepRecord {
            tool,
            call: Some(call.number),
            ..StepRecord::new(self.next_step_number(), call.turn, step_type)
        }
    }

    fn answer(&self) -> Option<&str> {
        let last = self.steps.last()?;
        let is_answer = last.record.step_type == StepType::Observation
            && last.record.tool.as_deref() == Some(FINAL_ANSWER_CALL);
        is_answer.then_some(last.text.as_str())
    }

    /// Returns the first call without an end.
    fn first_unfinished_call(&self) -> Option<&RunStep> {
        let is_ended = |number| self.steps.iter().any(|step| step.record.call == Some(number));
        self.steps.iter().find(|step| {
            step.record.step_type == StepType::ToolCall && !is_ended(step.record.number)
        })
    }

    /// Returns the number of unusable replies since the last usable one.
    fn unusable_reply_count(&self) -> usize {
        let is_unusable =
            |step: &&RunStep| step.record.cause == Some(StepErrorCause::UnusableReply);
        self.steps.iter().rev().take_while(is_unusable).count()
    }
}
