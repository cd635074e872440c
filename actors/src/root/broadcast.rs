//! Broadcast to all agents about the condition of the machine and the credentials. One task observes both for all
//! agents, because a task for each agent would cost more memory than many an agent's work.

use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use tokio::sync::watch;
use tokio::time::timeout;

use super::RootMsg;
use super::agents::AgentChildren;
use super::context::RootContext;
use crate::agent::AgentMsg;
use crate::decide::retry::breaker::TrippedBreaker;
use crate::model::host::host_fault::HostCondition;
use crate::ports::clock::Clock;
use crate::services::credential_breakers::TrippedBreakers;
use crate::services::panic_guard::run_with_panic_guard;

/// Longest sleep until a breaker may be probed, because the wall clock may be set meanwhile.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// State change that concerns all agents.
#[derive(Clone, Copy)]
pub enum SharedStateChange {
    /// The machine no longer permits new work, or permits it again.
    HostCondition,
    /// The state of a credential changed, or it may be probed.
    Credentials,
}

impl RootContext {
    /// Starts to observe all changes. An agent that starts later first reads the state itself.
    pub(super) fn watch_changes(&mut self) {
        let (root, root_on_panic) = (self.root.clone(), self.root.clone());
        let (breakers, clock) = (self.services.breakers.subscribe(), self.services.clock.clone());
        let condition = watch_host_condition(root.clone(), self.host_condition.subscribe());
        let credentials = watch_credentials(root, breakers, clock);
        let watch_all = async move {
            tokio::join!(condition, credentials);
        };
        self.spawn(run_with_panic_guard(watch_all, move || {
            _ = root_on_panic.cast(RootMsg::WatcherPanicked);
        }));
    }
}

impl AgentChildren {
    /// Notifies the agents. An agent that has failed reads the state when it restarts.
    pub(super) fn notify_of_change(&self, change: SharedStateChange) {
        for actor in self.actors() {
            _ = actor.cast(match change {
                SharedStateChange::HostCondition => AgentMsg::HostConditionChanged,
                SharedStateChange::Credentials => AgentMsg::BreakerChanged,
            });
        }
    }

    /// Notifies the agents of everything, because changes may have been missed.
    pub(super) fn notify_of_all_changes(&self) {
        [SharedStateChange::HostCondition, SharedStateChange::Credentials]
            .into_iter()
            .for_each(|change| self.notify_of_change(change));
    }
}

/// Reports each time that the machine no longer permits new work, or permits it again.
async fn watch_host_condition(
    root: ActorRef<RootMsg>,
    mut condition: watch::Receiver<HostCondition>,
) {
    let refusals_by_work_kind = |condition: &HostCondition| {
        [true, false].map(|starts_program| condition.refuses_work(starts_program))
    };
    let mut last_refusals = refusals_by_work_kind(&condition.borrow_and_update());
    while let Ok(latest) =
        condition.wait_for(|latest| refusals_by_work_kind(latest) != last_refusals).await
    {
        last_refusals = refusals_by_work_kind(&latest);
        _ = root.cast(RootMsg::SharedStateChanged(SharedStateChange::HostCondition)); // Fails if the root has stopped.
    }
}

/// Reports each change of a breaker, and the time at which the next one may be probed.
async fn watch_credentials(
    root: ActorRef<RootMsg>,
    mut tripped_breakers: watch::Receiver<TrippedBreakers>,
    clock: Arc<dyn Clock>,
) {
    loop {
        let wait = next_probe_wait(&tripped_breakers.borrow(), &*clock);
        let wait_result = match wait {
            Some(wait) => timeout(wait.min(CLOCK_CHECK_INTERVAL), tripped_breakers.changed())
                .await
                .unwrap_or(Ok(())),
            None => tripped_breakers.changed().await,
        };
        if wait_result.is_err() {
            return; // The service has stopped.
        }
        _ = root.cast(RootMsg::SharedStateChanged(SharedStateChange::Credentials)); // Fails if the root has stopped.
    }
}

/// Returns the time until the next breaker may be probed. Without a blocked breaker the clock is not read.
fn next_probe_wait(tripped_breakers: &TrippedBreakers, clock: &dyn Clock) -> Option<Duration> {
    if tripped_breakers.is_empty() {
        return None;
    }
    let now = clock.now();
    let time_until_probe = |breaker: &TrippedBreaker| {
        (breaker.until - now).to_std().ok().filter(|wait| !wait.is_zero())
    };
    tripped_breakers.values().filter_map(time_until_probe).min()
}
