//! Admission queue of one agent: decides which execution runs, waits or is rejected.
//!
//! An admitted request must be recorded first. Requests start in the order of arrival, however long their records take.

pub mod dedup_key;
pub mod workspace_fifo;

use std::collections::{BTreeSet, VecDeque};

use crate::model::agent::queue::{QueueReason, Queued};
use crate::model::id::ExecutionId;

/// Admission queue of one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    capacity: Option<u32>,
    depth: u32,
    waiting: VecDeque<QueueEntry>,
    running: BTreeSet<ExecutionId>,
    /// Executions that wait for the quota of their account: they hold nothing and block no other execution.
    parked: BTreeSet<ExecutionId>,
    /// True if no execution may start for now.
    held: bool,
    /// True if no execution may start, except one that probes the account.
    shut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct QueueEntry {
    id: ExecutionId,
    stage: AdmissionStage,
}

/// Stage of a queue entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AdmissionStage {
    /// The record is being written.
    Recording,
    /// The entry waits for the result of an equal request. Other entries may overtake it.
    Leaning,
    /// The entry may start.
    Ready,
}

/// Event of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionEvent {
    /// A request arrived.
    Arrived(ExecutionId),
    /// The record of the request is committed.
    Recorded(ExecutionId),
    /// The record is committed, and an equal request is in progress, whose result this request may take.
    Leans(ExecutionId),
    /// The equal request has ended.
    Freed(ExecutionId),
    /// The request proved to be a duplicate of another one.
    Twin(ExecutionId, ExecutionId),
    /// The execution was recorded before a restart and still waits; it is queued regardless of the depth.
    Recovered(ExecutionId),
    /// The execution was started before a restart and continues; it has its slot regardless of the capacity.
    Resumed(ExecutionId),
    /// The execution left the queue without running.
    Left(ExecutionId),
    /// The execution ended and released its slot.
    Ended(ExecutionId),
    /// No execution may start for now; running executions continue.
    Held,
    /// Executions may start again.
    Released,
    /// The account of all executions is unusable for now.
    Shut,
    /// The account is usable again.
    Opened,
    /// This execution, which is [next](Queue::next), probes the account.
    Tried(ExecutionId),
    /// The execution released its slot, and waits for its account.
    Parked(ExecutionId),
    /// The execution no longer waits for its account: it overtakes all later arrivals, regardless of the depth.
    Woken(ExecutionId),
    /// The limits changed. Running and waiting executions stay.
    Resized {
        /// Number of executions that may run at the same time; `None` is unlimited.
        capacity: Option<u32>,
        /// Number of executions that may wait.
        depth: u32,
    },
}

/// Effect that the caller must carry out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionEffect {
    /// Record the request.
    Record(ExecutionId),
    /// Start the execution, which holds a slot.
    Run(ExecutionId),
    /// Queue the execution at this position; the first position is 1.
    Queue(ExecutionId, usize),
    /// Return the other execution to the caller instead.
    Join(ExecutionId, ExecutionId),
    /// Reject the request, because the queue is full.
    Refuse(ExecutionId),
}

impl Queue {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(capacity: Option<u32>, depth: u32) -> Self {
        Self { capacity, depth, ..Self::default() }
    }

