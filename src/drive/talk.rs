//! Speaks with a program: writes what its dialogue has to say, and shows what it answers.

use std::io;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::ports::ledger::LedgerError;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;

use super::dialogue::{Dialogue, Step};
use super::events::{Event, Events};
use super::process::Orders;
use super::pump::{Note, Source, Text, pump};
use crate::warden::Feed;

const UNANSWERED: &str = "the program ended before its answer was over";

/// How a turn came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spoken {
    /// The program said that its answer is over.
    Over,
    /// The program has closed its output.
    Closed,
    /// The end was asked for, and nothing lets the program break off.
    Stopped,
}

/// One turn of a talk.
pub(super) struct Talk {
    /// `None` once the program reads no more.
    feed: Option<Feed>,
    dialogue: Dialogue,
    /// Whether what it hears are events, or text.
    hears_events: bool,
    /// Who may want the turn to be broken off.
    orders: Option<Orders>,
    unwritten: Vec<u8>,
}

impl Talk {
    /// A turn over a standard input.
    pub(super) fn new(feed: Option<Feed>, dialogue: Dialogue) -> Self {
        let (orders, unwritten) = (None, Vec::new());
        Self { feed, dialogue, hears_events: true, orders, unwritten }
    }

    /// The same, whose program answers in plain text.
    pub(super) const fn in_text(mut self) -> Self {
        self.hears_events = false;
        self
    }

    /// The same, which is broken off once that is asked for.
    pub(super) fn heeding(mut self, orders: Orders) -> Self {
        self.orders = Some(orders);
        self
    }

    /// The standard input, for the next turn.
    pub(super) fn into_feed(self) -> Option<Feed> {
        self.feed
    }

    /// One call of a program that ends after it: closes its input when it has answered, and reads on
    /// until it has closed its output.
    pub(super) async fn once(
        mut self,
        mut source: Source,
        mut note: Note,
        events: &mut Events<'_>,
        over: &watch::Sender<bool>,
    ) -> Result<Text, LedgerError> {
        let spoken = self.turn(&mut source, &mut note, events).await?;
        drop(self);
        over.send_replace(spoken == Spoken::Over);
        pump(source, note).await
    }

    /// Says what there is to say, and shows what is answered, until the turn is over.
    pub(super) async fn turn(
        &mut self,
        source: &mut Source,
        note: &mut Note,
        events: &mut Events<'_>,
    ) -> Result<Spoken, LedgerError> {
        self.unwritten = self.dialogue.open();
        loop {
            let Self { feed, unwritten, orders, .. } = self;
            tokio::select! {
                written = write(feed, unwritten) => {
                    match written {
                        Ok(count) if count > 0 => drop(unwritten.drain(..count)),
                        _ => *feed = None, // It reads no more; what it writes still counts.
                    }
                }
                () = stopped(orders) => {
                    *orders = None;
                    let Some(interrupt) = self.dialogue.interrupt() else {
                        return Ok(Spoken::Stopped);
                    };
                    self.unwritten.extend(interrupt);
                }
                bytes = source.next() => {
                    if bytes.is_empty() {
                        events.end().await?;
                        events.fail_for(unanswered());
                        return Ok(Spoken::Closed);
                    }
                    note.take(bytes).await?;
                    let steps = self.dialogue.hear(bytes);
                    if self.perform(steps, events).await? {
                        events.end().await?;
                        return Ok(Spoken::Over);
                    }
                }
            }
        }
    }

    /// Whether the turn is over.
    async fn perform(
        &mut self,
        steps: Vec<Step>,
        events: &mut Events<'_>,
    ) -> Result<bool, LedgerError> {
        for step in steps {
            match step {
                Step::Write(bytes) => self.unwritten.extend(bytes),
                Step::Tell(event) => events.tell(event).await?,
                Step::Hear(bytes) if self.hears_events => events.hear(&bytes).await?,
                Step::Hear(bytes) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    events.tell(Event::Text { text }).await?;
                }
                Step::Warn(message) => events.wonder(&message).await?,
                Step::End(failure) => {
                    failure.into_iter().for_each(|failure| events.fail_for(failure));
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Writes some of it; never returns while there is nothing to write.
async fn write(feed: &mut Option<Feed>, unwritten: &[u8]) -> io::Result<usize> {
    match feed {
        Some(feed) if !unwritten.is_empty() => feed.write(unwritten).await,
        _ => std::future::pending().await,
    }
}

async fn stopped(orders: &mut Option<Orders>) {
    match orders {
        Some(orders) => orders.stopped().await,
        None => std::future::pending().await,
    }
}

/// The failure of a program that ended in its turn. Its own exit says more, where it was no good one.
pub(super) fn unanswered() -> Failure {
    Failure::new(Code::AnswerMissing, UNANSWERED)
}
