//! Texts of an execution, sent while they grow: one attempt after the other, each byte once.

use algonius_actors::api::Api;
use algonius_actors::model::execution::content::StoredPart;
use algonius_actors::model::execution::event::{EventKind, MessageRole, TextChannel, TextRange};
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::execution::{AttemptId, ExecutionState};
use algonius_actors::model::failure::Failure;

use super::stream_cursor::TextCursor;

/// Number of bytes of a text that are sent at once.
pub const CHUNK_BYTES: u64 = 64 << 10;

/// Some texts of an execution, with the number of sent bytes of each.
#[derive(Debug, Clone)]
pub struct TextProgress(TextCursor);

impl TextProgress {
    /// Creates the texts of this attempt, of which nothing was sent.
    #[must_use]
    pub fn new(attempt_id: AttemptId, channels: &[TextChannel]) -> Self {
        Self(TextCursor {
            attempt_id,
            positions: channels.iter().map(|channel| (*channel, 0)).collect(),
        })
    }

    /// Returns the texts with the positions of this cursor. A text that the cursor does not contain starts at 0.
    #[must_use]
    pub fn with_cursor(mut self, known_cursor: &TextCursor) -> Self {
        self.0.attempt_id = known_cursor.attempt_id;
        for (channel, position) in &mut self.0.positions {
            *position = known_cursor.position_of(*channel).unwrap_or_default();
        }
        self
    }

    /// Returns the sent part of the texts; `None` when nothing was sent.
    #[must_use]
    pub fn cursor(&self) -> Option<TextCursor> {
        self.0.positions.iter().any(|(_, position)| *position > 0).then(|| self.0.clone())
    }

    /// Returns the number of sent bytes of a text of an attempt.
    #[must_use]
    pub fn sent_bytes(&self, attempt_id: AttemptId, channel: TextChannel) -> u64 {
        // Lengths of another attempt say nothing about this one, whose texts start at 0.
        let is_same_attempt = self.0.attempt_id == attempt_id;
        self.0.position_of(channel).filter(|_| is_same_attempt).unwrap_or_default()
    }

    /// Processes the event that is sent next. Another attempt has new texts. An attempt that restarts because
    /// its program did not know the session has its texts again from their start.
    pub fn apply_event(&mut self, event: &EventKind) {
        match event {
            EventKind::StateChanged(change) if change.to == ExecutionState::Starting => {
                self.start_attempt(change.attempt_id);
            }
            EventKind::SessionLost { .. } => self.start_attempt(self.0.attempt_id),
            _ => {}
        }
    }

    /// Processes an event that may show that a message which grew as the answer is not the answer: the next message
    /// follows it. Bytes of the next message that were sent before this event went to the end of the wrong text, so
    /// they are sent again.
    pub fn resume_after_superseded_answer(&mut self, event: &EventKind) {
        let EventKind::Message { speaker: MessageRole::AgentProgress, pieces, .. } = event else {
            return;
        };
        for StoredPart { text, .. } in pieces {
            if (text.attempt_id, text.channel) == (self.0.attempt_id, TextChannel::Answer)
                && let Some((_, position)) = self.channel_position_mut(TextChannel::Answer)
            {
                *position = text.to;
            }
        }
    }

    /// Skips the bytes before a position of a text.
    pub fn skip_to(&mut self, channel: TextChannel, from: u64) {
        if let Some((_, position)) = self.channel_position_mut(channel) {
            *position = from.max(*position);
        }
    }

    fn channel_position_mut(&mut self, channel: TextChannel) -> Option<&mut (TextChannel, u64)> {
        self.0.positions.iter_mut().find(|(known, _)| *known == channel)
    }

    /// True if the texts belong to this attempt.
    #[must_use]
    pub fn is_of_attempt(&self, attempt_id: AttemptId) -> bool {
        self.0.attempt_id == attempt_id
    }

    /// Switches to the texts of this attempt, unless they are the present ones.
    pub fn switch_to_attempt(&mut self, attempt_id: AttemptId) {
        if self.0.attempt_id != attempt_id {
            self.start_attempt(attempt_id);
        }
    }

    fn start_attempt(&mut self, attempt_id: AttemptId) {
        self.0.attempt_id = attempt_id;
        self.0.positions.iter_mut().for_each(|(_, position)| *position = 0);
    }

    /// Returns the next piece of any of the texts that is in the ledger and was not sent; `None` when
    /// everything in the ledger was sent.
    ///
    /// # Errors
    /// Fails when the ledger could not be read.
    pub async fn next_chunk(
        &mut self,
        api: &Api,
        record: &ExecutionRecord,
    ) -> Result<Option<(TextRange, String)>, Failure> {
        // A copy, because `next_chunk_of` changes the positions.
        let channels: Vec<_> = self.0.positions.iter().map(|(channel, _)| *channel).collect();
        for channel in channels {
            let next = self.next_chunk_of(channel, api, record).await?;
            if next.is_some() {
                return Ok(next);
            }
        }
        Ok(None)
    }

    /// Returns the next piece of one of the texts.
    ///
    /// # Errors
    /// Fails when the ledger could not be read.
    pub async fn next_chunk_of(
        &mut self,
        channel: TextChannel,
        api: &Api,
        record: &ExecutionRecord,
    ) -> Result<Option<(TextRange, String)>, Failure> {
        let TextCursor { attempt_id, positions } = &mut self.0;
        let channel_position = positions.iter_mut().find(|(known, _)| *known == channel);
        let Some((_, position)) = channel_position else { return Ok(None) };
        let range = TextRange {
            attempt_id: *attempt_id,
            channel,
            from: *position,
            to: position.saturating_add(CHUNK_BYTES),
        };
        let slice = api.reader.text_slice(record, range).await?;
        if slice.text.is_empty() {
            return Ok(None);
        }
        // The ledger may return less than requested: it cuts between characters, and ends at what is committed.
        *position = slice.end_offset();
        Ok(Some((TextRange { from: slice.start_offset, to: *position, ..range }, slice.text)))
    }
}

/// Returns true if an event ends the work of an attempt: its texts are complete by then.
#[must_use]
pub fn is_end_of_work(event: &EventKind) -> bool {
    let is_at_work = |state| matches!(state, ExecutionState::Starting | ExecutionState::Running);
    matches!(event, EventKind::StateChanged(change) if is_at_work(change.from) && !is_at_work(change.to))
}
