//! Context of the root's parts: its shared services, its channels and its tasks.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ractor::{Actor, ActorRef, SpawnErr};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::RootMsg;
use crate::decide::recovery::restart::{
    RestartDecision, RestartHistory, RestartLimit, decide_restart,
};
use crate::gateway::GatewayMsg;
use crate::model::host::host_fault::HostCondition;
use crate::services::Services;

/// Context that the parts of the root share.
pub(super) struct RootContext {
    pub(super) root: ActorRef<RootMsg>,
    pub(super) services: Arc<Services>,
    /// Sender of the present gateway.
    pub(super) gateway: watch::Sender<Option<ActorRef<GatewayMsg>>>,
    /// Sender of the condition of the machine.
    pub(super) host_condition: watch::Sender<HostCondition>,
    /// Start time.
    pub(super) started_at: DateTime<Utc>,
    /// Start time on the monotonic clock, from which the times of failures count.
    start_instant: Instant,
    /// True if the service is stopping.
    pub(super) is_draining: bool,
    /// Tasks of the root, which end with it.
    tasks: JoinSet<()>,
}

impl RootContext {
    /// Creates the context with its channels.
    pub(super) fn new(
        root: ActorRef<RootMsg>,
        services: Services,
        gateway: watch::Sender<Option<ActorRef<GatewayMsg>>>,
        host_condition: watch::Sender<HostCondition>,
    ) -> Self {
        Self {
            started_at: services.clock.now(),
            services: Arc::new(services),
            root,
            gateway,
            host_condition,
            start_instant: Instant::now(),
            is_draining: false,
            tasks: JoinSet::new(),
        }
    }

    /// Starts an actor whose failure the root receives.
    pub(super) async fn spawn_child<A: Actor>(
        &self,
        actor: A,
        args: A::Arguments,
    ) -> Result<ActorRef<A::Msg>, SpawnErr> {
        let root = self.root.get_cell();
        let (child, _) = ractor::ActorRuntime::spawn_linked(None, actor, args, root).await?;
        Ok(child)
    }

    /// Starts a task that ends with the root.
    pub(super) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Sends a message to the root after this time.
    pub(super) fn send_after(&mut self, delay: Duration, msg: RootMsg) {
        let root = self.root.clone();
        self.spawn(async move {
            tokio::time::sleep(delay).await;
            _ = root.cast(msg); // Fails if the root has stopped.
        });
    }

    /// Returns the time since the start of the root.
    pub(super) fn elapsed(&self) -> Duration {
        self.start_instant.elapsed()
    }

    /// Records the failure of an actor now, and decides about it.
    pub(super) fn record_failure_and_decide(
        &self,
        restarts: &mut RestartHistory,
    ) -> RestartDecision {
        record_failure_and_decide_at(restarts, self.elapsed(), RestartLimit::default())
    }
}

/// Records the failure of an actor at `now`, and decides about it.
pub(super) fn record_failure_and_decide_at(
    restarts: &mut RestartHistory,
    now: Duration,
    limit: RestartLimit,
) -> RestartDecision {
    let (next, decision) = decide_restart(mem::take(restarts), now, limit);
    *restarts = next;
    decision
}
