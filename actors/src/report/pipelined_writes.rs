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
    /// Replies in the order of the chunks; there are never many.
    answers: Vec<AppendFuture>,
}

impl PipelinedWrites {
    /// Adds the reply of the next chunk. Returns once the chunk is pending and the limit is respected.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit one of the earlier chunks, or this one.
    pub(super) async fn enqueue(&mut self, answer: AppendFuture) -> Result<(), LedgerError> {
        // Waiting here stops the reading of the pipe, and a full pipe stops the program: the disk sets the pace.
        while self.answers.len() >= MAX_PENDING_CHUNKS {
            self.next().await?;
        }
        self.answers.push(answer);
        // A future does nothing until it is polled, so the new write is queued at the ledger now.
        self.poll_all()
    }

    /// Waits until all chunks are committed.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit one of them.
    pub(super) async fn wait_until_committed(&mut self) -> Result<(), LedgerError> {
        while !self.answers.is_empty() {
            self.next().await?;
        }
        Ok(())
    }

    /// Waits for the first chunk.
    async fn next(&mut self) -> Result<(), LedgerError> {
        let Some(first) = self.answers.first_mut() else { return Ok(()) };
        let answer = first.await;
        drop(self.answers.remove(0));
        answer
    }

    /// Polls all replies in their order, so that no chunk overtakes another one. This wakes no task: the task that
    /// waits for a reply polls it.
    fn poll_all(&mut self) -> Result<(), LedgerError> {
        let mut idle = Context::from_waker(Waker::noop());
        let mut result = Ok(());
        self.answers.retain_mut(|answer| match answer.as_mut().poll(&mut idle) {
            Poll::Pending => true,
            Poll::Ready(answer) => {
                result = std::mem::replace(&mut result, Ok(())).and(answer);
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

    type Reply = oneshot::Sender<Result<(), LedgerError>>;

    /// Creates a reply of a slow ledger, which receives the chunk and replies later.
    fn reply_sender(to: UnboundedSender<Reply>) -> AppendFuture {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            to.send(reply).unwrap();
            answer.await.unwrap()
        })
    }

    fn count(ledger: &UnboundedReceiver<Reply>) -> usize {
        ledger.len()
    }

    fn full() -> LedgerError {
        LedgerError::Unavailable { cause: "the disk is full".to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn writes_are_pipelined_up_to_a_limit() {
        let (to, mut ledger) = unbounded_channel();
        let mut writes = PipelinedWrites::default();
        for _ in 0..MAX_PENDING_CHUNKS {
            writes.enqueue(reply_sender(to.clone())).await.unwrap();
        }
        assert_eq!(count(&ledger), MAX_PENDING_CHUNKS);
        let second = Duration::from_secs(1);
        assert!(timeout(second, writes.enqueue(reply_sender(to.clone()))).await.is_err());
        assert_eq!(count(&ledger), MAX_PENDING_CHUNKS);
        ledger.recv().await.unwrap().send(Ok(())).unwrap();
        writes.enqueue(reply_sender(to.clone())).await.unwrap();
        assert_eq!(count(&ledger), MAX_PENDING_CHUNKS);
        assert!(timeout(second, writes.wait_until_committed()).await.is_err());
        while let Ok(reply) = ledger.try_recv() {
            reply.send(Ok(())).unwrap();
        }
        writes.wait_until_committed().await.unwrap();
    }

    #[tokio::test]
    async fn a_failed_commit_is_reported_by_the_next_write_or_the_end() {
        for is_last in [false, true] {
            let (to, mut ledger) = unbounded_channel();
            let mut writes = PipelinedWrites::default();
            writes.enqueue(reply_sender(to.clone())).await.unwrap();
            ledger.recv().await.unwrap().send(Err(full())).unwrap();
            let reported = if is_last {
                writes.wait_until_committed().await
            } else {
                writes.enqueue(reply_sender(to)).await
            };
            assert!(matches!(reported, Err(LedgerError::Unavailable { .. })));
        }
    }
}
