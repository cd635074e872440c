//! What an execution is told after a while.

use std::time::Duration;

use chrono::TimeDelta;
use ractor::ActorRef;

use super::{ExecutionData, ExecutionMsg};
use crate::decide::execution::Event;
use crate::model::event::{Fact, Limit};
use crate::model::execution::Stamp;

impl ExecutionData {
    pub(super) fn wake(&mut self, me: &ActorRef<ExecutionMsg>, after: Duration, with: Event) {
        if matches!(with, Event::Overdue { .. } | Event::RetryDue { .. }) {
            self.deadline = TimeDelta::from_std(after)
                .ok()
                .and_then(|after| self.kit.clock.now().checked_add_signed(after));
        }
        let me = me.clone();
        self.spawn(async move {
            tokio::time::sleep(after).await;
            _ = me.cast(ExecutionMsg::Happened(with)); // The timer ends with the actor.
        });
    }

    /// Looks after a while how long the attempt has been silent then.
    pub(super) fn look(&mut self, me: &ActorRef<ExecutionMsg>, at: Stamp, after: Duration) {
        let (me, pulse) = (me.clone(), self.pulse.clone());
        self.spawn(async move {
            tokio::time::sleep(after).await;
            let quiet = pulse.quiet();
            _ = me.cast(ExecutionMsg::Happened(Event::Quiet { at, quiet })); // It ends with the actor.
        });
    }

    /// Tells those who follow that a deadline is near.
    pub(super) fn warn(&mut self, limit: Limit, left: Duration, message: String) {
        let at = self.kit.clock.now();
        let left = TimeDelta::from_std(left).unwrap_or_default();
        let ends_at = at.checked_add_signed(left).unwrap_or(at);
        tracing::warn!(execution = %self.id, agent = %self.spec.id, limit = limit.as_str(), "deadline is near");
        self.lines.facts.push((at, Fact::Expiring { limit, ends_at, message }));
    }
}
