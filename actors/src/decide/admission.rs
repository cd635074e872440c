//! Who runs, who waits and who is refused: one line of people at one counter.
//!
//! A request that is let in must first be recorded. Requests begin in the order in which they
//! arrived, however long their records take.

use std::collections::{BTreeSet, VecDeque};

use crate::model::id::ExecutionId;
use crate::model::queue::{Queued, Reason};

/// The line of one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    capacity: Option<u32>,
    depth: u32,
    waiting: VecDeque<Place>,
    running: BTreeSet<ExecutionId>,
    /// Those who wait for the quota of their account: they hold nothing, and stand in nobody's way.
    parked: BTreeSet<ExecutionId>,
    /// Whether nobody may begin for now.
    held: bool,
    /// Whether nobody may begin but one who tries.
    shut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    id: ExecutionId,
    stage: Stage,
}

/// How far somebody in the line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The record is under way.
    Recording,
    /// Its turn waits for the result of an equal request. Others may go before it.
    Leaning,
    /// It may begin.
    Ready,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A request came.
    Arrived(ExecutionId),
    /// Its record is committed.
    Recorded(ExecutionId),
    /// Its record is committed, and an equal request is under way, whose result it may take.
    Leans(ExecutionId),
    /// The equal request has ended.
    Freed(ExecutionId),
    /// It turned out to be the same request as another.
    Twin(ExecutionId, ExecutionId),
    /// It was recorded in an earlier life and waits still; it has its place whatever the depth.
    Recovered(ExecutionId),
    /// It was begun in an earlier life and goes on; it has its slot whatever the capacity.
    Resumed(ExecutionId),
    /// It left the line without running.
    Left(ExecutionId),
    /// It has ended and gave its slot back.
    Ended(ExecutionId),
    /// Nobody may begin for now; who runs goes on.
    Held,
    /// They may begin again.
    Released,
    /// The account of all is of no use for now.
    Shut,
    /// It is of use again.
    Opened,
    /// This one, who is [next](Line::next), tries whether it is.
    Tried(ExecutionId),
    /// It gave its slot back, and waits for its account.
    Parked(ExecutionId),
    /// It waits for its account no longer: it goes before all who came after it, whatever the depth.
    Woken(ExecutionId),
    /// There is room for others now. Who runs or waits already stays.
    Resized {
        /// Who may run at once; `None` is unlimited.
        capacity: Option<u32>,
        /// How many may wait.
        depth: u32,
    },
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

    /// Who begins when one more may.
    #[must_use]
    pub fn next(&self) -> Option<ExecutionId> {
        let index = self.first()?;
        self.waiting.get(index).filter(|_| self.slots() > 0).map(|place| place.id)
    }

    /// Where each of them is, and why it waits there. Those who are parked stand in a line of their own.
    pub fn places(&self) -> impl Iterator<Item = (ExecutionId, Queued)> + '_ {
        let parked = self.parked.iter().zip(1..);
        let parked = parked.map(|(id, place)| (*id, Queued::new(place, Reason::QuotaUsedUp)));
        self.queue().chain(parked)
    }

    fn queue(&self) -> impl Iterator<Item = (ExecutionId, Queued)> + '_ {
        self.waiting.iter().zip(1..).map(|(place, position)| {
            let reason = match place.stage {
                Stage::Leaning => Reason::EqualRequest,
                Stage::Recording | Stage::Ready => Reason::AgentBusy,
            };
            (place.id, Queued::new(position, reason))
        })
    }

    /// Who holds a slot.
    #[must_use]
    pub const fn running(&self) -> &BTreeSet<ExecutionId> {
        &self.running
    }

    fn free(&self) -> usize {
        if self.shut { 0 } else { self.slots() }
    }

    /// Slots that nobody has, whatever the account says.
    fn slots(&self) -> usize {
        if self.held {
            return 0;
        }
        self.capacity
            .map_or(usize::MAX, |capacity| (capacity as usize).saturating_sub(self.running.len()))
    }

    fn is_full(&self) -> bool {
        if self.waiting.len() < self.depth as usize {
            return false; // However many lean: nobody is looked at one by one.
        }
        // Free slots serve those who may begin; those who lean need the queue.
        let leaning = self.leaning();
        match (self.waiting.len() - leaning).checked_sub(self.free()) {
            None => false,
            Some(beyond) => beyond + leaning >= self.depth as usize,
        }
    }

    fn leaning(&self) -> usize {
        self.waiting.iter().filter(|place| place.stage == Stage::Leaning).count()
    }

    fn set(&mut self, id: ExecutionId, stage: Stage) {
        // Who is recorded has just come, mostly.
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

    /// The first in line who does not lean, if its record is committed.
    fn first(&self) -> Option<usize> {
        let first = self.waiting.iter().position(|place| place.stage != Stage::Leaning)?;
        self.waiting.get(first).filter(|place| place.stage == Stage::Ready).map(|_| first)
    }

    /// Lets the first in line begin while there are slots and their records are committed.
    fn advance(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        while self.free() > 0 {
            let Some(place) = self.first().and_then(|index| self.waiting.remove(index)) else {
                break;
            };
            self.running.insert(place.id);
            effects.push(Effect::Run(place.id));
        }
        effects
    }

    fn hold(&mut self, held: bool) -> Vec<Effect> {
        self.held = held;
        self.advance()
    }

    fn shut(&mut self, shut: bool) -> Vec<Effect> {
        self.shut = shut;
        self.advance()
    }

    fn park(&mut self, id: ExecutionId) -> Vec<Effect> {
        self.running.remove(&id);
        self.parked.insert(id);
        self.advance()
    }

    /// Puts one that was parked before all who came after it.
    fn wake(&mut self, id: ExecutionId) -> Vec<Effect> {
        if self.parked.remove(&id) {
            let before = self.waiting.iter().position(|place| place.id > id);
            let place = Place { id, stage: Stage::Ready };
            self.waiting.insert(before.unwrap_or(self.waiting.len()), place);
        }
        self.advance()
    }

    /// Lets one begin that nobody else would.
    fn try_with(&mut self, id: ExecutionId) -> Vec<Effect> {
        if self.next() != Some(id) {
            return Vec::new();
        }
        self.leave(id);
        self.running.insert(id);
        vec![Effect::Run(id)]
    }
}

