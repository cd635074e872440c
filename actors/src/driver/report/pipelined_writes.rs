//! Pipelined writes of chunks: the next chunk is prepared while earlier ones are written.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::ports::ledger::LedgerError;

/// Maximum number of pending chunks of one text: the ledger always has one to write, and a slow ledger causes little
/// memory use.
const MAX_PENDING_CHUNKS: usize = 4;

/// Future of the ledger's reply to a chunk.
pub(super) type AppendFuture = Pin<Box<dyn Future<Output = Result<(), LedgerError>> + Send>>;

/// Pending chunks of one text.
#[derive(Default)]
pub(super) struct PipelinedWrites {
    /// Appends in the order of the chunks; there are never many.
    pending_appends: Vec<AppendFuture>,
}

impl PipelinedWrites {
    /// Adds the append of the next chunk. Returns once the chunk is pending and the limit is respected.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit one of the earlier chunks, or this one.
    pub(super) async fn enqueue(&mut self, append: AppendFuture) -> Result<(), LedgerError> {
        // Waiting here stops the reading of the pipe, and a full pipe stops the program: the disk sets the pace.
        while self.pending_appends.len() >= MAX_PENDING_CHUNKS {
            self.wait_for_oldest().await?;
        }
        self.pending_appends.push(append);
        // A future does nothing until it is polled, so the new write is queued at the ledger now.
        self.poll_all()
    }

    /// Waits until all chunks are committed.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit one of them.
    pub(super) async fn wait_until_committed(&mut self) -> Result<(), LedgerError> {
        while !self.pending_appends.is_empty() {
            self.wait_for_oldest().await?;
        }
        Ok(())
    }

    /// Waits for the oldest pending chunk.
    async fn wait_for_oldest(&mut self) -> Result<(), LedgerError> {
        let Some(oldest) = self.pending_appends.first_mut() else { return Ok(()) };
        let result = oldest.await;
        drop(self.pending_appends.remove(0));
        result
    }

    /// Polls all appends in their order, so that no chunk overtakes another one. This wakes no task: the task that
    /// waits for an append polls it.
    fn poll_all(&mut self) -> Result<(), LedgerError> {
        let mut context = Context::from_waker(Waker::noop());
        let mut result = Ok(());
        self.pending_appends.retain_mut(|append| match append.as_mut().poll(&mut context) {
            Poll::Pending => true,
            Poll::Ready(append_result) => {
                result = std::mem::replace(&mut result, Ok(())).and(append_result);
                false
            }
        });
        result
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::*;

    type ReplySender = oneshot::Sender<Result<(), LedgerError>>;

    /// Creates the append of a slow ledger, which receives the chunk and replies later.
    fn slow_append(sender: UnboundedSender<ReplySender>) -> AppendFuture {
        Box::pin(async move {
            let (reply_sender, answer) = oneshot::channel();
            sender.send(reply_sender).unwrap();
            answer.await.unwrap()
        })
    }

    fn pending_append_count(reply_senders: &UnboundedReceiver<ReplySender>) -> usize {
        reply_senders.len()
    }

    fn disk_full() -> LedgerError {
        LedgerError::Unavailable { cause: "the disk is full".to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn writes_are_pipelined_up_to_a_limit() {
        let (sender, mut reply_senders) = unbounded_channel();
        let mut writes = PipelinedWrites::default();
        for _ in 0..MAX_PENDING_CHUNKS {
            writes.enqueue(slow_append(sender.clone())).await.unwrap();
        }
        assert_eq!(pending_append_count(&reply_senders), MAX_PENDING_CHUNKS);
        let second = Duration::from_secs(1);
        assert!(timeout(second, writes.enqueue(slow_append(sender.clone()))).await.is_err());
        assert_eq!(pending_append_count(&reply_senders), MAX_PENDING_CHUNKS);
        reply_senders.recv().await.unwrap().send(Ok(())).unwrap();
        writes.enqueue(slow_append(sender.clone())).await.unwrap();
        assert_eq!(pending_append_count(&reply_senders), MAX_PENDING_CHUNKS);
        assert!(timeout(second, writes.wait_until_committed()).await.is_err());
        while let Ok(reply) = reply_senders.try_recv() {
            reply.send(Ok(())).unwrap();
        }
        writes.wait_until_committed().await.unwrap();
    }

    #[tokio::test]
    async fn a_failed_commit_is_reported_by_the_next_write_or_the_end() {
        for is_last in [false, true] {
            let (sender, mut reply_senders) = unbounded_channel();
            let mut writes = PipelinedWrites::default();
            writes.enqueue(slow_append(sender.clone())).await.unwrap();
            reply_senders.recv().await.unwrap().send(Err(disk_full())).unwrap();
            let result = if is_last {
                writes.wait_until_committed().await
            } else {
                writes.enqueue(slow_append(sender)).await
            };
            assert!(matches!(result, Err(LedgerError::Unavailable { .. })));
        }
    }
}
