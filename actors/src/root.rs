//! `RootActor`: recovers, starts the agents and the gateway, starts them again when they fail, and
//! gives up on an agent that fails too often, never on the service.

mod agents;
mod beginning;
mod hearing;
mod retention;
mod scheduling;
mod seating;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use ractor::{
    Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr, SupervisionEvent,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::agent::AgentMsg;
use crate::decide::restart::{Intensity, Restarts, Verdict, step};
use crate::gateway::{GatewayActor, GatewayMsg, Route};
use crate::kit::Kit;
use crate::model::agent::AgentSpec;
use crate::model::alert::AlertSpec;
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::AgentId;
use crate::monitor::{Latest, MonitorActor, MonitorArgs, MonitorMsg, Probe};
use crate::ports::driver::Driver;
use crate::scheduler::SchedulerMsg;
use hearing::Turn;
use scheduling::Scheduled;
pub use scheduling::Scheduling;

use crate::retention::{Retention, RetentionMsg};
use retention::Keeping;
use seating::Leaving;
pub use seating::Seating;

/// Owns the whole tree.
pub struct RootActor;

/// One agent with what does its work.
#[derive(Clone)]
pub struct Seat {
    /// The agent.
    pub spec: Arc<AgentSpec>,
    /// Its driver.
    pub driver: Arc<dyn Driver>,
}

/// What the tree begins with.
pub struct RootArgs {
    /// The world.
    pub kit: Kit,
    /// The agents.
    pub seats: Vec<Seat>,
    /// How the machine is watched; `None` when it is not.
    pub probe: Option<Probe>,
    /// How the history is kept; all of it is where there are no bounds.
    pub retention: Option<Retention>,
    /// When somebody is told that they should look.
    pub alerts: AlertSpec,
    /// Where the latest judgement of the machine is told.
    pub pressure: watch::Sender<Latest>,
    /// Where the present gateway is told.
    pub gateway: watch::Sender<Option<ActorRef<GatewayMsg>>>,
    /// What the scheduler needs.
    pub scheduling: Scheduling,
}

/// What the root knows of an agent.
#[derive(Clone)]
pub struct SeatView {
    /// The agent.
    pub spec: Arc<AgentSpec>,
    /// Its actor; `None` in quarantine.
    pub actor: Option<ActorRef<AgentMsg>>,
    /// How often it was started again.
    pub restarts: u32,
    /// Why, the last time.
    pub last_fault: Option<String>,
}

/// What the root knows.
pub struct RootView {
    /// Since when it lives.
    pub since: DateTime<Utc>,
    /// How often the gateway was started again.
    pub gateway_restarts: u32,
    /// Who watches the machine, and how often it was started again; `None` when nobody does.
    pub monitor: Option<(ActorRef<MonitorMsg>, u32)>,
    /// Who asks at set times, and how often it was started again; `None` when nobody does now.
    pub scheduler: Option<(ActorRef<SchedulerMsg>, u32)>,
    /// Who keeps the history within bounds, and how often it was started again.
    pub retention: Option<(ActorRef<RetentionMsg>, u32)>,
    /// The agents, in the order of their ids.
    pub seats: Vec<SeatView>,
}

/// What the root is told.
pub enum RootMsg {
    /// Asks what it knows.
    Inspect(RpcReplyPort<RootView>),
    /// The service is stopping: agents that are started again begin nothing.
    Drain,
    /// The task that settles what an agent in quarantine had has panicked.
    Unsettled(AgentId),
    /// Something has changed for all agents.
    Turned(Turn),
    /// The task that hears of such things has panicked.
    Deaf,
    /// The scheduler is to be started again.
    Reschedule,
    /// Takes an agent in; one that is there is configured like this from now on. Answered when it can
    /// be asked.
    Seat(Seat, RpcReplyPort<()>),
    /// Lets an agent go: it takes nothing new. Answered when it has finished what it had; not when it
    /// is taken in again before.
    Unseat(AgentId, RpcReplyPort<()>),
    /// An agent that was let go has finished what it had.
    Emptied(AgentId, u64),
}

/// One agent and the actor that plays it.
struct Part {
    seat: Seat,
    actor: Option<ActorRef<AgentMsg>>,
    restarts: Restarts,
    last_fault: Option<String>,
    leaving: Option<Leaving>,
}

/// Loop data.
pub struct RootData {
    me: ActorRef<RootMsg>,
    kit: Arc<Kit>,
    parts: BTreeMap<AgentId, Part>,
    gateway: watch::Sender<Option<ActorRef<GatewayMsg>>>,
    gateway_restarts: Restarts,
    probe: Option<Probe>,
    alerts: AlertSpec,
    pressure: watch::Sender<Latest>,
    monitor: Option<ActorRef<MonitorMsg>>,
    monitor_restarts: Restarts,
    scheduled: Scheduled,
    keeping: Keeping,
    since: DateTime<Utc>,
    born: Instant,
    draining: bool,
    /// The agents of which the ledger holds something that has not ended; known at the start alone.
    unfinished: BTreeSet<AgentId>,
    /// How often an agent was let go.
    farewells: u64,
    /// Settlements for agents in quarantine, and who hears for all agents.
    tasks: JoinSet<()>,
}

impl Actor for RootActor {
    type Msg = RootMsg;
    type State = RootData;
    type Arguments = RootArgs;

