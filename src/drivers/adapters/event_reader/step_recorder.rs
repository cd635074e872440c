//! Steps of a program during its work, for its followers.

use algonius_actors::driver::report::Reporter;
use algonius_actors::model::execution::event::{AgentStep, EventKind};
use algonius_actors::ports::ledger::LedgerError;

/// Greatest number of recorded steps of an attempt.
const MAX_RECORDED_STEPS: usize = 1000;

/// Steps so far.
pub(super) struct StepRecorder<'r> {
    reporter: &'r Reporter,
    remaining_steps: usize,
    is_thinking: bool,
}

impl<'r> StepRecorder<'r> {
    /// Returns an empty record of steps.
    pub(super) const fn new(reporter: &'r Reporter) -> Self {
        Self { reporter, remaining_steps: MAX_RECORDED_STEPS, is_thinking: false }
    }

    /// Records a step. Consecutive thoughts are one step, and the first step above the limit records a warning.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn record(&mut self, step: AgentStep) -> Result<(), LedgerError> {
        let is_thinking = step == AgentStep::Thinking;
        if std::mem::replace(&mut self.is_thinking, is_thinking) && is_thinking {
            return Ok(());
        }
        // Each step is a record in the ledger, so their number has a limit.
        let Some(remaining_steps) = self.remaining_steps.checked_sub(1) else { return Ok(()) };
        self.remaining_steps = remaining_steps;
        if remaining_steps == 0 {
            let message = "the agent takes many steps; no more of them are recorded".to_owned();
            return self.reporter.record_event(EventKind::Warning { message }).await;
        }
        self.reporter.record_event(EventKind::Step { step }).await
    }
}
