//! What a driver tells about its attempt, and the only way its text reaches the ledger.
//!
//! Text is redacted here, before it is stored: a driver hands over raw bytes and gets back the
//! range in which their redacted form stands.

mod known;
mod last;
mod pending;
mod posted;
mod pulse;
mod purses;
mod scribe;
mod till;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

pub use self::known::Known;
pub use self::last::LastWords;
pub use self::pending::Pending;
pub use self::pulse::Pulse;
pub use self::purses::Purses;
pub use self::scribe::{Scribe, pieces};
pub use self::till::Till;
use crate::decide::budget::count;
use crate::decide::counters::Numbers;
use crate::decide::redact::Redactor;
use crate::model::budget::Charge;
use crate::model::code::Code;
use crate::model::event::{Channel, Fact};
use crate::model::execution::{Fence, Stamp};
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::model::news::Tokens;
use crate::model::progress::{Progress, Raw};
use crate::model::session::SessionId;
use crate::ports::clock::Clock;
use crate::ports::ledger::{Ledger, LedgerError, Lines};

/// A message to the execution's actor. Text travels this way only where it is short and the last.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// The work lives.
    Started {
        /// The attempt.
        at: Stamp,
        /// Its process, where there is one.
        pid: Option<u32>,
        /// That it was started, where that is news.
        spawned: Option<(DateTime<Utc>, Fact)>,
    },
    /// The work has ended and has written its last.
    Ended {
        /// The attempt.
        at: Stamp,
        /// Whether it succeeded.
        verdict: Result<(), Failure>,
        /// The exit code of its process, where there was one.
        exit_code: Option<i32>,
        /// The last of what it wrote, to be written with what follows from its end.
        lines: Lines,
    },
    /// The work has asked for input and has ended.
    Asked {
        /// The attempt.
        at: Stamp,
        /// The exit code of its process, where there was one.
        exit_code: Option<i32>,
        /// The last of what it wrote.
        lines: Lines,
    },
    /// The agent counted what it used.
    Used {
        /// The attempt.
        at: Stamp,
        /// Tokens, since it counted last.
        tokens: Tokens,
        /// All that counts for a budget, since then.
        charge: Charge,
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
    /// Whether the owner may have the answer's text as it was given.
    pub raw: bool,
    /// Where those who follow are told of news.
    pub progress: watch::Sender<Progress>,
    /// Where signs of life are noted.
    pub pulse: Pulse,
    /// What an earlier life told of the attempt, where it is told again.
    pub known: Known,
    /// Where what is used up is added.
    pub till: Till,
    /// What is written with what follows.
    pub pending: Pending,
}

impl Desk {
    async fn record(&self, fact: Fact) -> Result<(), LedgerError> {
        self.record_with(fact, None).await.map(|_| ())
    }

    /// Records a fact with what follows from it, in one commit. Answers whether it is new and counts.
    async fn record_with(&self, fact: Fact, more: Option<Fact>) -> Result<bool, LedgerError> {
        let Some(fact) = self.known.sift(fact) else { return Ok(false) };
        let now = self.clock.now();
        let facts = [Some(fact), more].into_iter().flatten().map(|fact| (now, fact)).collect();
        self.write(Lines { chunks: Vec::new(), facts }).await
    }

    /// Writes what waits, and then this. Answers whether it counts. What waits does so on when the
    /// ledger does not take it.
    async fn write(&self, more: Lines) -> Result<bool, LedgerError> {
        let waiting = self.pending.take();
        let mut lines = waiting.clone();
        lines.extend(more);
        let written = self.ledger.write(self.id, self.fence, lines).await;
        let counts = written.inspect_err(|_| self.pending.add(waiting))?;
        self.pulse.beat();
        self.progress.send_modify(Progress::has_news);
        Ok(counts)
    }
}

/// A driver's line to its execution. Dropped without a word it tells an internal failure, so that
/// a driver that panics never leaves an execution without an end.
pub struct Reporter {
    desk: Desk,
    tell: Box<dyn Fn(Report) + Send + Sync>,
    /// What the agent has counted in the attempt.
    counted: watch::Sender<Charge>,
    ended: bool,
    session: watch::Sender<Option<SessionId>>,
    /// What the program has counted since its session began, where it counts so.
    counts: watch::Sender<Numbers>,
}

impl Reporter {
    /// A line for one attempt; `tell` must not block.
    #[must_use]
    pub fn new(desk: Desk, tell: impl Fn(Report) + Send + Sync + 'static) -> Self {
        let counted = watch::Sender::new(desk.known.counted());
        let (session, counts) = (watch::Sender::default(), watch::Sender::default());
        Self { desk, tell: Box::new(tell), counted, ended: false, session, counts }
    }

