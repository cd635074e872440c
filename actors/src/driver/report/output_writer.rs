//! Writer of a driver's output: redacts raw text and parts, and writes them to the ledger.

mod head_and_tail;

use std::mem;
use std::sync::Arc;

use self::head_and_tail::{HeadTailSplitter, TruncatedText};
use super::AttemptContext;
use super::pipelined_writes::{AppendFuture, PipelinedWrites};
use crate::decide::output::artifact_stream::{ArtifactPiece, ArtifactStream};
use crate::decide::output::early_redaction::EarlyReleaseRedactor;
use crate::decide::output::redact_parts::{RedactedPart, StoredParts, assign_ranges};
use crate::decide::output::truncation::truncate_to_tail;
use crate::model::execution::content::{Part, StoredPart};
use crate::model::execution::event::{
    EventKind, MAX_CHUNK_BYTES, TextChannel, TextChunk, TextRange,
};
use crate::model::execution::progress::Progress;
use crate::ports::ledger::{LedgerError, WriteBatch};

/// Minimum size of a stored chunk in bytes, unless the stream ends.
const MIN_CHUNK_BYTES: usize = 4 * 1024;

/// Writer of one channel: redacts, splits into chunks, and keeps head and tail of a text beyond the limit.
pub struct OutputWriter {
    context: AttemptContext,
    channel: TextChannel,
    stream: EarlyReleaseRedactor,
    artifacts: ArtifactStream,
    ready_text: String,
    writes: PipelinedWrites,
    chunk_count: u32,
    offset: u64,
    /// Splitter of the present text.
    splitter: HeadTailSplitter,
    /// Number of redactions outside of the stream.
    redactions_outside_stream: u64,
    /// Start of the present text of the channel, and the number of redactions before it.
    start_offset_and_redactions: (u64, u64),
}

impl OutputWriter {
    /// Opens a channel of an attempt.
    pub(super) fn open(context: AttemptContext, channel: TextChannel) -> Self {
        let stream = EarlyReleaseRedactor::new(Arc::clone(&context.redactor));
        let artifacts = ArtifactStream::new(Arc::clone(&context.redactor));
        let splitter = HeadTailSplitter::new(&context);
        publish_answer_start(&context, channel, 0);
        Self {
            context,
            channel,
            stream,
            artifacts,
            ready_text: String::new(),
            writes: PipelinedWrites::default(),
            chunk_count: 0,
            offset: 0,
            splitter,
            redactions_outside_stream: 0,
            start_offset_and_redactions: (0, 0),
        }
    }

