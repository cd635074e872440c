//! `RetentionActor`: removes old executions from the history periodically.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::decide::retention::{ClockConfidence, RetentionProgress};
use crate::model::host::storage_stats::{RetentionLimits, RetentionPass};
use crate::ports::clock::Clock;
use crate::ports::history::History;
use crate::ports::ledger::LedgerError;
use crate::services::panic_guard::run_with_panic_guard;

/// Pause between two transactions of a pass, so that other writers proceed.
const BATCH_PAUSE: Duration = Duration::from_millis(20);

/// Actor that enforces the retention limits.
pub struct RetentionActor;

/// Settings of the retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionSpec {
    /// Retention limits; without them only sealed inputs are removed.
    pub limits: Option<RetentionLimits>,
    /// Interval between two passes.
    pub interval: Duration,
}

/// Message to the retention actor.
pub enum RetentionMsg {
    /// A pass ended.
    PassCompleted(RetentionPass),
    /// The task of the passes panicked.
    BackgroundFuturePanicked,
    /// Requests the start time and the latest pass.
    Inspect(RpcReplyPort<(DateTime<Utc>, Option<RetentionPass>)>),
}

/// Arguments of the retention actor.
#[derive(Clone)]
pub struct RetentionArgs {
    /// History of executions.
    pub history: Arc<dyn History>,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
    /// Settings of the retention.
    pub retention: RetentionSpec,
    /// Time after its end for which the sealed input of a failed execution is stored.
    pub retry_window: Duration,
}

/// State of the actor.
pub struct RetentionActorState {
    started_at: DateTime<Utc>,
    last_pass: Option<RetentionPass>,
    /// Task of the passes, which ends with this actor.
    _passes: JoinSet<()>,
}

impl Actor for RetentionActor {
    type Msg = RetentionMsg;
    type State = RetentionActorState;
    type Arguments = RetentionArgs;

    /// Starts the first pass at once, in a separate task: the start does not wait for it.
    async fn pre_start(
        &self,
        myself: ActorRef<RetentionMsg>,
        args: RetentionArgs,
    ) -> Result<RetentionActorState, ActorProcessingErr> {
        let (started_at, myself_on_panic) = (args.clock.now(), myself.clone());
        let mut passes = JoinSet::new();
        passes.spawn(run_with_panic_guard(run_passes(myself, args), move || {
            _ = myself_on_panic.cast(RetentionMsg::BackgroundFuturePanicked);
        }));
        Ok(RetentionActorState { started_at, last_pass: None, _passes: passes })
    }

    async fn handle(
        &self,
        _: ActorRef<RetentionMsg>,
        msg: RetentionMsg,
        state: &mut RetentionActorState,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            RetentionMsg::PassCompleted(pass) => state.last_pass = Some(pass),
            RetentionMsg::BackgroundFuturePanicked => {
                return Err("a pass over the history panicked".into());
            }
            RetentionMsg::Inspect(reply) => _ = reply.send((state.started_at, state.last_pass)),
        }
        Ok(())
    }

    /// Overridden because the default stops the supervisor when any child ends, even normally.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<RetentionMsg>,
        _: SupervisionEvent,
        _: &mut RetentionActorState,
    ) -> Result<(), ActorProcessingErr> {
        Ok(()) // This actor has no children.
    }
}

/// Runs one pass after the other until the actor stops.
async fn run_passes(myself: ActorRef<RetentionMsg>, args: RetentionArgs) {
    let (started_at, mut confidence) = (Instant::now(), ClockConfidence::default());
    loop {
        let now = args.clock.now();
        let (next_confidence, is_age_reliable) =
            confidence.compare_clocks(now, started_at.elapsed());
        confidence = next_confidence;
        match run_pass(&args, now, is_age_reliable).await {
            Ok(pass) => {
                log_pass(&pass);
                if myself.cast(RetentionMsg::PassCompleted(pass)).is_err() {
                    return;
                }
            }
            Err(error) => tracing::error!(%error, "retention pass failed, retrying later"),
        }
        tokio::time::sleep(args.retention.interval).await; // Interval of the passes; no task waits for it.
    }
}

/// Removes executions beyond the limits, in short transactions.
async fn run_pass(
    args: &RetentionArgs,
    now: DateTime<Utc>,
    is_age_reliable: bool,
) -> Result<RetentionPass, LedgerError> {
    let RetentionArgs { history, clock, retention, retry_window } = args;
    erase_inputs(&**history, now, *retry_window).await?;
    let Some(limits) = &retention.limits else {
        return Ok(RetentionPass {
            at: clock.now(),
            removed: 0,
            freed_bytes: 0,
            by_age: is_age_reliable,
        });
    };
    let (mut stats, mut removed, mut freed_bytes) = (history.storage_stats().await?, 0, 0);
    let mut progress = RetentionProgress::new_pass(now, is_age_reliable, &stats);
    while let Some((criterion, batch)) = progress.next_batch(limits, &stats) {
        let removed_in_batch = history.remove_batch(batch).await?;
        removed += removed_in_batch;
        progress = progress.record_removed(criterion, removed_in_batch);
        tokio::time::sleep(BATCH_PAUSE).await; // Lets other writers proceed.
        stats = history.storage_stats().await?;
    }
    loop {
        match history.release_free_pages().await? {
            0 => break,
            freed => freed_bytes += freed,
        }
        tokio::time::sleep(BATCH_PAUSE).await; // Lets other writers proceed.
    }
    Ok(RetentionPass { at: clock.now(), removed, freed_bytes, by_age: is_age_reliable })
}

/// Erases the sealed inputs that can no longer be retried. A wrong clock costs no more than a retry.
async fn erase_inputs(
    history: &dyn History,
    now: DateTime<Utc>,
    retry_window: Duration,
) -> Result<(), LedgerError> {
    let window = TimeDelta::from_std(retry_window).unwrap_or(TimeDelta::MAX);
    let Some(before) = now.checked_sub_signed(window) else { return Ok(()) };
    let erased = history.erase_sealed_inputs(before).await?;
    if erased > 0 {
        tracing::info!(erased, "erased sealed inputs of executions that failed");
    }
    Ok(())
}

fn log_pass(pass: &RetentionPass) {
    if !pass.by_age {
        tracing::warn!("clock changed: retention by age is suspended for a day");
    }
    if pass.removed > 0 {
        let RetentionPass { removed, freed_bytes, .. } = pass;
        tracing::info!(removed, freed_bytes, "history is within its limits");
    }
}
