//! Agents that an environment adds, changes and removes at run time.

use std::sync::Arc;

use super::World;
use crate::model::agent::AgentSpec;
use crate::root::{AgentDefinition, Seating};

impl World {
    /// Adds an agent, or replaces the definition of an existing one.
    pub async fn seat(&self, spec: AgentSpec) {
        let seat = AgentDefinition { spec: Arc::new(spec), driver: self.driver.clone() };
        self.seating().seat(seat).await;
    }

    /// Removes an agent; the returned future completes when its work has ended, and is true if the agent is gone.
    pub fn unseat(&self, agent: &str) -> impl Future<Output = bool> + Send + use<> {
        self.seating().unseat(super::spec(agent).id)
    }

    fn seating(&self) -> Seating {
        Seating(self.api.tree.root.clone())
    }
}
