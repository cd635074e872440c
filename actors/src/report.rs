//! What a driver tells about its attempt, and the only way its text reaches the ledger.
//!
//! Text is redacted here, before it is stored: a driver hands over raw bytes and gets back the
//! range in which their redacted form stands.

use std::sync::Arc;

use tokio::sync::watch;

use crate::decide::keep::keep;
use crate::decide::redact::{Redactor, Stream};
use crate::model::code::Code;
use crate::model::content::{Part, Piece};
use crate::model::event::{CHUNK, Channel, Chunk, Fact, Span};
use crate::model::execution::{Fence, Stamp};
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::model::progress::Progress;
use crate::ports::clock::Clock;
use crate::ports::ledger::{Ledger, LedgerError};

/// Text is stored in pieces of at least this size, unless its stream ends.
const SHORTEST: usize = 4 * 1024;

/// A short message to the execution's actor. Text never travels this way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The work lives.
    Started {
        /// The attempt.
        at: Stamp,
        /// Its process, where there is one.
        pid: Option<u32>,
    },
    /// The work has ended and has written its last.
    Ended {
        /// The attempt.
        at: Stamp,
        /// Whether it succeeded.
        verdict: Result<(), Failure>,
        /// The exit code of its process, where there was one.
        exit_code: Option<i32>,
    },
    /// The work has asked for input and has ended.
    Asked {
        /// The attempt.
        at: Stamp,
        /// The exit code of its process, where there was one.
        exit_code: Option<i32>,
    },
}

/// Where an attempt writes to.
#[derive(Clone)]
pub struct Desk {
    /// The execution.
    pub id: ExecutionId,
    /// The attempt.
    pub stamp: Stamp,
    /// The generation under which it may write.
    pub fence: Fence,
    /// The truth.
    pub ledger: Arc<dyn Ledger>,
    /// Wall time.
    pub clock: Arc<dyn Clock>,
    /// Masks secrets.
    pub redactor: Arc<Redactor>,
    /// Bytes kept of each channel.
    pub limit: usize,
    /// Where those who follow are told of news.
    pub progress: watch::Sender<Progress>,
}

impl Desk {
    async fn record(&self, fact: Fact) -> Result<(), LedgerError> {
        let facts = vec![(self.clock.now(), fact)];
        self.ledger.record(self.id, self.fence, facts).await?;
        self.progress.send_modify(Progress::has_news);
        Ok(())
    }
}

/// A driver's line to its execution. Dropped without a word it tells an internal failure, so that
/// a driver that panics never leaves an execution without an end.
pub struct Reporter {
    desk: Desk,
    tell: Box<dyn Fn(Report) + Send + Sync>,
    ended: bool,
}

impl Reporter {
    /// A line for one attempt; `tell` must not block.
    #[must_use]
    pub fn new(desk: Desk, tell: impl Fn(Report) + Send + Sync + 'static) -> Self {
        Self { desk, tell: Box::new(tell), ended: false }
    }

    /// Masks secrets in a sentence that will be shown.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        self.desk.redactor.redact(text).into_owned()
    }

    /// Tells that the work lives.
    pub fn started(&self, pid: Option<u32>) {
        (self.tell)(Report::Started { at: self.desk.stamp, pid });
    }

    /// Opens one channel of text. Each channel is opened at most once in an attempt.
    #[must_use]
    pub fn scribe(&self, channel: Channel) -> Scribe {
        Scribe {
            desk: self.desk.clone(),
            channel,
            stream: Stream::new(Arc::clone(&self.desk.redactor)),
            ready: String::new(),
            number: 0,
            offset: 0,
            taken: 0,
        }
    }

    /// Records a fact about the attempt.
    ///
    /// # Errors
    /// When the ledger did not commit it.
    pub async fn note(&self, fact: Fact) -> Result<(), LedgerError> {
        self.desk.record(fact).await
    }

    /// Tells how the work ended. Everything it wrote must be written by now.
    pub fn ended(mut self, verdict: Result<(), Failure>, exit_code: Option<i32>) {
        self.ended = true;
        (self.tell)(Report::Ended { at: self.desk.stamp, verdict, exit_code });
    }

    /// Tells that the work has ended with a question, which is recorded by now.
    pub fn asked(mut self, exit_code: Option<i32>) {
        self.ended = true;
        (self.tell)(Report::Asked { at: self.desk.stamp, exit_code });
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if !self.ended {
            let verdict = Err(Failure::new(Code::Internal, "the driver ended without a word"));
            (self.tell)(Report::Ended { at: self.desk.stamp, verdict, exit_code: None });
        }
    }
}

/// Writes one channel: masks, cuts into chunks, stops at the limit and counts what is beyond.
pub struct Scribe {
    desk: Desk,
    channel: Channel,
    stream: Stream,
    ready: String,
    number: u32,
    offset: u64,
    taken: u64,
}

impl Scribe {
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
        let rest = self.stream.finish();
        self.ready.push_str(&rest);
        let from = self.offset + self.ready.len() as u64;
        let kept = keep(parts, &self.desk.redactor, self.desk.stamp, self.channel, from);
        self.ready.push_str(&kept.text);
        self.flush().await?;
        Ok(kept.pieces)
    }

    /// Takes the next raw bytes, and tells where what can be shown by now of the text stands, once
    /// it is committed; `None` when nothing new can be shown.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub async fn show(&mut self, bytes: &[u8]) -> Result<Option<Span>, LedgerError> {
        let from = self.offset;
        self.write(bytes).await?;
        self.flush().await?;
        Ok(self.since(from))
    }

    /// Where the text after an offset stands.
    fn since(&self, from: u64) -> Option<Span> {
        let (stamp, channel) = (self.desk.stamp, self.channel);
        (self.offset > from).then_some(Span { stamp, channel, from, to: self.offset })
    }

    /// Writes what was held back, and tells where the whole text of the channel stands.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub async fn close(mut self) -> Result<Span, LedgerError> {
        let rest = self.stream.finish();
        self.ready.push_str(&rest);
        self.flush().await?;
        self.tell_what_was_dropped().await?;
        Ok(Span { stamp: self.desk.stamp, channel: self.channel, from: 0, to: self.offset })
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
