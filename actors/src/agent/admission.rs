//! Admission of requests to an agent: the check, the queue, the recording in the ledger, and the start.

mod duplicate_cache;
mod duplicates;
mod recording;
mod slot_metrics;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use self::duplicate_cache::DuplicateCache;
use self::recording::RequestRecorder;
use self::slot_metrics::SlotCounters;
use super::credential_gate::{CredentialGate, GateChange};
use super::lifecycle::AgentLifecycle;
use super::queue::{QueuedRequest, RequestQueue, TimeoutExtension};
use super::running::ExecutionStart;
use super::tasks::AgentBackgroundTasks;
use super::{AgentArgs, Submission};
use crate::decide::access::{file_policy, override_policy};
use crate::decide::admission::{AdmissionEffect, AdmissionEvent};
use crate::decide::execution::ExecutionEvent;
use crate::execution::StartingPoint;
use crate::model::agent::quota::Deferral;
use crate::model::code::Code;
use crate::model::execution::ExecutionState;
use crate::model::execution::progress::Progress;
use crate::model::execution::record::ExecutionRecord;
use crate::model::execution::request::Request;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::model::observation::status::{QueuedStatus, SlotStatistics};
use crate::ports::ledger::AcceptResult;
use crate::services::credential_breakers::credential_name;

pub(super) use self::duplicates::{AdmissionDecision, decide_after_recording};
pub(crate) use self::duplicates::{message_reused_failure, no_open_question_failure};

/// Admission of an agent: its queue, the gate of its credential, and the statistics of both.
pub(super) struct RequestAdmission {
    queue: RequestQueue,
    gate: CredentialGate,
    duplicates: DuplicateCache,
    counters: SlotCounters,
}

impl RequestAdmission {
    /// Creates the admission with an empty queue.
    pub(super) fn new(args: &AgentArgs) -> Self {
        Self {
            queue: RequestQueue::new(args.spec.limits.capacity),
            gate: CredentialGate::new(credential_name(&args.services.keyed_hasher, &args.spec)),
            duplicates: DuplicateCache::default(),
            counters: SlotCounters::default(),
        }
    }

    /// Returns the queue.
    pub(super) const fn queue(&self) -> &RequestQueue {
        &self.queue
    }

    /// Returns the queue, for a change that is not an event of the admission.
    pub(super) const fn queue_mut(&mut self) -> &mut RequestQueue {
        &mut self.queue
    }

    /// Checks whether the agent admits a request, which continues this execution.
    pub(super) fn check_admission(
        &self,
        request: &Request,
        continued_record: Option<&ExecutionRecord>,
        lifecycle: &AgentLifecycle,
        args: &AgentArgs,
    ) -> Result<(), Failure> {
        let spec = &args.spec;
        // An answer to a question of a running conversation is accepted also by a disabled agent.
        if !spec.enabled && continued_record.is_none() {
            let message = format!("agent `{}` is disabled", spec.id);
            return Err(Failure::new(Code::AgentDisabled, message));
        }
        lifecycle.check_not_stopping(&spec.id)?;
        args.check_request_limits(request)?;
        match continued_record {
            Some(record) if self.queue.contains(record.id) => Err(no_open_question_failure()),
            // An answer and a hop are not refused for the condition of the machine, because their execution or run was
            // accepted before.
            Some(_) => Ok(()),
            None if request.origin.trigger.hop_position().is_some() => Ok(()),
            None => args.host_failure().map_or(Ok(()), Err),
        }
    }

    /// Returns the result for a request that repeats the one of an unfinished execution; `None` for any other request.
    /// While the agent stops, it refuses all requests alike.
    pub(super) fn find_duplicate(
        &self,
        submission: &Submission,
        lifecycle: &AgentLifecycle,
        args: &AgentArgs,
    ) -> Option<AcceptResult> {
        let Submission { request, request_identity, continued_record, .. } = submission;
        if continued_record.is_some() || lifecycle.is_stopping() {
            return None;
        }
        self.duplicates.find(request, request_identity, &args.spec)
    }

