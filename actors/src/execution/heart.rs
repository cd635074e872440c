//! Looks from time to time what the work takes of the machine.

use ractor::ActorRef;

use super::{ExecutionData, ExecutionMsg};
use crate::model::event::Fact;
use crate::model::execution::{Stamp, State};
use crate::model::usage::Usage;

impl ExecutionData {
    /// Lets the holder of the work look. What cannot be looked at is not told of.
    pub(super) fn measure(&mut self, me: &ActorRef<ExecutionMsg>, at: Stamp) {
        let Some(reading) = self.lease.as_ref().map(|lease| lease.usage()) else { return };
        let me = me.clone();
        self.spawn(async move {
            if let Some(usage) = reading.await {
                _ = me.cast(ExecutionMsg::Measured(at, usage)); // It ends with the actor.
            }
        });
    }

    /// A reading that comes after the end of its attempt is of nothing any more. It is no sign of
    /// life: what is silent may burn all there is.
    pub(super) fn measured(&mut self, at: Stamp, usage: Usage) {
        if at == self.stamp && self.state == State::Running {
            self.usage = Some(usage);
            self.lines.facts.push((self.kit.clock.now(), Fact::Heartbeat(usage)));
            self.write_lines();
        }
    }
}
