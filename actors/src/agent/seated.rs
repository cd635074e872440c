//! An agent that is configured otherwise while it works.

use ractor::ActorRef;

use super::{AgentData, AgentMsg};
use crate::circuits::credential;
use crate::decide::admission::Event as Arrival;
use crate::model::id::ExecutionId;
use crate::root::Seat;

impl AgentData {
    /// As the agent is configured now.
    pub(super) fn seat(&self) -> Seat {
        Seat { spec: self.args.spec.clone(), driver: self.args.driver.clone() }
    }

    /// As the agent was configured when an execution began; for one that has not, as it is now.
    pub(super) fn seat_of(&self, id: ExecutionId) -> Seat {
        self.live.get(&id).map_or_else(|| self.seat(), |live| live.seat.clone())
    }

    /// What runs keeps what it began with. What waits keeps its place, and begins with what is new.
    pub(super) fn reseat(&mut self, me: &ActorRef<AgentMsg>, seat: Seat) {
        self.leaving = None;
        let before = self.args.spec.capacity.patience;
        (self.args.spec, self.args.driver) = (seat.spec, seat.driver);
        self.credential = credential(&self.args.kit.keyring, &self.args.spec);
        let capacity = self.args.spec.capacity;
        for one in self.waiting.values_mut() {
            let since = one.due.checked_sub(before).unwrap_or(one.due);
            one.due = since.checked_add(capacity.patience).unwrap_or(one.due);
        }
        let (running, depth) = (capacity.running.map(Into::into), capacity.waiting);
        self.arrive(me, Arrival::Resized { capacity: running, depth });
        self.circuit_turned(me);
        self.args.kit.tell_spent(&self.args.spec);
        self.mind_patience_anew(me);
    }
}
