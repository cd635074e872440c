//! What becomes of an execution that a former supervisor, or a crashed actor, left unfinished.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::model::code::Code;
use crate::model::execution::State;
use crate::model::failure::Failure;
use crate::model::quota::Parked;
use crate::model::record::Record;

/// What becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It never began and its input is whole: it takes its place in the queue again.
    Requeue,
    /// It waits for input, which it can do without any process.
    Keep,
    /// It waits for the quota of its account, and its input is whole: it waits on.
    Park(Parked),
    /// Its work is held: it goes on.
    Resume,
    /// It ends here.
    Fail(Failure),
}

/// Decides about one unfinished execution.
///
/// What began is never begun again by itself: nobody can tell how far it came. But where its work
/// `is_held`, it goes on.
#[must_use]
pub fn recover(record: &Record, now: DateTime<Utc>, patience: Duration, is_held: bool) -> Verdict {
    if let Some(parked) = record.is_parked() {
        return if record.replayable { Verdict::Park(parked) } else { Verdict::Fail(masked()) };
    }
    match record.state {
        State::Starting | State::Running if is_held => Verdict::Resume,
        State::Waiting if !record.answered => Verdict::Keep,
        State::Idle | State::Waiting if waited_too_long(record, now, patience) => Verdict::Fail(
            Failure::new(Code::QueueTimeout, "it waited in the queue for longer than allowed"),
        ),
        State::Idle | State::Waiting if record.replayable => Verdict::Requeue,
        State::Idle | State::Waiting => Verdict::Fail(Failure::new(
            Code::InterruptedNotRun,
            "the service stopped before it ran, and its input held secrets that are not stored",
        )),
        State::Starting
        | State::Running
        | State::Completed
        | State::Failed
        | State::Timeout
        | State::Cancelled
        | State::Cleanup => Verdict::Fail(interrupted()),
    }
}

/// The failure of what was cut off.
#[must_use]
pub fn interrupted() -> Failure {
    Failure::new(Code::Interrupted, "the service was interrupted while it ran")
}

/// The failure of what was parked and cannot be asked again.
fn masked() -> Failure {
    let why = "the service stopped while it waited for a quota, and its input held secrets that \
               are not stored";
    Failure::new(Code::NotReplayable, why)
}

fn waited_too_long(record: &Record, now: DateTime<Utc>, patience: Duration) -> bool {
    (now - begin(record)).to_std().is_ok_and(|waited| waited > patience)
}

/// Since when it waits in the queue.
fn begin(record: &Record) -> DateTime<Utc> {
    if record.answered { record.changed_at } else { record.accepted_at }
}