    /// Forgets the request of an execution that has ended or waits for input: from now on the ledger finds it.
    pub(super) fn remove_from_duplicate_cache(&mut self, id: ExecutionId) {
        self.duplicates.remove(id);
    }

    /// Rejects a request that the check has refused.
    pub(super) fn reject(&mut self, submission: Submission, failure: Failure) {
        self.counters.record_rejection();
        _ = submission.reply.send(Err(failure));
    }

    /// Adds a checked request. The event that orders it follows.
    pub(super) fn insert(&mut self, submission: Submission, args: &AgentArgs) -> AdmissionEvent {
        let Submission { request, request_identity, continued_record, span, reply } = submission;
        let id = continued_record.as_ref().map_or_else(ExecutionId::generate, |record| record.id);
        let starting_point = continued_record
            .map_or_else(StartingPoint::for_new_execution, |record| {
                StartingPoint::waiting_for_input(&record)
            });
        let (since, deadline) = (args.services.clock.now(), args.queue_deadline(Duration::ZERO));
        let is_hop = request.origin.trigger.hop_position().is_some();
        let entry = QueuedRequest::new(Arc::new(request), starting_point, since, deadline);
        let (request_identity, reply) = (Some(request_identity), Some(reply));
        self.queue.insert(id, QueuedRequest { request_identity, reply, span, ..entry });
        if is_hop { AdmissionEvent::HopArrived(id) } else { AdmissionEvent::Arrived(id) }
    }

    /// Adds an execution of an earlier process again. The event that orders it follows.
    pub(super) fn insert_recovered(
        &mut self,
        record: &ExecutionRecord,
        request: Arc<Request>,
        args: &AgentArgs,
    ) -> AdmissionEvent {
        let (since, starting_point) = match record.state {
            ExecutionState::Waiting => {
                (record.changed_at, StartingPoint::waiting_for_input(record))
            }
            _ => (record.accepted_at, StartingPoint::for_new_execution()),
        };
        let deadline = self.gate.queue_deadline(args, since);
        self.queue.insert(record.id, QueuedRequest::new(request, starting_point, since, deadline));
        AdmissionEvent::RecoveredWaiting(record.id)
    }

    /// Applies an event to the queue. The caller carries out the effects.
    pub(super) fn apply(&mut self, event: AdmissionEvent) -> Vec<AdmissionEffect> {
        self.queue.apply(event)
    }

    /// Carries out an effect that concerns the admission alone.
    pub(super) fn perform(
        &mut self,
        effect: AdmissionEffect,
        args: &AgentArgs,
        tasks: &mut AgentBackgroundTasks,
    ) {
        match effect {
            AdmissionEffect::Record(id) => self.start_recording(id, args, tasks),
            AdmissionEffect::ConfirmQueued(id, position) => {
                self.queue.notify(id, position, self.gate.wait_cause(args));
                self.queue.reply_to_submitter(id, Ok(()));
                self.schedule_timeout(args, tasks);
            }
            AdmissionEffect::Reject(id) => {
                self.counters.record_rejection();
                self.queue.reject(id, args.queue_full_failure());
            }
            AdmissionEffect::Start(_) | AdmissionEffect::ReturnOriginal(..) => {} // The actor connects other parts.
        }
    }

    fn start_recording(&self, id: ExecutionId, args: &AgentArgs, tasks: &AgentBackgroundTasks) {
        let Some(entry) = self.queue.get(id) else { return };
        let Some(request_identity) = entry.request_identity else { return };
        let recorder = RequestRecorder {
            agent: tasks.agent().clone(),
            services: Arc::clone(&args.services),
            spec: Arc::clone(&args.spec),
            id,
            request: Arc::clone(&entry.request),
            request_identity,
            starting_point: entry.starting_point.clone(),
            received_at: entry.queued_since,
        };
        // A write that has started is completed even if this actor stops.
        tasks.spawn_detached(recorder.record_and_report());
    }

