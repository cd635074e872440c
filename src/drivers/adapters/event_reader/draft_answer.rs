//! Answer of a program that writes messages, each of which is the answer unless another one follows.
//!
//! A message is shown while it grows. A superseded message becomes a message of the agent, and followers start the
//! answer anew after it.

use algonius_actors::driver::report::Reporter;
use algonius_actors::model::execution::content::StoredPart;
use algonius_actors::model::execution::event::{EventKind, TextChannel};
use algonius_actors::ports::ledger::LedgerError;

use crate::drivers::output::channel_writer::{ChannelText, ChannelWriter};
use crate::drivers::output::raw_text::LongTextStorage;

/// Warning about the first superseded message that is not stored.
const DROPPED_MESSAGES_WARNING: &str = "the messages before the answer are longer than `max_output_bytes`; later ones of \
     them are not stored";

/// Messages so far.
pub(super) struct DraftAnswer<'r> {
    reporter: &'r Reporter,
    channel_writer: ChannelWriter,
    /// Remaining bytes for superseded messages.
    remaining_superseded_bytes: u64,
    /// Latest message after the superseded ones have used up the limit: it is written at the end, if it is the answer.
    withheld_message: Option<String>,
    /// True if a superseded message was dropped.
    has_dropped_message: bool,
    /// Length of the latest message in bytes.
    message_bytes: u64,
    /// True if the latest message is known to be the answer.
    is_answer: bool,
}

impl<'r> DraftAnswer<'r> {
    /// Opens the answer's channel.
    pub(super) fn open(reporter: &'r Reporter, limit: usize, storage: LongTextStorage) -> Self {
        let channel_writer = ChannelWriter::open(reporter, TextChannel::Answer, (limit, storage));
        Self {
            reporter,
            channel_writer,
            remaining_superseded_bytes: limit as u64,
            withheld_message: None,
            has_dropped_message: false,
            message_bytes: 0,
            is_answer: false,
        }
    }

    /// Takes more of the latest message.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn extend(&mut self, text: &str) -> Result<(), LedgerError> {
        self.message_bytes += text.len() as u64;
        match &mut self.withheld_message {
            Some(hidden) => {
                hidden.push_str(text);
                Ok(())
            }
            None => self.channel_writer.write(text.as_bytes()).await,
        }
    }

    /// Accepts the latest message as the answer, unless another one follows nevertheless.
    pub(super) const fn accept(&mut self) {
        self.is_answer = true;
    }

    /// Handles the start of another message. Returns the position of the superseded one once it is committed, or `None`
    /// if superseded messages have used up the limit.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn supersede(&mut self) -> Result<Option<StoredPart>, LedgerError> {
        self.is_answer = false;
        let message_bytes = std::mem::take(&mut self.message_bytes);
        if let Some(message) = &mut self.withheld_message {
            message.clear();
            if !std::mem::replace(&mut self.has_dropped_message, true) {
                let message = DROPPED_MESSAGES_WARNING.to_owned();
                self.reporter.record_event(EventKind::Warning { message }).await?;
            }
            return Ok(None);
        }
        let superseded = self.channel_writer.start_next_text().await?;
        self.remaining_superseded_bytes =
            self.remaining_superseded_bytes.saturating_sub(message_bytes);
        // Superseded messages may take as much as one answer. From then on only the answer is written, so it always has
        // room.
        if self.remaining_superseded_bytes == 0 {
            self.withheld_message = Some(String::new());
        }
        Ok((superseded.text.to > superseded.text.from).then_some(superseded))
    }

    /// Releases the safe part of the latest message.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn release_visible_text(&mut self) -> Result<(), LedgerError> {
        self.channel_writer.release_visible_text().await.map(|_| ())
    }

    /// Closes the channel, and records the answer if there is one. A message that was never finished is no answer.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn close(mut self) -> Result<ChannelText, LedgerError> {
        if let Some(message) = self.withheld_message.take().filter(|_| self.is_answer) {
            self.channel_writer.write(message.as_bytes()).await?;
        }
        let text = self.channel_writer.close().await?;
        if !self.is_answer {
            return Ok(text.without_raw());
        }
        if text.stored_part.text.to > text.stored_part.text.from {
            self.reporter
                .record_event(EventKind::answer_artifact(text.stored_part.clone()))
                .await?;
        }
        Ok(text)
    }
}
