//! Supervision tree: its start, its status and its shutdown.

use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorRef, RpcReplyPort, SpawnErr};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::agent::AgentMsg;
use crate::api::{
    Api, InteractionHandle, STATUS_TIMEOUT, ScheduleAdmin, TreeInspector, call_with_timeout,
};
use crate::gateway::GatewayMsg;
use crate::gateway::handle::GatewayHandle;
use crate::gateway::reader::ExecutionReader;
use crate::gateway::request_handle_cell::RequestHandleCell;
use crate::gateway::requests::RequestHandle;
use crate::maintenance::monitor::{HostReadingSettings, MonitorSettings};
use crate::maintenance::retention::RetentionSpec;
use crate::model::host::host_fault::HostCondition;
use crate::model::observation::alert::AlertSpec;
use crate::ports::host_check::HostCheck;
use crate::root::{AgentDefinition, AgentRegistry, RootActor, RootArgs, RootMsg, SchedulerSetup};
use crate::scheduler::{SchedulerConfig, SchedulerMsg};
use crate::services::Services;

/// Time limit for recording the last ends when everything is killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause before the processes are killed again.
const KILL_INTERVAL: Duration = Duration::from_millis(250);

/// Supervision tree, held by the component that started it.
pub struct SupervisionTree {
    api: Api,
    drain_sender: watch::Sender<bool>,
    root_join_handle: JoinHandle<()>,
}

/// Options of the tree's tasks besides serving its agents.
#[derive(Default)]
pub struct TreeOptions {
    /// Settings of the resource readings. Without them all work is admitted.
    pub host_reading_settings: Option<HostReadingSettings>,
    /// Check of the preconditions of all executions. Without one, they count as fulfilled.
    pub host_check: Option<Arc<dyn HostCheck>>,
    /// Limits above which alerts are raised.
    pub alert_spec: AlertSpec,
    /// Configuration of the scheduler. Without it there is no scheduler.
    pub scheduler_config: Option<SchedulerConfig>,
    /// Settings of the retention. Without them the whole history is kept.
    pub retention: Option<RetentionSpec>,
    /// Cell that is filled with the handle of the requests: drivers of teams send requests.
    pub request_handle_cell: RequestHandleCell,
}

impl SupervisionTree {
    /// Recovers from the ledger, then starts the monitor, the agents, the gateway, and the other actors of the plan.
    ///
    /// # Errors
    /// Returns an error if the ledger cannot be read, or an agent does not start.
    pub async fn start(
        services: Services,
        definitions: Vec<AgentDefinition>,
        options: TreeOptions,
    ) -> Result<Self, SpawnErr> {
        let (gateway_sender, gateway) = watch::channel(None);
        let (drain_sender, draining) = watch::channel(false);
        let (condition_sender, host_condition) = watch::channel(HostCondition::default());
        let TreeOptions {
            host_reading_settings: reading_config,
            host_check,
            alert_spec: alert_limits,
            ..
        } = options;
        let TreeOptions { scheduler_config, retention, request_handle_cell, .. } = options;
        let (scheduler_sender, scheduler) = watch::channel(None);
        let schedule_store = scheduler_config.as_ref().map(|config| config.schedule_store.clone());
        let scheduler_setup =
            SchedulerSetup { scheduler_config, scheduler_sender, draining: draining.clone() };
        let args = RootArgs {
            services: services.clone(),
            definitions,
            monitor_settings: MonitorSettings {
                host_reading_settings: reading_config,
                host_check: host_check.clone(),
                alert_spec: alert_limits,
            },
            retention,
            host_condition: condition_sender,
            gateway: gateway_sender,
            scheduler_setup,
        };
        let (root, root_join_handle) = ractor::ActorRuntime::spawn(None, RootActor, args).await?;
        let gateway_handle = GatewayHandle { gateway, draining };
        let reader =
            ExecutionReader { gateway_handle: gateway_handle.clone(), services: services.clone() };
        let api = Api {
            requests: RequestHandle { reader: reader.clone() },
            interactions: InteractionHandle { reader: reader.clone() },
            reader,
            schedules: ScheduleAdmin { scheduler, schedule_store, services: services.clone() },
            tree: TreeInspector { root, gateway_handle, host_condition, host_check, services },
        };
        request_handle_cell.fill(api.requests.clone());
        Ok(Self { api, drain_sender, root_join_handle })
    }

    /// Returns the handles of the tree.
    #[must_use]
    pub const fn api(&self) -> &Api {
        &self.api
    }

    /// Stops in the reverse order of the start: the gateway rejects requests, running executions may finish until the
    /// deadline and are then cancelled, and queued ones stay in the ledger.
    pub async fn stop(self, drain_timeout: Duration) {
        self.stop_or_kill(drain_timeout, std::future::pending(), || ()).await;
    }

