//! Agents that an environment adds, changes and removes at run time.

use std::sync::Arc;

use super::TestTree;
use crate::model::agent::AgentSpec;
use crate::root::{AgentDefinition, AgentRegistry};

impl TestTree {
    /// Adds an agent, or replaces the definition of an existing one.
    pub async fn register(&self, spec: AgentSpec) {
        let definition = AgentDefinition { spec: Arc::new(spec), driver: self.driver.clone() };
        self.agent_registry().register(definition).await;
    }

    /// Removes an agent; the returned future completes when its work has ended, and is true if the agent is gone.
    pub fn unregister(&self, agent: &str) -> impl Future<Output = bool> + Send + use<> {
        self.agent_registry().unregister(super::agent_spec(agent).id)
    }

    fn agent_registry(&self) -> AgentRegistry {
        AgentRegistry(self.api.tree.root.clone())
    }
}
