//! Moves what a program writes into the ledger, as fast as the ledger takes it.

use algonius_actors::decide::ends::Kept;
use algonius_actors::model::content::Piece;
use algonius_actors::model::event::Channel;
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::{Reporter, Scribe};
use tokio::io::AsyncReadExt;
use tokio::sync::watch;

use super::events::Events;
use super::prompts::Ear;
use crate::warden::Pipe;

/// Bytes read at once.
const PIECE: usize = 64 * 1024;

/// Bytes that are still read after the cut: more than a pipe can hold, and an end to a program
/// that never stops writing.
const LEFT_IN_PIPE: usize = 2 * 1024 * 1024;

/// The text of one channel.
#[derive(Debug)]
pub(super) struct Text {
    /// The raw text, or its ends. Lives in memory only.
    pub(super) raw: String,
    /// The redacted text, as it stands in the ledger.
    pub(super) piece: Piece,
}

/// Writes raw bytes to the ledger, and keeps the ends of them.
pub(super) struct Note {
    scribe: Scribe,
    kept: Kept,
}

impl Note {
    /// Opens a channel of the attempt.
    pub(super) fn open(report: &Reporter, channel: Channel, limit: usize) -> Self {
        Self { scribe: report.scribe(channel), kept: Kept::new(limit) }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn take(&mut self, bytes: &[u8]) -> Result<(), LedgerError> {
        self.kept.push(bytes);
        self.scribe.write(bytes).await
    }

    /// Takes the next bytes, and gives what can be shown by now.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn show(&mut self, bytes: &[u8]) -> Result<Option<Piece>, LedgerError> {
        self.kept.push(bytes);
        self.scribe.show(bytes).await
    }

    /// Takes bytes that were not even read, after the head of the text.
    pub(super) fn skip(&mut self, count: u64) {
        self.kept.skip(count);
        self.scribe.skip(count);
    }

    /// Ends the channel.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub(super) async fn close(self) -> Result<Text, LedgerError> {
        Ok(Text { raw: self.kept.text(), piece: self.scribe.close().await? })
    }
}

/// A pipe that is read until it ends or, after the cut, until it is empty.
pub(super) struct Source {
    pipe: Pipe,
    cut: watch::Receiver<bool>,
    ear: Ear,
    piece: Vec<u8>,
    left: usize,
}

impl Source {
    /// Reads `pipe` until `cut` turns true; `ear` hears what comes. So many bytes may be `held`
    /// besides what is in the pipe, since an earlier life.
    pub(super) fn new(pipe: Pipe, cut: watch::Receiver<bool>, ear: Ear, held: usize) -> Self {
        Self { pipe, cut, ear, piece: vec![0; PIECE], left: LEFT_IN_PIPE + held }
    }

    /// The pipe, for who reads on.
    pub(super) fn into_pipe(self) -> Pipe {
        self.pipe
    }

    /// The next bytes; nothing at the end.
    pub(super) async fn next(&mut self) -> &[u8] {
        let room = if *self.cut.borrow() { self.left.min(PIECE) } else { PIECE };
        let target = self.piece.get_mut(..room).unwrap_or_default();
        self.ear.wait();
        // The pipe is asked first, so that what it holds is read before the cut is heeded.
        let read = tokio::select! {
            biased;
            read = self.pipe.read(target) => read.unwrap_or(0),
            _ = self.cut.wait_for(|cut| *cut) => 0,
        };
        if *self.cut.borrow() {
            self.left = self.left.saturating_sub(read);
        }
        let bytes = self.piece.get(..read).unwrap_or_default();
        self.ear.hear(bytes);
        bytes
    }
}

/// Moves one pipe into its channel.
///
/// # Errors
/// When the ledger did not commit.
pub(super) async fn pump(mut source: Source, mut note: Note) -> Result<Text, LedgerError> {
    loop {
        let bytes = source.next().await;
        if bytes.is_empty() {
            return note.close().await;
        }
        note.take(bytes).await?;
    }
}

/// Moves a pipe of events into its channel, and what they say to where it belongs.
///
/// # Errors
/// When the ledger did not commit.
pub(super) async fn pump_events(
    mut source: Source,
    mut note: Note,
    events: &mut Events<'_>,
) -> Result<Text, LedgerError> {
    loop {
        let bytes = source.next().await;
        if bytes.is_empty() {
            events.end().await?;
            return note.close().await;
        }
        note.take(bytes).await?;
        events.hear(bytes).await?;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncWriteExt, duplex, repeat};
    use tokio::sync::watch;
    use tokio::time::timeout;

    use super::{Ear, LEFT_IN_PIPE, Pipe, Source};

    /// Bytes that are read from a pipe which nobody closes, after the cut.
    async fn after_the_cut(pipe: Pipe, held: usize) -> usize {
        let (_cut, is_cut) = watch::channel(true);
        let mut source = Source::new(pipe, is_cut, Ear::default(), held);
        let mut count = 0;
        loop {
            let read = timeout(Duration::from_secs(20), source.next()).await.unwrap().len();
            if read == 0 {
                return count;
            }
            count += read;
        }
    }

    #[tokio::test]
    async fn what_a_pipe_holds_at_the_cut_is_read() {
        let (mut writer, reader) = duplex(128 * 1024);
        writer.write_all(&[1; 100_000]).await.unwrap();
        assert_eq!(after_the_cut(Box::pin(reader), 0).await, 100_000);
    }

    #[tokio::test]
    async fn a_pipe_that_never_runs_dry_is_left_after_the_cut() {
        assert_eq!(after_the_cut(Box::pin(repeat(1)), 0).await, LEFT_IN_PIPE);
    }

    #[tokio::test]
    async fn what_an_earlier_life_left_unread_is_read_after_the_cut_too() {
        let held = 3 * LEFT_IN_PIPE;
        assert_eq!(after_the_cut(Box::pin(repeat(1)), held).await, held + LEFT_IN_PIPE);
    }
}