    /// Stops like [`stop`](Self::stop), but ends everything that runs as soon as `kill_signal` is ready: it is
    /// recorded as cancelled, and `kill` kills its processes without a grace period.
    pub async fn stop_or_kill(
        self,
        drain_timeout: Duration,
        kill_signal: impl Future<Output = ()>,
        kill_processes: impl Fn(),
    ) {
        let agents = self.stop_admission_and_list_agents().await;
        let drain = async {
            if !wait_until_drained(&agents, drain_timeout).await {
                cancel_all(&agents, "the service is stopping");
                wait_until_drained(&agents, Duration::from_secs(70)).await; // Longer than any grace.
            }
        };
        tokio::select! {
            () = drain => {}
            () = kill_signal => kill_all(&agents, kill_processes).await,
        }
        self.stop_actors(&agents).await;
    }

    /// Returns the handle that adds and removes agents at run time.
    #[must_use]
    pub fn agent_registry(&self) -> AgentRegistry {
        AgentRegistry(self.api.tree.root.clone())
    }

    /// Rejects new requests and starts no execution; running ones continue. Returns once every agent has received this.
    pub async fn start_drain(&self) {
        for agent in self.stop_admission_and_list_agents().await {
            // The drain reply follows once nothing runs, which is not awaited here; the reply to the next message
            // proves that the agent has received the drain.
            _ = call_with_timeout(&agent, AgentMsg::Drain, Duration::ZERO).await;
            _ = call_with_timeout(&agent, AgentMsg::Inspect, STATUS_TIMEOUT).await;
        }
    }

    /// Makes the gateway and the root reject requests; returns the agents, which must still be notified.
    async fn stop_admission_and_list_agents(&self) -> Vec<ActorRef<AgentMsg>> {
        self.drain_sender.send_replace(true);
        if let Some(gateway) = self.api.tree.gateway_handle.gateway.borrow().clone() {
            _ = gateway.cast(GatewayMsg::Drain);
        }
        if let Some(scheduler) = self.api.schedules.scheduler.borrow().clone() {
            _ = scheduler.cast(SchedulerMsg::Drain);
        }
        _ = self.api.tree.root.cast(RootMsg::Drain); // A stopped root has no agents.
        let agents =
            self.api.tree.root_snapshot().await.map(|view| view.agents).unwrap_or_default();
        agents.into_iter().filter_map(|agent| agent.actor).collect()
    }

    async fn stop_actors(self, agents: &[ActorRef<AgentMsg>]) {
        let gateway = self.api.tree.gateway_handle.gateway.borrow().clone();
        if let Some(gateway) = gateway {
            _ = gateway.stop_and_wait(None, Some(STATUS_TIMEOUT)).await; // Late answers change nothing.
        }
        let scheduler = self.api.schedules.scheduler.borrow().clone();
        if let Some(scheduler) = scheduler {
            _ = scheduler.stop_and_wait(None, Some(STATUS_TIMEOUT)).await;
        }
        for agent in agents {
            _ = agent.stop_and_wait(None, Some(STATUS_TIMEOUT)).await;
        }
        self.api.tree.root.stop(None);
        _ = self.root_join_handle.await;
    }
}

fn cancel_all(agents: &[ActorRef<AgentMsg>], reason: &str) {
    for agent in agents {
        _ = agent.cast(AgentMsg::CancelAll { reason: reason.to_owned() });
    }
}

/// Repeatedly cancels all executions and kills their processes, because one may just have been started.
async fn kill_all(agents: &[ActorRef<AgentMsg>], kill_processes: impl Fn()) {
    let kill_until_drained = async {
        loop {
            cancel_all(agents, "the service was told to stop at once");
            // An agent replies after it has sent the cancellation to its executions. Their processes must not end
            // before that: the ledger would record the end as a failure of the agent.
            call_all(agents, AgentMsg::Inspect, STATUS_TIMEOUT).await;
            kill_processes();
            if wait_until_drained(agents, KILL_INTERVAL).await {
                return;
            }
        }
    };
    if tokio::time::timeout(KILL_TIMEOUT, kill_until_drained).await.is_err() {
        tracing::error!("failed to record all outcomes; the next start settles them");
    }
}

/// Waits until nothing runs; false if the deadline passed before.
async fn wait_until_drained(agents: &[ActorRef<AgentMsg>], drain_timeout: Duration) -> bool {
    call_all(agents, AgentMsg::Drain, drain_timeout).await
}

/// Sends a message to all agents; false if one did not reply before the deadline.
async fn call_all<T: Send + 'static>(
    agents: &[ActorRef<AgentMsg>],
    msg: fn(RpcReplyPort<T>) -> AgentMsg,
    reply_timeout: Duration,
) -> bool {
    let mut calls = JoinSet::new();
    for agent in agents {
        let agent = agent.clone();
        calls.spawn(async move { call_with_timeout(&agent, msg, reply_timeout).await.is_some() });
    }
    calls.join_all().await.into_iter().all(|answered| answered)
}
