//! The pen of a driver: takes raw text and parts, and writes them masked.

use std::sync::Arc;

use super::Desk;
use crate::decide::grow::{Growth, Made};
use crate::decide::keep::{Kept, Masked, lay};
use crate::decide::redact::Stream;
use crate::model::content::{Part, Piece};
use crate::model::event::{CHUNK, Channel, Chunk, Fact, Span};
use crate::ports::ledger::LedgerError;

/// Text is stored in pieces of at least this size, unless its stream ends.
const SHORTEST: usize = 4 * 1024;

/// Writes one channel: masks, cuts into chunks, stops at the limit and counts what is beyond.
pub struct Scribe {
    desk: Desk,
    channel: Channel,
    stream: Stream,
    growth: Growth,
    ready: String,
    number: u32,
    offset: u64,
    taken: u64,
}

impl Scribe {
    /// Opens a channel at a desk.
    pub(super) fn open(desk: Desk, channel: Channel) -> Self {
        let stream = Stream::new(Arc::clone(&desk.redactor));
        let growth = Growth::new(Arc::clone(&desk.redactor));
        let ready = String::new();
        Self { desk, channel, stream, growth, ready, number: 0, offset: 0, taken: 0 }
    }

    /// Takes the next raw bytes. Returns when what is stored of them is committed.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), LedgerError> {
        let room = (self.desk.limit as u64).saturating_sub(self.taken);
        self.taken += bytes.len() as u64;
        let kept = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        self.ready.push_str(&self.stream.push(bytes.get(..kept).unwrap_or_default()));
        if self.ready.len() >= SHORTEST { self.flush().await } else { Ok(()) }
    }

    /// Takes whole parts. Returns where each stands, when they are committed.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub async fn keep(&mut self, parts: &[Part]) -> Result<Vec<Piece>, LedgerError> {
        let redactor = Arc::clone(&self.desk.redactor);
        self.lay(parts.iter().map(|part| Masked::part(part, &redactor))).await
    }

    /// Takes parts that are masked. Returns where each stands, when they are committed.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub async fn lay(
        &mut self,
        parts: impl IntoIterator<Item = Masked>,
    ) -> Result<Vec<Piece>, LedgerError> {
        let Kept { text, pieces, .. } = lay(parts, self.end_text());
        self.ready.push_str(&text);
        self.flush().await?;
        Ok(pieces)
    }

    /// Takes something made, or more of it, and records what can be shown of it by now. What is
    /// held back of its text is recorded with what follows, or when the channel is closed.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub async fn make(&mut self, made: Made<Part>) -> Result<(), LedgerError> {
        let shown = self.growth.take(made);
        self.record(shown).await
    }

    async fn record(&mut self, shown: Vec<Made<Masked>>) -> Result<(), LedgerError> {
        for Made { id, name, description, parts, append, last } in shown {
            let pieces = self.lay(parts).await?;
            let fact = Fact::Artifact { id, name, description, pieces, append, last };
            self.desk.record(fact).await?;
        }
        Ok(())
    }

    /// Ends the text of the channel so far, and tells where the next stands.
    fn end_text(&mut self) -> Span {
        let rest = self.stream.finish();
        self.ready.push_str(&rest);
        let from = self.offset + self.ready.len() as u64;
        Span { stamp: self.desk.stamp, channel: self.channel, from, to: from }
    }

    /// Takes the next raw bytes, and gives what can be shown by now of the text, once it is
    /// committed; `None` when nothing new can be shown.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub async fn show(&mut self, bytes: &[u8]) -> Result<Option<Piece>, LedgerError> {
        let (from, masked) = (self.offset, self.stream.count());
        self.write(bytes).await?;
        self.flush().await?;
        let shown = self.since(from, masked);
        Ok((self.offset > from).then_some(shown))
    }

    /// The text after an offset, with the masks after so many.
    fn since(&self, from: u64, masked: u64) -> Piece {
        let (stamp, channel) = (self.desk.stamp, self.channel);
        let piece = Piece::text(Span { stamp, channel, from, to: self.offset });
        Piece { redacted: self.stream.count() - masked, ..piece }
    }

    /// Writes what was held back, ends what was still being made, and gives the whole text of the
    /// channel.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub async fn close(mut self) -> Result<Piece, LedgerError> {
        self.end_text();
        let left = self.growth.end();
        self.record(left).await?;
        self.flush().await?;
        self.tell_what_was_dropped().await?;
        Ok(self.since(0, 0))
    }

    async fn flush(&mut self) -> Result<(), LedgerError> {
        for text in pieces(&std::mem::take(&mut self.ready)) {
            let length = text.len() as u64;
            let (stamp, channel) = (self.desk.stamp, self.channel);
            let chunk = Chunk { stamp, channel, number: self.number, offset: self.offset, text };
            self.desk.ledger.append(self.desk.id, chunk).await?;
            self.number += 1;
            self.offset += length;
        }
        Ok(())
    }

    async fn tell_what_was_dropped(&self) -> Result<(), LedgerError> {
        let dropped = self.taken.saturating_sub(self.desk.limit as u64);
        if dropped == 0 {
            return Ok(());
        }
        self.desk.record(Fact::Truncated { channel: self.channel, dropped }).await
    }
}

/// Cuts a text into pieces of at most [`CHUNK`] bytes, between characters.
#[must_use]
pub fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let cut = rest.floor_char_boundary(CHUNK);
        let (head, tail) = rest.split_at(cut);
        pieces.push(head.to_owned());
        rest = tail;
    }
    pieces
}
