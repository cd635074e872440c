//! Chunks on their way to the ledger: the next is made while the last is written.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::ports::ledger::LedgerError;

/// Chunks of one text that may be on their way: the ledger has one to go on with, and what a slow ledger
/// has not taken is not much.
const MOST: usize = 4;

/// What the ledger will say to a chunk.
pub(super) type Answer = Pin<Box<dyn Future<Output = Result<(), LedgerError>> + Send>>;

/// The chunks of one text that are on their way.
#[derive(Default)]
pub(super) struct Posted {
    /// The first first; there are never many.
    answers: Vec<Answer>,
}

impl Posted {
    /// Hands the next chunk over, by what comes of it. Returns when it is on its way and not too many are.
    ///
    /// # Errors
    /// When the ledger did not commit one of those before it, or this one.
    pub(super) async fn post(&mut self, answer: Answer) -> Result<(), LedgerError> {
        while self.answers.len() >= MOST {
            self.next().await?;
        }
        self.answers.push(answer);
        self.go_on()
    }

    /// Returns when all are committed.
    ///
    /// # Errors
    /// When the ledger did not commit one of them.
    pub(super) async fn arrived(&mut self) -> Result<(), LedgerError> {
        while !self.answers.is_empty() {
            self.next().await?;
        }
        Ok(())
    }

    /// Waits for the first.
    async fn next(&mut self) -> Result<(), LedgerError> {
        let Some(first) = self.answers.first_mut() else { return Ok(()) };
        let answer = first.await;
        drop(self.answers.remove(0));
        answer
    }

    /// Lets each take the steps that it can, in their order, so that none overtakes another. Nobody is
    /// woken by it: whoever waits for one polls it.
    fn go_on(&mut self) -> Result<(), LedgerError> {
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

    /// What becomes of a chunk that is handed to a slow ledger: that hears of it, and answers later.
    fn heard(to: UnboundedSender<Reply>) -> Answer {
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
    async fn a_few_are_on_their_way_and_the_next_waits_for_the_first() {
        let (to, mut ledger) = unbounded_channel();
        let mut posted = Posted::default();
        for _ in 0..MOST {
            posted.post(heard(to.clone())).await.unwrap();
        }
        assert_eq!(count(&ledger), MOST);
        let second = Duration::from_secs(1);
        assert!(timeout(second, posted.post(heard(to.clone()))).await.is_err());
        assert_eq!(count(&ledger), MOST);
        ledger.recv().await.unwrap().send(Ok(())).unwrap();
        posted.post(heard(to.clone())).await.unwrap();
        assert_eq!(count(&ledger), MOST);
        assert!(timeout(second, posted.arrived()).await.is_err());
        while let Ok(reply) = ledger.try_recv() {
            reply.send(Ok(())).unwrap();
        }
        posted.arrived().await.unwrap();
    }

    #[tokio::test]
    async fn what_was_not_committed_is_told_with_the_next_or_at_the_end() {
        for is_last in [false, true] {
            let (to, mut ledger) = unbounded_channel();
            let mut posted = Posted::default();
            posted.post(heard(to.clone())).await.unwrap();
            ledger.recv().await.unwrap().send(Err(full())).unwrap();
            let told = if is_last { posted.arrived().await } else { posted.post(heard(to)).await };
            assert!(matches!(told, Err(LedgerError::Unavailable { .. })));
        }
    }
}
