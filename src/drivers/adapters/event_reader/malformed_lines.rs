//! Reports of lines that should be events and are none.
//!
//! A program with wrong events must not lose its answer silently, and a program with a million such lines must not fill
//! the ledger with reports. So the first lines of an attempt are reported one by one while it runs, and at its end a
//! warning gives the number of all of them.

use algonius_actors::driver::report::Reporter;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::ports::ledger::LedgerError;

use crate::drivers::adapters::event_line::EventParseError;
use crate::drivers::output::display_label::redacted_label;

/// Number of lines of one attempt that are reported one by one.
const MAX_REPORTED_LINES: u64 = 20;

/// Malformed lines of one attempt.
pub(super) struct MalformedLines<'r> {
    reporter: &'r Reporter,
    /// Number of malformed lines.
    count: u64,
    /// Line number of the first one.
    first_line: u64,
}

impl<'r> MalformedLines<'r> {
    /// Returns an empty report.
    pub(super) const fn new(reporter: &'r Reporter) -> Self {
        Self { reporter, count: 0, first_line: 0 }
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
        if self.count == 0 {
            self.first_line = line;
        }
        self.count += 1;
        if self.count > MAX_REPORTED_LINES {
            return Ok(());
        }
        let reason = error.reason.clone().into_owned();
        // The text is redacted as a whole before it is cut: a secret that was cut would not be recognised.
        let text = redacted_label(self.reporter, &error.text);
        self.reporter.record_event(EventKind::MalformedLine { line, reason, text }).await
    }

    /// Adds the warning to the end of the attempt, if a line was malformed.
    pub(super) fn close(self) {
        if self.count > 0 {
            self.reporter
                .record_later(EventKind::Warning { message: warning(self.count, self.first_line) });
        }
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
