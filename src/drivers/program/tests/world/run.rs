//! Running attempt of a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use algonius_actors::driver::Lease;
use algonius_actors::model::execution::event::TextChannel;
use algonius_actors::model::failure::Failure;
use algonius_actors::report::Report;
use tokio::sync::mpsc::UnboundedReceiver;

use super::story::text;
use super::{DEADLINE, Entry};

/// Running attempt.
pub(in crate::drivers::program::tests) struct Run {
    pub(in crate::drivers::program::tests) lease: Option<Lease>,
    pub(super) entries: UnboundedReceiver<Entry>,
    pub(super) is_full: Arc<AtomicBool>,
    pub(in crate::drivers::program::tests) seen: Vec<Entry>,
}

impl Run {
    /// Waits for the next entry.
    pub(in crate::drivers::program::tests) async fn next(&mut self) -> &Entry {
        let entry = tokio::time::timeout(DEADLINE, self.entries.recv()).await;
        let entry = entry.expect("nothing came in time").expect("it ended without a word");
        self.seen.push(entry);
        self.seen.last().unwrap()
    }

    /// Waits for the end. A question counts as a success.
    pub(in crate::drivers::program::tests) async fn ended(&mut self) -> Result<(), Failure> {
        loop {
            match self.next().await {
                Entry::Report(Report::Ended { verdict, .. }) => return verdict.clone(),
                Entry::Report(Report::Asked { .. }) => return Ok(()),
                _ => {}
            }
        }
    }

    /// Returns the text of a channel so far.
    pub(in crate::drivers::program::tests) fn text(&self, channel: TextChannel) -> String {
        text(&self.seen, channel)
    }

    pub(in crate::drivers::program::tests) fn stop(&self) {
        self.lease.as_ref().unwrap().stop();
    }

    /// Cleans up, and asserts that no entry follows the end.
    pub(in crate::drivers::program::tests) async fn clean(&mut self) {
        let cleaning = self.lease.take().unwrap().clean();
        tokio::time::timeout(DEADLINE, cleaning).await.expect("it was not cleaned in time");
        let late = self.entries.try_recv();
        assert!(late.is_err(), "told after the end: {late:?}");
    }

    pub(in crate::drivers::program::tests) fn fill_the_ledger(&self) {
        self.is_full.store(true, Ordering::SeqCst);
    }
}
