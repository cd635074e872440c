//! Standard error, written by a thread of its own: a terminal or a pipe that nobody reads stops no other thread.

use std::io::{self, Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

/// Greatest number of texts that wait to be written; further ones are lost and counted.
const MAX_QUEUED_TEXTS: usize = 4096;
/// Pause before the next try to queue an entry.
const QUEUE_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Standard error without the lock of the standard library, which a thread that waits in a write would hold.
struct UnlockedStderr;

impl Write for UnlockedStderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(nix::unistd::write(stderr(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Entry of the queue.
enum WriterEntry {
    Text(String),
    /// Mark of a flush: the sender is dropped when everything before the mark is written.
    Flush(SyncSender<()>),
}

/// Queue of texts for standard error. Clones share it.
#[derive(Clone)]
pub(super) struct StderrWriter {
    queue: SyncSender<WriterEntry>,
    lost_count: Arc<AtomicU64>,
}

impl StderrWriter {
    /// Starts the thread. `describe_loss` returns the line that reports a number of lost texts.
    pub(super) fn start(describe_loss: impl Fn(u64) -> String + Send + 'static) -> Self {
        Self::with_output(UnlockedStderr, MAX_QUEUED_TEXTS, describe_loss)
    }

    fn with_output(
        output: impl Write + Send + 'static,
        max_texts: usize,
        describe_loss: impl Fn(u64) -> String + Send + 'static,
    ) -> Self {
        let (queue, queue_receiver) = sync_channel(max_texts);
        let lost = Arc::new(AtomicU64::new(0));
        let thread_losses = Arc::clone(&lost);
        // Without the thread every text is lost, as with a closed standard error.
        _ = thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all_texts(output, &queue_receiver, &thread_losses, describe_loss));
        Self { queue, lost_count: lost }
    }

    /// Queues a text. If the queue is full, the text is lost.
    pub(super) fn write(&self, text: String) {
        if self.queue.try_send(WriterEntry::Text(text)).is_err() {
            self.lost_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until the queued texts are written: at most for this time, twice if the queue is full. Returns false if
    /// some are not written.
    pub(super) fn flush(&self, timeout: Duration) -> bool {
        let (flush_sender, flush_receiver) = sync_channel(0);
        let is_queued = self.queue_with_timeout(WriterEntry::Flush(flush_sender), timeout);
        // The thread drops the sender.
        is_queued && flush_receiver.recv_timeout(timeout) == Err(RecvTimeoutError::Disconnected)
    }

    /// Queues a text that is more important than a line. Waits for room at most for this time.
    pub(super) fn write_with_timeout(&self, text: String, timeout: Duration) {
        if !self.queue_with_timeout(WriterEntry::Text(text), timeout) {
            self.lost_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn queue_with_timeout(&self, mut entry: WriterEntry, timeout: Duration) -> bool {
        let (_sender, never_ready) = sync_channel::<()>(0);
        for _ in 0..=timeout.as_millis() / QUEUE_RETRY_PAUSE.as_millis() {
            match self.queue.try_send(entry) {
                Ok(()) => return true,
                Err(TrySendError::Full(returned)) => entry = returned,
                Err(TrySendError::Disconnected(_)) => return false,
            }
            _ = never_ready.recv_timeout(QUEUE_RETRY_PAUSE); // A pause.
        }
        false
    }
}

/// Writes texts until all writers are dropped. A text that cannot be written counts as lost.
fn write_all_texts(
    mut output: impl Write,
    queue: &Receiver<WriterEntry>,
    lost: &AtomicU64,
    describe_loss: impl Fn(u64) -> String,
) {
    for entry in queue {
        let text = match entry {
            WriterEntry::Text(text) => text,
            WriterEntry::Flush(written) => {
                drop(written);
                continue;
            }
        };
        let mut new_losses = lost.swap(0, Ordering::Relaxed);
        // One write for each line, so that another process that shares the file does not split it.
        if new_losses > 0 && output.write_all(describe_loss(new_losses).as_bytes()).is_ok() {
            new_losses = 0;
        }
        if output.write_all(text.as_bytes()).is_err() {
            new_losses += 1;
        }
        lost.fetch_add(new_losses, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Output that fails, or waits, before each write.
    struct GatedOutput {
        permits: Receiver<io::Result<()>>,
        text_sender: Sender<String>,
    }

    impl Write for GatedOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.permits.recv().map_err(io::Error::other)??;
            self.text_sender.send(String::from_utf8_lossy(bytes).into_owned()).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated_writer() -> (StderrWriter, Sender<io::Result<()>>, Receiver<String>) {
        let ((permit, permits), (text_sender, texts)) = (channel(), channel());
        let output = GatedOutput { permits, text_sender };
        let writer = StderrWriter::with_output(output, 2, |lost| format!("{lost} lost"));
        (writer, permit, texts)
    }

    fn flush(writer: &StderrWriter) {
        while !writer.flush(Duration::from_secs(60)) {
            thread::yield_now();
        }
    }

    #[test]
    fn an_output_that_nobody_reads_delays_no_writer() {
        let (writer, permit, texts) = gated_writer();
        (0..20).for_each(|number| writer.write(number.to_string()));
        assert!(!writer.flush(Duration::from_millis(1)));
        (0..20).for_each(|_| permit.send(Ok(())).unwrap());
        flush(&writer);
        writer.write("next".to_owned());
        flush(&writer);
        let texts: Vec<_> = texts.try_iter().collect();
        let (reports, texts): (Vec<_>, Vec<_>) =
            texts.into_iter().partition(|text| text.ends_with(" lost"));
        let count = |report: &String| report.trim_end_matches(" lost").parse::<usize>().unwrap();
        let lost: usize = reports.iter().map(count).sum();
        assert!(lost > 0 && texts.len() + lost == 21, "{reports:?} {texts:?}");
        assert_eq!(texts.last().unwrap(), "next");
    }

    #[test]
    fn failed_writes_are_reported_by_the_next_that_succeeds() {
        let (writer, permit, texts) = gated_writer();
        let full_disk = || Err(io::Error::from(io::ErrorKind::StorageFull));
        writer.write("first".to_owned());
        permit.send(full_disk()).unwrap();
        flush(&writer);
        writer.write("second".to_owned());
        // Neither the report nor the text can be written.
        (0..2).for_each(|_| permit.send(full_disk()).unwrap());
        flush(&writer);
        writer.write("third".to_owned());
        (0..2).for_each(|_| permit.send(Ok(())).unwrap());
        flush(&writer);
        assert_eq!(texts.try_iter().collect::<Vec<_>>(), ["2 lost", "third"]);
    }
}