    /// Wall time.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.desk.clock.now()
    }

    /// Masks secrets in a sentence that will be shown.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        self.desk.redactor.redact(text).into_owned()
    }

    /// Keeps the last of a text, so many bytes of it.
    #[must_use]
    pub fn last_words(&self, most: usize) -> LastWords {
        LastWords::of(Arc::clone(&self.desk.redactor), most)
    }

    /// Tells that the work lives, and records its process.
    pub fn started(&self, pid: Option<u32>) {
        self.desk.pulse.beat();
        let spawned = pid.and_then(|pid| self.desk.known.sift(Fact::Spawned { pid }));
        let spawned = spawned.map(|fact| (self.now(), fact));
        (self.tell)(Report::Started { at: self.desk.stamp, pid, spawned });
    }

    /// Opens one channel of text. Each channel is opened at most once in an attempt.
    #[must_use]
    pub fn scribe(&self, channel: Channel) -> Scribe {
        Scribe::open(self.desk.clone(), channel)
    }

    /// Lets the text of the attempt be written once more from its beginning: what an earlier life
    /// wrote of it goes. To be called when it is sure that all of it can be read again.
    ///
    /// # Errors
    /// When the ledger did not commit.
    pub async fn begin_again(&self) -> Result<(), LedgerError> {
        self.desk.ledger.unwrite(self.desk.id, self.desk.stamp).await
    }

    /// Records a fact about the attempt.
    ///
    /// # Errors
    /// When the ledger did not commit it.
    pub async fn note(&self, fact: Fact) -> Result<(), LedgerError> {
        let Fact::Used { numbers, cumulative } = &fact else {
            return self.desk.record(fact).await;
        };
        let said = Charge::counted(numbers);
        let (counted, charge) = count(*self.counted.borrow(), said, *cumulative);
        let charged = self.desk.till.charged(self.desk.clock.now(), charge);
        if self.desk.record_with(fact, charged.clone()).await? {
            self.counted.send_replace(counted);
            self.desk.till.take(charged.as_ref());
            let tokens = Tokens { input: charge.input_tokens, output: charge.output_tokens };
            (self.tell)(Report::Used { at: self.desk.stamp, tokens, charge });
        }
        Ok(())
    }

    /// Records a fact with whatever is recorded next, at the latest with the end of the attempt.
    pub fn add(&self, fact: Fact) {
        if let Some(fact) = self.desk.known.sift(fact) {
            let facts = vec![(self.now(), fact)];
            self.desk.pending.add(Lines { chunks: Vec::new(), facts });
        }
    }

    /// Records what was kept back.
    ///
    /// # Errors
    /// When the ledger did not commit it.
    pub async fn catch_up(&self) -> Result<(), LedgerError> {
        if self.desk.pending.is_empty() {
            return Ok(());
        }
        self.desk.write(Lines::default()).await.map(|_| ())
    }

    /// Remembers what the program has counted since its session began: what it tells next is counted
    /// beyond that.
    pub fn count_from(&self, counts: Numbers) {
        self.counts.send_replace(counts);
    }

    /// What the program has counted since its session began.
    #[must_use]
    pub fn counts(&self) -> Numbers {
        self.counts.borrow().clone()
    }

    /// Remembers the program's own id of its session, raw, until the attempt has ended. What is shown
    /// of it is noted as a fact.
    pub fn name_session(&self, id: &str) {
        if let Some(id) = SessionId::new(id) {
            self.session.send_replace(Some(id));
        }
    }

    /// The latest id that was remembered.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.session.borrow().clone()
    }

    /// Hands the answer's text to those who wait, as it was given and beside all that is kept,
    /// where the agent is configured so. It is recorded, masked, by now.
    pub fn answered(&self, text: &str) {
        if self.desk.raw {
            let raw = Raw { stamp: self.desk.stamp, text: text.into() };
            self.desk.progress.send_modify(|progress| progress.raw = Some(raw));
        }
    }

    /// Tells nothing more: somebody else tells of the work from here on.
    pub fn leave(mut self) {
        self.ended = true;
    }

    /// Tells how the work ended. What it wrote must be written by now, or be kept back here.
    pub fn ended(mut self, verdict: Result<(), Failure>, exit_code: Option<i32>) {
        self.ended = true;
        self.tell_end(verdict, exit_code);
    }

    /// Tells that the work has ended with a question.
    pub fn asked(mut self, exit_code: Option<i32>) {
        self.ended = true;
        let (at, lines) = (self.desk.stamp, self.desk.pending.take());
        (self.tell)(Report::Asked { at, exit_code, lines });
    }

    fn tell_end(&self, verdict: Result<(), Failure>, exit_code: Option<i32>) {
        let (at, lines) = (self.desk.stamp, self.desk.pending.take());
        (self.tell)(Report::Ended { at, verdict, exit_code, lines });
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if !self.ended {
            let verdict = Err(Failure::new(Code::Internal, "the driver ended without a word"));
            self.tell_end(verdict, None);
        }
    }
}