    /// Applies the decision about a recorded request. Returns the event that orders it.
    pub(super) fn apply_admission_decision(
        &mut self,
        id: ExecutionId,
        decision: &AdmissionDecision,
        args: &AgentArgs,
    ) -> AdmissionEvent {
        if let Some(entry) = self.queue.get(id).filter(|_| decision.is_recorded()) {
            self.duplicates.record(id, entry, &args.spec);
        }
        match decision {
            AdmissionDecision::Admit => AdmissionEvent::Recorded(id),
            AdmissionDecision::TakeResult(source) => {
                self.queue.set_replay_source(id, *source);
                AdmissionEvent::Recorded(id)
            }
            AdmissionDecision::Coalesce(_) => AdmissionEvent::CoalescingStarted(id),
            AdmissionDecision::ReturnOriginal(original) => AdmissionEvent::Duplicate(id, *original),
            AdmissionDecision::Reject(failure) => {
                self.queue.reject(id, failure.clone());
                AdmissionEvent::LeftQueue(id)
            }
        }
    }

    /// Answers the submitter of a duplicate with the earlier execution.
    pub(super) fn reply_with_original(
        &mut self,
        id: ExecutionId,
        original: ExecutionId,
        progress: Option<watch::Receiver<Progress>>,
    ) {
        self.queue.reply_with_original(id, original, progress);
    }

    /// Answers the submitter of an execution whose turn has come, and removes it from the queue. While the service
    /// stops nothing starts: the execution stays in the ledger for the next start.
    pub(super) fn prepare_start(
        &mut self,
        id: ExecutionId,
        is_draining: bool,
        args: &AgentArgs,
    ) -> Option<ExecutionStart> {
        self.queue.reply_to_submitter(id, Ok(()));
        if is_draining {
            return None;
        }
        let entry = self.queue.remove(id)?;
        let queue_timeout = args.spec.limits.capacity.queue_timeout;
        self.counters.record_start(&entry, queue_timeout, self.queue.used_slots());
        // Checked again at the start: the budget may have been used up while the request waited.
        let first_event = match (args.check_budget(), entry.starting_point.state) {
            (Err(failure), _) => ExecutionEvent::StartRefused { failure },
            (Ok(()), ExecutionState::Waiting) => ExecutionEvent::InputReceived,
            (Ok(()), ExecutionState::Failed) => {
                ExecutionEvent::RetryDue { attempt_id: entry.starting_point.attempt_id }
            }
            (Ok(()), _) => ExecutionEvent::SlotAvailable,
        };
        Some(ExecutionStart { id, entry, definition: args.definition(), first_event })
    }

    /// Returns the event that lets the next execution probe the credential, if a probe is permitted.
    pub(super) fn request_probe(&mut self, args: &AgentArgs) -> Option<AdmissionEvent> {
        let id = self.queue.next_probe_candidate()?;
        let probe = self.gate.request_probe(args, id)?;
        self.queue.assign_probe(id, probe).then_some(AdmissionEvent::ProbeRequested(id))
    }

    /// Notifies the entries after a change of the queue.
    pub(super) fn notify_change(&mut self, args: &AgentArgs, tasks: &mut AgentBackgroundTasks) {
        self.queue.notify_change(self.gate.wait_cause(args), tasks);
    }

    /// Notifies the entries of a long queue, after its pause.
    pub(super) fn send_position_notices(&mut self, args: &AgentArgs) {
        self.queue.send_position_notices(self.gate.wait_cause(args));
    }

    /// Ends a deferral: the execution waits as if it had just arrived.
    pub(super) fn end_deferral(
        &mut self,
        id: ExecutionId,
        deferral: Deferral,
        args: &AgentArgs,
    ) -> bool {
        let (deadline, now) = (args.queue_deadline(Duration::ZERO), args.services.clock.now());
        self.queue.end_deferral(id, deferral, now, deadline)
    }

