//! `AgentActor`: one per agent; lets requests in by its line, and owns their executions.

mod intake;

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use ractor::{
    Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::decide::admission::{Event as Arrival, Line};
use crate::decide::execution::Event;
use crate::decide::restart::{Intensity, Restarts, Verdict, step as restart};
use crate::execution::{ExecutionActor, ExecutionArgs, ExecutionMsg, Progress};
use crate::kit::Kit;
use crate::model::agent::AgentSpec;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::model::request::Request;
use crate::model::status::{AgentStatus, Health, LastOutcome, QueuedStatus};
use crate::ports::driver::Driver;
use crate::ports::ledger::{Acceptance, LedgerError};
use crate::recover::{settle_cut_off, take_up};

/// Owns everything that one agent does.
pub struct AgentActor;

/// What a submitter gets at once: the execution's id, and a way to follow it.
#[derive(Debug, Clone)]
pub struct Ticket {
    /// The execution.
    pub execution: ExecutionId,
    /// Whether it was there before: the same message was sent already.
    pub joined: bool,
    /// Its progress, while an actor holds it.
    pub progress: Option<watch::Receiver<Progress>>,
}

/// The living executions of an agent, to be asked one by one.
pub struct AgentView {
    /// The agent; `running` is empty and to be filled from `executions`.
    pub status: AgentStatus,
    /// Each execution that has an actor.
    pub executions: Vec<(ExecutionId, ActorRef<ExecutionMsg>)>,
}

/// What an agent is told.
pub enum AgentMsg {
    /// Asks for an execution. The answer comes when it is recorded, not when it has run.
    Submit(Box<Request>, RpcReplyPort<Result<Ticket, Failure>>),
    /// The ledger has answered about a request that was let in.
    Recorded(ExecutionId, Result<Acceptance, LedgerError>),
    /// The first in line may have waited for as long as it may.
    PatienceDue,
    /// Calls an execution off, if it is here. The answer does not wait for its end.
    Cancel {
        /// Which.
        id: ExecutionId,
        /// Why, for its history.
        why: String,
        /// Its progress; `None` when it is not here.
        reply: RpcReplyPort<Option<watch::Receiver<Progress>>>,
    },
    /// Asks for the progress of an execution; `None` when it is not here.
    Watch(ExecutionId, RpcReplyPort<Option<watch::Receiver<Progress>>>),
    /// An execution's actor was not born.
    Stillborn(ExecutionId),
    /// What a lost execution left is settled.
    CutOffSettled(ExecutionId),
    /// Takes nothing new and begins nothing more. The answer comes when nothing runs.
    Drain(RpcReplyPort<()>),
    /// Calls off all that runs.
    CancelAll {
        /// Why, for their history.
        why: String,
    },
    /// Asks what there is. The answer never waits for the work.
    Inspect(RpcReplyPort<AgentView>),
}

/// What an agent begins with.
#[derive(Clone)]
pub struct AgentArgs {
    /// The agent.
    pub spec: Arc<AgentSpec>,
    /// What does its work.
    pub driver: Arc<dyn Driver>,
    /// The world.
    pub kit: Kit,
    /// Whether the service is stopping: then what is taken up stays in the ledger.
    pub draining: bool,
}

/// A request in the line.
struct Waiting {
    request: Arc<Request>,
    reply: Option<RpcReplyPort<Result<Ticket, Failure>>>,
    progress: watch::Sender<Progress>,
    since: DateTime<Utc>,
}

/// An execution with an actor.
struct Live {
    actor: ActorRef<ExecutionMsg>,
    progress: watch::Sender<Progress>,
}

/// Loop data.
pub struct AgentData {
    args: AgentArgs,
    line: Line,
    waiting: HashMap<ExecutionId, Waiting>,
    live: HashMap<ExecutionId, Live>,
    by_actor: HashMap<ActorId, ExecutionId>,
    since: DateTime<Utc>,
    last: Option<LastOutcome>,
    /// Crashes of executions; too many at once are a fault of the agent.
    crashes: Restarts,
    born: Instant,
    /// Whether the timer of the first in line runs.
    watched: bool,
    draining: Option<Vec<RpcReplyPort<()>>>,
    tasks: JoinSet<()>,
}

impl Actor for AgentActor {
    type Msg = AgentMsg;
    type State = AgentData;
    type Arguments = AgentArgs;

    /// Takes up what the ledger holds of this agent: the same path after a restart of the service
    /// and after a crash of this actor.
    async fn pre_start(
        &self,
        me: ActorRef<AgentMsg>,
        args: AgentArgs,
    ) -> Result<AgentData, ActorProcessingErr> {
        let recovered = take_up(&args.kit, &args.spec).await?;
        let mut data = AgentData::new(args);
        for one in recovered {
            data.recovered(&me, one);
        }
        Ok(data)
    }

    async fn handle(
        &self,
        me: ActorRef<AgentMsg>,
        msg: AgentMsg,
        data: &mut AgentData,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            AgentMsg::Submit(request, reply) => data.submit(&me, *request, reply),
            AgentMsg::Recorded(id, result) => data.recorded(&me, id, result),
            AgentMsg::PatienceDue => data.patience_due(&me),
            AgentMsg::Cancel { id, why, reply } => _ = reply.send(data.cancel(&me, id, why)),
            AgentMsg::Watch(id, reply) => _ = reply.send(data.watch(id)),
            AgentMsg::Stillborn(id) => data.cut_off(&me, id),
            AgentMsg::CutOffSettled(id) => data.gone(&me, id),
            AgentMsg::Drain(reply) => data.drain(reply),
            AgentMsg::CancelAll { why } => data.cancel_all(&why),
            AgentMsg::Inspect(reply) => _ = reply.send(data.view()),
        }
        Ok(())
    }

    /// Written out because the default stops the supervisor when any child ends, even well.
    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<AgentMsg>,
        event: SupervisionEvent,
        data: &mut AgentData,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(child, _, _) => {
                if let Some(id) = data.by_actor.get(&child.get_id()).copied() {
                    data.terminated(&me, id);
                }
                Ok(())
            }
            SupervisionEvent::ActorFailed(child, fault) => data.crashed(&me, &child, fault),
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => Ok(()),
        }
    }
}

