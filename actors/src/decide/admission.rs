//! Admission queue of one agent: decides which execution runs, waits or is rejected.
//!
//! An admitted request must be recorded first. Requests start in the order of arrival, however long their records take.

pub mod keyed_hasher;
pub mod workspace_waiters;

use std::collections::{BTreeSet, VecDeque};

use crate::model::agent::queue::{QueueReason, Queued};
use crate::model::id::ExecutionId;

/// Admission queue of one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdmissionState {
    max_running: Option<u32>,
    max_waiting: u32,
    waiting: VecDeque<QueueEntry>,
    running: BTreeSet<ExecutionId>,
    /// Number of running executions that have ended, and whose slots become free after their clean-up.
    slots_in_clean_up: usize,
    /// Executions that wait for the quota of their account: they hold nothing and block no other execution.
    deferred: BTreeSet<ExecutionId>,
    /// True if no execution may start for now.
    is_suspended: bool,
    /// True if no execution may start, except one that probes the account.
    is_account_blocked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct QueueEntry {
    id: ExecutionId,
    stage: AdmissionStage,
    /// True for a request of a team's run, which does not count towards the depth.
    is_hop: bool,
}

/// Stage of a queue entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AdmissionStage {
    /// The record is being written.
    Recording,
    /// The entry waits for the result of an equal request. Other entries may overtake it.
    Coalesced,
    /// The entry may start.
    Ready,
}

/// Event of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionEvent {
    /// A request arrived.
    Arrived(ExecutionId),
    /// A request of a team's run arrived; it is queued regardless of the depth, because the queue of the team limits
    /// the runs.
    HopArrived(ExecutionId),
    /// The record of the request is committed.
    Recorded(ExecutionId),
    /// The record is committed, and an equal request is in progress, whose result this request may take.
    CoalescingStarted(ExecutionId),
    /// The equal request has ended.
    CoalescingEnded(ExecutionId),
    /// The request proved to be a duplicate of another one.
    Duplicate(ExecutionId, ExecutionId),
    /// The execution was recorded before a restart and still waits; it is queued regardless of the depth.
    RecoveredWaiting(ExecutionId),
    /// The execution was started before a restart and continues; it has its slot regardless of the capacity.
    RecoveredRunning(ExecutionId),
    /// The execution left the queue without running.
    LeftQueue(ExecutionId),
    /// The execution ended and released its slot.
    Ended(ExecutionId),
    /// No execution may start for now; running executions continue.
    Suspended,
    /// Executions may start again.
    Unsuspended,
    /// The account of all executions is unusable for now.
    AccountBlocked,
    /// The account is usable again.
    AccountUnblocked,
    /// This execution, which is the [candidate](AdmissionState::next_probe_candidate), probes the account.
    ProbeRequested(ExecutionId),
    /// The execution released its slot, and waits for its account.
    Deferred(ExecutionId),
    /// The execution no longer waits for its account: it overtakes all later arrivals, regardless of the depth.
    DeferralEnded(ExecutionId),
    /// The limits changed. Running and waiting executions stay.
    Resized {
        /// Number of executions that may run at the same time; `None` is unlimited.
        max_running: Option<u32>,
        /// Number of executions that may wait.
        max_waiting: u32,
    },
}

/// Effect that the caller must carry out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionEffect {
    /// Record the request.
    Record(ExecutionId),
    /// Start the execution, which holds a slot.
    Start(ExecutionId),
    /// Queue the execution at this position; the first position is 1.
    ConfirmQueued(ExecutionId, usize),
    /// Return the other execution to the caller instead.
    ReturnOriginal(ExecutionId, ExecutionId),
    /// Reject the request, because the queue is full.
    Reject(ExecutionId),
}

impl AdmissionState {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(max_running: Option<u32>, max_waiting: u32) -> Self {
        Self { max_running, max_waiting, ..Self::default() }
    }

    /// Sets the number of running executions that have ended and are being cleaned up. A request that arrives now waits
    /// for such a slot, regardless of the depth: its caller may know the end already.
    pub const fn set_slots_in_clean_up(&mut self, count: usize) {
        self.slots_in_clean_up = count;
    }

