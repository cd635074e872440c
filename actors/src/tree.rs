//! The living tree: how it is started, looked into and stopped.

use std::time::Duration;

use ractor::rpc::CallResult;
use ractor::{ActorRef, RpcReplyPort, SpawnErr};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::agent::AgentMsg;
use crate::door::Gateway;
use crate::execution::ExecutionMsg;
use crate::gateway::GatewayMsg;
use crate::kit::Kit;
use crate::model::alert::{Alert, AlertSpec};
use crate::model::id::{AgentId, ExecutionId};
use crate::model::status::{
    ActorStatus, AgentStatus, ExecutionStatus, Health, Pool, RetentionStatus, SchedulerStatus,
    TreeStatus,
};
use crate::monitor::{MonitorMsg, Probe};
use crate::retention::{Retention, RetentionMsg};
use crate::root::{RootActor, RootArgs, RootMsg, RootView, Scheduling, Seat, SeatView, Seating};
use crate::scheduler::{Agenda, SchedulerMsg};

/// How long an actor may take to say how it is.
const GLANCE: Duration = Duration::from_millis(500);

/// The tree, held by whoever composed it.
pub struct Tree {
    gateway: Gateway,
    draining: watch::Sender<bool>,
    root: JoinHandle<()>,
}

/// What the tree does besides serving its agents.
#[derive(Default)]
pub struct Plan {
    /// How the machine is watched. Without it nobody watches, and all work is let in.
    pub probe: Option<Probe>,
    /// When somebody is told that they should look.
    pub alerts: AlertSpec,
    /// What is to be done at set times. Without it nothing ever is.
    pub agenda: Option<Agenda>,
    /// How much history is kept. Without it all of it is.
    pub retention: Option<Retention>,
}

impl Tree {
    /// Recovers from the ledger, then starts the monitor, the agents, the gateway, and whoever else has
    /// something to do by the plan.
    ///
    /// # Errors
    /// When the ledger cannot be read, or an agent does not start.
    pub async fn start(kit: Kit, seats: Vec<Seat>, plan: Plan) -> Result<Self, SpawnErr> {
        let (sender, gateway) = watch::channel(None);
        let (draining, drained) = watch::channel(false);
        let (judge, pressure) = watch::channel(None);
        let Plan { probe, alerts, agenda, retention } = plan;
        let (actor, scheduler) = watch::channel(None);
        let (kept, timebook) = (kit.clone(), agenda.as_ref().map(|it| it.timebook.clone()));
        let scheduling = Scheduling { agenda, actor, draining: drained.clone() };
        let args = RootArgs {
            kit,
            seats,
            probe,
            retention,
            alerts,
            pressure: judge,
            gateway: sender,
            scheduling,
        };
        let (root, ended) = ractor::ActorRuntime::spawn(None, RootActor, args).await?;
        let gateway =
            Gateway { root, gateway, draining: drained, pressure, scheduler, timebook, kit: kept };
        Ok(Self { gateway, draining, root: ended })
    }

    /// The door.
    #[must_use]
    pub const fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Stops in the reverse order of the start: the gateway refuses, what runs may finish until
    /// the deadline and is then called off, what waits stays in the ledger.
    pub async fn stop(self, deadline: Duration) {
        let agents = self.close().await;
        if !all_drained(&agents, deadline).await {
            for agent in &agents {
                _ = agent.cast(AgentMsg::CancelAll { why: "the service is stopping".to_owned() });
            }
            all_drained(&agents, Duration::from_secs(70)).await; // Longer than any grace.
        }
        self.stop_actors(&agents).await;
    }

    /// Takes agents in and lets them go while the tree lives.
    #[must_use]
    pub fn seating(&self) -> Seating {
        Seating(self.gateway.root.clone())
    }

    /// Refuses what is new and begins nothing more; what runs goes on. Returns when every agent has
    /// heard it.
    pub async fn hold(&self) {
        for agent in self.close().await {
            // It answers when nothing runs, which is not waited for; it has heard when it answers
            // what was asked next.
            _ = call(&agent, AgentMsg::Drain, Duration::ZERO).await;
            _ = call(&agent, AgentMsg::Inspect, GLANCE).await;
        }
    }

