//! How the root starts the one that keeps the history within bounds, and starts it again.

use std::sync::Arc;

use ractor::{ActorCell, ActorRef, SpawnErr};

use super::{RootData, RootMsg};
use crate::decide::restart::{Intensity, Restarts, Verdict, step};
use crate::retention::{Retention, RetentionActor, RetentionArgs, RetentionMsg};

/// The one that keeps the history within bounds; nobody does where there are none.
#[derive(Default)]
pub(super) struct Keeping {
    spec: Option<Retention>,
    actor: Option<ActorRef<RetentionMsg>>,
    restarts: Restarts,
}

impl Keeping {
    pub(super) fn new(spec: Option<Retention>) -> Self {
        Self { spec, ..Self::default() }
    }

    pub(super) fn is_played_by(&self, child: &ActorCell) -> bool {
        self.actor.as_ref().is_some_and(|actor| actor.get_id() == child.get_id())
    }

    pub(super) fn view(&self) -> Option<(ActorRef<RetentionMsg>, u32)> {
        self.actor.clone().map(|actor| (actor, self.restarts.total()))
    }
}

impl RootData {
    pub(super) async fn start_retention(&mut self, me: &ActorRef<RootMsg>) -> Result<(), SpawnErr> {
        let Some(retention) = self.keeping.spec else {
            return Ok(());
        };
        let (history, clock) = (Arc::clone(&self.kit.history), Arc::clone(&self.kit.clock));
        let args = RetentionArgs { history, clock, retention };
        let spawned = ractor::ActorRuntime::spawn_linked(None, RetentionActor, args, me.get_cell());
        self.keeping.actor = Some(spawned.await?.0);
        Ok(())
    }

    /// Work does not stop because nothing is removed.
    pub(super) async fn retention_failed(&mut self, me: &ActorRef<RootMsg>, fault: &str) {
        tracing::error!(fault, "retention failed");
        let restarts = std::mem::take(&mut self.keeping.restarts);
        let (restarts, verdict) = step(restarts, self.born.elapsed(), Intensity::default());
        self.keeping.restarts = restarts;
        let again = match verdict {
            Verdict::Restart => self.start_retention(me).await.map_err(|error| error.to_string()),
            Verdict::Quarantine => Err("it failed too often".to_owned()),
        };
        if let Err(error) = again {
            tracing::error!(error, "the history is not kept within its bounds any more");
        }
    }
}
