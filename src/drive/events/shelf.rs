//! Keeps parts of what a program said and made, up to the limit of the attempt.

use algonius_actors::decide::grow::Made;
use algonius_actors::model::content::{Content, Part, Piece};
use algonius_actors::model::event::{Channel, Fact};
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::{Reporter, Scribe};

/// What a record costs beside its content, so that empty ones have an end too.
const OVERHEAD: usize = 256;

/// The longest label, in characters.
const LONGEST: usize = 300;

/// Where parts are kept.
pub(super) struct Shelf<'r> {
    report: &'r Reporter,
    scribe: Scribe,
    left: usize,
    dropped: u64,
}

impl<'r> Shelf<'r> {
    /// Opens the channel of parts.
    pub(super) fn open(report: &'r Reporter, limit: usize) -> Self {
        Self { report, scribe: report.scribe(Channel::Parts), left: limit, dropped: 0 }
    }

    /// Keeps the parts; `None` where there is no room for them.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn keep(
        &mut self,
        parts: Vec<Part>,
    ) -> Result<Option<Vec<Piece>>, LedgerError> {
        if !self.has_room(parts.iter().map(size).sum()) {
            return Ok(None);
        }
        let labelled = self.labelled(parts);
        self.scribe.keep(&labelled).await.map(Some)
    }

    /// Keeps and records something made, or more of it, where there is room for it.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn make(&mut self, made: Made<Part>) -> Result<(), LedgerError> {
        if !self.has_room(made.parts.iter().map(size).sum()) {
            return Ok(());
        }
        let parts = self.labelled(made.parts);
        self.scribe.make(Made { parts, ..made }).await
    }

    /// How much one more part may hold.
    pub(super) const fn room(&self) -> usize {
        self.left.saturating_sub(OVERHEAD)
    }

    /// Counts what was not even read, because there is no room for it.
    pub(super) const fn pass_over(&mut self, size: u64) {
        self.dropped = self.dropped.saturating_add(size);
    }

    /// Records a fact without parts, where there is room for it.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn note(&mut self, fact: Fact) -> Result<(), LedgerError> {
        if self.has_room(OVERHEAD) { self.report.note(fact).await } else { Ok(()) }
    }

    /// Ends the channel, and with it what the program has left open.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn close(self) -> Result<(), LedgerError> {
        self.scribe.close().await?;
        if self.dropped == 0 {
            return Ok(());
        }
        let cut = Fact::Truncated { channel: Channel::Parts, dropped: self.dropped };
        self.report.note(cut).await
    }

    /// Takes the room, where there is so much.
    fn has_room(&mut self, size: usize) -> bool {
        match self.left.checked_sub(size.max(OVERHEAD)) {
            Some(left) => self.left = left,
            None => self.dropped += size as u64,
        }
        self.dropped == 0
    }

    /// What stands beside the content is shown too.
    fn labelled(&self, parts: Vec<Part>) -> Vec<Part> {
        let of = |text: Option<String>| text.map(|text| label(self.report, &text));
        let parts = parts.into_iter().map(|Part { content, filename, media_type }| Part {
            content,
            filename: of(filename),
            media_type: of(media_type),
        });
        parts.collect()
    }
}

/// A short text that is shown: masked as a whole, then cut, for a cut secret would not be known
/// as one.
pub(in crate::drive) fn label(report: &Reporter, text: &str) -> String {
    let masked = report.redact(text);
    let plain: String = masked.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut cut: String = plain.trim().chars().take(LONGEST).collect();
    if cut.len() < plain.trim().len() {
        cut.push('…');
    }
    cut
}

fn size(part: &Part) -> usize {
    let content = match &part.content {
        Content::Text(text) | Content::Bytes(text) | Content::Url(text) => text.len(),
        Content::Data(data) => data.to_string().len(),
    };
    content + OVERHEAD
}
