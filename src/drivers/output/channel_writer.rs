//! Moves the output of a program into the ledger, at the speed of the ledger.

use algonius_actors::driver::report::{OutputWriter, Reporter};
use algonius_actors::model::execution::content::StoredPart;
use algonius_actors::model::execution::event::TextChannel;
use algonius_actors::ports::ledger::LedgerError;
use algonius_warden::OutputPipe;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;

use super::invalid_bytes::InvalidByteCounter;
use super::prompt_detection::OutputObserver;
use super::raw_text::{LongTextStorage, RawText, RawTextWriter};
use super::release_timer::ReleaseTimer;

/// Bytes per read.
const READ_BYTES: usize = 64 * 1024;

/// Bytes that are still read after the cut: more than a pipe can hold, and a bound for a program that never stops
/// writing.
const MAX_DRAINED_BYTES: usize = 2 * 1024 * 1024;

/// Text of one channel.
#[derive(Debug)]
pub(in crate::drivers) struct ChannelText {
    /// Raw text, or its head and tail. Held in memory only.
    pub(in crate::drivers) raw: RawText,
    /// Redacted text, as the ledger holds it.
    pub(in crate::drivers) stored_part: StoredPart,
    /// Number of bytes that are not UTF-8, for which the text has U+FFFD.
    pub(in crate::drivers) invalid_bytes: u64,
}

impl ChannelText {
    /// Returns the raw text, or its head and tail.
    pub(in crate::drivers) fn raw(&self) -> &str {
        self.raw.as_str()
    }

    /// Returns the text without its raw content, which then is no answer.
    pub(in crate::drivers) fn without_raw(self) -> Self {
        Self { raw: RawText::default(), ..self }
    }
}

/// Writer of raw bytes to the ledger that also keeps their head and tail.
pub(in crate::drivers) struct ChannelWriter {
    writer: OutputWriter,
    raw_text: RawTextWriter,
    invalid_byte_counter: InvalidByteCounter,
}

impl ChannelWriter {
    /// Opens a channel of the attempt that keeps at most `limit` bytes.
    pub(in crate::drivers) fn open(
        reporter: &Reporter,
        channel: TextChannel,
        (limit, storage): (usize, LongTextStorage),
    ) -> Self {
        Self {
            writer: reporter.open_output(channel),
            raw_text: RawTextWriter::new(limit, storage),
            invalid_byte_counter: InvalidByteCounter::default(),
        }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(in crate::drivers) async fn write(&mut self, bytes: &[u8]) -> Result<(), LedgerError> {
        self.raw_text.push(bytes);
        self.invalid_byte_counter.push(bytes);
        self.writer.write(bytes).await
    }

    /// Takes the next bytes, and returns the text that can be shown now.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(in crate::drivers) async fn write_and_flush(
        &mut self,
        bytes: &[u8],
    ) -> Result<Option<StoredPart>, LedgerError> {
        self.raw_text.push(bytes);
        self.invalid_byte_counter.push(bytes);
        self.writer.write_and_flush(bytes).await
    }

    /// Releases the text that may be shown now, although more of it will follow. Returns the new text.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(in crate::drivers) async fn release_visible_text(
        &mut self,
    ) -> Result<Option<StoredPart>, LedgerError> {
        self.writer.release_visible_text().await
    }

    /// Counts bytes that were not read, after the head of the text.
    pub(in crate::drivers) fn record_missing_bytes(&mut self, count: u64) {
        if count > 0 {
            self.invalid_byte_counter.mark_gap();
        }
        self.raw_text.record_missing_bytes(count);
        self.writer.record_missing_bytes(count);
    }

    /// Closes the present text of the channel; another one follows. Returns the redacted text that has ended.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(in crate::drivers) async fn start_next_text(&mut self) -> Result<StoredPart, LedgerError> {
        self.raw_text.clear();
        self.invalid_byte_counter = InvalidByteCounter::default();
        self.writer.start_next_text().await
    }

    /// Closes the channel.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(in crate::drivers) async fn close(self) -> Result<ChannelText, LedgerError> {
        Ok(ChannelText {
            raw: self.raw_text.close(),
            stored_part: self.writer.close().await?,
            invalid_bytes: self.invalid_byte_counter.into_count(),
        })
    }
}

/// Pipe that is read until it ends or, after the cut, until it is empty.
pub(in crate::drivers) struct OutputSource {
    pipe: OutputPipe,
    drain_signal: watch::Receiver<bool>,
    observer: OutputObserver,
    buffer: Vec<u8>,
    remaining_drain_bytes: usize,
}

