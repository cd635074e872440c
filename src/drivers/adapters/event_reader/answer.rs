//! Answer of a program that writes events: incremental text, or the last of its messages.

use algonius_actors::driver::report::Reporter;
use algonius_actors::model::execution::content::StoredPart;
use algonius_actors::ports::ledger::LedgerError;

use super::answer_stream::AnswerStream;
use super::draft_answer::DraftAnswer;
use crate::drivers::output::channel_writer::ChannelText;
use crate::drivers::output::raw_text::LongTextStorage;

/// Answer so far.
pub(super) enum AnswerRecorder<'r> {
    /// Answer of a program with this project's events: it marks the answer and writes it in pieces.
    Stream(AnswerStream<'r>),
    /// Answer of a program with native events: it writes messages, and the last one is the answer.
    Drafts(DraftAnswer<'r>),
}

impl<'r> AnswerRecorder<'r> {
    /// Opens the answer's channel; `is_last_message_answer` is true for native events.
    pub(super) fn open(
        reporter: &'r Reporter,
        is_last_message_answer: bool,
        (limit, storage): (usize, LongTextStorage),
    ) -> Self {
        match is_last_message_answer {
            true => Self::Drafts(DraftAnswer::open(reporter, limit, storage)),
            false => Self::Stream(AnswerStream::open(reporter, limit, storage)),
        }
    }

    /// Takes more of the answer, or of the latest message.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn extend(&mut self, text: &str) -> Result<(), LedgerError> {
        match self {
            Self::Stream(stream) => {
                stream.append(text);
                Ok(())
            }
            Self::Drafts(drafts) => drafts.extend(text).await,
        }
    }

    /// Accepts the latest message as the answer.
    pub(super) const fn accept(&mut self) {
        match self {
            Self::Stream(_) => {}
            Self::Drafts(drafts) => drafts.accept(),
        }
    }

    /// Handles the start of another message. Returns the superseded message as the ledger stores it.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn supersede(&mut self) -> Result<Option<StoredPart>, LedgerError> {
        match self {
            Self::Stream(_) => Ok(None),
            Self::Drafts(drafts) => drafts.supersede().await,
        }
    }

    /// Shows text of this project's events. Messages are released by timer instead.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn flush(&mut self) -> Result<(), LedgerError> {
        match self {
            Self::Stream(stream) => stream.flush().await,
            Self::Drafts(_) => Ok(()),
        }
    }

    /// Releases the safe part of the answer, although more of it will come.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn release_visible_text(&mut self) -> Result<(), LedgerError> {
        match self {
            Self::Stream(stream) => stream.release_visible_text().await,
            Self::Drafts(drafts) => drafts.release_visible_text().await,
        }
    }

    /// Closes the channel.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn close(self) -> Result<ChannelText, LedgerError> {
        match self {
            Self::Stream(stream) => stream.close().await,
            Self::Drafts(drafts) => drafts.close().await,
        }
    }
}
