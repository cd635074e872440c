//! Push worker: delivers pending notifications, one at a time to each target and to a few targets at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::decide::notification::push::{
    self, DeliveryResult, DeliveryStep, MAX_RETRY_PAUSE,
};
use algonius_actors::model::execution::trace::TraceContext;
use algonius_actors::model::id::{ExecutionId, PrincipalId};
use algonius_actors::model::push::{DeliveryProgress, DeliveryStage, PendingTarget, PushTarget};
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::{Ledger, LedgerError};
use algonius_actors::ports::push_target_store::PushTargetStore;
use chrono::TimeDelta;
use tokio::sync::{Notify, watch};
use tokio::task::{Id, JoinSet};
use uuid::Uuid;

use super::webhook_client::{WebhookClient, WebhookRequest};
use super::{NotificationBodyFn, error_chain_text};

/// Maximum number of concurrent requests.
const MAX_CONCURRENT_DELIVERIES: usize = 8;

/// Maximum number of concurrent requests to the targets of one owner, so that slow receivers of one owner do not
/// block all others.
const MAX_DELIVERIES_PER_OWNER: usize = 4;

/// Interval between two reads of the ledger while there is an open target.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Pause after a failed read of the ledger.
const LEDGER_RETRY_PAUSE: Duration = Duration::from_secs(2);

/// Maximum time for running requests when the service stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Dependencies of the worker.
pub(super) struct WorkerContext {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) target_store: Arc<dyn PushTargetStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) render_body: NotificationBodyFn,
    pub(super) on_target_abandoned: Arc<dyn Fn(u32) + Send + Sync>,
    pub(super) client: WebhookClient,
    pub(super) max_retry_duration: Duration,
}

/// Notification in delivery.
struct DueDelivery {
    pending_target: PendingTarget,
    event_number: u64,
    is_last: bool,
}

/// Runs until the stop signal. Uses no resources while no target is open.
pub(super) async fn run(
    context: Arc<WorkerContext>,
    wakeup: Arc<Notify>,
    mut stop: watch::Receiver<bool>,
) {
    let mut deliveries = RunningDeliveries::default();
    while !*stop.borrow() {
        let pause = match deliveries.start_deliveries(&context).await {
            Ok(true) => Some(POLL_INTERVAL),
            Ok(false) => None,
            Err(error) => {
                tracing::error!(%error, "outbox could not be read");
                Some(LEDGER_RETRY_PAUSE)
            }
        };
        tokio::select! {
            () = wakeup.notified() => {}
            () = deliveries.wait_for_next() => {}
            () = sleep_or_wait_forever(pause) => {}
            changed = stop.changed() => if changed.is_err() { break },
        }
    }
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, deliveries.wait_for_all()).await.is_err() {
        tracing::info!("pending push notifications will be sent after the next start");
    }
}

async fn sleep_or_wait_forever(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

/// Running deliveries.
#[derive(Default)]
struct RunningDeliveries {
    delivery_tasks: JoinSet<()>,
    targets_by_delivery: HashMap<Id, (ExecutionId, String, PrincipalId)>,
}

impl RunningDeliveries {
    /// Starts the due deliveries, as far as there is room. Returns true if there are open targets.
    async fn start_deliveries(
        &mut self,
        context: &Arc<WorkerContext>,
    ) -> Result<bool, LedgerError> {
        let clock_tolerance = TimeDelta::from_std(MAX_RETRY_PAUSE).unwrap_or_default();
        // Running deliveries are among the due ones, so twice the maximum covers all free places.
        let limit_per_owner = u32::try_from(2 * MAX_DELIVERIES_PER_OWNER).unwrap_or(u32::MAX);
        let due_targets = context
            .target_store
            .due_targets(context.clock.now(), clock_tolerance, limit_per_owner)
            .await?;
        for pending_target in due_targets.pending {
            // The rest stays due in the ledger, so nothing is queued in memory.
            if self.delivery_tasks.len() >= MAX_CONCURRENT_DELIVERIES {
                break;
            }
            // Notifications to one target must arrive in order, so only one is on its way.
            if !self.has_capacity_for(&pending_target) {
                continue;
            }
            let target_key =
                (pending_target.execution, pending_target.id.clone(), pending_target.owner);
            if let Some(delivery) = prepare_or_skip_delivery(context, pending_target).await? {
                let task = self
                    .delivery_tasks
                    .spawn(Box::pin(deliver_and_record(Arc::clone(context), delivery)));
                self.targets_by_delivery.insert(task.id(), target_key);
            }
        }
        Ok(due_targets.has_open_targets)
    }

    /// True if no delivery to the target runs, and fewer than the maximum run for its owner.
    fn has_capacity_for(&self, pending_target: &PendingTarget) -> bool {
        let mut owner_deliveries = 0;
        for (execution, id, owner) in self.targets_by_delivery.values() {
            if *execution == pending_target.execution && *id == pending_target.id {
                return false;
            }
            owner_deliveries += usize::from(*owner == pending_target.owner);
        }
        owner_deliveries < MAX_DELIVERIES_PER_OWNER
    }

    /// Waits until a delivery ends; never returns if none runs.
    async fn wait_for_next(&mut self) {
        match self.delivery_tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => _ = self.targets_by_delivery.remove(&id),
            Some(Err(error)) => {
                tracing::error!(%error, "push delivery panicked; the notification will be sent again");
                self.targets_by_delivery.remove(&error.id());
            }
            None => std::future::pending().await,
        }
    }

    async fn wait_for_all(&mut self) {
        while !self.delivery_tasks.is_empty() {
            self.wait_for_next().await;
        }
    }
}

