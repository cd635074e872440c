//! The scheduler among the root's children.

use std::time::Duration;

use ractor::{ActorCell, ActorRef};
use tokio::sync::watch;

use super::{RootData, RootMsg};
use crate::alarm::alarmed;
use crate::decide::restart::{Intensity, Restarts, Verdict, step};
use crate::door::Gateway;
use crate::kit::Kit;
use crate::scheduler::{Agenda, SchedulerActor, SchedulerArgs, SchedulerMsg};

/// How long a scheduler that fails again and again is left alone: nobody wants a night without it.
const RESPITE: Duration = Duration::from_secs(60);

/// What the root needs for its scheduler.
pub struct Scheduling {
    /// What there is to do; `None` when nothing ever is.
    pub agenda: Option<Agenda>,
    /// Where the present scheduler is told.
    pub actor: watch::Sender<Option<ActorRef<SchedulerMsg>>>,
    /// Whether the service is stopping.
    pub draining: watch::Receiver<bool>,
}

/// The same, with what happened to it.
pub(super) struct Scheduled {
    pub(super) args: Scheduling,
    pub(super) restarts: Restarts,
}

impl Scheduled {
    pub(super) fn view(&self) -> Option<(ActorRef<SchedulerMsg>, u32)> {
        let actor = self.args.actor.borrow().clone()?;
        Some((actor, self.restarts.total()))
    }
}

impl RootData {
    pub(super) async fn start_scheduler(&mut self) -> Result<(), ractor::SpawnErr> {
        let Some(agenda) = &mut self.scheduled.args.agenda else {
            return Ok(());
        };
        // It is taken up once: by a later scheduler it may have been changed since.
        let configured = agenda.configured.take();
        let agenda = Agenda { configured, ..agenda.clone() };
        let door = Gateway {
            root: self.me.clone(),
            gateway: self.gateway.subscribe(),
            draining: self.scheduled.args.draining.clone(),
            pressure: self.pressure.subscribe(),
            scheduler: self.scheduled.args.actor.subscribe(),
            timebook: Some(agenda.timebook.clone()),
            kit: Kit::clone(&self.kit),
        };
        let args = SchedulerArgs { kit: Kit::clone(&self.kit), agenda, door };
        let me = self.me.get_cell();
        let spawned = ractor::ActorRuntime::spawn_linked(None, SchedulerActor, args, me);
        let (actor, _) = spawned.await?;
        if self.draining {
            _ = actor.cast(SchedulerMsg::Drain);
        }
        self.scheduled.args.actor.send_replace(Some(actor));
        Ok(())
    }

    pub(super) fn is_scheduler(&self, child: &ActorCell) -> bool {
        let scheduler = self.scheduled.args.actor.borrow();
        scheduler.as_ref().is_some_and(|scheduler| scheduler.get_id() == child.get_id())
    }

    /// Starts it again: at once, or after a while where that was done too often.
    pub(super) async fn scheduler_failed(&mut self, fault: &str) {
        tracing::error!(fault, "scheduler failed");
        let restarts = std::mem::take(&mut self.scheduled.restarts);
        let (restarts, verdict) = step(restarts, self.born.elapsed(), Intensity::default());
        self.scheduled.restarts = restarts;
        self.scheduled.args.actor.send_replace(None);
        match verdict {
            Verdict::Restart => self.reschedule().await,
            Verdict::Quarantine => self.reschedule_later(),
        }
    }

    /// Starts it again; later, when it does not start.
    pub(super) async fn reschedule(&mut self) {
        if let Err(error) = self.start_scheduler().await {
            tracing::error!(%error, "scheduler did not start");
            self.reschedule_later();
        }
    }

    fn reschedule_later(&mut self) {
        let (me, again) = (self.me.clone(), self.me.clone());
        let later = async move {
            tokio::time::sleep(RESPITE).await; // A respite; nothing waits for it.
            _ = me.cast(RootMsg::Reschedule);
        };
        self.tasks.spawn(alarmed(later, move || _ = again.cast(RootMsg::Reschedule)));
    }
}
