//! Tells targets what they do not know: one notice at a time to each, a few targets at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::decide::push::{self, LONGEST_PAUSE, Step, Told};
use algonius_actors::model::id::{ExecutionId, PrincipalId};
use algonius_actors::model::push::{Pending, PushStage, PushTarget, Standing};
use algonius_actors::model::trace::Trace;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::{Ledger, LedgerError};
use algonius_actors::ports::outbox::Outbox;
use chrono::TimeDelta;
use tokio::sync::{Notify, watch};
use tokio::task::{Id, JoinSet};
use uuid::Uuid;

use super::courier::{Courier, Letter};
use super::{Render, chain};

/// Notices on their way at once.
const AT_ONCE: usize = 8;

/// Of these, to the targets of one owner, so that slow receivers of one do not hold up all.
const SHARE: usize = 4;

/// How long until the ledger is asked again while there is an open target.
const POLL: Duration = Duration::from_millis(250);

/// How long until it is asked again after it could not be read.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long notices may still travel when the service stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// What the worker works with.
pub(super) struct Bench {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) outbox: Arc<dyn Outbox>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) render: Render,
    pub(super) given_up: Arc<dyn Fn(u32) + Send + Sync>,
    pub(super) courier: Courier,
    pub(super) max_age: Duration,
}

/// A notice on its way.
struct Errand {
    pending: Pending,
    event: u64,
    last: bool,
}

/// Works until told to stop. Costs nothing while no target is open.
pub(super) async fn work(bench: Arc<Bench>, bell: Arc<Notify>, mut stop: watch::Receiver<bool>) {
    let mut errands = Errands::default();
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
        tracing::info!("notices that were on their way will be sent again after the next start");
    }
}

async fn sleep(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

/// What is on its way.
#[derive(Default)]
struct Errands {
    running: JoinSet<()>,
    of: HashMap<Id, (ExecutionId, String, PrincipalId)>,
}

impl Errands {
    /// Sends out what there is to tell, as far as there is room. Answers whether there are open
    /// targets.
    async fn send_out(&mut self, bench: &Arc<Bench>) -> Result<bool, LedgerError> {
        let patience = TimeDelta::from_std(LONGEST_PAUSE).unwrap_or_default();
        // Those on their way are among what is due, so twice the share finds all there is room for.
        let share = u32::try_from(2 * SHARE).unwrap_or(u32::MAX);
        let due = bench.outbox.due(bench.clock.now(), patience, share).await?;
        for pending in due.pending {
            if self.running.len() >= AT_ONCE {
                break;
            }
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

    /// Whether nothing is on its way to the target, and not too much to its owner's.
    fn has_room_for(&self, pending: &Pending) -> bool {
        let mut share = 0;
        for (execution, id, owner) in self.of.values() {
            if *execution == pending.execution && *id == pending.id {
                return false;
            }
            share += usize::from(*owner == pending.owner);
        }
        share < SHARE
    }

    /// Waits until one is back; for ever when none is out.
    async fn one_back(&mut self) {
        match self.running.join_next_with_id().await {
            Some(Ok((id, ()))) => _ = self.of.remove(&id),
            Some(Err(error)) => {
                tracing::error!(%error, "a notice was lost on its way; it will be sent again");
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

/// What a target is to be told next; what is nobody's to tell is noted here.
async fn plan(bench: &Bench, pending: Pending) -> Result<Option<Errand>, LedgerError> {
    let events = bench.ledger.events(pending.execution, pending.standing.delivered).await?;
    match push::next(&pending, &events, bench.clock.now()) {
        Step::Tell { event, last } => Ok(Some(Errand { pending, event, last })),
        Step::Note(standing) => {
            bench.outbox.note(pending.registration, standing).await?;
            Ok(None)
        }
        Step::Rest => Ok(None),
    }
}

/// Tells a target about one event, and notes what became of it.
async fn run(bench: Arc<Bench>, errand: Errand) {
    let Errand { pending, event, last } = errand;
    let told = match tell(&bench, &pending, event).await {
        Ok(true) => Told::Received { last },
        Ok(false) => return, // Nobody wants to know any more.
        Err(cause) => {
            let (execution, target) = (pending.execution, pending.registration);
            tracing::info!(%execution, %target, event, %cause, "notice did not arrive");
            Told::Failed
        }
    };
    let standing = push::after(pending.standing, event, told, bench.clock.now(), bench.max_age);
    if standing.stage == PushStage::GivenUp {
        let (execution, target) = (pending.execution, pending.registration);
        let failures = standing.failures;
        tracing::warn!(%execution, %target, failures, "push target given up");
        (bench.given_up)(failures);
    }
    note(&bench, pending.registration, standing).await;
}

/// Tells a target about one event. Answers whether it still is a target.
async fn tell(bench: &Bench, pending: &Pending, event: u64) -> Result<bool, String> {
    let unread = |error: LedgerError| error.to_string();
    let target = bench.outbox.get(pending.execution, &pending.id).await.map_err(unread)?;
    let is_same = |target: &PushTarget| target.registration == pending.registration;
    let Some(target) = target.filter(is_same) else { return Ok(false) };
    let rendered = (bench.render)(pending.execution, target.version, event).await;
    let Some(body) = rendered.map_err(|failure| failure.message)? else { return Ok(true) };
    let record = bench.ledger.execution(pending.execution).await.map_err(unread)?;
    let trace = record.map(|record| Trace::of_execution(record.trace.as_ref(), record.id));
    let letter = Letter::notice(&target, body, trace.as_ref());
    bench.courier.bring(&letter).await.map_err(|error| chain(&error))?;
    Ok(true)
}

/// Notes how a target stands. When that cannot be done, it is told once more.
async fn note(bench: &Bench, registration: Uuid, standing: Standing) {
    if let Err(error) = bench.outbox.note(registration, standing).await {
        tracing::error!(target = %registration, %error, "notice could not be noted");
        tokio::time::sleep(PATIENCE).await; // Not again at once.
    }
}