/// Decides what the event does to the line.
#[must_use]
pub fn step(mut line: Line, event: Event) -> (Line, Vec<Effect>) {
    let effects = match event {
        Event::Arrived(id) if line.is_full() => vec![Effect::Refuse(id)],
        Event::Arrived(id) => {
            line.waiting.push_back(Place { id, stage: Stage::Recording });
            vec![Effect::Record(id)]
        }
        Event::Recorded(id) => recorded(&mut line, id, Stage::Ready),
        // No more lean than may wait: the others do the work themselves.
        Event::Leans(id) if line.leaning() >= line.depth as usize => {
            recorded(&mut line, id, Stage::Ready)
        }
        Event::Leans(id) => recorded(&mut line, id, Stage::Leaning),
        Event::Freed(id) => {
            let mut leaning = line.waiting.iter_mut().filter(|one| one.stage == Stage::Leaning);
            if let Some(place) = leaning.find(|place| place.id == id) {
                place.stage = Stage::Ready;
            }
            line.advance()
        }
        Event::Recovered(id) => {
            line.waiting.push_back(Place { id, stage: Stage::Ready });
            line.advance()
        }
        Event::Resumed(id) => {
            line.running.insert(id);
            Vec::new()
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
        Event::Held => line.hold(true),
        Event::Released => line.hold(false),
        Event::Shut => line.shut(true),
        Event::Opened => line.shut(false),
        Event::Tried(id) => line.try_with(id),
        Event::Parked(id) => line.park(id),
        Event::Woken(id) => line.wake(id),
        Event::Resized { capacity, depth } => {
            (line.capacity, line.depth) = (capacity, depth);
            line.advance()
        }
    };
    (line, effects)
}

fn recorded(line: &mut Line, id: ExecutionId, stage: Stage) -> Vec<Effect> {
    line.set(id, stage);
    let mut effects = line.advance();
    effects.extend(line.position(id).map(|position| Effect::Queue(id, position)));
    effects
}
