//! Stores the parts that a program reports, up to the limit of the attempt.

use std::collections::BTreeMap;

use algonius_actors::decide::output::artifact_stream::ArtifactPiece;
use algonius_actors::driver::report::{OutputWriter, Reporter};
use algonius_actors::model::execution::content::{Content, Part, StoredPart};
use algonius_actors::model::execution::event::{EventKind, TextChannel};
use algonius_actors::ports::ledger::LedgerError;

use crate::drivers::output::display_label::redacted_label;

/// Overhead of a record in bytes, so that empty records count too.
const RECORD_OVERHEAD_BYTES: usize = 256;

/// Store of parts.
pub(super) struct ArtifactBuffer<'r> {
    reporter: &'r Reporter,
    writer: OutputWriter,
    remaining_bytes: usize,
    dropped_bytes: u64,
    /// Artifacts with stored content, and the number of dropped bytes of each.
    open_artifacts: BTreeMap<String, u64>,
}

impl<'r> ArtifactBuffer<'r> {
    /// Opens the channel of parts.
    pub(super) fn open(reporter: &'r Reporter, limit: usize) -> Self {
        let (writer, open_artifacts) = (reporter.open_output(TextChannel::Parts), BTreeMap::new());
        Self { reporter, writer, remaining_bytes: limit, dropped_bytes: 0, open_artifacts }
    }

    /// Stores the parts, or returns `None` if there is no room for them.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn store(
        &mut self,
        parts: Vec<Part>,
    ) -> Result<Option<Vec<StoredPart>>, LedgerError> {
        if !self.try_reserve(parts.iter().map(part_size).sum()) {
            return Ok(None);
        }
        let redacted_parts = self.redact_labels(parts);
        self.writer.store_raw(&redacted_parts).await.map(Some)
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
        if !self.try_reserve(size) {
            if let Some(dropped) = self.open_artifacts.get_mut(&artifact.id) {
                *dropped += size as u64;
            }
            return Ok(());
        }
        self.open_artifacts.entry(artifact.id.clone()).or_default();
        let parts = self.redact_labels(artifact.parts);
        self.writer.store_artifact(ArtifactPiece { parts, ..artifact }).await
    }

    /// Releases the safe part of unfinished artifacts.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn release(&mut self) -> Result<(), LedgerError> {
        self.writer.release().await.map(|_| ())
    }

    /// Returns the space for one more part in bytes.
    pub(super) const fn available_bytes(&self) -> usize {
        self.remaining_bytes.saturating_sub(RECORD_OVERHEAD_BYTES)
    }

    /// Counts content that was not read because there is no room for it.
    pub(super) const fn count_skipped(&mut self, size: u64) {
        self.dropped_bytes = self.dropped_bytes.saturating_add(size);
    }

    /// Records an event without parts, if there is space for it.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn record_event(&mut self, event: EventKind) -> Result<(), LedgerError> {
        if self.try_reserve(RECORD_OVERHEAD_BYTES) {
            self.reporter.record_event(event).await
        } else {
            Ok(())
        }
    }

    /// Closes the channel, and with it the artifacts that the program has left open.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn close(mut self) -> Result<(), LedgerError> {
        let truncated = std::mem::take(&mut self.open_artifacts)
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

    /// Reserves the space, and returns true if nothing was dropped so far.
    fn try_reserve(&mut self, size: usize) -> bool {
        match self.remaining_bytes.checked_sub(size.max(RECORD_OVERHEAD_BYTES)) {
            Some(remaining_bytes) => self.remaining_bytes = remaining_bytes,
            None => self.dropped_bytes += size as u64,
        }
        self.dropped_bytes == 0
    }

    /// Redacts the labels beside the content, because they are shown too.
    fn redact_labels(&self, parts: Vec<Part>) -> Vec<Part> {
        let redact_label =
            |text: Option<String>| text.map(|text| redacted_label(self.reporter, &text));
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
