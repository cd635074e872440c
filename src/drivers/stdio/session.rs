//! Protocol session with a program: writes the messages of its dialogue, and shows the answers.

use std::io;
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::ports::ledger::LedgerError;
use algonius_warden::StdinPipe;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::protocol::{StdioStep, StdioTurn};
use crate::drivers::adapters::event_line::ProgramEvent;
use crate::drivers::adapters::event_reader::EventReader;
use crate::drivers::control::Control;
use crate::drivers::output::pump::{OutputSource, PumpedText, RawWriter, pump};

const UNANSWERED: &str = "the program ended before its answer was complete";

/// Silence after which text that ends like the prompt is taken for the prompt.
const SILENCE: Duration = Duration::from_millis(100);
/// Time within which a program continues whose empty answer was no answer.
const AFTER_EMPTY: Duration = Duration::from_millis(250);

/// Outcome of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::drivers) enum Spoken {
    /// The program marked the end of its answer.
    Over,
    /// The program has closed its output.
    Closed,
    /// A stop was ordered, and the protocol has no cancel message.
    Stopped,
}

/// One turn of the protocol.
pub(in crate::drivers) struct Talk {
    /// Standard input; `None` after the program stopped reading.
    stdin: Option<StdinPipe>,
    dialogue: StdioTurn,
    /// True if the bytes of an answer are events, false if they are text.
    hears_events: bool,
    /// Orders that may cancel the turn.
    orders: Option<Control>,
    unwritten: Vec<u8>,
}

impl Talk {
    /// Returns a turn over a standard input.
    pub(in crate::drivers) fn new(feed: Option<StdinPipe>, dialogue: StdioTurn) -> Self {
        let (orders, unwritten) = (None, Vec::new());
        Self { stdin: feed, dialogue, hears_events: true, orders, unwritten }
    }

    /// Returns the same turn, for a program that answers in plain text.
    pub(in crate::drivers) const fn in_text(mut self) -> Self {
        self.hears_events = false;
        self
    }

    /// Returns the same turn, which stops when that is ordered.
    pub(in crate::drivers) fn heeding(mut self, orders: Control) -> Self {
        self.orders = Some(orders);
        self
    }

    /// Returns the standard input for the next turn.
    pub(in crate::drivers) fn into_feed(self) -> Option<StdinPipe> {
        self.stdin
    }

    /// Runs one call of a program that ends after it: closes its input after the answer, and continues reading until
    /// the program has closed its output.
    pub(in crate::drivers) async fn once(
        mut self,
        mut source: OutputSource,
        mut note: RawWriter,
        events: &mut EventReader<'_>,
        over: &watch::Sender<bool>,
    ) -> Result<PumpedText, LedgerError> {
        let spoken = self.turn(&mut source, &mut note, events).await?;
        // The end of its input tells the program to end.
        drop(self);
        over.send_replace(spoken == Spoken::Over);
        pump(source, note, events.pace()).await
    }