    /// Iterates over the waiting executions, in order.
    pub fn waiting(&self) -> impl Iterator<Item = ExecutionId> + '_ {
        self.waiting.iter().map(|entry| entry.id)
    }

    /// Returns the execution that would start next if the account were usable, and may therefore probe it.
    #[must_use]
    pub fn next_probe_candidate(&self) -> Option<ExecutionId> {
        let index = self.startable_index()?;
        self.waiting
            .get(index)
            .filter(|_| self.free_slots_ignoring_account() > 0)
            .map(|entry| entry.id)
    }

    /// Iterates over the waiting executions with their positions and reasons. Deferred executions form a queue of their
    /// own.
    pub fn positions(&self) -> impl Iterator<Item = (ExecutionId, Queued)> + '_ {
        let deferred = self.deferred.iter().zip(1..);
        let deferred = deferred
            .map(|(id, position)| (*id, Queued::new(position, QueueReason::QuotaExhausted)));
        self.waiting_positions().chain(deferred)
    }

    fn waiting_positions(&self) -> impl Iterator<Item = (ExecutionId, Queued)> + '_ {
        self.waiting.iter().zip(1..).map(|(entry, position)| {
            let reason = match entry.stage {
                AdmissionStage::Coalesced => QueueReason::DuplicateInProgress,
                AdmissionStage::Recording | AdmissionStage::Ready => QueueReason::AgentBusy,
            };
            (entry.id, Queued::new(position, reason))
        })
    }

    /// Returns the executions that hold a slot.
    #[must_use]
    pub const fn running(&self) -> &BTreeSet<ExecutionId> {
        &self.running
    }

    fn free_slots(&self) -> usize {
        if self.is_account_blocked { 0 } else { self.free_slots_ignoring_account() }
    }

    /// Number of slots that are free, or will be when all ended executions are cleaned up.
    fn free_slots_after_clean_up(&self) -> usize {
        let running = self.running.len().saturating_sub(self.slots_in_clean_up);
        match self.max_running {
            Some(max_running) if !self.is_suspended && !self.is_account_blocked => {
                (max_running as usize).saturating_sub(running)
            }
            _ => self.free_slots(),
        }
    }

    /// Number of free slots, regardless of the account.
    fn free_slots_ignoring_account(&self) -> usize {
        if self.is_suspended {
            return 0;
        }
        self.max_running.map_or(usize::MAX, |max_running| {
            (max_running as usize).saturating_sub(self.running.len())
        })
    }

    fn is_full(&self) -> bool {
        if self.waiting.len() < self.max_waiting as usize {
            return false; // Fast path without a scan of the entries.
        }
        // Free slots serve entries that may start; coalesced entries need the queue.
        let counted_entries = self.waiting.iter().filter(|entry| !entry.is_hop);
        let is_coalesced = |entry: &&QueueEntry| entry.stage == AdmissionStage::Coalesced;
        let (total, coalesced) =
            (counted_entries.clone().count(), counted_entries.filter(is_coalesced).count());
        match (total - coalesced).checked_sub(self.free_slots_after_clean_up()) {
            None => false,
            Some(excess) => excess + coalesced >= self.max_waiting as usize,
        }
    }

    fn coalesced_count(&self) -> usize {
        self.waiting.iter().filter(|entry| entry.stage == AdmissionStage::Coalesced).count()
    }

    fn set_stage(&mut self, id: ExecutionId, stage: AdmissionStage) {
        // The most recent entry is searched first, because the recorded request has usually just arrived.
        if let Some(entry) = self.waiting.iter_mut().rev().find(|entry| entry.id == id) {
            entry.stage = stage;
        }
    }

    fn remove(&mut self, id: ExecutionId) {
        self.waiting.retain(|entry| entry.id != id);
        self.deferred.remove(&id);
    }

    fn position(&self, id: ExecutionId) -> Option<usize> {
        self.waiting.iter().rposition(|entry| entry.id == id).map(|index| index + 1)
    }

    /// Index of the first entry that is not coalesced, if its record is committed.
    fn startable_index(&self) -> Option<usize> {
        let first =
            self.waiting.iter().position(|entry| entry.stage != AdmissionStage::Coalesced)?;
        self.waiting.get(first).filter(|entry| entry.stage == AdmissionStage::Ready).map(|_| first)
    }

    /// Starts the first entries while slots are free and their records are committed.
    fn start_ready_entries(&mut self) -> Vec<AdmissionEffect> {
        let mut effects = Vec::new();
        while self.free_slots() > 0 {
            let Some(entry) = self.startable_index().and_then(|index| self.waiting.remove(index))
            else {
                break;
            };
            self.running.insert(entry.id);
            effects.push(AdmissionEffect::Start(entry.id));
        }
        effects
    }

    fn set_suspended(&mut self, is_suspended: bool) -> Vec<AdmissionEffect> {
        self.is_suspended = is_suspended;
        self.start_ready_entries()
    }

    fn set_account_blocked(&mut self, is_account_blocked: bool) -> Vec<AdmissionEffect> {
        self.is_account_blocked = is_account_blocked;
        self.start_ready_entries()
    }

    fn defer(&mut self, id: ExecutionId) -> Vec<AdmissionEffect> {
        self.running.remove(&id);
        self.deferred.insert(id);
        self.start_ready_entries()
    }

    /// Inserts a deferred execution before all later arrivals.
    fn end_deferral(&mut self, id: ExecutionId) -> Vec<AdmissionEffect> {
        if self.deferred.remove(&id) {
            let insert_index = self.waiting.iter().position(|entry| entry.id > id);
            let entry = QueueEntry { id, stage: AdmissionStage::Ready, is_hop: false };
            self.waiting.insert(insert_index.unwrap_or(self.waiting.len()), entry);
        }
        self.start_ready_entries()
    }

    /// Starts the execution that probes the account.
    fn start_probe(&mut self, id: ExecutionId) -> Vec<AdmissionEffect> {
        if self.next_probe_candidate() != Some(id) {
            return Vec::new();
        }
        self.remove(id);
        self.running.insert(id);
        vec![AdmissionEffect::Start(id)]
    }
}

