//! Agents of another configuration: taken in, given what they are now, let go.

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
    /// Finds what differs, and makes ready what is new. Nothing is changed by that.
    ///
    /// # Errors
    /// When this machine, or the service as it was started, cannot do what is configured.
    pub(super) fn prepare(&self, settings: &Settings) -> Result<Agents, StartError> {
        let name = |agent: &Agent| agent.spec.id.to_string();
        let told = changes(&self.settings.agents, &settings.agents, name, |one, it| one == it);
        guarded(&settings.agents, self.world.front.address())?;
        let mut seats = Vec::new();
        for agent in &settings.agents {
            let id = name(agent);
            if told.added.contains(&id) || told.changed.contains(&id) {
                let mut agent = agent.clone();
                self.world.workshop.settle(&mut agent)?;
                seats.push(self.world.workshop.seat(agent));
            }
        }
        let gone = told.removed.iter().filter_map(|id| AgentId::new(id.as_str()).ok()).collect();
        Ok(Agents { told, seats, gone })
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
