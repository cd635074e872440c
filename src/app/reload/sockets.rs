//! Detection of sockets that appear or vanish while the service runs, and through which an agent could start programs
//! outside of its sandbox.

use std::sync::Arc;

use algonius_actors::model::host::sandbox::{Confinement, Isolation};

use super::agents::ServedAgents;
use crate::app::confinement::{publish_backend_confinements, warn_about_gaps};
use crate::config::{ConfiguredAgent, Settings};

impl ServedAgents {
    /// Searches the sockets, and decides the isolation of each agent again if there are other sockets than before.
    /// Returns true if the isolation of an agent has changed. An agent without a boundary against a new socket stays
    /// available: `sandbox.required` stops its programs when they start.
    pub(super) async fn apply_socket_changes(&mut self, settings: &mut Settings) -> bool {
        if !self.factory.update_escape_sockets().await {
            return false;
        }
        let Settings { agents, service_files, .. } = settings;
        let (mut specs, mut definitions) = (Vec::new(), Vec::new());
        for agent in agents {
            let mut decided_agent = agent.clone();
            self.factory.decide_isolation(&mut decided_agent, service_files);
            keep_bubblewrap(agent, &mut decided_agent);
            if decided_agent == *agent {
                continue; // Its data stays shared with the actor of the agent.
            }
            let has_same_isolation = isolations(agent).eq(isolations(&decided_agent));
            *agent = decided_agent;
            log_isolation(agent);
            // A new driver would end the processes that the old one keeps for sessions.
            match has_same_isolation {
                true => specs.push(Arc::clone(&agent.spec)),
                false => definitions.push(self.factory.build_definition(agent.clone())),
            }
        }
        let has_changes = !definitions.is_empty() || !specs.is_empty();
        self.replace_specs(specs).await;
        self.replace_agents(definitions).await;
        has_changes
    }
}

/// Keeps an agent and the programs behind its tools in bubblewrap: a socket that comes and goes must not replace their
/// processes each time.
fn keep_bubblewrap(before: &ConfiguredAgent, agent: &mut ConfiguredAgent) {
    let leaves_bubblewrap = |before: &Confinement, now: &Confinement| {
        before.isolation == Some(Isolation::Bubblewrap) && now.isolation != before.isolation
    };
    if let Some((before, now)) = before.spec.confinement().zip(agent.spec.confinement())
        && leaves_bubblewrap(before, now)
        && let Some(worker_spec) = Arc::make_mut(&mut agent.spec).program_worker_mut()
    {
        worker_spec.confinement.clone_from(before);
    }
    for ((_, program), (_, before)) in agent.backends_mut().zip(before.backends()) {
        if leaves_bubblewrap(&before.confinement, &program.confinement) {
            program.confinement.clone_from(&before.confinement);
        }
    }
    publish_backend_confinements(agent);
}

/// Returns the mechanisms that confine an agent and the programs behind its tools.
fn isolations(agent: &ConfiguredAgent) -> impl Iterator<Item = Option<Isolation>> {
    let own = agent.spec.confinement().and_then(|confinement| confinement.isolation);
    std::iter::once(own).chain(agent.backends().map(|(_, program)| program.confinement.isolation))
}

fn log_isolation(agent: &ConfiguredAgent) {
    if let Some(confinement) = agent.spec.confinement() {
        let level = confinement.boundary.level.as_str();
        tracing::info!(agent = %agent.spec.id, level, "boundary of agent changed");
    }
    warn_about_gaps(agent);
}
