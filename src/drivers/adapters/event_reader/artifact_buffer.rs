//! Stores the parts that a program reports, up to the limit of the attempt.

use std::collections::BTreeMap;

use algonius_actors::decide::output::artifact_stream::ArtifactPiece;
use algonius_actors::model::execution::content::{Content, Part, StoredPart};
use algonius_actors::model::execution::event::{EventKind, TextChannel};
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::{OutputWriter, Reporter};

use crate::drivers::output::display_label::label;

/// Overhead of a record in bytes, so that empty records count too.
const RECORD_OVERHEAD_BYTES: usize = 256;

/// Store of parts.
pub(super) struct ArtifactBuffer<'r> {
    report: &'r Reporter,
    writer: OutputWriter,
    left: usize,
    dropped: u64,
    /// Artifacts with stored content, and the number of dropped bytes of each.
    open_artifacts: BTreeMap<String, u64>,
}

impl<'r> ArtifactBuffer<'r> {
    /// Opens the channel of parts.
    pub(super) fn open(report: &'r Reporter, limit: usize) -> Self {
        let (writer, open_artifacts) = (report.open_output(TextChannel::Parts), BTreeMap::new());
        Self { report, writer, left: limit, dropped: 0, open_artifacts }
    }

    /// Stores the parts, or returns `None` if there is no room for them.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn store(
        &mut self,
        parts: Vec<Part>,
    ) -> Result<Option<Vec<StoredPart>>, LedgerError> {
        if !self.has_room(parts.iter().map(size).sum()) {
            return Ok(None);
        }
        let labelled = self.redact_labels(parts);
        self.writer.store_content(&labelled).await.map(Some)
    }

    /// Stores and records an artifact, or more of it, if there is room.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn make(&mut self, made: ArtifactPiece<Part>) -> Result<(), LedgerError> {
        let size = made.parts.iter().map(size).sum();
        if !self.has_room(size) {
            if let Some(dropped) = self.open_artifacts.get_mut(&made.id) {
                *dropped += size as u64;
            }
            return Ok(());
        }
        self.open_artifacts.entry(made.id.clone()).or_default();
        let parts = self.redact_labels(made.parts);
        self.writer.make(ArtifactPiece { parts, ..made }).await
    }

    /// Releases the safe part of unfinished artifacts.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn release(&mut self) -> Result<(), LedgerError> {
        self.writer.release().await.map(|_| ())
    }

    /// Returns the room for one more part in bytes.
    pub(super) const fn room(&self) -> usize {
        self.left.saturating_sub(RECORD_OVERHEAD_BYTES)
    }

    /// Counts content that was not read because there is no room for it.
    pub(super) const fn skip(&mut self, size: u64) {
        self.dropped = self.dropped.saturating_add(size);
    }

    /// Records a fact without parts, if there is room for it.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn note(&mut self, fact: EventKind) -> Result<(), LedgerError> {
        if self.has_room(RECORD_OVERHEAD_BYTES) { self.report.note(fact).await } else { Ok(()) }
    }

    /// Closes the channel, and with it the artifacts that the program has left open.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn close(mut self) -> Result<(), LedgerError> {
        let cut = std::mem::take(&mut self.open_artifacts)
            .into_iter()
            .filter(|(_, dropped)| *dropped > 0);
        for (id, dropped) in cut {
            self.writer.end_truncated_artifact(id, dropped).await?;
        }
        self.writer.close().await?;
        if self.dropped == 0 {
            return Ok(());
        }
        let cut = EventKind::OutputTruncated { channel: TextChannel::Parts, dropped: self.dropped };
        self.report.note(cut).await
    }

    /// Reserves the room, and returns true if nothing was dropped so far.
    fn has_room(&mut self, size: usize) -> bool {
        match self.left.checked_sub(size.max(RECORD_OVERHEAD_BYTES)) {
            Some(left) => self.left = left,
            None => self.dropped += size as u64,
        }
        self.dropped == 0
    }

    /// Redacts the labels beside the content, because they are shown too.
    fn redact_labels(&self, parts: Vec<Part>) -> Vec<Part> {
        let of = |text: Option<String>| text.map(|text| label(self.report, &text));
        let parts = parts.into_iter().map(|Part { content, filename, media_type }| Part {
            content,
            filename: of(filename),
            media_type: of(media_type),
        });
        parts.collect()
    }
}

fn size(part: &Part) -> usize {
    let content = match &part.content {
        Content::Text(text) | Content::Bytes(text) | Content::Url(text) => text.len(),
        Content::Data(data) => data.to_string().len(),
    };
    content + RECORD_OVERHEAD_BYTES
}
