//! Work that goes on: under another actor, or in another life of the service.

use std::time::Duration;

use ractor::ActorRef;
use tokio::sync::watch;

use super::{AgentData, AgentMsg, Waiting};
use crate::decide::admission::Event as Arrival;
use crate::decide::execution::Event;
use crate::execution::Resumption;
use crate::model::id::ExecutionId;
use crate::model::progress::Progress;
use crate::recover::{Held, take_over};
use crate::root::Seat;

impl AgentData {
    /// What an earlier life began, and whose work is held, goes on.
    pub(super) fn resume(&mut self, me: &ActorRef<AgentMsg>, held: Held) {
        self.arrive(me, Arrival::Resumed(held.record.id));
        self.go_on(me, held, (None, self.seat()));
    }

    /// An execution's actor has crashed. What it worked on goes on under another one; an execution
    /// whose actors crash again is settled.
    pub(super) fn follow_up(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId) {
        if !self.followed.insert(id) {
            return self.cut_off(me, id);
        }
        let (me, kit) = (me.clone(), self.args.kit.clone());
        let driver = self.seat_of(id).driver;
        self.spawn(async move {
            let msg = match take_over(&kit, &*driver, id).await {
                Some(held) => AgentMsg::TakenOver(Box::new(held)),
                None => AgentMsg::CutOffSettled(id),
            };
            _ = me.cast(msg); // A new actor takes it up from the ledger.
        });
    }

    /// What a crashed actor worked on is claimed: it keeps its slot, and those who follow it.
    pub(super) fn taken_over(&mut self, me: &ActorRef<AgentMsg>, held: Held) {
        let seat = self.seat_of(held.record.id);
        let progress = self.live.remove(&held.record.id).map(|live| {
            self.by_actor.remove(&live.actor.get_id());
            live.progress
        });
        self.go_on(me, held, (progress, seat));
    }

    /// It has run for as long as its process says, and where that is not known the wall clock.
    fn go_on(
        &mut self,
        me: &ActorRef<AgentMsg>,
        held: Held,
        (progress, seat): (Option<watch::Sender<Progress>>, Seat),
    ) {
        let Held { record, request, work, known } = held;
        let fresh = || watch::Sender::new(Progress { state: record.state, ..Progress::accepted() });
        let ran = work.ran.unwrap_or_else(|| self.past(record.changed_at));
        let one = Waiting {
            request,
            reply: None,
            progress: progress.unwrap_or_else(fresh),
            since: record.accepted_at,
            due: self.due(Duration::ZERO),
            from: Resumption::held(&record, known),
            span: tracing::Span::none(),
            equal: None,
            parked: None,
            probe: None,
        };
        self.begin_as(me, record.id, (one, seat), Event::TakenUp { at: record.stamp, ran });
    }
}
