//! The executions of an agent that have an actor: begun, called off, ended, crashed.

use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorCell, ActorProcessingErr, ActorRef};
use tokio::sync::watch;

use super::{AgentData, AgentMsg, Live, Waiting};
use crate::decide::admission::Event as Arrival;
use crate::decide::execution::{Deadline, Event};
use crate::decide::restart::{Intensity, Verdict, step as restart};
use crate::echo::Echo;
use crate::execution::{ExecutionActor, ExecutionArgs, ExecutionMsg};
use crate::follow::is_asking;
use crate::model::execution::State;
use crate::model::id::ExecutionId;
use crate::model::progress::Progress;
use crate::model::record::Record;
use crate::model::status::LastOutcome;
use crate::model::trace::Trace;
use crate::recover::settle_cut_off;
use crate::root::Seat;

impl AgentData {
    /// Gives an execution its actor; `first` is what happens to it first.
    pub(super) fn begin(
        &mut self,
        me: &ActorRef<AgentMsg>,
        id: ExecutionId,
        one: Waiting,
        first: Event,
    ) {
        self.begin_as(me, id, (one, self.seat()), first);
    }

    /// The same, of an agent that is configured like this.
    pub(super) fn begin_as(
        &mut self,
        me: &ActorRef<AgentMsg>,
        id: ExecutionId,
        (one, seat): (Waiting, Seat),
        first: Event,
    ) {
        let Waiting { request, progress, from, equal, since, span, probe, .. } = one;
        let (kit, Seat { spec, driver }) = (self.args.kit.clone(), seat.clone());
        let driver = match equal {
            None => driver,
            Some(of) => Arc::new(Echo { of, ledger: Arc::clone(&kit.ledger) }),
        };
        // Of the highest level, so that no filter of the log leaves its ids out.
        let trace_id = Trace::of_execution(request.trace.as_ref(), id).id;
        let span = tracing::error_span!(parent: &span, "execution", execution = %id, agent = %spec.id, %trace_id);
        progress.send_if_modified(|progress| {
            progress.parked = None;
            progress.waits(None) // It is at the counter.
        });
        let (live, asked, within) = (progress.clone(), Arc::clone(&request), span.clone());
        let agent = me.clone();
        let at_rest = Box::new(move || _ = agent.cast(AgentMsg::AtRest(id)));
        let args = ExecutionArgs {
            id,
            from,
            first,
            since,
            request,
            spec,
            driver,
            kit,
            progress,
            span,
            at_rest,
        };
        let spawned =
            ractor::ActorRuntime::spawn_linked_instant(None, ExecutionActor, args, me.get_cell());
        let Ok((actor, birth)) = spawned else {
            return; // Only a name that is taken is refused, and it has none.
        };
        let me = me.clone();
        self.spawn(async move {
            if !matches!(birth.await, Ok(Ok(_))) {
                _ = me.cast(AgentMsg::Stillborn(id)); // No other event tells of it.
            }
        });
        self.by_actor.insert(actor.get_id(), id);
        let (request, span) = (asked, within);
        self.live.insert(id, Live { actor, progress: live, seat, request, span, _probe: probe });
    }

    /// Ends a request that has not run. Answers whether it was waiting.
    pub(super) fn end_unrun(
        &mut self,
        me: &ActorRef<AgentMsg>,
        id: ExecutionId,
        first: Event,
    ) -> bool {
        let Some(one) = self.waiting.remove(&id) else {
            return false;
        };
        self.begin(me, id, one, first);
        self.arrive(me, Arrival::Left(id));
        true
    }

    /// Calls an execution off, wherever it is: running, in the line, or with an open question.
    pub(super) fn cancel(
        &mut self,
        me: &ActorRef<AgentMsg>,
        record: &Record,
        why: String,
    ) -> Option<watch::Receiver<Progress>> {
        let id = record.id;
        if let Some(live) = self.live.get(&id) {
            let progress = live.progress.borrow().clone();
            if progress.state == State::Waiting || progress.parked.is_some() {
                // It lets go, and may hear nothing any more.
                self.early_ends.insert(id, why);
                return None;
            }
            _ = live.actor.cast(ExecutionMsg::Happened(Event::Cancel { why }));
        } else if self.waiting.contains_key(&id) {
            self.end_unrun(me, id, Event::Cancel { why });
        } else if is_asking(record) {
            self.begin(
                me,
                id,
                Waiting::asked(record, self.due(Duration::ZERO)),
                Event::Cancel { why },
            );
        }
        self.watch(id)
    }

