//! Stores the parts that a program reports, up to the limit of the attempt.

use std::collections::BTreeMap;

use algonius_actors::decide::output::artifact_stream::ArtifactPiece;
use algonius_actors::driver::report::{OutputWriter, Reporter};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::content::{Content, Part, StoredPart};
use algonius_actors::model::execution::event::{EventKind, MessageRole, TextChannel};
use algonius_actors::model::failure::Failure;
use algonius_actors::ports::ledger::LedgerError;

use crate::drivers::output::display_label::redacted_display_text;

/// Overhead of a record in bytes, so that empty records count too.
const RECORD_OVERHEAD_BYTES: usize = 256;

/// Store of parts.
pub(super) struct PartRecorder<'r> {
    reporter: &'r Reporter,
    writer: OutputWriter,
    /// Space for the content of the result.
    remaining_result_bytes: usize,
    /// Space for progress, which must not use up that of the result.
    remaining_progress_bytes: usize,
    /// Space for content at the start.
    limit: usize,
    /// Number of further events without content. Usage counts towards budgets, so it needs no space for content.
    remaining_events: usize,
    dropped_bytes: u64,
    /// Part of the dropped bytes that belongs to the result: artifacts, answers and questions, but no progress.
    dropped_result_bytes: u64,
    /// Artifacts with stored content, and the number of dropped bytes of each.
    dropped_bytes_by_artifact: BTreeMap<String, u64>,
}

impl<'r> PartRecorder<'r> {
    /// Opens the channel of parts.
    pub(super) fn open(reporter: &'r Reporter, limit: usize) -> Self {
        Self {
            reporter,
            writer: reporter.open_output(TextChannel::Parts),
            remaining_result_bytes: limit,
            remaining_progress_bytes: limit,
            limit,
            remaining_events: limit / RECORD_OVERHEAD_BYTES,
            dropped_bytes: 0,
            dropped_result_bytes: 0,
            dropped_bytes_by_artifact: BTreeMap::new(),
        }
    }

