//! Drives one execution from acceptance to exactly one outcome.

mod ending;

use std::time::Duration;

pub use self::ending::{Ending, way_out};
use self::ending::{cancelled, end, failed, moved, overdue, rest_if};
use crate::decide::retry;
use crate::model::agent::{Access, Deadlines, RetrySpec};
use crate::model::code::Code;
use crate::model::execution::{Outcome, Stamp, State};
use crate::model::failure::Failure;

/// What of the agent's configuration matters here. A running execution keeps the one it began with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// How long each part may take.
    pub deadlines: Deadlines,
    /// What is tried again.
    pub retry: RetrySpec,
    /// Whether the agent changes things.
    pub access: Access,
}

/// How long a busy slot is left alone before it is asked for again.
pub const BUSY: Duration = Duration::from_secs(1);

/// What a driver may take for its end beyond the grace, before it is given up.
pub const OBDURACY: Duration = Duration::from_secs(10);

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

/// Which deadline passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// To start.
    Start,
    /// To run.
    Run,
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
    /// Every slot is held in the ledger.
    Busy { at: Stamp },
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
    /// The work asked for input and has ended.
    Asked { at: Stamp },
    /// The input that was asked for is there.
    Answered,
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
    /// Let the driver start.
    Start { stamp: Stamp },
    /// Ask the work to end.
    Stop,
    /// Send `with` after a while.
    Wake { after: Duration, with: Event },
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

use {Effect as Do, Event as E, Phase as P};

/// Decides the next phase and the effects that lead to it.
#[must_use]
pub fn step(phase: Phase, event: Event, policy: &Policy) -> (Phase, Vec<Effect>) {
    match phase {
        P::Idle => idle(event),
        P::Claiming { stamp, from, off } => claiming(stamp, from, off, event, policy),
        P::Starting { stamp } => working(stamp, State::Starting, event, policy),
        P::Running { stamp } => working(stamp, State::Running, event, policy),
        P::Stopping { stamp, from, ending } => stopping(stamp, from, ending, event),
        P::Waiting { stamp } => waiting(stamp, event),
        P::Clearing { stamp, pause } => clearing(stamp, pause, event),
        P::Paused { stamp } => paused(stamp, event),
        P::Ended { stamp, outcome, settled, cleaned } => match event {
            E::Settled if !settled => rest_if(stamp, outcome, true, cleaned),
            E::Cleaned { at } if at == stamp && !cleaned => rest_if(stamp, outcome, settled, true),
            event => (P::Ended { stamp, outcome, settled, cleaned }, vec![Do::Ignore { event }]),
        },
        P::Rest { outcome } => (P::Rest { outcome }, vec![Do::Ignore { event }]),
    }
}

fn idle(event: Event) -> (Phase, Vec<Effect>) {
    match event {
        E::Begin => claim(Stamp::FIRST, State::Idle),
        E::Cancel { why } => end(Stamp::FIRST, State::Idle, cancelled(why)),
        E::QueueExpired => {
            let why = "it waited in the queue for longer than allowed";
            end(Stamp::FIRST, State::Idle, failed(Failure::new(Code::QueueTimeout, why)))
        }
        event => (P::Idle, vec![Do::Ignore { event }]),
    }
}

fn claim(stamp: Stamp, from: State) -> (Phase, Vec<Effect>) {
    (P::Claiming { stamp, from, off: None }, vec![Do::Claim { stamp, from }])
}

fn claiming(
    stamp: Stamp,
    from: State,
    off: Option<Ending>,
    event: Event,
    policy: &Policy,
) -> (Phase, Vec<Effect>) {
    match (event, off) {
        (E::Claimed { at }, None) if at == stamp => {
            let with = E::Overdue { at, deadline: Deadline::Start };
            let wake = Do::Wake { after: policy.deadlines.start, with };
            (P::Starting { stamp }, vec![Do::Start { stamp }, wake])
        }
        (E::Claimed { at }, Some(ending)) if at == stamp => end(stamp, State::Starting, ending),
        (E::Busy { at }, None) if at == stamp => {
            let wake = Do::Wake { after: BUSY, with: E::ClaimDue { at } };
            (P::Claiming { stamp, from, off: None }, vec![wake])
        }
        (E::Busy { at } | E::ClaimFailed { at }, Some(ending)) if at == stamp => {
            end(stamp, from, ending)
        }
        (E::ClaimDue { at }, None) if at == stamp => claim(stamp, from),
        (E::ClaimDue { at }, Some(ending)) if at == stamp => end(stamp, from, ending),
        (E::ClaimFailed { at }, None) if at == stamp => {
            let why = "the ledger did not take the order to start";
            end(stamp, from, failed(Failure::new(Code::LedgerUnavailable, why)))
        }
        (E::Gone, _) => (P::Rest { outcome: None }, vec![Do::Rest]),
        (E::Cancel { why }, None) => {
            (P::Claiming { stamp, from, off: Some(cancelled(why)) }, Vec::new())
        }
        (event, off) => (P::Claiming { stamp, from, off }, vec![Do::Ignore { event }]),
    }
}