    /// Iterates over the waiting executions, in order.
    pub fn waiting(&self) -> impl Iterator<Item = ExecutionId> + '_ {
        self.waiting.iter().map(|place| place.id)
    }

    /// Returns the execution that starts when one more may start.
    #[must_use]
    pub fn next(&self) -> Option<ExecutionId> {
        let index = self.first()?;
        self.waiting.get(index).filter(|_| self.slots() > 0).map(|place| place.id)
    }

    /// Iterates over the waiting executions with their positions and reasons. Deferred executions form a queue of their
    /// own.
    pub fn places(&self) -> impl Iterator<Item = (ExecutionId, Queued)> + '_ {
        let parked = self.parked.iter().zip(1..);
        let parked =
            parked.map(|(id, place)| (*id, Queued::new(place, QueueReason::QuotaExhausted)));
        self.queue().chain(parked)
    }

    fn queue(&self) -> impl Iterator<Item = (ExecutionId, Queued)> + '_ {
        self.waiting.iter().zip(1..).map(|(place, position)| {
            let reason = match place.stage {
                AdmissionStage::Leaning => QueueReason::DuplicateInProgress,
                AdmissionStage::Recording | AdmissionStage::Ready => QueueReason::AgentBusy,
            };
            (place.id, Queued::new(position, reason))
        })
    }

    /// Returns the executions that hold a slot.
    #[must_use]
    pub const fn running(&self) -> &BTreeSet<ExecutionId> {
        &self.running
    }

    fn free(&self) -> usize {
        if self.shut { 0 } else { self.slots() }
    }

    /// Number of free slots, regardless of the account.
    fn slots(&self) -> usize {
        if self.held {
            return 0;
        }
        self.capacity
            .map_or(usize::MAX, |capacity| (capacity as usize).saturating_sub(self.running.len()))
    }

    fn is_full(&self) -> bool {
        if self.waiting.len() < self.depth as usize {
            return false; // Fast path without a scan of the entries.
        }
        // Free slots serve entries that may start; coalesced entries need the queue.
        let leaning = self.leaning();
        match (self.waiting.len() - leaning).checked_sub(self.free()) {
            None => false,
            Some(beyond) => beyond + leaning >= self.depth as usize,
        }
    }

    fn leaning(&self) -> usize {
        self.waiting.iter().filter(|place| place.stage == AdmissionStage::Leaning).count()
    }

    fn set(&mut self, id: ExecutionId, stage: AdmissionStage) {
        // The most recent entry is searched first, because the recorded request has usually just arrived.
        if let Some(place) = self.waiting.iter_mut().rev().find(|place| place.id == id) {
            place.stage = stage;
        }
    }

    fn leave(&mut self, id: ExecutionId) {
        self.waiting.retain(|place| place.id != id);
        self.parked.remove(&id);
    }

    fn position(&self, id: ExecutionId) -> Option<usize> {
        self.waiting.iter().rposition(|place| place.id == id).map(|index| index + 1)
    }

    /// Index of the first entry that is not coalesced, if its record is committed.
    fn first(&self) -> Option<usize> {
        let first = self.waiting.iter().position(|place| place.stage != AdmissionStage::Leaning)?;
        self.waiting.get(first).filter(|place| place.stage == AdmissionStage::Ready).map(|_| first)
    }

    /// Starts the first entries while slots are free and their records are committed.
    fn advance(&mut self) -> Vec<AdmissionEffect> {
        let mut effects = Vec::new();
        while self.free() > 0 {
            let Some(place) = self.first().and_then(|index| self.waiting.remove(index)) else {
                break;
            };
            self.running.insert(place.id);
            effects.push(AdmissionEffect::Run(place.id));
        }
        effects
    }

    fn hold(&mut self, held: bool) -> Vec<AdmissionEffect> {
        self.held = held;
        self.advance()
    }

    fn shut(&mut self, shut: bool) -> Vec<AdmissionEffect> {
        self.shut = shut;
        self.advance()
    }

    fn park(&mut self, id: ExecutionId) -> Vec<AdmissionEffect> {
        self.running.remove(&id);
        self.parked.insert(id);
        self.advance()
    }

    /// Inserts a deferred execution before all later arrivals.
    fn wake(&mut self, id: ExecutionId) -> Vec<AdmissionEffect> {
        if self.parked.remove(&id) {
            let before = self.waiting.iter().position(|place| place.id > id);
            let place = QueueEntry { id, stage: AdmissionStage::Ready };
            self.waiting.insert(before.unwrap_or(self.waiting.len()), place);
        }
        self.advance()
    }

    /// Starts the execution that probes the account.
    fn try_with(&mut self, id: ExecutionId) -> Vec<AdmissionEffect> {
        if self.next() != Some(id) {
            return Vec::new();
        }
        self.leave(id);
        self.running.insert(id);
        vec![AdmissionEffect::Run(id)]
    }
}

/// Decides the effects of an event on the queue.
#[must_use]
pub fn step(mut line: Queue, event: AdmissionEvent) -> (Queue, Vec<AdmissionEffect>) {
    let effects = match event {
        AdmissionEvent::Arrived(id) if line.is_full() => vec![AdmissionEffect::Refuse(id)],
        AdmissionEvent::Arrived(id) => {
            line.waiting.push_back(QueueEntry { id, stage: AdmissionStage::Recording });
            vec![AdmissionEffect::Record(id)]
        }
        AdmissionEvent::Recorded(id) => recorded(&mut line, id, AdmissionStage::Ready),
        // The number of coalesced entries is limited to the depth: further ones do the work themselves.
        AdmissionEvent::Leans(id) if line.leaning() >= line.depth as usize => {
            recorded(&mut line, id, AdmissionStage::Ready)
        }
        AdmissionEvent::Leans(id) => recorded(&mut line, id, AdmissionStage::Leaning),
        AdmissionEvent::Freed(id) => {
            let mut leaning =
                line.waiting.iter_mut().filter(|one| one.stage == AdmissionStage::Leaning);
            if let Some(place) = leaning.find(|place| place.id == id) {
                place.stage = AdmissionStage::Ready;
            }
            line.advance()
        }
        AdmissionEvent::Recovered(id) => {
            line.waiting.push_back(QueueEntry { id, stage: AdmissionStage::Ready });
            line.advance()
        }
        AdmissionEvent::Resumed(id) => {
            line.running.insert(id);
            Vec::new()
        }
        AdmissionEvent::Twin(id, twin) => {
            line.leave(id);
            let mut effects = vec![AdmissionEffect::Join(id, twin)];
            effects.extend(line.advance());
            effects
        }
        AdmissionEvent::Left(id) => {
            line.leave(id);
            line.advance()
        }
        AdmissionEvent::Ended(id) => {
            line.running.remove(&id);
            line.advance()
        }
        AdmissionEvent::Held => line.hold(true),
        AdmissionEvent::Released => line.hold(false),
        AdmissionEvent::Shut => line.shut(true),
        AdmissionEvent::Opened => line.shut(false),
        AdmissionEvent::Tried(id) => line.try_with(id),
        AdmissionEvent::Parked(id) => line.park(id),
        AdmissionEvent::Woken(id) => line.wake(id),
        AdmissionEvent::Resized { capacity, depth } => {
            (line.capacity, line.depth) = (capacity, depth);
            line.advance()
        }
    };
    (line, effects)
}

fn recorded(line: &mut Queue, id: ExecutionId, stage: AdmissionStage) -> Vec<AdmissionEffect> {
    line.set(id, stage);
    let mut effects = line.advance();
    effects.extend(line.position(id).map(|position| AdmissionEffect::Queue(id, position)));
    effects
}