impl OutputSource {
    /// Reads `pipe` until `cut` turns true; `watcher` observes the bytes. An earlier process instance may have left
    /// `unread_bytes` in addition to those in the pipe.
    pub(in crate::drivers) fn new(
        pipe: OutputPipe,
        drain_signal: watch::Receiver<bool>,
        observer: OutputObserver,
        unread_bytes: usize,
    ) -> Self {
        Self {
            pipe,
            drain_signal,
            observer,
            buffer: vec![0; READ_BYTES],
            remaining_drain_bytes: MAX_DRAINED_BYTES + unread_bytes,
        }
    }

    /// Returns the pipe for the next reader.
    pub(in crate::drivers) fn into_pipe(self) -> OutputPipe {
        self.pipe
    }

    /// Returns the next bytes; none at the end.
    pub(in crate::drivers) async fn next(&mut self) -> &[u8] {
        // After the cut a process outside of the attempt may still hold the pipe and write without end.
        let read_limit = if *self.drain_signal.borrow() {
            self.remaining_drain_bytes.min(READ_BYTES)
        } else {
            READ_BYTES
        };
        let target = self.buffer.get_mut(..read_limit).unwrap_or_default();
        self.observer.mark_waiting();
        // The pipe is polled first, so that its contents are read before the cut takes effect.
        let read = tokio::select! {
            biased;
            // An error of the pipe counts as its end: the exit of the program decides the outcome.
            read = self.pipe.read(target) => read.unwrap_or(0),
            _ = self.drain_signal.wait_for(|cut| *cut) => 0,
        };
        if *self.drain_signal.borrow() {
            self.remaining_drain_bytes = self.remaining_drain_bytes.saturating_sub(read);
        }
        let bytes = self.buffer.get(..read).unwrap_or_default();
        self.observer.receive(bytes);
        bytes
    }

    /// Returns the next bytes; `None` if none arrived before text has to be released.
    pub(in crate::drivers) async fn next_unless_release_due(
        &mut self,
        release_timer: &ReleaseTimer,
    ) -> Option<&[u8]> {
        tokio::select! {
            biased;
            // Bytes come first. So `wait_until_due` never returns for a program that writes without a pause, and
            // `must_release` is checked after each read.
            bytes = self.next() => Some(bytes),
            () = release_timer.wait_until_due() => None,
        }
    }
}

/// Moves one pipe into its channel.
///
/// # Errors
/// Fails if the ledger did not commit.
pub(in crate::drivers) async fn record_output(
    mut source: OutputSource,
    mut channel_writer: ChannelWriter,
    mut release_timer: ReleaseTimer,
) -> Result<ChannelText, LedgerError> {
    loop {
        let bytes = source.next_unless_release_due(&release_timer).await;
        match bytes {
            Some([]) => return channel_writer.close().await,
            Some(bytes) => {
                channel_writer.write(bytes).await?;
                release_timer.mark_read();
            }
            None => {}
        }
        if release_timer.must_release(bytes) {
            channel_writer.release_visible_text().await?;
            release_timer.mark_released();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncWriteExt, duplex, repeat};
    use tokio::sync::watch;
    use tokio::time::timeout;

    use super::{MAX_DRAINED_BYTES, OutputObserver, OutputPipe, OutputSource};

    /// Returns the number of bytes that are read after the cut from a pipe that stays open.
    async fn drained_bytes(pipe: OutputPipe, unread_bytes: usize) -> usize {
        let (_drain_sender, drain_signal) = watch::channel(true);
        let mut source =
            OutputSource::new(pipe, drain_signal, OutputObserver::default(), unread_bytes);
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
    async fn bytes_left_in_a_pipe_at_the_cut_are_read() {
        let (mut writer, reader) = duplex(128 * 1024);
        writer.write_all(&[1; 100_000]).await.unwrap();
        assert_eq!(drained_bytes(Box::pin(reader), 0).await, 100_000);
    }

    #[tokio::test]
    async fn an_endless_pipe_is_abandoned_after_the_cut() {
        assert_eq!(drained_bytes(Box::pin(repeat(1)), 0).await, MAX_DRAINED_BYTES);
    }

    #[tokio::test]
    async fn bytes_unread_by_an_earlier_process_are_read_after_the_cut() {
        let unread_bytes = 3 * MAX_DRAINED_BYTES;
        assert_eq!(
            drained_bytes(Box::pin(repeat(1)), unread_bytes).await,
            unread_bytes + MAX_DRAINED_BYTES
        );
    }
}