/// Returns the next delivery to a target; records progress for events that need no delivery.
async fn prepare_or_skip_delivery(
    context: &WorkerContext,
    pending_target: PendingTarget,
) -> Result<Option<DueDelivery>, LedgerError> {
    let events = context
        .ledger
        .events(pending_target.execution, pending_target.progress.last_delivered_event)
        .await?;
    match push::next_delivery_step(&pending_target, &events, context.clock.now()) {
        DeliveryStep::Send { event, is_last } => {
            Ok(Some(DueDelivery { pending_target, event_number: event, is_last }))
        }
        DeliveryStep::RecordProgress(progress) => {
            context.target_store.record_progress(pending_target.registration_id, progress).await?;
            Ok(None)
        }
        DeliveryStep::Wait => Ok(None),
    }
}

/// Delivers one event to a target and records the result.
async fn deliver_and_record(context: Arc<WorkerContext>, delivery: DueDelivery) {
    let DueDelivery { pending_target, event_number: event, is_last } = delivery;
    let mut failure_cause = None;
    let result = match deliver_if_registered(&context, &pending_target, event).await {
        Ok(true) => DeliveryResult::Received { is_last },
        Ok(false) => return, // Nobody wants to know any more.
        Err(cause) => {
            let (execution, target) = (pending_target.execution, pending_target.registration_id);
            tracing::info!(%execution, %target, event, %cause, "push notification failed");
            failure_cause = Some(cause);
            DeliveryResult::Failed
        }
    };
    let progress = push::next_progress(
        pending_target.progress,
        event,
        result,
        context.clock.now(),
        context.max_retry_duration,
    );
    if progress.stage == DeliveryStage::Abandoned {
        let (execution, target) = (pending_target.execution, pending_target.registration_id);
        let (failures, cause) = (progress.next_event_failures, failure_cause.as_deref());
        tracing::warn!(%execution, %target, failures, cause, "push target disabled after repeated failures");
        (context.on_target_abandoned)(failures);
    }
    record_progress(&context, pending_target.registration_id, progress).await;
}

/// Delivers one event to a target. Returns true if the target still exists.
async fn deliver_if_registered(
    context: &WorkerContext,
    pending_target: &PendingTarget,
    event_number: u64,
) -> Result<bool, String> {
    let ledger_error = |error: LedgerError| error.to_string();
    let target = context
        .target_store
        .get(pending_target.execution, &pending_target.id)
        .await
        .map_err(ledger_error)?;
    let is_same_registration =
        |target: &PushTarget| target.registration_id == pending_target.registration_id;
    let Some(target) = target.filter(is_same_registration) else { return Ok(false) };
    let rendered =
        (context.render_body)(pending_target.execution, target.version, event_number).await;
    let Some(body) = rendered.map_err(|failure| failure.message)? else { return Ok(true) };
    let record = context.ledger.execution(pending_target.execution).await.map_err(ledger_error)?;
    let trace = record.map(|record| TraceContext::for_execution(record.trace.as_ref(), record.id));
    let webhook_request = WebhookRequest::for_notification(&target, body, trace.as_ref());
    context.client.send(&webhook_request).await.map_err(|error| error_chain_text(&error))?;
    Ok(true)
}

/// Records the state of a target. If that fails, the event is delivered again.
async fn record_progress(
    context: &WorkerContext,
    registration_id: Uuid,
    progress: DeliveryProgress,
) {
    if let Err(error) = context.target_store.record_progress(registration_id, progress).await {
        tracing::error!(target = %registration_id, %error, "failed to record push notification");
        tokio::time::sleep(LEDGER_RETRY_PAUSE).await; // Not again at once.
    }
}
