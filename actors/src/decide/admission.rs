//! Who runs, who waits and who is refused: one line of people at one counter.
//!
//! A request that is let in must first be recorded. Requests begin in the order in which they
//! arrived, however long their records take.

use std::collections::{BTreeSet, VecDeque};

use crate::model::id::ExecutionId;

/// The line of one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    capacity: Option<u32>,
    depth: u32,
    waiting: VecDeque<Place>,
    running: BTreeSet<ExecutionId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    id: ExecutionId,
    recorded: bool,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A request came.
    Arrived(ExecutionId),
    /// Its record is committed.
    Recorded(ExecutionId),
    /// It turned out to be the same request as another.
    Twin(ExecutionId, ExecutionId),
    /// It was recorded in an earlier life and waits still; it has its place whatever the depth.
    Recovered(ExecutionId),
    /// It left the line without running.
    Left(ExecutionId),
    /// It has ended and gave its slot back.
    Ended(ExecutionId),
}

/// What must be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Record it.
    Record(ExecutionId),
    /// It holds a slot: begin.
    Run(ExecutionId),
    /// It waits, as the so-manieth from 1.
    Queue(ExecutionId, usize),
    /// The caller gets the other one instead.
    Join(ExecutionId, ExecutionId),
    /// The line is full.
    Refuse(ExecutionId),
}

impl Line {
    /// An empty line.
    #[must_use]
    pub fn new(capacity: Option<u32>, depth: u32) -> Self {
        Self { capacity, depth, ..Self::default() }
    }

    /// Who waits, in order.
    pub fn waiting(&self) -> impl Iterator<Item = ExecutionId> + '_ {
        self.waiting.iter().map(|place| place.id)
    }

    /// Who holds a slot.
    #[must_use]
    pub const fn running(&self) -> &BTreeSet<ExecutionId> {
        &self.running
    }

    fn free(&self) -> usize {
        self.capacity
            .map_or(usize::MAX, |capacity| (capacity as usize).saturating_sub(self.running.len()))
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= self.free().saturating_add(self.depth as usize)
    }

    fn leave(&mut self, id: ExecutionId) {
        self.waiting.retain(|place| place.id != id);
    }

    fn position(&self, id: ExecutionId) -> Option<usize> {
        self.waiting.iter().position(|place| place.id == id).map(|index| index + 1)
    }

    /// Lets the first in line begin while there are slots and their records are committed.
    fn advance(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        while self.free() > 0 && self.waiting.front().is_some_and(|place| place.recorded) {
            if let Some(place) = self.waiting.pop_front() {
                self.running.insert(place.id);
                effects.push(Effect::Run(place.id));
            }
        }
        effects
    }
}

/// Decides what the event does to the line.
#[must_use]
pub fn step(mut line: Line, event: Event) -> (Line, Vec<Effect>) {
    let effects = match event {
        Event::Arrived(id) if line.is_full() => vec![Effect::Refuse(id)],
        Event::Arrived(id) => {
            line.waiting.push_back(Place { id, recorded: false });
            vec![Effect::Record(id)]
        }
        Event::Recorded(id) => recorded(&mut line, id),
        Event::Recovered(id) => {
            line.waiting.push_back(Place { id, recorded: true });
            line.advance()
        }
        Event::Twin(id, twin) => {
            line.leave(id);
            let mut effects = vec![Effect::Join(id, twin)];
            effects.extend(line.advance());
            effects
        }
        Event::Left(id) => {
            line.leave(id);
            line.advance()
        }
        Event::Ended(id) => {
            line.running.remove(&id);
            line.advance()
        }
    };
    (line, effects)
}

fn recorded(line: &mut Line, id: ExecutionId) -> Vec<Effect> {
    for place in &mut line.waiting {
        place.recorded |= place.id == id;
    }
    let mut effects = line.advance();
    effects.extend(line.position(id).map(|position| Effect::Queue(id, position)));
    effects
}