    /// Settles what nobody will take up, then starts the monitor, the agents, the gateway and the
    /// scheduler.
    async fn pre_start(
        &self,
        me: ActorRef<RootMsg>,
        args: RootArgs,
    ) -> Result<RootData, ActorProcessingErr> {
        let mut data = RootData::new(me.clone(), args);
        data.settle_the_homeless().await?;
        data.hear();
        data.start_monitor(&me).await?;
        data.start_agents(&me).await?;
        data.start_gateway(&me).await?;
        data.start_scheduler().await?;
        data.start_retention(&me).await?;
        Ok(data)
    }

    async fn handle(
        &self,
        me: ActorRef<RootMsg>,
        msg: RootMsg,
        data: &mut RootData,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            RootMsg::Inspect(reply) => _ = reply.send(data.view()),
            RootMsg::Drain => data.draining = true,
            RootMsg::Unsettled(agent) => data.settle(agent),
            RootMsg::Turned(turn) => data.tell_agents(turn),
            RootMsg::Deaf => data.hear_again(),
            RootMsg::Reschedule => data.reschedule().await,
            RootMsg::Seat(seat, reply) => {
                data.seat(&me, seat).await;
                _ = reply.send(());
            }
            RootMsg::Unseat(agent, reply) => data.unseat(&agent, reply),
            RootMsg::Emptied(agent, farewell) => data.emptied(&agent, farewell),
        }
        Ok(())
    }

    /// Written out because the default stops the supervisor when any child ends, even well.
    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<RootMsg>,
        event: SupervisionEvent,
        data: &mut RootData,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(child, fault) => {
                data.failed(&me, &child, &fault.to_string()).await;
            }
            SupervisionEvent::ActorTerminated(..)
            | SupervisionEvent::ActorStarted(_)
            | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

impl RootData {
    fn new(me: ActorRef<RootMsg>, args: RootArgs) -> Self {
        let part = |seat: Seat| (seat.spec.id.clone(), Part::new(seat));
        Self {
            parts: args.seats.into_iter().map(part).collect(),
            gateway: args.gateway,
            gateway_restarts: Restarts::default(),
            probe: args.probe,
            alerts: args.alerts,
            pressure: args.pressure,
            monitor: None,
            monitor_restarts: Restarts::default(),
            scheduled: Scheduled { args: args.scheduling, restarts: Restarts::default() },
            keeping: Keeping::new(args.retention),
            since: args.kit.clock.now(),
            born: Instant::now(),
            draining: false,
            unfinished: BTreeSet::new(),
            farewells: 0,
            tasks: JoinSet::new(),
            me,
            kit: Arc::new(args.kit),
        }
    }

    async fn start_gateway(&mut self, me: &ActorRef<RootMsg>) -> Result<(), SpawnErr> {
        let routes = self.parts.iter().map(|(id, part)| (id.clone(), part.route())).collect();
        let args = (Kit::clone(&self.kit), routes);
        let spawned = ractor::ActorRuntime::spawn_linked(None, GatewayActor, args, me.get_cell());
        let (actor, _) = spawned.await?;
        self.gateway.send_replace(Some(actor));
        Ok(())
    }

    async fn start_monitor(&mut self, me: &ActorRef<RootMsg>) -> Result<(), SpawnErr> {
        let (kit, probe, alerts) = (Kit::clone(&self.kit), self.probe.clone(), self.alerts);
        let args = MonitorArgs { kit, probe, alerts, pressure: self.pressure.clone() };
        let spawned = ractor::ActorRuntime::spawn_linked(None, MonitorActor, args, me.get_cell());
        let (monitor, _) = spawned.await?;
        self.kit.lookout.lead_to(monitor.clone());
        self.monitor = Some(monitor);
        Ok(())
    }

