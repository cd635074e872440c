//! What an agent does while the machine has too little of something: it lets nothing new in and
//! begins nothing more. What runs goes on.

use ractor::ActorRef;

use super::{AgentData, AgentMsg};
use crate::decide::admission::Event;
use crate::model::failure::Failure;
use crate::monitor::{is_high, refusal};

impl AgentData {
    /// Holds the line, or lets it go on.
    pub(super) fn judged(&mut self, me: &ActorRef<AgentMsg>) {
        let is_high = is_high(&self.args.pressure.borrow());
        self.arrive(me, if is_high { Event::Held } else { Event::Released });
    }

    /// Why nothing new is let in for now.
    pub(super) fn pressed(&self) -> Option<Failure> {
        refusal(&self.args.pressure.borrow())
    }
}
