//! One event about an artifact, sent to followers in pieces of bounded size. Each piece is read from the
//! ledger after the client has read the previous one.

use std::collections::VecDeque;

use algonius_a2a::v1::{A2aPart, ArtifactUpdate, Metadata};
use algonius_actors::api::Api;
use algonius_actors::model::execution::content::{PartKind, StoredPart};
use algonius_actors::model::execution::event::{Event, EventKind, TextRange};
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::failure::Failure;

use super::text_progress::CHUNK_BYTES;
use crate::serve::a2a::task;
use crate::serve::a2a::task::artifact::{ArtifactLosses, build_artifact};

/// The rest of an event about an artifact that has yet to be sent.
#[derive(Debug)]
pub struct ArtifactChunks {
    /// Number of the event.
    pub event_number: u64,
    id: String,
    name: Option<String>,
    description: Option<String>,
    remaining_parts: VecDeque<StoredPart>,
    losses: ArtifactLosses,
    is_append: bool,
    ends_artifact: bool,
    /// Number of bytes of text that were sent.
    sent_bytes: u64,
}

impl ArtifactChunks {
    /// Returns the pieces of an event; `None` for an event that is not about an artifact.
    #[must_use]
    pub fn from_event(event: &Event) -> Option<Self> {
        let EventKind::Artifact { id, name, description, pieces, append, last } = &event.data
        else {
            return None;
        };
        Some(Self {
            event_number: event.number,
            id: id.clone(),
            name: name.clone(),
            description: description.clone(),
            losses: ArtifactLosses::from_parts(pieces),
            remaining_parts: pieces.clone().into(),
            is_append: *append,
            ends_artifact: *last,
            sent_bytes: 0,
        })
    }

    /// Returns the only text of the event; `None` if the event has no text or several.
    #[must_use]
    pub fn single_text_range(&self) -> Option<TextRange> {
        let part = self
            .remaining_parts
            .front()
            .filter(|piece| self.remaining_parts.len() == 1 && is_text(piece))?;
        Some(part.text)
    }

    /// Skips the first bytes of the text, which were sent before: the rest is appended to them. One piece always
    /// remains, because the end of an artifact is sent too.
    pub fn skip(&mut self, bytes: u64) {
        self.sent_bytes = bytes;
        self.is_append |= bytes > 0;
        let mut remaining_bytes = bytes;
        while let Some(part) = self.remaining_parts.front_mut() {
            let length = part.text.to - part.text.from;
            if remaining_bytes < length || self.remaining_parts.len() == 1 {
                self.shorten_first_part(remaining_bytes);
                return;
            }
            remaining_bytes -= length;
            self.remaining_parts.pop_front();
        }
    }

    /// Returns the number of bytes of the text that were sent.
    #[must_use]
    pub const fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Returns the next update, and true if it is the last.
    ///
    /// # Errors
    /// Fails if the ledger cannot be read.
    pub async fn next_update(
        &mut self,
        api: &Api,
        record: &ExecutionRecord,
    ) -> Result<(ArtifactUpdate, bool), Failure> {
        let size: u64 =
            self.remaining_parts.iter().map(|piece| piece.text.to - piece.text.from).sum();
        // Small events, which are nearly all, are read in one query.
        let parts = if size <= CHUNK_BYTES {
            let stored_parts: Vec<_> = self.remaining_parts.drain(..).collect();
            task::read_parts(api, record, &stored_parts).await?
        } else {
            self.next_parts(api, record).await?
        };
        let is_last = self.remaining_parts.is_empty();
        // Clients add up what the pieces report, so the losses of the whole event are reported once.
        let losses = if is_last { self.losses } else { ArtifactLosses::default() };
        // Only the first piece may replace an artifact; every later one belongs to it.
        let append = std::mem::replace(&mut self.is_append, true);
        let (name, description) = (self.name.clone(), self.description.clone());
        let update = ArtifactUpdate {
            task_id: record.id.to_string(),
            context_id: record.context.0.clone(),
            artifact: build_artifact(&self.id, name, description, (parts, losses)),
            append,
            last_chunk: is_last && self.ends_artifact,
            metadata: Metadata::new(),
        };
        Ok((update, is_last))
    }