    /// Has the gateway and the root refuse what is new; the agents, which have yet to be told.
    async fn close(&self) -> Vec<ActorRef<AgentMsg>> {
        self.draining.send_replace(true);
        if let Some(gateway) = self.gateway.gateway.borrow().clone() {
            _ = gateway.cast(GatewayMsg::Drain);
        }
        if let Some(scheduler) = self.gateway.scheduler.borrow().clone() {
            _ = scheduler.cast(SchedulerMsg::Drain);
        }
        _ = self.gateway.root.cast(RootMsg::Drain); // A root that is gone has no agents either.
        let seats = self.gateway.root_view().await.map(|view| view.seats).unwrap_or_default();
        seats.into_iter().filter_map(|seat| seat.actor).collect()
    }

    async fn stop_actors(self, agents: &[ActorRef<AgentMsg>]) {
        let gateway = self.gateway.gateway.borrow().clone();
        if let Some(gateway) = gateway {
            _ = gateway.stop_and_wait(None, Some(GLANCE)).await; // Late answers change nothing.
        }
        let scheduler = self.gateway.scheduler.borrow().clone();
        if let Some(scheduler) = scheduler {
            _ = scheduler.stop_and_wait(None, Some(GLANCE)).await;
        }
        for agent in agents {
            _ = agent.stop_and_wait(None, Some(GLANCE)).await;
        }
        self.gateway.root.stop(None);
        _ = self.root.await;
    }
}

/// Waits until nothing runs; `false` when the deadline passed before.
async fn all_drained(agents: &[ActorRef<AgentMsg>], deadline: Duration) -> bool {
    let mut asked = JoinSet::new();
    for agent in agents {
        let agent = agent.clone();
        asked.spawn(async move { call(&agent, AgentMsg::Drain, deadline).await.is_some() });
    }
    asked.join_all().await.into_iter().all(|drained| drained)
}

impl Gateway {
    /// The whole tree as it is now. Each value was answered by its actor; one that does not
    /// answer within half a second is shown as silent.
    pub async fn status(&self) -> TreeStatus {
        let view = self.root_view().await;
        let since = self.ask_gateway().await;
        let (root, gateway) = (actor("root", view.as_ref().map(|view| view.since), 0), {
            let restarts = view.as_ref().map_or(0, |view| view.gateway_restarts);
            actor("gateway", since, restarts)
        });
        let pressure = self.pressure.borrow().clone();
        let (monitor, alerts) = monitor_status(view.as_ref()).await.unzip();
        let scheduler = scheduler_status(view.as_ref()).await;
        let retention = retention_status(view.as_ref()).await;
        let mut asked = JoinSet::new();
        for seat in view.map(|view| view.seats).unwrap_or_default() {
            asked.spawn(agent_status(seat));
        }
        let mut agents = asked.join_all().await;
        agents.sort_by(|one, other| one.id.cmp(&other.id));
        let alerts = alerts.unwrap_or_default();
        // Read last: nothing that is told has begun after it.
        let at = self.kit.clock.now();
        TreeStatus {
            at,
            root,
            monitor,
            pressure,
            scheduler,
            retention,
            alerts,
            credentials: self.kit.circuits.status(at),
            gateway,
            agents,
        }
    }

    /// One agent as it is now; `None` when there is no such agent.
    pub async fn agent_status(&self, agent: &AgentId) -> Option<AgentStatus> {
        let seats = self.root_view().await?.seats;
        let seat = seats.into_iter().find(|seat| seat.spec.id == *agent)?;
        Some(agent_status(seat).await)
    }

    pub(crate) async fn root_view(&self) -> Option<RootView> {
        call(&self.root, RootMsg::Inspect, GLANCE).await
    }

    pub(crate) async fn ask_gateway(&self) -> Option<chrono::DateTime<chrono::Utc>> {
        let gateway = self.gateway.borrow().clone()?;
        call(&gateway, GatewayMsg::Inspect, GLANCE).await
    }
}

