//! Steps and answer of a run on their way to the ledger: a step and its text are one commit.

use super::{Reporter, split_into_chunks};
use crate::decide::output::redact_parts::{StoredParts, redact_parts};
use crate::model::execution::content::{Part, StoredPart};
use crate::model::execution::event::{
    ANSWER_ARTIFACT_ID, EventKind, TextChannel, TextChunk, TextRange,
};
use crate::model::execution::step::StepRecord;
use crate::ports::ledger::WriteBatch;

/// End of the text that the steps of an attempt have in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepTextEnd {
    chunk_count: u32,
    offset: u64,
}

impl StepTextEnd {
    /// Moves the end behind the stored text of a step.
    pub fn advance_past(&mut self, text: &str) {
        let chunks = u32::try_from(split_into_chunks(text).len()).unwrap_or(u32::MAX);
        self.chunk_count = self.chunk_count.saturating_add(chunks);
        self.offset += text.len() as u64;
    }
}

impl Reporter {
    /// Records a step together with the next commit, and moves the end of the text behind the step's text.
    pub fn record_step_later(&self, end: &mut StepTextEnd, step_record: StepRecord, text: &str) {
        let (text, redacted) = self.context.redactor.redact_and_count(text);
        let (attempt_id, channel) = (self.context.attempt_id, TextChannel::Steps);
        let mut chunks = Vec::new();
        let from = end.offset;
        for text in split_into_chunks(&text) {
            let (number, offset) = (end.chunk_count, end.offset);
            end.advance_past(&text);
            chunks.push(TextChunk { attempt_id, channel, number, offset, text });
        }
        let range = TextRange { attempt_id, channel, from, to: end.offset };
        let text = StoredPart { redacted, ..StoredPart::text(range) };
        let events = vec![(self.now(), EventKind::RunStep { row: step_record, text })];
        self.context.write_buffer.add(WriteBatch { chunks, events });
    }

    /// Records the answer together with the end of the attempt, as an artifact.
    pub fn record_answer_later(&self, parts: &[Part]) {
        let (attempt_id, channel) = (self.context.attempt_id, TextChannel::Parts);
        let StoredParts { text, parts: pieces, .. } =
            redact_parts(parts, &self.context.redactor, attempt_id, channel, 0);
        let mut offset = 0;
        let chunk_texts = split_into_chunks(&text).into_iter().zip(0..);
        let chunks = chunk_texts.map(|(text, number)| {
            let chunk = TextChunk { attempt_id, channel, number, offset, text };
            offset += chunk.text.len() as u64;
            chunk
        });
        let chunks = chunks.collect();
        let (id, name) = (ANSWER_ARTIFACT_ID.to_owned(), Some(ANSWER_ARTIFACT_ID.to_owned()));
        let (description, append, last) = (None, false, true);
        let artifact = EventKind::Artifact { id, name, description, pieces, append, last };
        let events = vec![(self.now(), artifact)];
        self.context.write_buffer.add(WriteBatch { chunks, events });
    }
}
