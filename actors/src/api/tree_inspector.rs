//! View of the supervision tree: the status of its actors, its readiness, and inputs of its monitor.

use std::sync::Arc;
use std::time::Duration;

use ractor::rpc::CallResult;
use ractor::{ActorRef, RpcReplyPort};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::agent::AgentMsg;
use crate::decide::notification::alert::AlertInput;
use crate::execution::ExecutionMsg;
use crate::gateway::GatewayMsg;
use crate::gateway::handle::GatewayHandle;
use crate::maintenance::monitor::MonitorMsg;
use crate::maintenance::retention::RetentionMsg;
use crate::model::host::host_fault::{HostCondition, HostFault};
use crate::model::id::{AgentId, ExecutionId};
use crate::model::observation::alert::Alert;
use crate::model::observation::status::{
    ActorStatus, AgentStatus, ExecutionStatus, Health, RetentionStatus, ScheduleCounts,
    SchedulerStatus, TreeStatus,
};
use crate::ports::host_check::HostCheck;
use crate::root::{RegisteredAgent, RootMsg, RootSnapshot};
use crate::scheduler::{SchedulerMsg, SchedulerSnapshot};
use crate::services::Services;
use crate::services::credential_breakers::CredentialBreakers;

/// Time limit for an actor's status reply.
pub(crate) const STATUS_TIMEOUT: Duration = Duration::from_millis(500);

/// Time limit for the reply of the ledger, and for the check of the preconditions.
const READINESS_CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval of the checks whether an agent is idle.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Handle that shows the state of the tree, and changes nothing but counts of the monitor. Clones are cheap.
#[derive(Clone)]
pub struct TreeInspector {
    pub(crate) root: ActorRef<RootMsg>,
    pub(crate) gateway_handle: GatewayHandle,
    pub(crate) host_condition: watch::Receiver<HostCondition>,
    pub(crate) host_check: Option<Arc<dyn HostCheck>>,
    pub(crate) services: Services,
}

impl TreeInspector {
    /// Returns the status of the whole tree. Each actor reports its own values; one that does not reply within half a
    /// second is shown as silent.
    pub async fn status(&self) -> TreeStatus {
        let root_snapshot = self.root_snapshot().await;
        let since = self.gateway_started_at().await;
        let (root, gateway) =
            (actor_status("root", root_snapshot.as_ref().map(|view| view.started_at), 0), {
                let restarts = root_snapshot.as_ref().map_or(0, |view| view.gateway_restarts);
                actor_status("gateway", since, restarts)
            });
        let HostCondition { pressure, faults } = self.host_condition.borrow().clone();
        let (monitor, alerts) = monitor_status(root_snapshot.as_ref()).await.unzip();
        let scheduler = scheduler_status(root_snapshot.as_ref()).await;
        let retention = retention_status(root_snapshot.as_ref()).await;
        let mut replies = JoinSet::new();
        for registered in root_snapshot.map(|view| view.agents).unwrap_or_default() {
            replies.spawn(agent_status(registered));
        }
        let mut agents = replies.join_all().await;
        agents.sort_by(|one, other| one.id.cmp(&other.id));
        let alerts = alerts.unwrap_or_default();
        // The clock is read last: no reported start time is later.
        let at = self.services.clock.now();
        TreeStatus {
            at,
            root,
            monitor,
            faults,
            pressure,
            scheduler,
            retention,
            alerts,
            credentials: self.services.breakers.unusable_credential_statuses(at),
            gateway,
            agents,
        }
    }

    /// Returns the status of one agent; `None` if there is no such agent.
    pub async fn agent_status(&self, agent: &AgentId) -> Option<AgentStatus> {
        let agents = self.root_snapshot().await?.agents;
        let registered = agents.into_iter().find(|registered| registered.spec.id == *agent)?;
        Some(agent_status(registered).await)
    }

    pub(crate) async fn root_snapshot(&self) -> Option<RootSnapshot> {
        call_with_timeout(&self.root, RootMsg::Inspect, STATUS_TIMEOUT).await
    }

    pub(crate) async fn gateway_started_at(&self) -> Option<chrono::DateTime<chrono::Utc>> {
        let gateway = self.gateway_handle.gateway.borrow().clone()?;
        call_with_timeout(&gateway, GatewayMsg::Inspect, STATUS_TIMEOUT).await
    }