    /// A question stayed open for as long as it may. A new one of a later turn has its own time.
    pub(super) fn unanswered(&mut self, me: &ActorRef<AgentMsg>, record: &Record) {
        let is_held = self.live.contains_key(&record.id) || self.waiting.contains_key(&record.id);
        if is_asking(record) && !is_held {
            let event = Event::Overdue { at: record.stamp, deadline: Deadline::Answer };
            self.begin(me, record.id, Waiting::asked(record, self.due(Duration::ZERO)), event);
        }
    }

    /// Minds the time of an open question.
    pub(super) fn mind_answer(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId, left: Duration) {
        let (me, ledger) = (me.clone(), Arc::clone(&self.args.kit.ledger));
        self.spawn(async move {
            tokio::time::sleep(left).await;
            match ledger.execution(id).await {
                Ok(Some(record)) => _ = me.cast(AgentMsg::Unanswered(Box::new(record))),
                Ok(None) => {}
                Err(error) => tracing::error!(execution = %id, %error, "read failed"),
            }
        });
    }

    pub(super) fn watch(&self, id: ExecutionId) -> Option<watch::Receiver<Progress>> {
        let live = self.live.get(&id).map(|live| live.progress.subscribe());
        live.or_else(|| self.waiting.get(&id).map(|one| one.progress.subscribe()))
    }

    /// An execution's actor has stopped: it has ended, or asked for input. If it knows neither
    /// then the ledger refused it: an actor of a former life had claimed it, and will not come back.
    pub(super) fn terminated(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId) {
        let progress = self.live.get(&id).map(|live| live.progress.borrow().clone());
        match progress {
            Some(Progress { outcome: Some(_), .. }) => self.gone(me, id),
            Some(Progress { parked: Some(stay), .. }) => self.parked(me, id, stay),
            Some(Progress { state: State::Waiting, .. }) => {
                self.gone(me, id);
                self.mind_answer(me, id, self.args.spec.deadlines.answer);
            }
            Some(_) | None => self.cut_off(me, id),
        }
    }

    /// Nobody drives it any more: what it left is settled before its slot is free.
    pub(super) fn cut_off(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId) {
        let (me, kit, driver) = (me.clone(), self.args.kit.clone(), self.seat_of(id).driver);
        self.spawn(async move {
            settle_cut_off(&kit, &*driver, id).await;
            _ = me.cast(AgentMsg::CutOffSettled(id)); // A new actor takes it up from the ledger.
        });
    }

    /// An execution's actor is gone, and its outcome is in the ledger.
    pub(super) fn gone(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId) {
        if let Some(live) = self.live.remove(&id) {
            self.by_actor.remove(&live.actor.get_id());
            if let Some(outcome) = live.progress.borrow().outcome {
                self.last = Some(LastOutcome { id, outcome, at: self.args.kit.clock.now() });
            }
        }
        self.followed.remove(&id);
        self.arrive(me, Arrival::Ended(id));
        self.free_those_who_lean(me, id);
        self.call_off_late(me, id);
        if let Some(answer) = self.early.remove(&id) {
            self.submit(me, *answer);
        }
        self.tell_drained();
    }

    /// Calls off what was to be while its actor let go.
    pub(super) fn call_off_late(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId) {
        if let Some(why) = self.early_ends.remove(&id) {
            let (me, ledger) = (me.clone(), Arc::clone(&self.args.kit.ledger));
            self.spawn(async move {
                if let Ok(Some(record)) = ledger.execution(id).await {
                    _ = me.cast(AgentMsg::CallOff(Box::new(record), why)); // As it is now.
                }
            });
        }
    }

    /// An execution's actor has crashed. Too many crashes are a fault of this agent.
    pub(super) fn crashed(
        &mut self,
        me: &ActorRef<AgentMsg>,
        child: &ActorCell,
        fault: ActorProcessingErr,
    ) -> Result<(), ActorProcessingErr> {
        let Some(id) = self.by_actor.get(&child.get_id()).copied() else {
            return Ok(());
        };
        tracing::error!(execution = %id, agent = %self.args.spec.id, %fault, "execution crashed");
        self.follow_up(me, id);
        let crashes = std::mem::take(&mut self.crashes);
        let (crashes, verdict) = restart(crashes, self.born.elapsed(), Intensity::default());
        self.crashes = crashes;
        match verdict {
            Verdict::Restart => Ok(()),
            Verdict::Quarantine => Err(fault),
        }
    }
}
