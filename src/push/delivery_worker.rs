//! Push worker: delivers pending notifications, one at a time to each target and to a few targets at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::decide::notification::push::{
    self, DeliveryResult, DeliveryStep, LONGEST_PAUSE,
};
use algonius_actors::model::execution::trace::Trace;
use algonius_actors::model::id::{ExecutionId, PrincipalId};
use algonius_actors::model::push::{DeliveryState, PendingTarget, PushStage, PushTarget};
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::{Ledger, LedgerError};
use algonius_actors::ports::outbox::Outbox;
use chrono::TimeDelta;
use tokio::sync::{Notify, watch};
use tokio::task::{Id, JoinSet};
use uuid::Uuid;

use super::webhook_client::{WebhookClient, WebhookRequest};
use super::{Render, chain};

/// Maximum number of concurrent requests.
const AT_ONCE: usize = 8;

/// Maximum number of concurrent requests to the targets of one owner, so that slow receivers of one owner do not
/// block all others.
const SHARE: usize = 4;

/// Interval between two reads of the ledger while there is an open target.
const POLL: Duration = Duration::from_millis(250);

/// Pause after a failed read of the ledger.
const PATIENCE: Duration = Duration::from_secs(2);

/// Maximum time for running requests when the service stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// Dependencies of the worker.
pub(super) struct WorkerContext {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) outbox: Arc<dyn Outbox>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) render: Render,
    pub(super) given_up: Arc<dyn Fn(u32) + Send + Sync>,
    pub(super) client: WebhookClient,
    pub(super) max_age: Duration,
}

/// Notification in delivery.
struct Errand {
    pending: PendingTarget,
    event: u64,
    last: bool,
}

/// Runs until the stop signal. Uses no resources while no target is open.
pub(super) async fn work(
    bench: Arc<WorkerContext>,
    bell: Arc<Notify>,
    mut stop: watch::Receiver<bool>,
) {
    let mut errands = RunningDeliveries::default();
    while !*stop.borrow() {
        let pause = match errands.send_out(&bench).await {
            Ok(true) => Some(POLL),
            Ok(false) => None,
            Err(error) => {
                tracing::error!(%error, "outbox could not be read");
                Some(PATIENCE)
            }
        };
        tokio::select! {
            () = bell.notified() => {}
            () = errands.one_back() => {}
            () = sleep(pause) => {}
            changed = stop.changed() => if changed.is_err() { break },
        }
    }
    if tokio::time::timeout(FAREWELL, errands.all_back()).await.is_err() {
        tracing::info!("pending push notifications will be sent after the next start");
    }
}

