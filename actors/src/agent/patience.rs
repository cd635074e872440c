//! How long those in the line of an agent may wait.

use std::time::Duration;

use chrono::{DateTime, Utc};
use ractor::ActorRef;
use tokio::time::Instant;

use super::{AgentData, AgentMsg};
use crate::decide::execution::Event;
use crate::model::id::ExecutionId;

impl AgentData {
    /// Lets one timer run for the first that is recorded: all wait for equally long.
    pub(super) fn mind_patience(&mut self, me: &ActorRef<AgentMsg>) {
        let first = self.line.waiting().find(|id| self.is_heard(*id));
        let left = first.and_then(|id| self.patience_left(id));
        let Some(left) = left.filter(|_| !self.watched) else {
            return;
        };
        self.watched = true;
        let me = me.clone();
        self.spawn(async move {
            tokio::time::sleep(left).await;
            _ = me.cast(AgentMsg::PatienceDue); // The timer ends with the actor.
        });
    }

    /// The same, where those in line may wait longer now, or less long: the timer that runs may be
    /// too late.
    pub(super) fn mind_patience_anew(&mut self, me: &ActorRef<AgentMsg>) {
        self.watched = false;
        self.mind_patience(me);
    }

    /// Ends those who have waited too long, and minds the next.
    pub(super) fn patience_due(&mut self, me: &ActorRef<AgentMsg>) {
        self.watched = false;
        let is_due = |id: &ExecutionId| self.patience_left(*id) == Some(Duration::ZERO);
        let heard = self.line.waiting().filter(|id| self.is_heard(*id));
        let due: Vec<_> = heard.take_while(is_due).collect();
        for id in due {
            self.end_unrun(me, id, Event::QueueExpired);
        }
        self.mind_patience(me);
    }

    /// Whether its submitter was answered. Until then it cannot have waited too long: nobody can
    /// end what is not recorded.
    fn is_heard(&self, id: ExecutionId) -> bool {
        self.waiting.get(&id).is_some_and(|one| one.reply.is_none())
    }

    /// How long one may wait still.
    fn patience_left(&self, id: ExecutionId) -> Option<Duration> {
        let one = self.waiting.get(&id)?;
        let due = one.due.checked_add(self.grace()).unwrap_or(one.due);
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Until when one may wait that has waited for so long already.
    pub(super) fn due(&self, waited: Duration) -> Instant {
        let left = self.args.spec.capacity.patience.saturating_sub(waited);
        let now = Instant::now();
        now.checked_add(left).unwrap_or(now)
    }

    /// How long ago something was stored, which only the wall clock tells.
    pub(super) fn past(&self, at: DateTime<Utc>) -> Duration {
        (self.args.kit.clock.now() - at).to_std().unwrap_or_default()
    }
}
