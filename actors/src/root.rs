//! `RootActor`: recovers, starts the agents and the gateway, and restarts them after a failure. It quarantines an agent
//! that fails too often, and never stops the service for it.

mod agent_registry;
mod agents;
mod broadcast;
mod context;
mod gateway;
mod monitor;
mod preload;
mod retention;
mod scheduler;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::sync::watch;

pub use self::agent_registry::AgentRegistry;
use self::agents::AgentChildren;
use self::broadcast::SharedStateChange;
use self::context::RootContext;
use self::gateway::GatewayChild;
use self::monitor::MonitorChild;
use self::retention::RetentionChild;
use self::scheduler::SchedulerChild;
pub use self::scheduler::SchedulerSetup;
pub use crate::agent::AgentDefinition;
use crate::agent::AgentMsg;
use crate::gateway::GatewayMsg;
use crate::maintenance::monitor::{MonitorMsg, MonitorSettings};
use crate::maintenance::retention::{RetentionMsg, RetentionSpec};
use crate::model::agent::AgentSpec;
use crate::model::host::host_fault::HostCondition;
use crate::model::id::AgentId;
use crate::scheduler::SchedulerMsg;
use crate::services::Services;

/// Actor that owns the whole tree.
pub struct RootActor;

/// Arguments of the root.
pub struct RootArgs {
    /// Shared services.
    pub services: Services,
    /// Definitions of the agents.
    pub definitions: Vec<AgentDefinition>,
    /// Settings of the monitor.
    pub monitor_settings: MonitorSettings,
    /// Settings of the retention; `None` keeps the whole history.
    pub retention: Option<RetentionSpec>,
    /// Sender of the condition of the machine.
    pub host_condition: watch::Sender<HostCondition>,
    /// Sender of the present gateway.
    pub gateway: watch::Sender<Option<ActorRef<GatewayMsg>>>,
    /// Arguments of the scheduler.
    pub scheduler_setup: SchedulerSetup,
}

/// State of an agent, as known to the root.
#[derive(Clone)]
pub struct RegisteredAgent {
    /// Specification of the agent.
    pub spec: Arc<AgentSpec>,
    /// Actor of the agent; `None` in quarantine, and while the agent waits for its restart.
    pub actor: Option<ActorRef<AgentMsg>>,
    /// True if the root retries the start of the agent until the ledger can be read and written.
    pub is_restarting: bool,
    /// Number of restarts.
    pub restarts: u32,
    /// Cause of the latest restart.
    pub last_fault: Option<String>,
}

/// State of the root.
pub struct RootSnapshot {
    /// Start time.
    pub started_at: DateTime<Utc>,
    /// Number of restarts of the gateway.
    pub gateway_restarts: u32,
    /// Monitor with the number of its restarts; `None` without a monitor.
    pub monitor: Option<(ActorRef<MonitorMsg>, u32)>,
    /// Scheduler with the number of its restarts; `None` without a running scheduler.
    pub scheduler: Option<(ActorRef<SchedulerMsg>, u32)>,
    /// Retention actor with the number of its restarts.
    pub retention: Option<(ActorRef<RetentionMsg>, u32)>,
    /// Agents, in the order of their ids.
    pub agents: Vec<RegisteredAgent>,
}

/// Message to the root.
pub enum RootMsg {
    /// Requests the state.
    Inspect(RpcReplyPort<RootSnapshot>),
    /// The service is stopping: restarted agents start no execution.
    Drain,
    /// The task that settles the executions of a quarantined agent panicked.
    SettlementPanicked(AgentId),
    /// A state that concerns all agents changed.
    SharedStateChanged(SharedStateChange),
    /// The task that observes such states panicked.
    WatcherPanicked,
    /// The pause of an agent whose start failed because of the ledger is over.
    RestartAgent(AgentId),
    /// The scheduler must be restarted.
    RestartScheduler,
    /// Adds an agent, or replaces the definition of an existing one. The reply follows once the agent accepts requests.
    AddAgent(AgentDefinition, RpcReplyPort<()>),
    /// Replaces the settings of an agent and keeps its driver.
    ReplaceSpec(Arc<AgentSpec>, RpcReplyPort<()>),
    /// Removes an agent: it accepts nothing new. The reply follows once its work has ended; it does not follow if the
    /// agent is added again before.
    RemoveAgent(AgentId, RpcReplyPort<()>),
    /// A removed agent has finished its work.
    AgentDrained(AgentId, u64),
}

/// State of the actor: the children of the root, and their context.
pub struct RootActorState {
    context: RootContext,
    agents: AgentChildren,
    gateway: GatewayChild,
    monitor: MonitorChild,
    scheduler: SchedulerChild,
    retention: RetentionChild,
}

