//! `RetentionActor`: goes over the history again and again, and removes what need not be kept.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::alarm::alarmed;
use crate::decide::retention::{Progress, Trust};
use crate::model::stock::{Keep, Pass};
use crate::ports::clock::Clock;
use crate::ports::history::History;
use crate::ports::ledger::LedgerError;

/// Between two turns of a pass others write.
const BREATH: Duration = Duration::from_millis(20);

/// Keeps the history within its bounds.
pub struct RetentionActor;

/// How the history is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The bounds.
    pub keep: Keep,
    /// From one pass to the next.
    pub interval: Duration,
}

/// What it is told.
pub enum RetentionMsg {
    /// A pass is over.
    Passed(Pass),
    /// The task that makes the passes panicked.
    Broken,
    /// Asks since when it lives, and for the latest pass.
    Inspect(RpcReplyPort<(DateTime<Utc>, Option<Pass>)>),
}

/// What it begins with.
#[derive(Clone)]
pub struct RetentionArgs {
    /// What is kept.
    pub history: Arc<dyn History>,
    /// Wall time.
    pub clock: Arc<dyn Clock>,
    /// How it is kept.
    pub retention: Retention,
}

/// Loop data.
pub struct RetentionData {
    since: DateTime<Utc>,
    last: Option<Pass>,
    /// The passes, which end with this actor.
    _passes: JoinSet<()>,
}

impl Actor for RetentionActor {
    type Msg = RetentionMsg;
    type State = RetentionData;
    type Arguments = RetentionArgs;

    /// The first pass begins at once, beside everything else: nobody waits for it.
    async fn pre_start(
        &self,
        me: ActorRef<RetentionMsg>,
        args: RetentionArgs,
    ) -> Result<RetentionData, ActorProcessingErr> {
        let (since, broken) = (args.clock.now(), me.clone());
        let mut passes = JoinSet::new();
        passes.spawn(alarmed(keep(me, args), move || _ = broken.cast(RetentionMsg::Broken)));
        Ok(RetentionData { since, last: None, _passes: passes })
    }

    async fn handle(
        &self,
        _: ActorRef<RetentionMsg>,
        msg: RetentionMsg,
        data: &mut RetentionData,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            RetentionMsg::Passed(pass) => data.last = Some(pass),
            RetentionMsg::Broken => return Err("a pass over the history panicked".into()),
            RetentionMsg::Inspect(reply) => _ = reply.send((data.since, data.last)),
        }
        Ok(())
    }

    /// Written out because the default stops the supervisor when any child ends, even well.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<RetentionMsg>,
        _: SupervisionEvent,
        _: &mut RetentionData,
    ) -> Result<(), ActorProcessingErr> {
        Ok(()) // It has no children.
    }
}

/// Makes one pass after the other, for as long as anybody wants to know.
async fn keep(me: ActorRef<RetentionMsg>, args: RetentionArgs) {
    let (begun, mut trust) = (Instant::now(), Trust::default());
    loop {
        let now = args.clock.now();
        let (looked, age_counts) = trust.look(now, begun.elapsed());
        trust = looked;
        match pass(&args, now, age_counts).await {
            Ok(pass) => {
                tell(&pass);
                if me.cast(RetentionMsg::Passed(pass)).is_err() {
                    return;
                }
            }
            Err(error) => tracing::error!(%error, "history not gone over, will be tried again"),
        }
        tokio::time::sleep(args.retention.interval).await; // The pace; nothing waits for it.
    }
}

/// Removes what is too old or too much, in short turns.
async fn pass(args: &RetentionArgs, now: DateTime<Utc>, by_age: bool) -> Result<Pass, LedgerError> {
    let RetentionArgs { history, clock, retention } = args;
    let (mut stock, mut removed, mut freed_bytes) = (history.stock().await?, 0, 0);
    let mut progress = Progress::begin(now, by_age, &stock);
    while let Some((source, sweep)) = progress.next(&retention.keep, &stock) {
        let gone = history.sweep(sweep).await?;
        removed += gone;
        progress = progress.removed(source, gone);
        tokio::time::sleep(BREATH).await; // Others write now.
        stock = history.stock().await?;
    }
    loop {
        match history.shrink().await? {
            0 => break,
            freed => freed_bytes += freed,
        }
        tokio::time::sleep(BREATH).await; // Others write now.
    }
    Ok(Pass { at: clock.now(), removed, freed_bytes, by_age })
}

fn tell(pass: &Pass) {
    if !pass.by_age {
        tracing::warn!("the clock was set: for a day nothing is removed for its age");
    }
    if pass.removed > 0 {
        let Pass { removed, freed_bytes, .. } = pass;
        tracing::info!(removed, freed_bytes, "history is within its bounds");
    }
}