    /// Stores the parts of a message, or returns `None` if there is no room for them.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn store_message_parts(
        &mut self,
        role: MessageRole,
        parts: Vec<Part>,
    ) -> Result<Option<Vec<StoredPart>>, LedgerError> {
        let size = parts.iter().map(part_size).sum();
        if !self.try_reserve(role, size) {
            self.add_dropped_bytes(role, size as u64);
            return Ok(None);
        }
        let redacted_parts = self.redact_labels(parts);
        self.writer.store_raw_parts(&redacted_parts).await.map(Some)
    }

    /// Stores and records an artifact, or more of it, if there is room.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn store_artifact(
        &mut self,
        artifact: ArtifactPiece<Part>,
    ) -> Result<(), LedgerError> {
        let size = artifact.parts.iter().map(part_size).sum();
        if self.continues_incomplete(&artifact) || !self.try_reserve(MessageRole::AgentAnswer, size)
        {
            if let Some(dropped) = self.dropped_bytes_by_artifact.get_mut(&artifact.id) {
                *dropped += size as u64;
            }
            self.add_dropped_bytes(MessageRole::AgentAnswer, size as u64);
            return Ok(());
        }
        self.dropped_bytes_by_artifact.insert(artifact.id.clone(), 0);
        let parts = self.redact_labels(artifact.parts);
        self.writer.store_artifact_piece(ArtifactPiece { parts, ..artifact }).await
    }

    /// Releases the safe part of unfinished artifacts.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn release_visible_text(&mut self) -> Result<(), LedgerError> {
        self.writer.release_visible_text().await.map(|_| ())
    }

    /// Returns the space for one more part in bytes.
    pub(super) fn available_bytes(&self, role: MessageRole) -> usize {
        let remaining_bytes = match role {
            MessageRole::AgentProgress => self.remaining_progress_bytes,
            _ => self.remaining_result_bytes,
        };
        remaining_bytes.saturating_sub(RECORD_OVERHEAD_BYTES)
    }

    /// Counts content that is missing because there is no room for it. Progress is no part of the result.
    pub(super) fn add_dropped_bytes(&mut self, role: MessageRole, size: u64) {
        if role != MessageRole::AgentProgress {
            self.dropped_result_bytes = self.dropped_result_bytes.saturating_add(size);
        }
        self.dropped_bytes = self.dropped_bytes.saturating_add(size);
    }

    /// Returns the failure of a program whose result did not fit.
    pub(super) fn overflow_failure(&self) -> Option<Failure> {
        let Self { limit, dropped_result_bytes: lost_bytes, .. } = self;
        if *lost_bytes == 0 {
            return None;
        }
        let message = format!(
            "the agent returned more in artifacts and messages than the {limit} bytes of `max_output_bytes`; \
             at least {lost_bytes} bytes were not delivered"
        );
        Some(Failure::new(Code::OutputTooLarge, message))
    }

    /// Returns the number of dropped bytes.
    pub(super) const fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes
    }

    /// Marks an artifact whose next piece was skipped. `dropped_before` is the number of dropped bytes before it.
    pub(super) fn mark_artifact_incomplete(&mut self, id: &str, dropped_before: u64) {
        if let Some(dropped) = self.dropped_bytes_by_artifact.get_mut(id) {
            *dropped += self.dropped_bytes - dropped_before;
        }
    }

    /// Records an event without parts, unless there are too many.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn record_event_within_limit(
        &mut self,
        event: EventKind,
    ) -> Result<(), LedgerError> {
        match self.remaining_events.checked_sub(1) {
            Some(remaining_events) => {
                self.remaining_events = remaining_events;
                self.reporter.record_event(event).await
            }
            None => {
                self.add_dropped_bytes(MessageRole::AgentProgress, RECORD_OVERHEAD_BYTES as u64);
                Ok(())
            }
        }
    }

    /// Closes the channel, and with it the artifacts that the program has left open.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn close(mut self) -> Result<(), LedgerError> {
        let truncated = std::mem::take(&mut self.dropped_bytes_by_artifact)
            .into_iter()
            .filter(|(_, dropped)| *dropped > 0);
        for (id, dropped) in truncated {
            self.writer.end_truncated_artifact(id, dropped).await?;
        }
        self.writer.close().await?;
        if self.dropped_bytes == 0 {
            return Ok(());
        }
        let truncation =
            EventKind::OutputTruncated { channel: TextChannel::Parts, dropped: self.dropped_bytes };
        self.reporter.record_event(truncation).await
    }

    /// Returns true if an earlier piece of the artifact was dropped, so that this one would leave a gap before it.
    fn continues_incomplete(&self, artifact: &ArtifactPiece<Part>) -> bool {
        let dropped =
            self.dropped_bytes_by_artifact.get(&artifact.id).unwrap_or(&self.dropped_bytes);
        artifact.append && *dropped > 0
    }

    /// Reserves the space, and returns false if there is too little.
    fn try_reserve(&mut self, role: MessageRole, size: usize) -> bool {
        let space = match role {
            MessageRole::AgentProgress => &mut self.remaining_progress_bytes,
            _ => &mut self.remaining_result_bytes,
        };
        let remaining_bytes = space.checked_sub(size.max(RECORD_OVERHEAD_BYTES));
        *space = remaining_bytes.unwrap_or(*space);
        remaining_bytes.is_some()
    }

    /// Redacts the labels beside the content, because they are shown too.
    fn redact_labels(&self, parts: Vec<Part>) -> Vec<Part> {
        let redact_label =
            |text: Option<String>| text.map(|text| redacted_display_text(self.reporter, &text));
        let parts = parts.into_iter().map(|Part { content, filename, media_type }| Part {
            content,
            filename: redact_label(filename),
            media_type: redact_label(media_type),
        });
        parts.collect()
    }
}

fn part_size(part: &Part) -> usize {
    let content = match &part.content {
        Content::Text(text) | Content::Bytes(text) | Content::Url(text) => text.len(),
        Content::Data(data) => data.to_string().len(),
    };
    content + RECORD_OVERHEAD_BYTES
}
