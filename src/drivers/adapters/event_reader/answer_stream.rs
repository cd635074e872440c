//! Answer that a program writes in pieces: shown as it grows, judged as a whole.

use algonius_actors::driver::report::Reporter;
use algonius_actors::model::execution::content::StoredPart;
use algonius_actors::model::execution::event::{
    ANSWER_ARTIFACT_ID, EventKind, TextChannel, TextRange,
};
use algonius_actors::ports::ledger::LedgerError;

use crate::drivers::output::channel_writer::{ChannelText, ChannelWriter};
use crate::drivers::output::raw_text::LongTextStorage;

/// Answer so far.
pub(super) struct AnswerStream<'r> {
    reporter: &'r Reporter,
    channel_writer: ChannelWriter,
    pending_text: String,
    next_offset: u64,
    recorded_redactions: u64,
}

impl<'r> AnswerStream<'r> {
    /// Opens the answer's channel.
    pub(super) fn open(reporter: &'r Reporter, limit: usize, storage: LongTextStorage) -> Self {
        let channel_writer = ChannelWriter::open(reporter, TextChannel::Answer, (limit, storage));
        Self {
            reporter,
            channel_writer,
            pending_text: String::new(),
            next_offset: 0,
            recorded_redactions: 0,
        }
    }

    /// Adds text to the answer.
    pub(super) fn append(&mut self, text: &str) {
        self.pending_text.push_str(text);
    }

    /// Shows the safe part of the answer.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn flush(&mut self) -> Result<(), LedgerError> {
        // Pieces that were read together become one record, so that a fast program does not fill the ledger with
        // syllables.
        let text = std::mem::take(&mut self.pending_text);
        if text.is_empty() {
            return Ok(());
        }
        let stored_part = self.channel_writer.write_and_flush(text.as_bytes()).await?;
        self.record_stored_part(stored_part).await
    }

    /// Shows the safe part of a line that has no end.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn release_visible_text(&mut self) -> Result<(), LedgerError> {
        let stored_part = self.channel_writer.release_visible_text().await?;
        self.record_stored_part(stored_part).await
    }

    async fn record_stored_part(
        &mut self,
        stored_part: Option<StoredPart>,
    ) -> Result<(), LedgerError> {
        let Some(stored_part) = stored_part else { return Ok(()) };
        let is_first = std::mem::replace(&mut self.next_offset, stored_part.text.to) == 0;
        self.recorded_redactions += stored_part.redacted;
        self.reporter.record_event(artifact_event(stored_part, !is_first, false)).await
    }

    /// Shows the rest, and closes the artifact if there is one.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn close(mut self) -> Result<ChannelText, LedgerError> {
        self.flush().await?;
        let Self {
            reporter,
            channel_writer,
            next_offset,
            recorded_redactions: redacted_before,
            ..
        } = self;
        let text = channel_writer.close().await?;
        let StoredPart { text: span, redacted, dropped, .. } = text.stored_part;
        if span.to > 0 {
            let last_part = StoredPart::text(TextRange { from: next_offset, ..span });
            let last_part =
                StoredPart { redacted: redacted - redacted_before, dropped, ..last_part };
            reporter.record_event(artifact_event(last_part, next_offset > 0, true)).await?;
        }
        Ok(text)
    }
}

fn artifact_event(stored_part: StoredPart, append: bool, last: bool) -> EventKind {
    let (id, name) = (ANSWER_ARTIFACT_ID.to_owned(), Some(ANSWER_ARTIFACT_ID.to_owned()));
    EventKind::Artifact { id, name, description: None, pieces: vec![stored_part], append, last }
}
