//! Executions that wait for the quota of their account: they hold nothing but their request.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use ractor::ActorRef;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::{AgentData, AgentMsg, Waiting};
use crate::decide::admission::Event as Arrival;
use crate::decide::quota::spread;
use crate::execution::Resumption;
use crate::model::execution::State;
use crate::model::id::ExecutionId;
use crate::model::progress::{Progress, Stay};
use crate::model::quota::Parked;
use crate::model::record::Record;
use crate::model::request::Request;

/// From one look at the wall clock to the next: somebody may have set it.
pub(super) const LOOK: Duration = Duration::from_secs(60);

impl AgentData {
    /// An execution's actor let go of all it had.
    pub(super) fn parked(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId, stay: Stay) {
        let Some(live) = self.live.remove(&id) else { return };
        self.by_actor.remove(&live.actor.get_id());
        self.followed.remove(&id);
        let one = Waiting { span: live.span, ..self.staying(live.request, live.progress, stay) };
        self.stay(me, id, one);
        self.call_off_late(me, id);
        self.tell_drained();
    }

    /// An execution was parked in an earlier life.
    pub(super) fn parked_before(
        &mut self,
        me: &ActorRef<AgentMsg>,
        record: &Record,
        parked: Parked,
        request: Arc<Request>,
    ) {
        let progress = Progress { state: State::Failed, ..Progress::accepted() };
        let one = self.staying(request, watch::Sender::new(progress), Stay::of(record, parked));
        self.stay(me, record.id, one);
    }

    fn staying(
        &self,
        request: Arc<Request>,
        progress: watch::Sender<Progress>,
        stay: Stay,
    ) -> Waiting {
        Waiting {
            request,
            reply: None,
            progress,
            since: self.args.kit.clock.now(),
            span: tracing::Span::none(),
            due: Instant::now(), // Its patience begins when it wakes.
            from: Resumption::parked(stay),
            equal: None,
            parked: Some(stay.parked),
            probe: None,
        }
    }

    fn stay(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId, one: Waiting) {
        let parked = one.parked;
        self.waiting.insert(id, one);
        self.arrive(me, Arrival::Parked(id));
        if let Some(parked) = parked {
            self.mind_parked(me, id, parked);
        }
    }

    /// Wakes it by a clock that does not jump, or by the wall clock where that jumped ahead.
    fn mind_parked(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId, parked: Parked) {
        let (me, clock) = (me.clone(), Arc::clone(&self.args.kit.clock));
        let wait = (parked.until - clock.now()).to_std().unwrap_or_default();
        let spread = spread(id, wait);
        let due = Instant::now().checked_add(wait + spread).unwrap_or_else(Instant::now);
        let until = parked.until + TimeDelta::from_std(spread).unwrap_or_default();
        self.spawn(async move {
            while Instant::now() < due && clock.now() < until {
                sleep(due.saturating_duration_since(Instant::now()).min(LOOK)).await;
            }
            _ = me.cast(AgentMsg::Woken(id)); // The timer ends with the actor.
        });
    }

    /// It waits in the line now, before all who came after it.
    pub(super) fn woken(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId) {
        let (due, now) = (self.due(Duration::ZERO), self.args.kit.clock.now());
        let Some(one) = self.waiting.get_mut(&id).filter(|one| one.parked.is_some()) else {
            return; // It was called off.
        };
        (one.parked, one.due, one.since) = (None, due, now);
        self.arrive(me, Arrival::Woken(id));
        self.mind_patience(me);
    }
}