    /// Sends the message, and shows the answer, until the turn is over.
    pub(in crate::drivers) async fn turn(
        &mut self,
        source: &mut OutputSource,
        note: &mut RawWriter,
        events: &mut EventReader<'_>,
    ) -> Result<Spoken, LedgerError> {
        self.unwritten = self.dialogue.open();
        let mut pace = events.pace();
        let mut quiet_at: Option<Instant> = None;
        loop {
            let Self { stdin: feed, unwritten, orders, .. } = self;
            tokio::select! {
                () = silence(quiet_at) => {
                    quiet_at = None;
                    let steps = self.dialogue.conclude();
                    if self.perform(steps, events).await? {
                        return over(self.dialogue.empty_end(), source, events).await;
                    }
                }
                // Input is written while output is read. Otherwise a program that answers before it has read everything
                // would block at a full pipe, and the service with it.
                written = write(feed, unwritten) => {
                    match written {
                        Ok(count) if count > 0 => drop(unwritten.drain(..count)),
                        _ => *feed = None, // The program reads no more; its output still counts.
                    }
                }
                () = stopped(orders) => {
                    // The order stays in the channel, and would be found again at once.
                    *orders = None;
                    let Some(interrupt) = self.dialogue.interrupt() else {
                        return Ok(Spoken::Stopped);
                    };
                    self.unwritten.extend(interrupt);
                }
                bytes = source.next_unless_due(&pace) => {
                    let spoken = match bytes {
                        Some(bytes) => {
                            let spoken = self.receive(bytes, note, events).await?;
                            let may_be_over = spoken.is_none() && self.dialogue.may_be_over();
                            quiet_at = may_be_over.then(|| Instant::now() + SILENCE);
                            spoken
                        }
                        None => None,
                    };
                    match spoken {
                        Some(Spoken::Over) => {
                            return over(self.dialogue.empty_end(), source, events).await;
                        }
                        Some(spoken) => return Ok(spoken),
                        None => {}
                    }
                    pace.read();
                    if pace.must_release(bytes) {
                        note.release().await?;
                        events.release().await?;
                        pace.released();
                    }
                }
            }
        }
    }

    /// Processes output of the program, nothing at its end. Returns the end of the turn, once it has ended.
    async fn receive(
        &mut self,
        bytes: &[u8],
        note: &mut RawWriter,
        events: &mut EventReader<'_>,
    ) -> Result<Option<Spoken>, LedgerError> {
        if bytes.is_empty() {
            events.end().await?;
            events.fail_for(unanswered());
            return Ok(Some(Spoken::Closed));
        }
        note.take(bytes).await?;
        let steps = self.dialogue.receive(bytes);
        let is_over = self.perform(steps, events).await?;
        Ok(is_over.then_some(Spoken::Over))
    }

    /// Performs the steps, and returns true if the turn is over.
    async fn perform(
        &mut self,
        steps: Vec<StdioStep>,
        events: &mut EventReader<'_>,
    ) -> Result<bool, LedgerError> {
        for step in steps {
            match step {
                StdioStep::Write(bytes) => self.unwritten.extend(bytes),
                StdioStep::Tell(event) => events.handle_event(event).await?,
                StdioStep::Hear(bytes) if self.hears_events => events.receive(&bytes).await?,
                StdioStep::Hear(bytes) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    events.handle_event(ProgramEvent::Text { text }).await?;
                }
                StdioStep::Warn(message) => events.warn(&message).await?,
                StdioStep::End(failure) => {
                    failure.into_iter().for_each(|failure| events.fail_for(failure));
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Writes some of the bytes; never returns while there is nothing to write.
async fn write(feed: &mut Option<StdinPipe>, unwritten: &[u8]) -> io::Result<usize> {
    match feed {
        Some(feed) if !unwritten.is_empty() => feed.write(unwritten).await,
        _ => std::future::pending().await,
    }
}

/// Ends a turn. An empty answer after which the program continues is a failure: the end mark matched too early.
async fn over(
    empty: Option<(bool, Failure)>,
    source: &mut OutputSource,
    events: &mut EventReader<'_>,
) -> Result<Spoken, LedgerError> {
    if let Some((has_more, failure)) = empty {
        let goes_on = async { !source.next().await.trim_ascii().is_empty() };
        let goes_on = has_more || timeout(AFTER_EMPTY, goes_on).await.unwrap_or_default();
        if goes_on {
            events.fail_for(failure);
        }
    }
    events.end().await?;
    Ok(Spoken::Over)
}

/// Returns at this time; never if there is none.
async fn silence(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

async fn stopped(orders: &mut Option<Control>) {
    match orders {
        Some(orders) => orders.stopped().await,
        None => std::future::pending().await,
    }
}

/// Returns the failure of a program that ended within its turn. An unsuccessful exit of its own is more specific.
pub(in crate::drivers) fn unanswered() -> Failure {
    Failure::new(Code::AnswerMissing, UNANSWERED)
}
