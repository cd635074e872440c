//! Queue of an agent: the requests that wait, their order, and the answers to their submitters.

mod entry;
mod positions;
mod timeouts;

use std::collections::HashMap;
use std::mem;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;
use tokio::time::Instant;

use super::SubmitReply;
use crate::decide::admission::{AdmissionEffect, AdmissionEvent, AdmissionState, apply_event};
use crate::model::agent::Capacity;
use crate::model::agent::quota::Deferral;
use crate::model::execution::ExecutionState;
use crate::model::execution::progress::Progress;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::services::credential_breakers::BreakerProbe;

pub(super) use self::entry::QueuedRequest;
pub(super) use self::timeouts::TimeoutExtension;

/// Requests of an agent that wait, with their order.
pub(super) struct RequestQueue {
    /// Order of the requests, and the slots.
    admission_queue: AdmissionState,
    entries: HashMap<ExecutionId, QueuedRequest>,
    /// True if the entries of a long queue will be notified of their positions.
    is_position_notice_scheduled: bool,
    /// True if the timer of the first entry runs.
    has_timeout_timer: bool,
}

impl RequestQueue {
    /// Creates an empty queue.
    pub(super) fn new(capacity: Capacity) -> Self {
        Self {
            admission_queue: AdmissionState::new(
                capacity.max_running.map(Into::into),
                capacity.max_waiting,
            ),
            entries: HashMap::new(),
            is_position_notice_scheduled: false,
            has_timeout_timer: false,
        }
    }

    /// Applies an event. The caller carries out the effects.
    pub(super) fn apply(&mut self, event: AdmissionEvent) -> Vec<AdmissionEffect> {
        let (admission_queue, effects) = apply_event(mem::take(&mut self.admission_queue), event);
        self.admission_queue = admission_queue;
        effects
    }

    /// Sets the number of running executions that have ended and are being cleaned up, for the next arrival.
    pub(super) const fn set_slots_in_clean_up(&mut self, count: usize) {
        self.admission_queue.set_slots_in_clean_up(count);
    }

    /// Adds a request. Its event in the order follows.
    pub(super) fn insert(&mut self, id: ExecutionId, entry: QueuedRequest) {
        self.entries.insert(id, entry);
    }

    /// Removes and returns a request. Its event in the order follows or has happened.
    pub(super) fn remove(&mut self, id: ExecutionId) -> Option<QueuedRequest> {
        self.entries.remove(&id)
    }

    /// Returns a request.
    pub(super) fn get(&self, id: ExecutionId) -> Option<&QueuedRequest> {
        self.entries.get(&id)
    }

    /// Returns true if the request waits.
    pub(super) fn contains(&self, id: ExecutionId) -> bool {
        self.entries.contains_key(&id)
    }

    /// Returns true if no request waits.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns true if a submitter waits for its answer.
    pub(super) fn has_waiting_submitter(&self) -> bool {
        self.entries.values().any(QueuedRequest::awaits_submit_reply)
    }

    /// Returns the number of executions that hold a slot.
    pub(super) fn used_slots(&self) -> usize {
        self.admission_queue.running().len()
    }

    /// Returns the execution that would start next if the account were usable, and may therefore probe it.
    pub(super) fn next_probe_candidate(&self) -> Option<ExecutionId> {
        self.admission_queue.next_probe_candidate()
    }

    /// Subscribes to the progress of a request.
    pub(super) fn watch(&self, id: ExecutionId) -> Option<watch::Receiver<Progress>> {
        self.entries.get(&id).map(|entry| entry.progress.subscribe())
    }

    /// Answers the submitter of a request, once.
    pub(super) fn reply_to_submitter(&mut self, id: ExecutionId, result: Result<(), Failure>) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let Some(reply) = entry.reply.take() else { return };
        let progress_receiver = Some(entry.progress.subscribe());
        let accepted = SubmitReply {
            execution: id,
            is_duplicate: false,
            progress_receiver,
            ended_record: None,
        };
        _ = reply.send(result.map(|()| accepted));
    }

    /// Rejects a request and removes it.
    pub(super) fn reject(&mut self, id: ExecutionId, failure: Failure) {
        self.reply_to_submitter(id, Err(failure));
        self.entries.remove(&id);
    }

    /// Removes a duplicate request, and answers its submitter with the earlier execution and its progress.
    pub(super) fn reply_with_original(
        &mut self,
        id: ExecutionId,
        original: ExecutionId,
        progress: Option<watch::Receiver<Progress>>,
    ) {
        if let Some(reply) = self.remove(id).and_then(|entry| entry.reply) {
            _ = reply.send(Ok(SubmitReply::for_existing_execution(original, progress)));
        }
    }

    /// Lets a request take the result of the execution `source` when its turn comes.
    pub(super) fn set_replay_source(&mut self, id: ExecutionId, source: ExecutionId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.replay_source = Some(source);
        }
    }

    /// Releases a request that waited for the result of an equal one, which is `source` if it succeeded. Returns
    /// true if the request waited for it.
    pub(super) fn end_coalescing(&mut self, id: ExecutionId, source: Option<ExecutionId>) -> bool {
        // A request that has started its own work meanwhile, and asked a question, waits for something else now.
        let entry = self
            .entries
            .get_mut(&id)
            .filter(|entry| entry.starting_point.state != ExecutionState::Waiting);
        entry.map(|entry| entry.replay_source = source).is_some()
    }

    /// Hands a probe of the credential to a request. Returns true if the request waits.
    pub(super) fn assign_probe(&mut self, id: ExecutionId, probe: BreakerProbe) -> bool {
        self.entries.get_mut(&id).map(|entry| entry.probe = Some(probe)).is_some()
    }

    /// Ends a deferral: the wait starts at `now` with this deadline. Returns false if the execution was cancelled, or
    /// was woken before and deferred again.
    pub(super) fn end_deferral(
        &mut self,
        id: ExecutionId,
        deferral: Deferral,
        now: DateTime<Utc>,
        deadline: Instant,
    ) -> bool {
        let entry = self.entries.get_mut(&id).filter(|entry| entry.deferral == Some(deferral));
        let wake = |entry: &mut QueuedRequest| {
            (entry.deferral, entry.deadline, entry.queued_since) = (None, deadline, now);
        };
        entry.map(wake).is_some()
    }

    /// Returns the deferred executions that wait for the account.
    pub(super) fn account_deferrals(&self) -> Vec<(ExecutionId, Deferral)> {
        let account_deferral = |(id, entry): (&ExecutionId, &QueuedRequest)| {
            let deferral = entry.deferral.filter(|deferral| deferral.cause.blocks_account())?;
            Some((*id, deferral))
        };
        self.entries.iter().filter_map(account_deferral).collect()
    }

    /// Applies a new queue timeout to the entries.
    pub(super) fn change_timeout(&mut self, previous_timeout: Duration, new_timeout: Duration) {
        for entry in self.entries.values_mut() {
            let wait_start = entry.deadline.checked_sub(previous_timeout).unwrap_or(entry.deadline);
            entry.deadline = wait_start.checked_add(new_timeout).unwrap_or(entry.deadline);
        }
    }
}
