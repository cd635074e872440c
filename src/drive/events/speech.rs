//! The answer that a program tells piece by piece: shown as it grows, judged as a whole.

use algonius_actors::model::content::Piece;
use algonius_actors::model::event::{ANSWER, Channel, Fact, Span};
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::Reporter;

use crate::drive::pump::{Note, Text};

/// The answer so far.
pub(super) struct Speech<'r> {
    report: &'r Reporter,
    note: Note,
    unshown: String,
    shown: u64,
    masked: u64,
}

impl<'r> Speech<'r> {
    /// Opens the answer's channel.
    pub(super) fn open(report: &'r Reporter, limit: usize) -> Self {
        let note = Note::open(report, Channel::Answer, limit);
        Self { report, note, unshown: String::new(), shown: 0, masked: 0 }
    }

    /// Takes more of it.
    pub(super) fn say(&mut self, text: &str) {
        self.unshown.push_str(text);
    }

    /// Shows what was said and is safe to be shown. Words that were read together are shown
    /// together, so that a fast talker does not fill the ledger with syllables.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn show(&mut self) -> Result<(), LedgerError> {
        let text = std::mem::take(&mut self.unshown);
        if text.is_empty() {
            return Ok(());
        }
        let Some(shown) = self.note.show(text.as_bytes()).await? else { return Ok(()) };
        let is_first = std::mem::replace(&mut self.shown, shown.text.to) == 0;
        self.masked += shown.redacted;
        self.report.note(told(shown, !is_first, false)).await
    }

    /// Shows the rest, and ends the artifact where there is one.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn close(mut self) -> Result<Text, LedgerError> {
        self.show().await?;
        let Self { report, note, shown, masked, .. } = self;
        let text = note.close().await?;
        let Piece { text: span, redacted, .. } = text.piece;
        if span.to > 0 {
            let rest = Piece::text(Span { from: shown, ..span });
            let rest = Piece { redacted: redacted - masked, ..rest };
            report.note(told(rest, shown > 0, true)).await?;
        }
        Ok(text)
    }
}

fn told(piece: Piece, append: bool, last: bool) -> Fact {
    let (id, name) = (ANSWER.to_owned(), Some(ANSWER.to_owned()));
    Fact::Artifact { id, name, description: None, pieces: vec![piece], append, last }
}