    /// Writes raw bytes. Returns when more bytes may follow: the last chunks may still be pending.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), LedgerError> {
        self.context.liveness.record_activity();
        let head = self.splitter.split_off_head(bytes);
        self.stream.push_to(head, &mut self.ready_text);
        // A chunk is a row of the ledger: a program that prints byte by byte must not cause one for each byte.
        if self.ready_text.len() >= MIN_CHUNK_BYTES {
            self.enqueue_ready_text().await?;
        }
        Ok(())
    }

    /// Counts missing bytes after the head of the text.
    pub fn record_missing_bytes(&mut self, count: u64) {
        self.splitter.tail_buffer.record_missing_bytes(count);
    }

    /// Writes whole parts. Returns the location of each, once they are committed.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit.
    pub async fn store_raw_parts(
        &mut self,
        parts: &[Part],
    ) -> Result<Vec<StoredPart>, LedgerError> {
        let redactor = Arc::clone(&self.context.redactor);
        self.store_parts(parts.iter().map(|part| RedactedPart::redact(part, &redactor))).await
    }

    /// Writes redacted parts. Returns the location of each, once they are committed.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit.
    pub async fn store_parts(
        &mut self,
        parts: impl IntoIterator<Item = RedactedPart>,
    ) -> Result<Vec<StoredPart>, LedgerError> {
        let StoredParts { text, parts: stored_parts, .. } =
            assign_ranges(parts, self.end_text_and_locate_next());
        self.ready_text.push_str(&text);
        self.flush().await?;
        Ok(stored_parts)
    }

    /// Adds a piece of an artifact, and records what can be shown of it now. Text that is held back is recorded later,
    /// or when the channel is closed.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit.
    pub async fn store_artifact_piece(
        &mut self,
        piece: ArtifactPiece<Part>,
    ) -> Result<(), LedgerError> {
        let visible = self.artifacts.push(piece);
        self.record_artifact_pieces(visible).await
    }

    /// Ends an artifact that lost `dropped` bytes, and records the end.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit.
    pub async fn end_truncated_artifact(
        &mut self,
        id: String,
        dropped: u64,
    ) -> Result<(), LedgerError> {
        let (name, description, parts) = (None, None, Vec::new());
        let end = ArtifactPiece { id, name, description, parts, append: true, last: true };
        let mut visible = self.artifacts.push(end);
        // The artifact itself is shown last, and never without a part.
        if let Some(artifact) = visible.last_mut()
            && let Some(part) = artifact.parts.pop()
        {
            artifact.parts.push(part.with_dropped_bytes(dropped));
        }
        self.record_artifact_pieces(visible).await
    }

    async fn record_artifact_pieces(
        &mut self,
        visible: Vec<ArtifactPiece<RedactedPart>>,
    ) -> Result<(), LedgerError> {
        for ArtifactPiece { id, name, description, parts, append, last } in visible {
            let pieces = self.store_parts(parts).await?;
            let event = EventKind::Artifact { id, name, description, pieces, append, last };
            self.context.record_event(event).await?;
        }
        Ok(())
    }

    /// Ends the present text of the channel, and returns the location of the next one.
    fn end_text_and_locate_next(&mut self) -> TextRange {
        let remaining_text = self.stream.finish();
        self.ready_text.push_str(&remaining_text);
        let from = self.offset + self.ready_text.len() as u64;
        TextRange { attempt_id: self.context.attempt_id, channel: self.channel, from, to: from }
    }

    /// Writes raw bytes, and returns the text that can be shown now, once it is committed; `None` if nothing new can be
    /// shown.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit.
    pub async fn write_and_flush(
        &mut self,
        bytes: &[u8],
    ) -> Result<Option<StoredPart>, LedgerError> {
        let (from, redactions_before) = (self.offset, self.redaction_count());
        self.write(bytes).await?;
        self.flush().await?;
        let part = self.stored_part_since((from, redactions_before));
        Ok((self.offset > from).then_some(part))
    }

    /// Writes all text that may be shown now, even if a chunk is not full or a line has no end, because a
    /// follower waits for it. Returns the new text after the ledger has committed it.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit.
    pub async fn release_visible_text(&mut self) -> Result<Option<StoredPart>, LedgerError> {
        let (from, redactions_before) = (self.offset, self.redaction_count());
        self.ready_text.push_str(&self.stream.release_line_start());
        self.flush().await?;
        let visible = self.artifacts.release_open_texts();
        self.record_artifact_pieces(visible).await?;
        let part = self.stored_part_since((from, redactions_before));
        if self.offset == from {
            return Ok(None);
        }
        self.context.progress.send_modify(Progress::advance_revision);
        Ok(Some(part))
    }

    /// Returns the text after an offset, with the redactions after `redactions_before`.
    fn stored_part_since(&self, (from, redactions_before): (u64, u64)) -> StoredPart {
        let (attempt_id, channel) = (self.context.attempt_id, self.channel);
        let part = StoredPart::text(TextRange { attempt_id, channel, from, to: self.offset });
        StoredPart { redacted: self.redaction_count() - redactions_before, ..part }
    }

    const fn redaction_count(&self) -> u64 {
        self.stream.redaction_count() + self.redactions_outside_stream
    }

    /// Writes the text that was held back, ends open artifacts, and returns the whole text of the channel. A short last
    /// chunk stays pending for the next write.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit.
    pub async fn close(mut self) -> Result<StoredPart, LedgerError> {
        let dropped = self.end_text_with_tail();
        let remaining = self.artifacts.finish();
        self.record_artifact_pieces(remaining).await?;
        if self.ready_text.len() >= MIN_CHUNK_BYTES {
            self.enqueue_ready_text().await?;
        }
        self.writes.wait_until_committed().await?;
        // The last text, the usage and the outcome then share one commit, which saves two for a short run.
        self.defer_last_chunk();
        if dropped > 0 {
            let event = EventKind::OutputTruncated { channel: self.channel, dropped };
            self.context.record_event(event).await?;
        }
        Ok(StoredPart { dropped, ..self.stored_part_since(self.start_offset_and_redactions) })
    }

    /// Ends the present text of the channel: a separate text follows, with its own redaction and limit. Returns the
    /// ended text, once it is committed.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit.
    pub async fn start_next_text(&mut self) -> Result<StoredPart, LedgerError> {
        let dropped = self.end_text_with_tail();
        self.flush().await?;
        let ended_text =
            StoredPart { dropped, ..self.stored_part_since(self.start_offset_and_redactions) };
        self.start_offset_and_redactions = (self.offset, self.redaction_count());
        self.redactions_outside_stream += self.stream.redaction_count();
        self.stream = EarlyReleaseRedactor::new(Arc::clone(&self.context.redactor));
        self.splitter = HeadTailSplitter::new(&self.context);
        publish_answer_start(&self.context, self.channel, self.offset);
        Ok(ended_text)
    }

    /// Writes all text that is ready. Returns once it is committed.
    async fn flush(&mut self) -> Result<(), LedgerError> {
        self.enqueue_ready_text().await?;
        self.writes.wait_until_committed().await?;
        self.context.liveness.record_activity(); // A slow ledger does not count as silence of the agent.
        Ok(())
    }

    /// Starts to write all text that is ready.
    async fn enqueue_ready_text(&mut self) -> Result<(), LedgerError> {
        while let Some(append) = self.next_append() {
            self.writes.enqueue(append).await?;
            self.context.liveness.record_activity(); // A slow ledger does not count as silence of the agent.
        }
        Ok(())
    }

    /// Creates a chunk of the first ready text, and returns the future of the reply.
    fn next_append(&mut self) -> Option<AppendFuture> {
        let rest = self.ready_text.split_off(self.ready_text.floor_char_boundary(MAX_CHUNK_BYTES));
        let text = mem::replace(&mut self.ready_text, rest);
        let chunk = (!text.is_empty()).then(|| self.next_chunk(text))?;
        let (ledger, id) = (Arc::clone(&self.context.ledger), self.context.execution_id);
        Some(Box::pin(async move { ledger.append_chunk(id, chunk).await }))
    }

    /// Leaves the last chunk pending for the next write of the attempt.
    fn defer_last_chunk(&mut self) {
        if !self.ready_text.is_empty() {
            let text = mem::take(&mut self.ready_text);
            let chunks = vec![self.next_chunk(text)];
            self.context.write_buffer.add(WriteBatch { chunks, events: Vec::new() });
        }
    }

    /// Returns the next chunk of the channel.
    fn next_chunk(&mut self, text: String) -> TextChunk {
        let Self { chunk_count: number, offset, .. } = *self;
        self.chunk_count += 1;
        self.offset += text.len() as u64;
        let (attempt_id, channel) = (self.context.attempt_id, self.channel);
        TextChunk { attempt_id, channel, number, offset, text }
    }

    /// Ends the text, with the tail of the bytes after its head. Returns the number of missing bytes between them.
    fn end_text_with_tail(&mut self) -> u64 {
        let (total_bytes, lost_bytes, bytes) = self.splitter.end();
        if total_bytes <= self.context.output_settings.max_channel_bytes as u64 {
            self.ready_text.push_str(&self.stream.push(&bytes));
            self.end_text_and_locate_next();
            return 0;
        }
        // If nothing is lost, redaction sees the whole text and decides as if there were no limit.
        let text = if lost_bytes > 0 {
            self.truncate_text_with_lost_bytes(&bytes, total_bytes)
        } else {
            self.truncate_complete_text(&bytes)
        };
        text.append_to(&mut self.ready_text);
        text.missing_bytes
    }

    /// Returns head and tail of a text that is known as a whole: redacted text can be split anywhere.
    fn truncate_complete_text(&mut self, bytes: &[u8]) -> TruncatedText {
        let text = self.stream.push(bytes) + &self.stream.finish();
        let capacity = (self.splitter.limits.head as u64).saturating_sub(self.text_len());
        TruncatedText::split(text, capacity, self.splitter.limits.tail)
    }

    /// Returns head and tail of a text of which a part is lost. The held-back end of the head may be the start of a
    /// secret, and the tail may start with the end of one.
    fn truncate_text_with_lost_bytes(&mut self, bytes: &[u8], total_bytes: u64) -> TruncatedText {
        // `finish` would judge the held-back text as if the text ended here, although its continuation is only lost.
        let head = self.stream.release_after_pause();
        let context_bytes = bytes.len().saturating_sub(self.splitter.limits.tail);
        let (mut tail, redactions) = self.context.redactor.redact_text_end(bytes, context_bytes);
        self.redactions_outside_stream += redactions;
        truncate_to_tail(&mut tail, self.splitter.limits.tail);
        let retained = self.text_len() + (head.len() + tail.len()) as u64;
        TruncatedText { head, tail, missing_bytes: total_bytes.saturating_sub(retained) }
    }

    /// Returns the number of bytes of the present text so far.
    const fn text_len(&self) -> u64 {
        self.offset + self.ready_text.len() as u64 - self.start_offset_and_redactions.0
    }
}

/// Publishes where the partial answer starts, if this is its channel.
fn publish_answer_start(context: &AttemptContext, channel: TextChannel, offset: u64) {
    context.progress.send_if_modified(|progress| progress.set_answer_start(channel, offset));
}

/// Splits a text into pieces of at most [`MAX_CHUNK_BYTES`] bytes, between characters.
#[must_use]
pub fn split_into_chunks(text: &str) -> Vec<String> {
    let mut chunks = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let cut = rest.floor_char_boundary(MAX_CHUNK_BYTES);
        let (head, tail) = rest.split_at(cut);
        chunks.push(head.to_owned());
        rest = tail;
    }
    chunks
}