impl Actor for RootActor {
    type Msg = RootMsg;
    type State = RootActorState;
    type Arguments = RootArgs;

    /// Settles executions without an agent, then starts the monitor, the agents, the gateway and the scheduler.
    async fn pre_start(
        &self,
        myself: ActorRef<RootMsg>,
        args: RootArgs,
    ) -> Result<RootActorState, ActorProcessingErr> {
        let mut state = RootActorState::new(myself, args);
        state.start().await?;
        Ok(state)
    }

    async fn handle(
        &self,
        _: ActorRef<RootMsg>,
        msg: RootMsg,
        state: &mut RootActorState,
    ) -> Result<(), ActorProcessingErr> {
        let RootActorState { context, agents, .. } = state;
        match msg {
            RootMsg::Inspect(reply) => _ = reply.send(state.snapshot()),
            RootMsg::Drain => context.is_draining = true,
            RootMsg::SettlementPanicked(agent) => agents.settle_executions(agent, context),
            RootMsg::SharedStateChanged(change) => agents.notify_of_change(change),
            RootMsg::WatcherPanicked => {
                context.watch_changes();
                agents.notify_of_all_changes();
            }
            RootMsg::RestartAgent(agent) => agents.restart_after_pause(&agent, context).await,
            RootMsg::RestartScheduler => state.scheduler.restart(context).await,
            RootMsg::AddAgent(definition, reply) => {
                agents.add(definition, context).await;
                _ = reply.send(());
            }
            RootMsg::ReplaceSpec(spec, reply) => {
                // An agent without an actor starts with these settings later.
                if let Some(child) = agents.child_mut(&spec.id) {
                    child.definition.spec = spec;
                    if let Some(actor) = &child.actor {
                        _ = actor.cast(AgentMsg::Reconfigure(child.definition.clone()));
                    }
                }
                _ = reply.send(());
            }
            RootMsg::RemoveAgent(agent, reply) => agents.request_removal(&agent, reply, context),
            RootMsg::AgentDrained(agent, removal_number) => {
                agents.remove_drained(&agent, removal_number, context);
            }
        }
        Ok(())
    }

    /// Overridden because the default stops the supervisor when any child ends, even normally.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<RootMsg>,
        event: SupervisionEvent,
        state: &mut RootActorState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(child, fault) => {
                state.handle_failure(&child, &fault.to_string()).await;
            }
            SupervisionEvent::ActorTerminated(..)
            | SupervisionEvent::ActorStarted(_)
            | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

impl RootActorState {
    fn new(myself: ActorRef<RootMsg>, args: RootArgs) -> Self {
        Self {
            context: RootContext::new(myself, args.services, args.gateway, args.host_condition),
            agents: AgentChildren::new(args.definitions),
            gateway: GatewayChild::default(),
            monitor: MonitorChild::new(args.monitor_settings),
            scheduler: SchedulerChild::new(args.scheduler_setup),
            retention: RetentionChild::new(args.retention),
        }
    }

    async fn start(&mut self) -> Result<(), ActorProcessingErr> {
        let Self { context, agents, monitor, scheduler, retention, .. } = self;
        // First: the start of the agents uses what it finds about their unfinished executions.
        let agents_to_recover = preload::triage_unfinished_executions(agents, context).await?;
        context.watch_changes();
        // Before the agents, which report to it.
        monitor.start(context).await?;
        preload::load_budget_usage(agents, context).await?;
        agents.start_all(&agents_to_recover, context).await?;
        // After the agents: the first request finds every one of them recovered.
        GatewayChild::start(agents.routes(), context).await?;
        scheduler.start(context).await?;
        retention.start(context).await?;
        Ok(())
    }

    async fn handle_failure(&mut self, child: &ActorCell, fault: &str) {
        let Self { context, agents, gateway, monitor, scheduler, retention } = self;
        match agents.find_by_actor(child) {
            Some(id) => agents.handle_failure(&id, fault, context).await,
            None if GatewayChild::matches_actor(child, context) => {
                gateway.handle_failure(fault, agents.routes(), context).await;
            }
            None if scheduler.matches_actor(child) => {
                scheduler.handle_failure(fault, context).await;
            }
            None if monitor.matches_actor(child) => monitor.handle_failure(fault, context).await,
            None if retention.matches_actor(child) => {
                retention.handle_failure(fault, context).await;
            }
            None => {} // A child that did not start; its starter handles the error.
        }
    }

    fn snapshot(&self) -> RootSnapshot {
        RootSnapshot {
            started_at: self.context.started_at,
            gateway_restarts: self.gateway.restarts(),
            monitor: self.monitor.actor_and_restarts(),
            scheduler: self.scheduler.actor_and_restarts(),
            retention: self.retention.actor_and_restarts(),
            agents: self.agents.snapshots(),
        }
    }
}