impl AgentData {
    fn new(args: AgentArgs) -> Self {
        let capacity = args.spec.capacity;
        Self {
            line: Line::new(capacity.running.map(Into::into), capacity.waiting),
            waiting: HashMap::new(),
            live: HashMap::new(),
            by_actor: HashMap::new(),
            since: args.kit.clock.now(),
            last: None,
            crashes: Restarts::default(),
            born: Instant::now(),
            watched: false,
            draining: args.draining.then(Vec::new),
            tasks: JoinSet::new(),
            args,
        }
    }

    /// Begins a task that ends with this actor.
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {} // What has ended is let go.
        self.tasks.spawn(task);
    }

    /// Gives an execution its actor; `first` is what happens to it first.
    fn begin(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId, one: Waiting, first: Event) {
        let Waiting { request, progress, .. } = one;
        let AgentArgs { spec, driver, kit, .. } = self.args.clone();
        let live = progress.clone();
        let args = ExecutionArgs { id, first, request, spec, driver, kit, progress };
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
        self.live.insert(id, Live { actor, progress: live });
    }

    /// Ends a request that has not run. Answers whether it was waiting.
    fn end_unrun(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId, first: Event) -> bool {
        let Some(one) = self.waiting.remove(&id) else {
            return false;
        };
        self.begin(me, id, one, first);
        self.arrive(me, Arrival::Left(id));
        true
    }

    fn cancel(
        &mut self,
        me: &ActorRef<AgentMsg>,
        id: ExecutionId,
        why: String,
    ) -> Option<watch::Receiver<Progress>> {
        if let Some(live) = self.live.get(&id) {
            _ = live.actor.cast(ExecutionMsg::Happened(Event::Cancel { why }));
        } else {
            self.end_unrun(me, id, Event::Cancel { why });
        }
        self.watch(id)
    }

    fn watch(&self, id: ExecutionId) -> Option<watch::Receiver<Progress>> {
        let live = self.live.get(&id).map(|live| live.progress.subscribe());
        live.or_else(|| self.waiting.get(&id).map(|one| one.progress.subscribe()))
    }

    /// An execution's actor has stopped. If it knows no outcome then the ledger refused it: an
    /// actor of a former life had claimed it, and will not come back.
    fn terminated(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId) {
        match self.live.get(&id).and_then(|live| live.progress.borrow().outcome) {
            Some(_) => self.gone(me, id),
            None => self.cut_off(me, id),
        }
    }

    /// Nobody drives it any more: what it left is settled before its slot is free.
    fn cut_off(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId) {
        let (me, kit) = (me.clone(), self.args.kit.clone());
        self.spawn(async move {
            settle_cut_off(&kit, id).await;
            _ = me.cast(AgentMsg::CutOffSettled(id)); // A new actor takes it up from the ledger.
        });
    }

    /// An execution's actor is gone, and its outcome is in the ledger.
    fn gone(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId) {
        if let Some(live) = self.live.remove(&id) {
            self.by_actor.remove(&live.actor.get_id());
            if let Some(outcome) = live.progress.borrow().outcome {
                self.last = Some(LastOutcome { id, outcome, at: self.args.kit.clock.now() });
            }
        }
        self.arrive(me, Arrival::Ended(id));
        self.tell_drained();
    }

    /// An execution's actor has crashed: its work is killed by the drop of its lease. Too many
    /// crashes are a fault of this agent.
    fn crashed(
        &mut self,
        me: &ActorRef<AgentMsg>,
        child: &ActorCell,
        fault: ActorProcessingErr,
    ) -> Result<(), ActorProcessingErr> {
        let Some(id) = self.by_actor.get(&child.get_id()).copied() else {
            return Ok(());
        };
        tracing::error!(execution = %id, agent = %self.args.spec.id, %fault, "execution crashed");
        self.cut_off(me, id);
        let crashes = std::mem::take(&mut self.crashes);
        let (crashes, verdict) = restart(crashes, self.born.elapsed(), Intensity::default());
        self.crashes = crashes;
        match verdict {
            Verdict::Restart => Ok(()),
            Verdict::Quarantine => Err(fault),
        }
    }

    fn drain(&mut self, reply: RpcReplyPort<()>) {
        self.draining.get_or_insert_default().push(reply);
        self.tell_drained();
    }

    /// Tells it when nothing runs and nobody waits to hear whether the request was recorded.
    fn tell_drained(&mut self) {
        let is_unheard = |one: &Waiting| one.reply.is_some();
        if self.live.is_empty() && !self.waiting.values().any(is_unheard) {
            for reply in self.draining.iter_mut().flat_map(std::mem::take) {
                _ = reply.send(());
            }
        }
    }

    fn cancel_all(&self, why: &str) {
        for live in self.live.values() {
            let why = why.to_owned();
            _ = live.actor.cast(ExecutionMsg::Happened(Event::Cancel { why }));
        }
    }

    fn view(&self) -> AgentView {
        let spec = &self.args.spec;
        let health = if self.draining.is_some() { Health::Draining } else { Health::Alive };
        let status = AgentStatus {
            id: spec.id.clone(),
            name: spec.name.clone(),
            health,
            enabled: spec.enabled,
            since: Some(self.since),
            restarts: 0,
            last_fault: None,
            capacity: spec.capacity.running.map(Into::into),
            queue_depth: spec.capacity.waiting,
            running: Vec::new(),
            queued: self.queued(),
            last: self.last.clone(),
        };
        let executions = self.live.iter().map(|(id, live)| (*id, live.actor.clone())).collect();
        AgentView { status, executions }
    }

    fn queued(&self) -> Vec<QueuedStatus> {
        let places = self.line.waiting().enumerate();
        let queued = places.filter_map(|(index, id)| {
            let one = self.waiting.get(&id)?;
            let deadline = one.since + self.args.spec.capacity.patience;
            Some(QueuedStatus { id, position: index + 1, since: one.since, deadline })
        });
        queued.collect()
    }
}