    /// Returns the reasons why the service cannot accept work now; empty if it can. Pressure is not a reason: it
    /// passes, and clients receive a temporary rejection.
    pub async fn unready_reasons(&self) -> Vec<&'static str> {
        let draining = *self.gateway_handle.draining.borrow();
        let replies = tokio::join!(
            self.root_snapshot(),
            self.gateway_started_at(),
            self.is_ledger_readable(),
            self.find_faults()
        );
        let (root, gateway, is_ledger_readable, faults) = replies;
        let reasons = [
            (draining, "draining"),
            (root.is_none() || gateway.is_none(), "tree"),
            (!is_ledger_readable, "ledger"),
        ];
        let reasons = reasons.into_iter().filter(|(applies, _)| *applies).map(|(_, word)| word);
        reasons.chain(faults.into_iter().map(HostFault::as_str)).collect()
    }

    /// Checks the preconditions of all executions now. Returns the result of the latest check if this one takes too
    /// long.
    async fn find_faults(&self) -> Vec<HostFault> {
        let Some(host_check) = &self.host_check else { return Vec::new() };
        match timeout(READINESS_CHECK_TIMEOUT, host_check.repair_and_find_faults()).await {
            Ok(faults) => {
                self.services.monitor.report_faults(faults.clone());
                faults
            }
            Err(_elapsed) => self.host_condition.borrow().faults.clone(),
        }
    }

    /// Returns true if the ledger replies, with any result.
    async fn is_ledger_readable(&self) -> bool {
        let reading = self.services.ledger.execution(ExecutionId(uuid::Uuid::nil()));
        timeout(READINESS_CHECK_TIMEOUT, reading).await.is_ok_and(|read| read.is_ok())
    }

    /// Sends an input to the monitor.
    pub fn send_to_monitor(&self, alert_input: AlertInput) {
        self.services.monitor.send_alert_input(alert_input);
    }

    /// Counts a request to an endpoint for the monitor.
    pub fn count_request(&self, endpoint: &str) {
        self.services.monitor.count_request(endpoint);
    }

    /// Waits at most this time until an agent has no running or queued execution. Returns its status then; `None` if
    /// there is no such agent.
    pub async fn wait_until_idle(
        &self,
        agent: &AgentId,
        max_wait: Duration,
    ) -> Option<AgentStatus> {
        let deadline = tokio::time::Instant::now() + max_wait;
        loop {
            let status = self.agent_status(agent).await?;
            let is_idle = status.work.running.is_empty() && status.work.queued.is_empty();
            if is_idle || tokio::time::Instant::now() >= deadline {
                return Some(status);
            }
            tokio::time::sleep(IDLE_CHECK_INTERVAL).await;
        }
    }

    /// Returns the circuit breakers of the agents' credentials.
    #[must_use]
    pub fn breakers(&self) -> CredentialBreakers {
        self.services.breakers.clone()
    }
}

fn actor_status(
    name: &str,
    since: Option<chrono::DateTime<chrono::Utc>>,
    restarts: u32,
) -> ActorStatus {
    let health = if since.is_some() { Health::Alive } else { Health::Silent };
    ActorStatus { name: name.to_owned(), health, since, restarts }
}

async fn monitor_status(root_snapshot: Option<&RootSnapshot>) -> Option<(ActorStatus, Vec<Alert>)> {
    let (monitor, restarts) = root_snapshot?.monitor.as_ref()?;
    let (since, alerts) =
        call_with_timeout(monitor, MonitorMsg::Inspect, STATUS_TIMEOUT).await.unzip();
    Some((actor_status("monitor", since, *restarts), alerts.unwrap_or_default()))
}

async fn scheduler_status(root_snapshot: Option<&RootSnapshot>) -> Option<SchedulerStatus> {
    let (scheduler, restarts) = root_snapshot?.scheduler.as_ref()?;
    let snapshot = call_with_timeout(scheduler, SchedulerMsg::Inspect, STATUS_TIMEOUT).await;
    let actor = actor_status("scheduler", snapshot.as_ref().map(|it| it.started_at), *restarts);
    let count = |field: fn(&SchedulerSnapshot) -> usize| snapshot.as_ref().map_or(0, field);
    let counts = ScheduleCounts {
        schedules: count(|it| it.schedule_count),
        active: count(|it| it.active_count),
        locked: count(|it| it.unreadable_input_count),
    };
    Some(SchedulerStatus {
        actor,
        counts: Some(counts),
        due: snapshot.map_or_else(Vec::new, |it| it.next_due),
    })
}

async fn retention_status(root_snapshot: Option<&RootSnapshot>) -> Option<RetentionStatus> {
    let (actor_ref, restarts) = root_snapshot?.retention.as_ref()?;
    let reply = call_with_timeout(actor_ref, RetentionMsg::Inspect, STATUS_TIMEOUT).await;
    let since = reply.map(|(since, _)| since);
    let last_pass = reply.and_then(|(_, last)| last);
    Some(RetentionStatus { actor: actor_status("retention", since, *restarts), last_pass })
}

async fn agent_status(registered: RegisteredAgent) -> AgentStatus {
    let mut status = match &registered.actor {
        None if registered.is_restarting => {
            AgentStatus::from_spec(&registered.spec, Health::Restarting)
        }
        None => AgentStatus::from_spec(&registered.spec, Health::Quarantined),
        Some(actor) => match call_with_timeout(actor, AgentMsg::Inspect, STATUS_TIMEOUT).await {
            None => AgentStatus::from_spec(&registered.spec, Health::Silent),
            Some(view) => {
                let mut status = view.status;
                status.work.running.extend(execution_statuses(view.executions).await);
                status.work.running.sort_by_key(|execution| execution.id);
                status
            }
        },
    };
    status.actor_starts.restarts = registered.restarts;
    status.actor_starts.last_fault = registered.last_fault;
    status
}

async fn execution_statuses(
    actors: Vec<(ExecutionId, ActorRef<ExecutionMsg>)>,
) -> Vec<ExecutionStatus> {
    let mut replies = JoinSet::new();
    for (id, actor) in actors {
        replies.spawn(async move {
            call_with_timeout(&actor, ExecutionMsg::Inspect, STATUS_TIMEOUT).await.unwrap_or(
                ExecutionStatus {
                    id,
                    health: Health::Silent,
                    state: None,
                    since: None,
                    queued: None,
                    attempt_id: None,
                    pid: None,
                    usage: None,
                    deadline: None,
                    followers: 0,
                },
            )
        });
    }
    replies.join_all().await
}

/// Sends a message to an actor; returns `None` if no reply arrived in time.
pub(crate) async fn call_with_timeout<M: ractor::Message, T: Send + 'static>(
    actor: &ActorRef<M>,
    msg: impl FnOnce(RpcReplyPort<T>) -> M,
    reply_timeout: Duration,
) -> Option<T> {
    match actor.call(msg, Some(reply_timeout)).await {
        Ok(CallResult::Success(answer)) => Some(answer),
        Ok(CallResult::Timeout | CallResult::SenderError) | Err(_) => None,
    }
}
