//! Drives one execution from acceptance to exactly one outcome.

mod after;
mod before;
mod between;
mod work;

use std::time::Duration;

use crate::model::agent::{Access, AgentSpec, Deadlines, RetrySpec};
use crate::model::event::Limit;
use crate::model::execution::{Outcome, Stamp, State};
use crate::model::failure::Failure;

pub use after::way_out;

/// What of the agent's configuration matters here. A running execution keeps the one it began with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// How long each part may take.
    pub deadlines: Deadlines,
    /// What is tried again.
    pub retry: RetrySpec,
    /// How often it is looked at what the work takes.
    pub heartbeat: Option<Duration>,
    /// How long it may wait before an attempt.
    pub patience: Duration,
    /// Whether the agent changes things.
    pub access: Access,
}

impl Policy {
    /// What an agent's configuration says.
    #[must_use]
    pub const fn of(spec: &AgentSpec) -> Self {
        let AgentSpec { deadlines, heartbeat, retry, access, capacity, .. } = spec;
        let (patience, heartbeat) = (capacity.patience, *heartbeat);
        Self { deadlines: *deadlines, heartbeat, retry: *retry, patience, access: *access }
    }
}

/// How long what is held is left alone before it is asked for again.
pub const BUSY: Duration = Duration::from_secs(1);

/// What a driver may take for its end beyond the grace, before it is given up.
pub const OBDURACY: Duration = Duration::from_secs(10);

/// How much of a deadline may pass before it is warned of: nine tenths.
fn warning(limit: Duration) -> Duration {
    limit - limit / 10
}

/// Where the execution is, with what is true there and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Nothing was done yet.
    Idle,
    /// The ledger was asked for a slot; until it answers, an end can only be noted.
    Claiming {
        /// The attempt that is to begin.
        stamp: Stamp,
        /// The state that is left by it.
        from: State,
        /// The end that was asked for meanwhile.
        off: Option<Ending>,
    },
    /// The driver was told to start.
    Starting {
        /// The attempt.
        stamp: Stamp,
    },
    /// The work lives.
    Running {
        /// The attempt.
        stamp: Stamp,
    },
    /// The work was told to end, and its end is awaited.
    Stopping {
        /// The attempt.
        stamp: Stamp,
        /// The state from which it ends.
        from: State,
        /// How it will have ended, whatever the work says.
        ending: Ending,
    },
    /// It asked for input and holds nothing.
    Waiting {
        /// The turn that asked.
        stamp: Stamp,
    },
    /// The attempt failed; what it left is removed before the pause.
    Clearing {
        /// The attempt that failed.
        stamp: Stamp,
        /// The pause to come.
        pause: Duration,
    },
    /// Between two attempts.
    Paused {
        /// The attempt that failed.
        stamp: Stamp,
    },
    /// It has ended; its record and its clean-up are on their way.
    Ended {
        /// The last attempt.
        stamp: Stamp,
        /// How.
        outcome: Outcome,
        /// Whether the ledger has it.
        settled: bool,
        /// Whether nothing is left of it.
        cleaned: bool,
    },
    /// Nothing is left to do.
    Rest {
        /// How it ended; `None` when somebody else settled it.
        outcome: Option<Outcome>,
    },
}

/// How something ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Which way.
    pub outcome: Outcome,
    /// Why; `None` only when it ends well.
    pub failure: Option<Failure>,
}

/// Which deadline passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// To start.
    Start,
    /// To run.
    Run,
    /// To show that it lives.
    Idle,
    /// To end after it was told to.
    Stop,
    /// To be answered.
    Answer,
}