/// Decides the effects of an event on the queue.
#[must_use]
pub fn apply_event(
    mut queue: AdmissionState,
    event: AdmissionEvent,
) -> (AdmissionState, Vec<AdmissionEffect>) {
    let effects = match event {
        AdmissionEvent::Arrived(id) if queue.is_full() => vec![AdmissionEffect::Reject(id)],
        AdmissionEvent::Arrived(id) | AdmissionEvent::HopArrived(id) => {
            let is_hop = matches!(event, AdmissionEvent::HopArrived(_));
            queue.waiting.push_back(QueueEntry { id, stage: AdmissionStage::Recording, is_hop });
            vec![AdmissionEffect::Record(id)]
        }
        AdmissionEvent::Recorded(id) => mark_recorded(&mut queue, id, AdmissionStage::Ready),
        // The number of coalesced entries is limited to `max_waiting`: further ones do the work themselves.
        AdmissionEvent::CoalescingStarted(id)
            if queue.coalesced_count() >= queue.max_waiting as usize =>
        {
            mark_recorded(&mut queue, id, AdmissionStage::Ready)
        }
        AdmissionEvent::CoalescingStarted(id) => {
            mark_recorded(&mut queue, id, AdmissionStage::Coalesced)
        }
        AdmissionEvent::CoalescingEnded(id) => {
            let mut coalesced =
                queue.waiting.iter_mut().filter(|entry| entry.stage == AdmissionStage::Coalesced);
            if let Some(entry) = coalesced.find(|entry| entry.id == id) {
                entry.stage = AdmissionStage::Ready;
            }
            queue.start_ready_entries()
        }
        AdmissionEvent::RecoveredWaiting(id) => {
            queue.waiting.push_back(QueueEntry { id, stage: AdmissionStage::Ready, is_hop: false });
            queue.start_ready_entries()
        }
        AdmissionEvent::RecoveredRunning(id) => {
            queue.running.insert(id);
            Vec::new()
        }
        AdmissionEvent::Duplicate(id, original) => {
            queue.remove(id);
            let mut effects = vec![AdmissionEffect::ReturnOriginal(id, original)];
            effects.extend(queue.start_ready_entries());
            effects
        }
        AdmissionEvent::LeftQueue(id) => {
            queue.remove(id);
            queue.start_ready_entries()
        }
        AdmissionEvent::Ended(id) => {
            queue.running.remove(&id);
            queue.start_ready_entries()
        }
        AdmissionEvent::Suspended => queue.set_suspended(true),
        AdmissionEvent::Unsuspended => queue.set_suspended(false),
        AdmissionEvent::AccountBlocked => queue.set_account_blocked(true),
        AdmissionEvent::AccountUnblocked => queue.set_account_blocked(false),
        AdmissionEvent::ProbeRequested(id) => queue.start_probe(id),
        AdmissionEvent::Deferred(id) => queue.defer(id),
        AdmissionEvent::DeferralEnded(id) => queue.end_deferral(id),
        AdmissionEvent::Resized { max_running, max_waiting } => {
            (queue.max_running, queue.max_waiting) = (max_running, max_waiting);
            queue.start_ready_entries()
        }
    };
    (queue, effects)
}

fn mark_recorded(
    queue: &mut AdmissionState,
    id: ExecutionId,
    stage: AdmissionStage,
) -> Vec<AdmissionEffect> {
    queue.set_stage(id, stage);
    let mut effects = queue.start_ready_entries();
    effects.extend(queue.position(id).map(|position| AdmissionEffect::ConfirmQueued(id, position)));
    effects
}
