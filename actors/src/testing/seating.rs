//! Agents of a world that come, change and go while it lives.

use std::sync::Arc;

use super::World;
use crate::model::agent::AgentSpec;
use crate::root::{Seat, Seating};

impl World {
    /// Takes an agent in, or gives one that is there what it is now.
    pub async fn seat(&self, spec: AgentSpec) {
        let seat = Seat { spec: Arc::new(spec), driver: self.driver.clone() };
        self.seating().seat(seat).await;
    }

    /// Lets an agent go; what is returned ends with it, and tells whether it is gone.
    pub fn unseat(&self, agent: &str) -> impl Future<Output = bool> + Send + use<> {
        self.seating().unseat(super::spec(agent).id)
    }

    fn seating(&self) -> Seating {
        Seating(self.door.root.clone())
    }
}
