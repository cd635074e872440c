//! The attempts of an execution, as its events tell them.

use std::collections::BTreeMap;

use algonius_actors::decide::counters::sum;
use algonius_actors::model::event::{Event, Fact};
use algonius_actors::model::execution::State;
use algonius_actors::model::record::Record;
use serde_json::Number;

use crate::wire::api::Trouble;
use crate::wire::api::history::AttemptEntry;

/// Notes what an event tells of an attempt.
pub(super) fn note(attempts: &mut Vec<AttemptEntry>, event: &Event) {
    if let Fact::Moved(moved) = &event.fact
        && moved.to == State::Starting
    {
        attempts.push(AttemptEntry {
            stamp: moved.stamp,
            started_at: moved.at,
            ended_at: None,
            ended_in: None,
            pid: None,
            exit_code: None,
            error: None,
            usage: None,
            spent: None,
            used: BTreeMap::new(),
        });
    }
    let Some(attempt) = attempts.last_mut() else { return };
    match &event.fact {
        Fact::Moved(moved) if is_at_work(moved.from) && !is_at_work(moved.to) => {
            attempt.ended_at = Some(moved.at);
            attempt.ended_in = Some(moved.to);
        }
        Fact::Spawned { pid } => attempt.pid = Some(*pid),
        Fact::AttemptFailed(failure) => attempt.error = Some(Trouble::from(failure)),
        Fact::Heartbeat(usage) => attempt.usage = Some(*usage),
        Fact::Spent(spent) => attempt.spent = Some(*spent),
        Fact::Used { numbers, .. } => add(&mut attempt.used, numbers),
        _ => {}
    }
}

/// What it counted is what came since it counted last.
fn add(used: &mut BTreeMap<String, Number>, numbers: &BTreeMap<String, Number>) {
    for (name, number) in numbers {
        let before = used.get(name);
        let all = before.and_then(|before| sum(before, number)).unwrap_or_else(|| number.clone());
        used.insert(name.clone(), all);
    }
}

/// Adds what the record alone tells of the last attempt.
pub(super) fn finish(attempts: &mut [AttemptEntry], record: &Record) {
    if let Some(last) = attempts.last_mut().filter(|last| last.stamp == record.stamp) {
        last.exit_code = record.exit_code;
        let failed = record.failure.as_ref().map(Trouble::from);
        last.error = last.error.take().or(failed);
    }
}

const fn is_at_work(state: State) -> bool {
    matches!(state, State::Starting | State::Running)
}
