//! Agents of another configuration: taken in, given what they are now, let go.

use std::collections::BTreeMap;
use std::sync::Arc;

use algonius_actors::model::id::AgentId;
use algonius_actors::root::Seat;

use super::Reloader;
use super::difference::changes;
use crate::StartError;
use crate::admit::guarded;
use crate::config::{Agent, Settings};
use crate::front::Specs;
use crate::wire::admin::Changes;

/// What becomes of the agents.
pub(super) struct Agents {
    /// As it is told.
    pub(super) told: Changes,
    /// Those that are new, or other than they were, made ready.
    seats: Vec<Seat>,
    /// Those that are configured no longer.
    gone: Vec<AgentId>,
}

impl Agents {
    /// Those that are new, or other than they were.
    pub(super) fn specs(&self) -> Specs {
        super::specs(self.seats.iter().map(|seat| &seat.spec))
    }
}

impl Reloader {
    /// Finds what differs, and makes ready what is new; what is as it was is shared with what is in
    /// force. Nothing that is in force is changed by that.
    ///
    /// # Errors
    /// When this machine, or the service as it was started, cannot do what is configured.
    pub(super) fn prepare(&self, settings: &mut Settings) -> Result<Agents, StartError> {
        let name = |agent: &Agent| agent.spec.id.to_string();
        self.share(&mut settings.agents);
        let told = changes(&self.settings.agents, &settings.agents, name, |one, it| one == it);
        guarded(&settings.agents, self.world.front.address())?;
        let mut seats = Vec::new();
        for agent in &mut settings.agents {
            let id = name(agent);
            if told.added.contains(&id) || told.changed.contains(&id) {
                self.world.workshop.settle(agent)?;
                seats.push(self.world.workshop.seat(agent.clone()));
            }
        }
        let gone = told.removed.iter().filter_map(|id| AgentId::new(id.as_str()).ok()).collect();
        Ok(Agents { told, seats, gone })
    }

    /// Puts those in force in the place of those that are written as they are. What holds an agent is
    /// not written: it is that of the one in force until it is settled anew.
    fn share(&self, agents: &mut [Agent]) {
        let known = self.settings.agents.iter().map(|agent| (&agent.spec.id, agent));
        let known: BTreeMap<_, _> = known.collect();
        for agent in agents {
            let before = known.get(&agent.spec.id).filter(|it| !Arc::ptr_eq(&it.spec, &agent.spec));
            let Some(before) = before else { continue };
            let spec = Arc::make_mut(&mut agent.spec);
            spec.enforcement = before.spec.enforcement;
            spec.isolation.clone_from(&before.spec.isolation);
            spec.holding = before.spec.holding;
            if *agent == **before {
                *agent = (*before).clone();
            }
        }
    }

    /// Has the tree change over. What runs goes on as it began; what waits goes on in its line.
    pub(super) async fn change_over(&mut self, agents: Agents) {
        for seat in agents.seats {
            self.specs.insert(seat.spec.id.clone(), Arc::clone(&seat.spec));
            self.world.seating.seat(seat).await;
        }
        for id in agents.gone {
            // Who waits for what it asked can go on to look for it, until that has ended.
            let gone = self.world.seating.unseat(id.clone());
            self.departures.spawn(async move { gone.await.then_some(id) });
        }
    }

    /// An agent has finished what it had: callers know it no longer.
    pub(super) fn gone(&mut self, agent: Option<AgentId>) {
        let Some(id) = agent else { return };
        if self.settings.agents.iter().all(|agent| agent.spec.id != id) {
            self.specs.remove(&id);
            self.show();
        }
    }
}
