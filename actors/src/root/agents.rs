//! The agents among the root's children: started, started again, given up.

use std::sync::Arc;

use ractor::{ActorRef, SpawnErr};

use super::{RootData, RootMsg, Seat, first_line, quarantined};
use crate::agent::{AgentActor, AgentArgs};
use crate::alarm::alarmed;
use crate::decide::alert::Sighting;
use crate::decide::restart::{Intensity, Verdict, step};
use crate::model::id::AgentId;
use crate::recover::settle_all;

impl RootData {
    /// Starts an agent; `begins_anew` tells that the ledger has nothing of it that has not ended.
    pub(super) async fn start_agent(
        &mut self,
        me: &ActorRef<RootMsg>,
        id: &AgentId,
        begins_anew: bool,
    ) -> Result<(), SpawnErr> {
        let Some(part) = self.parts.get_mut(id) else {
            return Ok(());
        };
        let Seat { spec, driver } = part.seat.clone();
        let (kit, pressure) = (self.kit.clone(), self.pressure.subscribe());
        let args = AgentArgs { spec, driver, kit, begins_anew, draining: self.draining, pressure };
        let spawned = ractor::ActorRuntime::spawn_linked(None, AgentActor, args, me.get_cell());
        part.actor = None;
        let (actor, _) = spawned.await?;
        part.actor = Some(actor);
        self.tell_route(id);
        self.ask_to_leave(id);
        Ok(())
    }

    /// Starts a failed agent again until that was done too often.
    pub(super) async fn agent_failed(&mut self, me: &ActorRef<RootMsg>, id: &AgentId, fault: &str) {
        let now = self.born.elapsed();
        loop {
            let Some(part) = self.parts.get_mut(id) else {
                return;
            };
            tracing::error!(agent = %id, fault, "agent failed");
            part.last_fault = Some(first_line(&self.kit.redactor.now().redact(fault)));
            let restarts = std::mem::take(&mut part.restarts);
            let (restarts, verdict) = step(restarts, now, Intensity::default());
            part.restarts = restarts;
            if verdict == Verdict::Quarantine {
                return self.quarantine(id);
            }
            if self.start_agent(me, id, false).await.is_ok() {
                return;
            }
        }
    }

    /// Leaves an agent dead, and ends what it had: nobody will take it up.
    fn quarantine(&mut self, id: &AgentId) {
        tracing::error!(agent = %id, "agent quarantined");
        self.kit.lookout.see(Sighting::Quarantined(id.clone()));
        self.settle(id.clone());
        if let Some(part) = self.parts.get_mut(id) {
            part.actor = None;
        }
        self.tell_route(id);
        self.ask_to_leave(id);
    }

    /// Ends what an agent in quarantine had; again, when the task that does it panics.
    pub(super) fn settle(&mut self, id: AgentId) {
        let Some(driver) = self.parts.get(&id).map(|part| Arc::clone(&part.seat.driver)) else {
            return;
        };
        let (kit, agent, me) = (self.kit.clone(), id.clone(), self.me.clone());
        let settling =
            async move { settle_all(&kit, &*driver, &agent, &quarantined(&agent)).await };
        self.tasks.spawn(alarmed(settling, move || _ = me.cast(RootMsg::Unsettled(id))));
    }
}
