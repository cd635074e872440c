//! Reports of lines that should be events and are none.
//!
//! A program with wrong events must not lose its answer silently, and a program with a million such lines must not fill
//! the ledger with reports. So the first lines of an attempt are reported one by one while it runs, and at its end a
//! warning gives the number of all of them. The line that explains a missing part of the result is kept for the
//! failure.

use algonius_actors::decide::classify::success_evaluation::UnreadableLine;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::ports::ledger::LedgerError;

use crate::drivers::adapters::event_line::{EventParseError, ResultLoss};
use crate::drivers::output::display_label::redacted_display_text;

/// Number of texts of one attempt that are reported one by one.
const MAX_REPORTED_LINES: u64 = 20;

/// Malformed lines of one attempt.
pub(super) struct MalformedLines<'r> {
    reporter: &'r Reporter,
    /// Number of malformed texts. A line may have several.
    text_count: u64,
    /// Number of malformed lines, and of malformed messages that have no line.
    line_count: u64,
    /// Line number of the first one.
    first_line: u64,
    /// Line number of the latest one.
    last_line: u64,
    /// True if the result has ended: no later line is a part of it.
    has_result_ended: bool,
    /// First line with which a part of the result may be lost, or else the first one.
    unreadable_line: Option<UnreadableLine>,
}

impl<'r> MalformedLines<'r> {
    /// Returns an empty report.
    pub(super) const fn new(reporter: &'r Reporter) -> Self {
        Self {
            reporter,
            text_count: 0,
            line_count: 0,
            first_line: 0,
            last_line: 0,
            has_result_ended: false,
            unreadable_line: None,
        }
    }

    /// Counts a malformed line, and reports it unless the limit is reached.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn record(
        &mut self,
        line: u64,
        error: &EventParseError,
    ) -> Result<(), LedgerError> {
        if self.text_count == 0 {
            self.first_line = line;
        }
        self.text_count += 1;
        self.line_count += u64::from(line == 0 || line != self.last_line);
        self.last_line = line;
        let is_result_lost = error.loss == ResultLoss::Likely && !self.has_result_ended;
        let explains_loss = match &self.unreadable_line {
            None => error.loss != ResultLoss::None,
            Some(previous_line) => is_result_lost && !previous_line.is_result_lost,
        };
        if self.text_count > MAX_REPORTED_LINES && !explains_loss {
            return Ok(());
        }
        let reason = error.reason.clone().into_owned();
        // The text is redacted as a whole before it is cut: a secret that was cut would not be recognised.
        let text = redacted_display_text(self.reporter, &error.text);
        if explains_loss {
            let (reason, text) = (reason.clone(), text.clone());
            self.unreadable_line = Some(UnreadableLine { line, reason, text, is_result_lost });
        }
        if self.text_count > MAX_REPORTED_LINES {
            return Ok(());
        }
        self.reporter.record_event(EventKind::MalformedLine { line, reason, text }).await
    }

    /// Records that the program has reported the end of its result.
    pub(super) const fn mark_result_ended(&mut self) {
        self.has_result_ended = true;
    }

    /// Records that the result continues: the end that the program reported was not the last one.
    pub(super) const fn clear_result_ended(&mut self) {
        self.has_result_ended = false;
    }

    /// Forgets that a part of the result may be lost, because the program has repeated its whole answer.
    pub(super) fn forget_lost_results(&mut self) {
        if let Some(unreadable_line) = &mut self.unreadable_line {
            unreadable_line.is_result_lost = false;
        }
    }

    /// Adds the warning to the end of the attempt, if a line was malformed. Returns the line that explains a missing
    /// part of the result.
    pub(super) fn close(self) -> Option<UnreadableLine> {
        if self.line_count > 0 {
            self.reporter.record_later(EventKind::Warning {
                message: warning(self.line_count, self.first_line),
            });
        }
        self.unreadable_line
    }
}

/// Returns the warning for this number of malformed lines. Messages of a protocol have no line, which is line 0.
fn warning(count: u64, first_line: u64) -> String {
    match (count, first_line) {
        (_, 0) => format!("{count} messages of the agent could not be read as events"),
        (1, _) => {
            format!("line {first_line} of the agent's output is not an event; the output keeps it")
        }
        (..) => format!(
            "{count} lines of the agent's output are not events, the first is line {first_line}; the \
             output keeps them"
        ),
    }
}