fn actor(name: &str, since: Option<chrono::DateTime<chrono::Utc>>, restarts: u32) -> ActorStatus {
    let health = if since.is_some() { Health::Alive } else { Health::Silent };
    ActorStatus { name: name.to_owned(), health, since, restarts }
}

async fn monitor_status(view: Option<&RootView>) -> Option<(ActorStatus, Vec<Alert>)> {
    let (monitor, restarts) = view?.monitor.as_ref()?;
    let (since, alerts) = call(monitor, MonitorMsg::Inspect, GLANCE).await.unzip();
    Some((actor("monitor", since, *restarts), alerts.unwrap_or_default()))
}

async fn scheduler_status(view: Option<&RootView>) -> Option<SchedulerStatus> {
    let (scheduler, restarts) = view?.scheduler.as_ref()?;
    let seen = call(scheduler, SchedulerMsg::Inspect, GLANCE).await;
    let actor = actor("scheduler", seen.as_ref().map(|it| it.since), *restarts);
    let (schedules, active) = seen.as_ref().map_or((0, 0), |it| (it.schedules, it.active));
    Some(SchedulerStatus { actor, schedules, active, due: seen.map_or_else(Vec::new, |it| it.due) })
}

async fn retention_status(view: Option<&RootView>) -> Option<RetentionStatus> {
    let (actor_ref, restarts) = view?.retention.as_ref()?;
    let seen = call(actor_ref, RetentionMsg::Inspect, GLANCE).await;
    let since = seen.map(|(since, _)| since);
    let last_pass = seen.and_then(|(_, last)| last);
    Some(RetentionStatus { actor: actor("retention", since, *restarts), last_pass })
}

async fn agent_status(seat: SeatView) -> AgentStatus {
    let mut status = match &seat.actor {
        None => unanswered(&seat, Health::Quarantined),
        Some(actor) => match call(actor, AgentMsg::Inspect, GLANCE).await {
            None => unanswered(&seat, Health::Silent),
            Some(view) => {
                let running = executions(view.executions).await;
                AgentStatus { running, ..view.status }
            }
        },
    };
    status.restarts = seat.restarts;
    status.last_fault = seat.last_fault;
    status
}

async fn executions(actors: Vec<(ExecutionId, ActorRef<ExecutionMsg>)>) -> Vec<ExecutionStatus> {
    let mut asked = JoinSet::new();
    for (id, actor) in actors {
        asked.spawn(async move {
            call(&actor, ExecutionMsg::Inspect, GLANCE).await.unwrap_or(ExecutionStatus {
                id,
                health: Health::Silent,
                state: None,
                since: None,
                queued: None,
                stamp: None,
                pid: None,
                usage: None,
                deadline: None,
            })
        });
    }
    let mut statuses = asked.join_all().await;
    statuses.sort_by_key(|status| status.id);
    statuses
}

/// What the root knows of an agent that says nothing itself.
fn unanswered(seat: &SeatView, health: Health) -> AgentStatus {
    AgentStatus {
        id: seat.spec.id.clone(),
        name: seat.spec.name.clone(),
        health,
        enabled: seat.spec.enabled,
        enforcement: seat.spec.enforcement,
        isolation: seat.spec.isolation,
        resources: seat.spec.holding,
        program: None,
        since: None,
        restarts: 0,
        last_fault: None,
        capacity: seat.spec.capacity.running.map(Into::into),
        queue_depth: seat.spec.capacity.waiting,
        pool: Pool::default(),
        running: Vec::new(),
        kept: Vec::new(),
        queued: Vec::new(),
        last: None,
        budget: None,
    }
}

async fn call<M: ractor::Message, T: Send + 'static>(
    actor: &ActorRef<M>,
    msg: impl FnOnce(RpcReplyPort<T>) -> M,
    deadline: Duration,
) -> Option<T> {
    match actor.call(msg, Some(deadline)).await {
        Ok(CallResult::Success(answer)) => Some(answer),
        Ok(CallResult::Timeout | CallResult::SenderError) | Err(_) => None,
    }
}
