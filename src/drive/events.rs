//! Reads a program's own events: one JSON object on each line of its standard output.
//!
//! Nothing that a program writes makes the attempt fail but its own word: a line that cannot be
//! read stays in the raw output, and the first of them is noted.

use algonius_actors::model::code::Code;
use algonius_actors::model::event::{Channel, Fact};
use algonius_actors::model::failure::Failure;
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::Reporter;
use serde::Deserialize;

use super::pump::{Note, Text};

/// The longest line that is read; a longer one is passed over.
const LONGEST_LINE: usize = 1024 * 1024;

/// The longest message of a failure, in characters.
const LONGEST_MESSAGE: usize = 300;

/// One line, as a program writes it.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    /// The answer goes on.
    Text { text: String },
    /// The work failed.
    Failed {
        #[serde(default)]
        message: String,
        #[serde(default)]
        category: String,
    },
    /// Of a later release.
    #[serde(other)]
    Unknown,
}

/// What a program's events have said so far.
pub(super) struct Events<'r> {
    report: &'r Reporter,
    answer: Note,
    line: Line,
    failure: Option<Failure>,
    was_warned: bool,
}

impl<'r> Events<'r> {
    /// Opens the answer's channel.
    pub(super) fn open(report: &'r Reporter, limit: usize) -> Self {
        let answer = Note::open(report, Channel::Answer, limit);
        Self { report, answer, line: Line::default(), failure: None, was_warned: false }
    }

    /// Takes the next bytes of standard output.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn hear(&mut self, bytes: &[u8]) -> Result<(), LedgerError> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend(part.strip_suffix(b"\n").unwrap_or(part));
            if part.ends_with(b"\n") {
                self.finish().await?;
            }
        }
        Ok(())
    }

    /// Takes the line as it stands, with or without its end.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn finish(&mut self) -> Result<(), LedgerError> {
        let line = std::mem::take(&mut self.line);
        if line.bytes.trim_ascii().is_empty() && !line.is_too_long {
            return Ok(());
        }
        match line.event() {
            Some(Event::Text { text }) => self.answer.take(text.as_bytes()).await,
            Some(Event::Failed { message, category }) => {
                self.fail(&message, &category);
                Ok(())
            }
            Some(Event::Unknown) | None => self.warn().await,
        }
    }

    /// Ends the answer's channel; gives the answer and the failure that was told.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn close(self) -> Result<(Text, Option<Failure>), LedgerError> {
        Ok((self.answer.close().await?, self.failure))
    }

    /// The first failure is the cause of those that follow.
    fn fail(&mut self, message: &str, category: &str) {
        let code = if category == "transient" { Code::TransientFailure } else { Code::Reported };
        // Masked as a whole, then cut: a cut secret would not be known as one.
        let message = one_line(&self.report.redact(message));
        let sentence = match message.as_str() {
            "" => "the agent reported a failure".to_owned(),
            message => format!("the agent reported: {message}"),
        };
        self.failure.get_or_insert(Failure::new(code, sentence));
    }

    async fn warn(&mut self) -> Result<(), LedgerError> {
        if std::mem::replace(&mut self.was_warned, true) {
            return Ok(());
        }
        let message = "a line of the agent's output is no event that is known; it was kept as text";
        self.report.note(Fact::Warned { message: message.to_owned() }).await
    }
}

/// A line that arrives in pieces.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    is_too_long: bool,
}

impl Line {
    fn extend(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > LONGEST_LINE {
            *self = Self { bytes: Vec::new(), is_too_long: true };
        }
        if !self.is_too_long {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn event(&self) -> Option<Event> {
        if self.is_too_long { None } else { serde_json::from_slice(&self.bytes).ok() }
    }
}

/// Text on one line, without control characters, cut where it is too long.
fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut cut: String = plain.trim().chars().take(LONGEST_MESSAGE).collect();
    if cut.len() < plain.trim().len() {
        cut.push('…');
    }
    cut
}