    fn tell_route(&self, id: &AgentId) {
        if let (Some(part), Some(gateway)) = (self.parts.get(id), &*self.gateway.borrow()) {
            _ = gateway.cast(GatewayMsg::Routed(id.clone(), part.route())); // A new one is told all.
        }
    }

    async fn failed(&mut self, me: &ActorRef<RootMsg>, child: &ActorCell, fault: &str) {
        let is_it = |part: &&Part| {
            part.actor.as_ref().is_some_and(|actor| actor.get_id() == child.get_id())
        };
        let agent = self.parts.values().find(is_it).map(|part| part.seat.spec.id.clone());
        match agent {
            Some(id) => self.agent_failed(me, &id, fault).await,
            None if self.is_gateway(child) => self.gateway_failed(me, fault).await,
            None if self.is_scheduler(child) => self.scheduler_failed(fault).await,
            None if self.is_monitor(child) => self.monitor_failed(me, fault).await,
            None if self.keeping.is_played_by(child) => self.retention_failed(me, fault).await,
            None => {} // A child that did not even start; whoever started it knows.
        }
    }

    fn is_gateway(&self, child: &ActorCell) -> bool {
        self.gateway.borrow().as_ref().is_some_and(|gateway| gateway.get_id() == child.get_id())
    }

    fn is_monitor(&self, child: &ActorCell) -> bool {
        self.monitor.as_ref().is_some_and(|monitor| monitor.get_id() == child.get_id())
    }

    /// The gateway holds nothing but routes, so a new one is as good, however often.
    async fn gateway_failed(&mut self, me: &ActorRef<RootMsg>, fault: &str) {
        tracing::error!(fault, "gateway failed");
        let restarts = std::mem::take(&mut self.gateway_restarts);
        let (restarts, _) = step(
            restarts,
            self.born.elapsed(),
            Intensity { max: usize::MAX, ..Intensity::default() },
        );
        self.gateway_restarts = restarts;
        if let Err(error) = self.start_gateway(me).await {
            tracing::error!(%error, "gateway did not start");
            me.stop(None);
        }
    }

    /// Work does not stop because nobody watches: until the next reading the machine is at ease.
    async fn monitor_failed(&mut self, me: &ActorRef<RootMsg>, fault: &str) {
        tracing::error!(fault, "monitor failed");
        self.pressure.send_replace(None);
        let restarts = std::mem::take(&mut self.monitor_restarts);
        let (restarts, verdict) = step(restarts, self.born.elapsed(), Intensity::default());
        self.monitor_restarts = restarts;
        let again = match verdict {
            Verdict::Restart => self.start_monitor(me).await.map_err(|error| error.to_string()),
            Verdict::Quarantine => Err("it failed too often".to_owned()),
        };
        if let Err(error) = again {
            tracing::error!(error, "the machine is not watched any more");
        }
    }

    fn view(&self) -> RootView {
        let seats = self.parts.values().map(|part| SeatView {
            spec: Arc::clone(&part.seat.spec),
            actor: part.actor.clone(),
            restarts: part.restarts.total(),
            last_fault: part.last_fault.clone(),
        });
        RootView {
            since: self.since,
            gateway_restarts: self.gateway_restarts.total(),
            monitor: self.monitor.clone().map(|monitor| (monitor, self.monitor_restarts.total())),
            scheduler: self.scheduled.view(),
            retention: self.keeping.view(),
            seats: seats.collect(),
        }
    }
}

impl Part {
    fn new(seat: Seat) -> Self {
        let restarts = Restarts::default();
        Self { seat, actor: None, restarts, last_fault: None, leaving: None }
    }

    fn route(&self) -> Route {
        match &self.actor {
            Some(actor) => Route::Open(actor.clone()),
            None => Route::Shut(quarantined(&self.seat.spec.id)),
        }
    }
}

fn quarantined(agent: &AgentId) -> Failure {
    let message = format!("agent `{agent}` failed too often and is quarantined");
    Failure::new(Code::AgentQuarantined, message)
}

/// The first line of a fault: what follows in a panic is of no use to who reads `/status`.
fn first_line(fault: &str) -> String {
    fault.lines().next().unwrap_or_default().to_owned()
}
