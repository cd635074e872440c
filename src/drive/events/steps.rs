//! What a program does on its way, as those see it who follow it.

use algonius_actors::model::event::{Fact, Step};
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::Reporter;

/// So many steps of an attempt are recorded.
const MOST: usize = 1000;

/// The steps so far.
pub(super) struct Steps<'r> {
    report: &'r Reporter,
    left: usize,
    is_thinking: bool,
}

impl<'r> Steps<'r> {
    /// None so far.
    pub(super) const fn new(report: &'r Reporter) -> Self {
        Self { report, left: MOST, is_thinking: false }
    }

    /// Records a step. Thoughts in a row are one, and the first that is too many is warned of.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn take(&mut self, step: Step) -> Result<(), LedgerError> {
        let is_thinking = step == Step::Thinking;
        if std::mem::replace(&mut self.is_thinking, is_thinking) && is_thinking {
            return Ok(());
        }
        let Some(left) = self.left.checked_sub(1) else { return Ok(()) };
        self.left = left;
        if left == 0 {
            let message = "the agent takes many steps; no more of them are recorded".to_owned();
            return self.report.note(Fact::Warned { message }).await;
        }
        self.report.note(Fact::Stepped { step }).await
    }
}