/// What happened. `at` is the attempt to which it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant's sentence speaks of its fields")]
pub enum Event {
    /// A slot is free for it.
    Begin,
    /// The ledger gave the slot.
    Claimed { at: Stamp },
    /// An earlier life began it so long ago, and it goes on.
    TakenUp { at: Stamp, ran: Duration },
    /// What the attempt needs is held by others, and it has waited for so long.
    Busy { at: Stamp, waited: Duration },
    /// The busy pause is over.
    ClaimDue { at: Stamp },
    /// The ledger could not be asked.
    ClaimFailed { at: Stamp },
    /// Somebody else has settled it.
    Gone,
    /// The work lives.
    Started { at: Stamp },
    /// The work has ended.
    Ended { at: Stamp, verdict: Result<(), Failure> },
    /// The work has failed, and would fail again for so long.
    FailedFor { at: Stamp, failure: Failure, left: Duration },
    /// The work asked for input and has ended.
    Asked { at: Stamp },
    /// The input that was asked for is there.
    Answered,
    /// It has run for nearly as long as it may.
    Nearing { at: Stamp },
    /// It has been silent for so long.
    Quiet { at: Stamp, quiet: Duration },
    /// It is time to look what the work takes.
    BeatDue { at: Stamp },
    /// A deadline passed.
    Overdue { at: Stamp, deadline: Deadline },
    /// The pause is over.
    RetryDue { at: Stamp },
    /// It waited in the queue for too long.
    QueueExpired,
    /// Somebody called it off.
    Cancel { why: String },
    /// The ledger has the outcome.
    Settled,
    /// Nothing is left of the attempt.
    Cleaned { at: Stamp },
}

/// What the actor must do now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant's sentence speaks of its fields")]
pub enum Effect {
    /// Ask the ledger for the slot.
    Claim { stamp: Stamp, from: State },
    /// Send `ClaimDue` when something may be free, and at the latest after a while.
    AskAgain { at: Stamp, within: Duration },
    /// Let the driver start.
    Start { stamp: Stamp },
    /// Let the driver go on with what an earlier life began.
    TakeUp { stamp: Stamp },
    /// Ask the work to end.
    Stop,
    /// Send `with` after a while.
    Wake { after: Duration, with: Event },
    /// Send `Quiet` after a while, with how long it has been silent then.
    Look { at: Stamp, after: Duration },
    /// Look what the work takes, and record it.
    Measure { at: Stamp },
    /// Record that little is left until a deadline.
    Warn { limit: Limit, left: Duration, message: String },
    /// Record a move; the claim records its own.
    Move { from: State, to: State, stamp: Stamp, why: String },
    /// Record why an attempt failed that is not the last.
    Note { failure: Failure },
    /// Remove what the attempt left, then send `Cleaned`.
    Clean { stamp: Stamp },
    /// Record the end, then send `Settled`.
    Settle { stamp: Stamp, ending: Ending },
    /// Let go: it waits for input without an actor.
    Park,
    /// Let go: nothing is left to do.
    Rest,
    /// Nothing: the event is late or meaningless here.
    Ignore { event: Event },
}

/// Decides the next phase and the effects that lead to it.
#[must_use]
pub fn step(phase: Phase, event: Event, policy: &Policy) -> (Phase, Vec<Effect>) {
    use Phase as P;
    match phase {
        P::Idle => before::idle(event),
        P::Claiming { stamp, from, off } => before::claiming(stamp, from, off, event, policy),
        P::Starting { stamp } => work::working(stamp, State::Starting, event, policy),
        P::Running { stamp } => work::working(stamp, State::Running, event, policy),
        P::Stopping { stamp, from, ending } => work::stopping(stamp, from, ending, event),
        P::Waiting { stamp } => between::waiting(stamp, event),
        P::Clearing { stamp, pause } => between::clearing(stamp, pause, event),
        P::Paused { stamp } => between::paused(stamp, event),
        P::Ended { stamp, outcome, settled, cleaned } => {
            after::ended(stamp, outcome, settled, cleaned, event)
        }
        P::Rest { outcome } => (P::Rest { outcome }, vec![Effect::Ignore { event }]),
    }
}
