//! Steps of a run on their way to the ledger: a step and its text are one commit.

use super::{Reporter, split_into_chunks};
use crate::model::execution::content::StoredPart;
use crate::model::execution::event::{Chunk, EventKind, TextChannel, TextRange};
use crate::model::execution::step::StepRow;
use crate::ports::ledger::{LedgerError, WriteBatch};

/// End of the text that the steps of an attempt have in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepTextEnd {
    chunk_count: u32,
    offset: u64,
}

impl StepTextEnd {
    /// Moves the end behind the stored text of a step.
    pub fn add_stored(&mut self, text: &str) {
        let chunks = u32::try_from(split_into_chunks(text).len()).unwrap_or(u32::MAX);
        self.chunk_count = self.chunk_count.saturating_add(chunks);
        self.offset += text.len() as u64;
    }
}

impl Reporter {
    /// Records a step together with the next commit, and moves the end of the text behind the step's text.
    pub fn add_step(&self, end: &mut StepTextEnd, row: StepRow, text: &str) {
        let (text, redacted) = self.context.redactor.redact_and_count(text);
        let (attempt_id, channel) = (self.context.attempt_id, TextChannel::Steps);
        let mut chunks = Vec::new();
        let from = end.offset;
        for text in split_into_chunks(&text) {
            let (number, offset) = (end.chunk_count, end.offset);
            end.add_stored(&text);
            chunks.push(Chunk { attempt_id, channel, number, offset, text });
        }
        let range = TextRange { attempt_id, channel, from, to: end.offset };
        let text = StoredPart { redacted, ..StoredPart::text(range) };
        let events = vec![(self.now(), EventKind::StepRow { row, text })];
        self.context.write_buffer.add(WriteBatch { chunks, events });
    }

    /// Commits what is pending, and the usage of a reply. Returns true if this attempt may continue; false if another
    /// actor has the execution now. After an error, the records are still pending, except for the usage.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit.
    pub async fn commit(&self, usage: Option<EventKind>) -> Result<bool, LedgerError> {
        match usage {
            Some(usage) => self.record_usage(usage).await,
            None if self.context.write_buffer.is_empty() => Ok(true),
            None => self.context.write(WriteBatch::default()).await,
        }
    }
}
