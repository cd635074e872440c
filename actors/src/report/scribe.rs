//! The pen of a driver: takes raw text and parts, and writes them masked.

use std::mem;
use std::sync::Arc;

use super::Desk;
use super::posted::{Answer, Posted};
use crate::decide::ends::{Ends, Tail, marker, shorten};
use crate::decide::grow::{Growth, Made};
use crate::decide::keep::{Kept, Masked, lay};
use crate::decide::redact::Stream;
use crate::model::content::{Part, Piece};
use crate::model::event::{CHUNK, Channel, Chunk, Fact, Span};
use crate::ports::ledger::{LedgerError, Lines};

/// Text is stored in pieces of at least this size, unless its stream ends.
const SHORTEST: usize = 4 * 1024;

/// Writes one channel: masks, cuts into chunks, and keeps the ends of what is beyond the limit.
pub struct Scribe {
    desk: Desk,
    channel: Channel,
    stream: Stream,
    growth: Growth,
    ready: String,
    posted: Posted,
    number: u32,
    offset: u64,
    /// What may be kept of the text.
    ends: Ends,
    /// Raw bytes that were taken of its head.
    taken: usize,
    /// What came after its head.
    rest: Tail,
    /// Places that were masked in what came after.
    masked: u64,
}

impl Scribe {
    /// Opens a channel at a desk.
    pub(super) fn open(desk: Desk, channel: Channel) -> Self {
        let stream = Stream::new(Arc::clone(&desk.redactor));
        let growth = Growth::new(Arc::clone(&desk.redactor));
        let ends = Ends::of(desk.limit);
        let rest = Tail::new(ends.tail + desk.redactor.context());
        Self {
            desk,
            channel,
            stream,
            growth,
            ready: String::new(),
            posted: Posted::default(),
            number: 0,
            offset: 0,
            ends,
            taken: 0,
            rest,
            masked: 0,
        }
    }

    /// Takes the next raw bytes. Returns when more may come: the last of what is stored of them may be
    /// on its way.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), LedgerError> {
        self.desk.pulse.beat();
        let room = (self.ends.head - self.taken).min(bytes.len());
        let (head, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.taken += head.len();
        self.stream.push_to(head, &mut self.ready);
        self.rest.push(rest);
        if self.ready.len() >= SHORTEST { self.post().await } else { Ok(()) }
    }

    /// Takes bytes that are not even there, after the head of the text.
    pub fn skip(&mut self, count: u64) {
        self.rest.skip(count);
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
        let (from, masked) = (self.offset, self.masks());
        self.write(bytes).await?;
        self.flush().await?;
        let shown = self.since(from, masked);
        Ok((self.offset > from).then_some(shown))
    }

    /// The text after an offset, with the masks after so many.
    fn since(&self, from: u64, masked: u64) -> Piece {
        let (stamp, channel) = (self.desk.stamp, self.channel);
        let piece = Piece::text(Span { stamp, channel, from, to: self.offset });
        Piece { redacted: self.masks() - masked, ..piece }
    }

    const fn masks(&self) -> u64 {
        self.stream.count() + self.masked
    }

    /// Writes what was held back, ends what was still being made, and gives the whole text of the
    /// channel. The last of it, where it is short, is written with what follows.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub async fn close(mut self) -> Result<Piece, LedgerError> {
        let dropped = self.end_flood();
        let left = self.growth.end();
        self.record(left).await?;
        if self.ready.len() >= SHORTEST {
            self.post().await?;
        }
        self.posted.arrived().await?;
        self.keep_back();
        if dropped > 0 {
            self.desk.record(Fact::Truncated { channel: self.channel, dropped }).await?;
        }
        Ok(self.since(0, 0))
    }

    /// Writes all that is ready. Returns when it is committed.
    async fn flush(&mut self) -> Result<(), LedgerError> {
        self.post().await?;
        self.posted.arrived().await?;
        self.desk.pulse.beat(); // A slow ledger is no silence of the agent.
        Ok(())
    }

    /// Sends all that is ready on its way.
    async fn post(&mut self) -> Result<(), LedgerError> {
        while let Some(answer) = self.send() {
            self.posted.post(answer).await?;
            self.desk.pulse.beat(); // A slow ledger is no silence of the agent.
        }
        Ok(())
    }

    /// Makes a chunk of the first that is ready, and what comes of it.
    fn send(&mut self) -> Option<Answer> {
        let rest = self.ready.split_off(self.ready.floor_char_boundary(CHUNK));
        let text = mem::replace(&mut self.ready, rest);
        let chunk = (!text.is_empty()).then(|| self.chunk(text))?;
        let (ledger, id) = (Arc::clone(&self.desk.ledger), self.desk.id);
        Some(Box::pin(async move { ledger.append(id, chunk).await }))
    }

    /// Leaves the last of the text to whoever writes next of the attempt.
    fn keep_back(&mut self) {
        if !self.ready.is_empty() {
            let text = mem::take(&mut self.ready);
            let chunks = vec![self.chunk(text)];
            self.desk.pending.add(Lines { chunks, facts: Vec::new() });
        }
    }

    /// The next chunk of the channel.
    fn chunk(&mut self, text: String) -> Chunk {
        let Self { number, offset, .. } = *self;
        self.number += 1;
        self.offset += text.len() as u64;
        Chunk { stamp: self.desk.stamp, channel: self.channel, number, offset, text }
    }

    /// Ends the text, with the tail of what came after its head. Tells how much is missing between
    /// them.
    fn end_flood(&mut self) -> u64 {
        let rest = mem::replace(&mut self.rest, Tail::new(0));
        let taken = self.taken as u64 + rest.taken();
        let (lost, bytes) = rest.end();
        if taken <= self.desk.limit as u64 {
            self.ready.push_str(&self.stream.push(&bytes));
            self.end_text();
            return 0;
        }
        let Cut { head, tail, missing } =
            if lost > 0 { self.cut_off(&bytes, taken) } else { self.cut_out(&bytes) };
        self.ready.push_str(&head);
        if missing > 0 {
            self.ready.push_str(&marker(missing));
        }
        self.ready.push_str(&tail);
        missing
    }

    /// The ends of a text that is there as a whole: what is masked can be cut anywhere.
    fn cut_out(&mut self, bytes: &[u8]) -> Cut {
        let mut text = self.stream.push(bytes) + &self.stream.finish();
        let room = (self.ends.head as u64).saturating_sub(self.shown());
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(text.len());
        let mut tail = text.split_off(text.floor_char_boundary(room));
        let missing = shorten(&mut tail, self.ends.tail);
        Cut { head: text, tail, missing }
    }

    /// The ends of a text of which something is lost. What is held back of its head may be the
    /// beginning of a secret, and what is left may begin with the end of one.
    fn cut_off(&mut self, bytes: &[u8], taken: u64) -> Cut {
        let head = self.stream.idle();
        let context = bytes.len().saturating_sub(self.ends.tail);
        let (mut tail, masked) = self.desk.redactor.redact_end(bytes, context);
        self.masked += masked;
        shorten(&mut tail, self.ends.tail);
        let kept = self.shown() + (head.len() + tail.len()) as u64;
        Cut { head, tail, missing: taken.saturating_sub(kept) }
    }

    /// How much of the text was given so far.
    const fn shown(&self) -> u64 {
        self.offset + self.ready.len() as u64
    }
}

/// The masked ends of a text, and how many bytes are missing between them.
struct Cut {
    head: String,
    tail: String,
    missing: u64,
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