fn working(stamp: Stamp, state: State, event: Event, policy: &Policy) -> (Phase, Vec<Effect>) {
    match event {
        E::Started { at } if at == stamp && state == State::Starting => {
            let with = E::Overdue { at, deadline: Deadline::Run };
            let moved = moved(stamp, state, State::Running, "its process lives");
            (P::Running { stamp }, vec![moved, Do::Wake { after: policy.deadlines.run, with }])
        }
        E::Ended { at, verdict: Ok(()) } if at == stamp => {
            end(stamp, state, Ending { outcome: Outcome::Completed, failure: None })
        }
        E::Ended { at, verdict: Err(failure) } if at == stamp => {
            attempt_failed(stamp, state, failure, policy)
        }
        E::Asked { at } if at == stamp && state == State::Running => {
            let moved = moved(stamp, state, State::Waiting, "it asked for input");
            (P::Waiting { stamp }, vec![moved, Do::Clean { stamp }, Do::Park])
        }
        E::Overdue { at, deadline } if at == stamp && fits(deadline, state) => {
            stop(stamp, state, overdue(deadline, policy), policy)
        }
        E::Cancel { why } => stop(stamp, state, cancelled(why), policy),
        event if state == State::Starting => (P::Starting { stamp }, vec![Do::Ignore { event }]),
        event => (P::Running { stamp }, vec![Do::Ignore { event }]),
    }
}

/// The start deadline means nothing once the work runs.
fn fits(deadline: Deadline, state: State) -> bool {
    matches!(
        (deadline, state),
        (Deadline::Start, State::Starting) | (Deadline::Run, State::Running)
    )
}

fn attempt_failed(
    stamp: Stamp,
    state: State,
    failure: Failure,
    policy: &Policy,
) -> (Phase, Vec<Effect>) {
    let had_input = state == State::Running;
    match retry::pause(&policy.retry, policy.access, stamp.attempt, had_input, &failure) {
        None => end(stamp, state, failed(failure)),
        Some(pause) => {
            let moved = moved(stamp, state, State::Failed, &failure.message);
            let effects = vec![Do::Note { failure }, moved, Do::Clean { stamp }];
            (P::Clearing { stamp, pause }, effects)
        }
    }
}

fn stop(stamp: Stamp, from: State, ending: Ending, policy: &Policy) -> (Phase, Vec<Effect>) {
    let with = E::Overdue { at: stamp, deadline: Deadline::Stop };
    let wake = Do::Wake { after: policy.deadlines.grace + OBDURACY, with };
    (P::Stopping { stamp, from, ending }, vec![Do::Stop, wake])
}

/// Our own order decides how it ended, never what the dying work says.
fn stopping(stamp: Stamp, from: State, ending: Ending, event: Event) -> (Phase, Vec<Effect>) {
    match event {
        E::Ended { at, .. } | E::Asked { at } | E::Overdue { at, deadline: Deadline::Stop }
            if at == stamp =>
        {
            end(stamp, from, ending)
        }
        event => (P::Stopping { stamp, from, ending }, vec![Do::Ignore { event }]),
    }
}

fn waiting(stamp: Stamp, event: Event) -> (Phase, Vec<Effect>) {
    match event {
        E::Answered => claim(stamp.continued(), State::Waiting),
        E::Cancel { why } => end(stamp, State::Waiting, cancelled(why)),
        E::Overdue { at, deadline: Deadline::Answer } if at == stamp => {
            let failure = Failure::new(Code::Timeout, "nobody answered its question in time");
            let ending = Ending { outcome: Outcome::Timeout, failure: Some(failure) };
            end(stamp, State::Waiting, ending)
        }
        event => (P::Waiting { stamp }, vec![Do::Ignore { event }]),
    }
}

fn clearing(stamp: Stamp, pause: Duration, event: Event) -> (Phase, Vec<Effect>) {
    match event {
        E::Cleaned { at } if at == stamp => {
            let wake = Do::Wake { after: pause, with: E::RetryDue { at } };
            (P::Paused { stamp }, vec![wake])
        }
        E::Cancel { why } => end(stamp, State::Failed, cancelled(why)),
        event => (P::Clearing { stamp, pause }, vec![Do::Ignore { event }]),
    }
}

fn paused(stamp: Stamp, event: Event) -> (Phase, Vec<Effect>) {
    match event {
        E::RetryDue { at } if at == stamp => claim(stamp.retried(), State::Failed),
        E::Cancel { why } => end(stamp, State::Failed, cancelled(why)),
        event => (P::Paused { stamp }, vec![Do::Ignore { event }]),
    }
}
