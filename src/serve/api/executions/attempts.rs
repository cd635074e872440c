//! Attempts of an execution, derived from its events.

use std::collections::BTreeMap;

use algonius_actors::decide::budget::cumulative_usage::sum;
use algonius_actors::model::execution::ExecutionState;
use algonius_actors::model::execution::event::{Event, EventKind};
use algonius_actors::model::execution::record::ExecutionRecord;
use serde_json::Number;

use crate::wire::api::ErrorBody;
use crate::wire::api::history::AttemptEntry;

/// Maximum number of warnings of one attempt in a response; its events contain all of them.
const MAX_WARNINGS: usize = 20;

/// Adds the content of an event to the attempts.
pub(super) fn apply_event(attempts: &mut Vec<AttemptEntry>, event: &Event) {
    if let EventKind::StateChanged(change) = &event.data
        && change.to == ExecutionState::Starting
    {
        attempts.push(AttemptEntry {
            attempt_id: change.attempt_id,
            started_at: change.at,
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
        EventKind::StateChanged(change) if is_at_work(change.from) && !is_at_work(change.to) => {
            attempt.ended_at = Some(change.at);
            attempt.ended_in = Some(change.to);
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
        EventKind::UsageReported { counters, .. } => add_counters(&mut attempt.used, counters),
        _ => {}
    }
}

/// Adds counters to the totals: each event counts since the previous one.
fn add_counters(used: &mut BTreeMap<String, Number>, counters: &BTreeMap<String, Number>) {
    for (name, number) in counters {
        let before = used.get(name);
        let total = before.and_then(|before| sum(before, number)).unwrap_or_else(|| number.clone());
        used.insert(name.clone(), total);
    }
}

/// Adds the details of the last attempt that only the record contains.
pub(super) fn add_record_details(attempts: &mut [AttemptEntry], record: &ExecutionRecord) {
    if let Some(last_attempt) =
        attempts.last_mut().filter(|last_attempt| last_attempt.attempt_id == record.attempt_id)
    {
        last_attempt.exit_code = record.exit_code;
        let error_body = record.failure.as_ref().map(ErrorBody::from);
        last_attempt.error = last_attempt.error.take().or(error_body);
    }
}

const fn is_at_work(state: ExecutionState) -> bool {
    matches!(state, ExecutionState::Starting | ExecutionState::Running)
}