async fn sleep(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

/// Running deliveries.
#[derive(Default)]
struct RunningDeliveries {
    running: JoinSet<()>,
    of: HashMap<Id, (ExecutionId, String, PrincipalId)>,
}

impl RunningDeliveries {
    /// Starts the due deliveries, as far as there is room. Returns true if there are open targets.
    async fn send_out(&mut self, bench: &Arc<WorkerContext>) -> Result<bool, LedgerError> {
        let patience = TimeDelta::from_std(LONGEST_PAUSE).unwrap_or_default();
        // Running deliveries are among the due ones, so twice the share covers all free places.
        let share = u32::try_from(2 * SHARE).unwrap_or(u32::MAX);
        let due = bench.outbox.due(bench.clock.now(), patience, share).await?;
        for pending in due.pending {
            // The rest stays due in the ledger, so nothing is queued in memory.
            if self.running.len() >= AT_ONCE {
                break;
            }
            // Notifications to one target must arrive in order, so only one is on its way.
            if !self.has_room_for(&pending) {
                continue;
            }
            let key = (pending.execution, pending.id.clone(), pending.owner);
            if let Some(errand) = plan(bench, pending).await? {
                let run = self.running.spawn(Box::pin(run(Arc::clone(bench), errand)));
                self.of.insert(run.id(), key);
            }
        }
        Ok(due.any_open)
    }

    /// True if no delivery to the target runs, and fewer than the maximum run for its owner.
    fn has_room_for(&self, pending: &PendingTarget) -> bool {
        let mut share = 0;
        for (execution, id, owner) in self.of.values() {
            if *execution == pending.execution && *id == pending.id {
                return false;
            }
            share += usize::from(*owner == pending.owner);
        }
        share < SHARE
    }

    /// Waits until a delivery ends; never returns if none runs.
    async fn one_back(&mut self) {
        match self.running.join_next_with_id().await {
            Some(Ok((id, ()))) => _ = self.of.remove(&id),
            Some(Err(error)) => {
                tracing::error!(%error, "push delivery panicked; the notification will be sent again");
                self.of.remove(&error.id());
            }
            None => std::future::pending().await,
        }
    }

    async fn all_back(&mut self) {
        while !self.running.is_empty() {
            self.one_back().await;
        }
    }
}

/// Returns the next delivery to a target; records progress for events that need no delivery.
async fn plan(
    bench: &WorkerContext,
    pending: PendingTarget,
) -> Result<Option<Errand>, LedgerError> {
    let events = bench.ledger.events(pending.execution, pending.state.delivered).await?;
    match push::next(&pending, &events, bench.clock.now()) {
        DeliveryStep::Tell { event, last } => Ok(Some(Errand { pending, event, last })),
        DeliveryStep::Note(standing) => {
            bench.outbox.note(pending.registration, standing).await?;
            Ok(None)
        }
        DeliveryStep::Rest => Ok(None),
    }
}

/// Delivers one event to a target and records the result.
async fn run(bench: Arc<WorkerContext>, errand: Errand) {
    let Errand { pending, event, last } = errand;
    let told = match deliver(&bench, &pending, event).await {
        Ok(true) => DeliveryResult::Received { last },
        Ok(false) => return, // Nobody wants to know any more.
        Err(cause) => {
            let (execution, target) = (pending.execution, pending.registration);
            tracing::info!(%execution, %target, event, %cause, "push notification failed");
            DeliveryResult::Failed
        }
    };
    let standing = push::after(pending.state, event, told, bench.clock.now(), bench.max_age);
    if standing.stage == PushStage::GivenUp {
        let (execution, target) = (pending.execution, pending.registration);
        let failures = standing.failures;
        tracing::warn!(%execution, %target, failures, "push target disabled after repeated failures");
        (bench.given_up)(failures);
    }
    note(&bench, pending.registration, standing).await;
}

/// Delivers one event to a target. Returns true if the target still exists.
async fn deliver(
    bench: &WorkerContext,
    pending: &PendingTarget,
    event: u64,
) -> Result<bool, String> {
    let unread = |error: LedgerError| error.to_string();
    let target = bench.outbox.get(pending.execution, &pending.id).await.map_err(unread)?;
    let is_same = |target: &PushTarget| target.registration == pending.registration;
    let Some(target) = target.filter(is_same) else { return Ok(false) };
    let rendered = (bench.render)(pending.execution, target.version, event).await;
    let Some(body) = rendered.map_err(|failure| failure.message)? else { return Ok(true) };
    let record = bench.ledger.execution(pending.execution).await.map_err(unread)?;
    let trace = record.map(|record| Trace::of_execution(record.trace.as_ref(), record.id));
    let letter = WebhookRequest::notice(&target, body, trace.as_ref());
    bench.client.send(&letter).await.map_err(|error| chain(&error))?;
    Ok(true)
}

/// Records the state of a target. If that fails, the event is delivered again.
async fn note(bench: &WorkerContext, registration: Uuid, standing: DeliveryState) {
    if let Err(error) = bench.outbox.note(registration, standing).await {
        tracing::error!(target = %registration, %error, "failed to record push notification");
        tokio::time::sleep(PATIENCE).await; // Not again at once.
    }
}