    /// Returns the next part of the rest: a piece of a text, or any other part as a whole.
    async fn next_parts(
        &mut self,
        api: &Api,
        record: &ExecutionRecord,
    ) -> Result<Vec<A2aPart>, Failure> {
        let Some(first) = self.remaining_parts.front().cloned() else { return Ok(Vec::new()) };
        let TextRange { from, to, .. } = first.text;
        // Data and files cannot be split: a client cannot append half of a JSON document.
        if !is_text(&first) || to - from <= CHUNK_BYTES {
            self.sent_bytes += to - from;
            self.remaining_parts.pop_front();
            return task::read_parts(api, record, &[first]).await;
        }
        let range = TextRange { to: from + CHUNK_BYTES, ..first.text };
        let slice = api.reader.text_slice(record, range).await?;
        let read_bytes = slice.end_offset() - from;
        self.sent_bytes += read_bytes;
        // A text that was deleted with its execution since then ends here.
        self.shorten_first_part(if slice.text.is_empty() { to - from } else { read_bytes });
        Ok(vec![A2aPart::text(slice.text)])
    }

    fn shorten_first_part(&mut self, bytes: u64) {
        if let Some(part) = self.remaining_parts.front_mut() {
            part.text.from = part.text.to.min(part.text.from.saturating_add(bytes));
        }
    }
}

fn is_text(part: &StoredPart) -> bool {
    part.kind == PartKind::Text && part.filename.is_none()
}

#[cfg(test)]
mod tests {
    use algonius_actors::model::execution::AttemptId;
    use algonius_actors::model::execution::event::TextChannel;
    use chrono::DateTime;

    use super::*;

    fn text_part(from: u64, to: u64) -> StoredPart {
        StoredPart::text(TextRange {
            attempt_id: AttemptId::FIRST,
            channel: TextChannel::Parts,
            from,
            to,
        })
    }

    fn chunks_of(pieces: Vec<StoredPart>) -> ArtifactChunks {
        let (id, name, description) = ("a".to_owned(), None, None);
        let data = EventKind::Artifact { id, name, description, pieces, append: false, last: true };
        ArtifactChunks::from_event(&Event { number: 7, at: DateTime::UNIX_EPOCH, data }).unwrap()
    }

    fn remaining_ranges(chunks: &ArtifactChunks) -> Vec<(u64, u64)> {
        chunks.remaining_parts.iter().map(|piece| (piece.text.from, piece.text.to)).collect()
    }

    #[test]
    fn sent_bytes_are_skipped_and_the_end_marker_stays() {
        for (skipped, expected) in [
            (0, vec![(0, 10), (10, 30)]),
            (4, vec![(4, 10), (10, 30)]),
            (10, vec![(10, 30)]),
            (12, vec![(12, 30)]),
            (30, vec![(30, 30)]),
            (99, vec![(30, 30)]),
        ] {
            let mut chunks = chunks_of(vec![text_part(0, 10), text_part(10, 30)]);
            chunks.skip(skipped);
            assert_eq!(remaining_ranges(&chunks), expected, "{skipped}");
            assert_eq!((chunks.is_append, chunks.sent_bytes()), (skipped > 0, skipped));
        }
    }

    #[test]
    fn a_single_text_is_recognized() {
        let text_range = text_part(0, 10).text;
        assert_eq!(chunks_of(vec![text_part(0, 10)]).single_text_range(), Some(text_range));
        assert_eq!(
            chunks_of(vec![text_part(5, 10)]).single_text_range(),
            Some(text_part(5, 10).text)
        );
        assert_eq!(chunks_of(vec![text_part(0, 5), text_part(5, 10)]).single_text_range(), None);
    }
}
