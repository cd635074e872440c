//! Attempts of an execution, derived from its events.

use std::collections::BTreeMap;

use algonius_actors::decide::budget::cumulative_usage::sum;
use algonius_actors::model::execution::State;
use algonius_actors::model::execution::event::{Event, EventKind};
use algonius_actors::model::execution::record::Record;
use serde_json::Number;

use crate::wire::api::ErrorBody;
use crate::wire::api::history::AttemptEntry;

/// Maximum number of warnings of one attempt in a response; its events contain all of them.
const MAX_WARNINGS: usize = 20;

/// Adds the content of an event to the attempts.
pub(super) fn apply_event(attempts: &mut Vec<AttemptEntry>, event: &Event) {
    if let EventKind::StateChanged(moved) = &event.data
        && moved.to == State::Starting
    {
        attempts.push(AttemptEntry {
            attempt_id: moved.attempt_id,
            started_at: moved.at,
            ended_at: None,
            ended_in: None,
            pid: None,
            exit_code: None,
            error: None,
            usage: None,
            spent: None,
            used: BTreeMap::new(),
            dropped: BTreeMap::new(),
            warnings: Vec::new(),
        });
    }
    // Events before the first start belong to no attempt.
    let Some(attempt) = attempts.last_mut() else { return };
    match &event.data {
        EventKind::StateChanged(moved) if is_at_work(moved.from) && !is_at_work(moved.to) => {
            attempt.ended_at = Some(moved.at);
            attempt.ended_in = Some(moved.to);
        }
        EventKind::ProcessStarted { pid } => attempt.pid = Some(*pid),
        EventKind::AttemptFailed(failure) => attempt.error = Some(ErrorBody::from(failure)),
        EventKind::Heartbeat(usage) => attempt.usage = Some(*usage),
        EventKind::ResourceUsage(spent) => attempt.spent = Some(*spent),
        EventKind::OutputTruncated { channel, dropped } => {
            *attempt.dropped.entry(channel.as_str().to_owned()).or_default() += dropped;
        }
        EventKind::Warning { message } if attempt.warnings.len() < MAX_WARNINGS => {
            attempt.warnings.push(message.clone());
        }
        EventKind::UsageReported { counters: numbers, .. } => add(&mut attempt.used, numbers),
        _ => {}
    }
}

/// Adds counters to the totals: each event counts since the previous one.
fn add(used: &mut BTreeMap<String, Number>, numbers: &BTreeMap<String, Number>) {
    for (name, number) in numbers {
        let before = used.get(name);
        let all = before.and_then(|before| sum(before, number)).unwrap_or_else(|| number.clone());
        used.insert(name.clone(), all);
    }
}

/// Adds the details of the last attempt that only the record contains.
pub(super) fn finish(attempts: &mut [AttemptEntry], record: &Record) {
    if let Some(last) = attempts.last_mut().filter(|last| last.attempt_id == record.attempt_id) {
        last.exit_code = record.exit_code;
        let failed = record.failure.as_ref().map(ErrorBody::from);
        last.error = last.error.take().or(failed);
    }
}

const fn is_at_work(state: State) -> bool {
    matches!(state, State::Starting | State::Running)
}
