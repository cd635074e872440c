//! Attempts of an execution, derived from its events.

use std::collections::BTreeMap;
use std::mem;

use algonius_actors::decide::budget::cumulative_usage::add_numbers;
use algonius_actors::model::execution::event::{Event, EventKind};
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::execution::{ExecutionState, StateChange};
use serde_json::Number;

use crate::serve::a2a::task::attempt_warnings::AttemptWarnings;
use crate::wire::api::ErrorBody;
use crate::wire::api::history::AttemptEntry;

/// Attempts of the events so far.
#[derive(Default)]
pub(super) struct AttemptHistory {
    attempts: Vec<AttemptEntry>,
    /// Warnings of the last attempt.
    warnings: AttemptWarnings,
}

impl AttemptHistory {
    /// Adds the content of an event.
    pub(super) fn apply_event(&mut self, event: &Event) {
        if let EventKind::StateChanged(change) = &event.data
            && change.to == ExecutionState::Starting
        {
            self.move_warnings_to_attempt();
            self.attempts.push(new_attempt(change));
        }
        // Events before the first start belong to no attempt.
        let Some(attempt) = self.attempts.last_mut() else { return };
        match &event.data {
            EventKind::Warning { message } => self.warnings.push(message.clone()),
            data => apply_to_attempt(attempt, data),
        }
    }

    /// Returns the attempts, with the details of the last one that only the record contains.
    pub(super) fn into_attempts(mut self, record: &ExecutionRecord) -> Vec<AttemptEntry> {
        self.move_warnings_to_attempt();
        let last_attempt =
            self.attempts.last_mut().filter(|attempt| attempt.attempt_id == record.attempt_id);
        if let Some(last_attempt) = last_attempt {
            last_attempt.exit_code = record.exit_code;
            let error_body = record.failure.as_ref().map(ErrorBody::from);
            last_attempt.error = last_attempt.error.take().or(error_body);
        }
        self.attempts
    }

    fn move_warnings_to_attempt(&mut self) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.warnings = mem::take(&mut self.warnings).into_sentences();
        }
    }
}

fn new_attempt(start: &StateChange) -> AttemptEntry {
    AttemptEntry {
        attempt_id: start.attempt_id,
        started_at: start.at,
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
    }
}

fn apply_to_attempt(attempt: &mut AttemptEntry, data: &EventKind) {
    match data {
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
        EventKind::UsageReported { counters, .. } => add_counters(&mut attempt.used, counters),
        _ => {}
    }
}

/// Adds counters to the totals: each event counts since the previous one.
fn add_counters(totals: &mut BTreeMap<String, Number>, counters: &BTreeMap<String, Number>) {
    for (name, number) in counters {
        let before = totals.get(name);
        let total =
            before.and_then(|before| add_numbers(before, number)).unwrap_or_else(|| number.clone());
        totals.insert(name.clone(), total);
    }
}

const fn is_at_work(state: ExecutionState) -> bool {
    matches!(state, ExecutionState::Starting | ExecutionState::Running)
}