    /// Applies the present state of the credential. The time of an exhausted quota does not count as a wait.
    pub(super) fn update_credential_gate(&mut self, args: &AgentArgs) -> GateChange {
        let now = Instant::now();
        let change = self.gate.refresh(args, now);
        if let GateChange::Unblocked { timeouts_paused_since: Some(exhausted_since) } = change {
            let queue_timeout = args.spec.limits.capacity.queue_timeout;
            let max_extension = args.spec.quota.deferral_policy.max_wait;
            let extension = TimeoutExtension { exhausted_since, now, queue_timeout, max_extension };
            self.queue.extend_timeouts(extension);
        }
        change
    }

    /// Applies a new definition: the credential and the queue timeout, which was `previous_timeout`. Returns the event
    /// that applies the new size of the queue.
    pub(super) fn reconfigure(
        &mut self,
        previous_timeout: Duration,
        args: &AgentArgs,
    ) -> AdmissionEvent {
        self.gate.replace_credential(credential_name(&args.services.keyed_hasher, &args.spec));
        let capacity = args.spec.limits.capacity;
        self.queue.change_timeout(previous_timeout, capacity.queue_timeout);
        let max_running = capacity.max_running.map(Into::into);
        AdmissionEvent::Resized { max_running, max_waiting: capacity.max_waiting }
    }

    /// Starts the timer of the queue timeout, unless it runs.
    pub(super) fn schedule_timeout(&mut self, args: &AgentArgs, tasks: &mut AgentBackgroundTasks) {
        self.queue.schedule_timeout(self.gate.extra_queue_time(args), tasks);
    }

    /// Restarts the timer after the timeouts changed, because the running timer may be too late.
    pub(super) fn restart_timeout(&mut self, args: &AgentArgs, tasks: &mut AgentBackgroundTasks) {
        self.queue.mark_timer_stopped();
        self.schedule_timeout(args, tasks);
    }

    /// Returns the entries whose timeout has expired. The timer has ended.
    pub(super) fn collect_expired_entries(&mut self, args: &AgentArgs) -> Vec<ExecutionId> {
        self.queue.mark_timer_stopped();
        self.queue.expired_entries(self.gate.extra_queue_time(args))
    }

    /// Returns the statistics of the slots.
    pub(super) fn statistics(&self) -> SlotStatistics {
        self.counters.statistics()
    }

    /// Returns the displayed entries of the queue.
    pub(super) fn statuses(&self, args: &AgentArgs) -> Vec<QueuedStatus> {
        let queue_timeout =
            args.spec.limits.capacity.queue_timeout + self.gate.extra_queue_time(args);
        self.queue.statuses(self.gate.wait_cause(args), queue_timeout)
    }
}

impl AgentArgs {
    /// Checks a request against the limits of the agent's definition.
    fn check_request_limits(&self, request: &Request) -> Result<(), Failure> {
        let (size, limit) = (request.input.size(), self.spec.limits.sizes.max_input_bytes);
        if let Some(failure) = self.spec.unavailable_failure() {
            return Err(failure);
        }
        if size > limit {
            let agent = &self.spec.id;
            let message = format!("the input has {size} bytes, agent `{agent}` takes {limit}");
            return Err(Failure::new(Code::InputTooLarge, message));
        }
        file_policy::check_files(self.spec.file_delivery(), &request.input)?;
        let redactor = self.services.redactor.current();
        override_policy::check_overrides(
            &self.spec.override_policy,
            &request.effective_overrides(),
            &redactor,
        )?;
        self.check_budget()
    }

    /// Returns the rejection because of a full queue.
    fn queue_full_failure(&self) -> Failure {
        let (agent, depth) = (&self.spec.id, self.spec.limits.capacity.max_waiting);
        let message = format!("queue of agent `{agent}` is full ({depth} waiting)");
        Failure::new(Code::QueueFull, message)
    }
}
