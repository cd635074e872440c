//! Agents of another configuration: added, changed and removed agents.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::ProgramSpec;
use algonius_actors::model::program::backend_program::{BackendProgram, BackendRole};
use algonius_actors::root::{AgentDefinition, AgentRegistry};
use tokio::task::JoinSet;

use super::difference::diff_by_name;
use crate::StartError;
use crate::app::agent_factory::AgentFactory;
use crate::app::confinement::{has_own_user, publish_backend_confinements};
use crate::app::credentials::check_anonymous_access;
use crate::app::http_state::AgentSpecs;
use crate::config::{ConfiguredAgent, ServiceFiles, Settings};
use crate::wire::admin::Changes;

/// Difference of the agents.
pub(super) struct AgentChanges {
    /// Names of the changed agents, for the report.
    pub(super) reported_changes: Changes,
    /// New and changed agents, prepared.
    definitions: Vec<AgentDefinition>,
    /// Agents that are no longer configured.
    removed: Vec<AgentId>,
}

impl AgentChanges {
    /// Returns the new and changed agents.
    pub(super) fn specs(&self) -> AgentSpecs {
        specs_by_id(self.definitions.iter().map(|definition| &definition.spec))
    }
}

/// Agents that callers can reach: those in force, and removed ones that finish their executions.
pub(super) struct ServedAgents {
    pub(super) factory: AgentFactory,
    agent_registry: AgentRegistry,
    /// Address on which the service listens.
    address: SocketAddr,
    specs: AgentSpecs,
    /// Tasks that end together with a removed agent.
    drains: JoinSet<Option<AgentId>>,
}

impl ServedAgents {
    /// Returns the agents of the start.
    pub(super) fn new(
        (factory, agent_registry): (AgentFactory, AgentRegistry),
        address: SocketAddr,
        specs: AgentSpecs,
    ) -> Self {
        Self { factory, agent_registry, address, specs, drains: JoinSet::new() }
    }

    /// Returns all agents that callers can reach.
    pub(super) const fn specs(&self) -> &AgentSpecs {
        &self.specs
    }

    /// Hides the files of a configuration from programs that are started from now on.
    pub(super) async fn hide_service_files(&self, files: ServiceFiles) {
        self.factory.hide_service_files(files).await;
    }

    /// Finds the differences, and prepares the new and changed agents; unchanged ones share their data with the
    /// configuration in force (`before`), which this call does not modify.
    ///
    /// # Errors
    /// Fails if this machine, or the service as it was started, cannot do what is configured.
    pub(super) fn prepare_changes(
        &self,
        before: &Settings,
        settings: &mut Settings,
    ) -> Result<AgentChanges, StartError> {
        let id_of = |agent: &ConfiguredAgent| agent.spec.id.to_string();
        self.carry_over_agents_in_force(before, settings);
        let changes = diff_by_name(&before.agents, &settings.agents, id_of, |one, it| one == it);
        // The address in force counts: a new one takes effect only after a restart.
        check_anonymous_access(&settings.agents, self.address)?;
        let mut definitions = Vec::new();
        for agent in &mut settings.agents {
            let id = id_of(agent);
            if changes.added.contains(&id) || changes.changed.contains(&id) {
                self.factory.prepare_confinement(agent, &settings.service_files)?;
                definitions.push(self.factory.build_definition(agent.clone()));
            }
        }
        let removed =
            changes.removed.iter().filter_map(|id| AgentId::new(id.as_str()).ok()).collect();
        Ok(AgentChanges { reported_changes: changes, definitions, removed })
    }

    /// Replaces equal agents with those in force. The confinement of an agent is not written in the file: it is taken
    /// from the one in force until it is decided anew.
    fn carry_over_agents_in_force(&self, in_force: &Settings, settings: &mut Settings) {
        let Settings { agents, service_files, .. } = settings;
        let has_other_files = *service_files != in_force.service_files;
        let agents_in_force = in_force.agents.iter().map(|agent| (&agent.spec.id, agent));
        let agents_in_force: BTreeMap<_, _> = agents_in_force.collect();
        let mcp_servers_in_force: BTreeMap<_, _> = in_force
            .agents
            .iter()
            .flat_map(ConfiguredAgent::backends)
            .filter(|(role, _)| matches!(role, BackendRole::McpServer(_)))
            .collect();
        for agent in agents {
            let before = agents_in_force
                .get(&agent.spec.id)
                .filter(|it| !Arc::ptr_eq(&it.spec, &agent.spec));
            // All agents share a server, and so its facts.
            carry_over_backend_facts(agent, &mcp_servers_in_force);
            let Some(before) = before else { continue };
            // Compared without decided facts, an unchanged agent would look changed and be replaced.
            let worker_spec = Arc::make_mut(&mut agent.spec).program_worker_mut();
            if let (Some(worker_spec), Some(before)) = (worker_spec, before.spec.program_worker()) {
                worker_spec.confinement.clone_from(&before.confinement);
                worker_spec.limit_enforcement = before.limit_enforcement;
            }
            let are_folders_unchanged = has_same_folders(agent, before);
            if let (Some(program), Some(before)) = (agent.program_mut(), before.program()) {
                if program.user.is_dynamic && before.user.is_dynamic {
                    program.user.ids = before.user.ids;
                }
                if are_folders_unchanged {
                    program.sandbox.canonical_paths.clone_from(&before.sandbox.canonical_paths);
                }
            }
            carry_over_backend_facts(agent, &before.backends().collect());
            // A boundary by a user depends on modes, which may have changed.
            let has_own_user = agent.program().is_some_and(|program| has_own_user(program));
            if has_other_files || has_own_user {
                self.factory.decide_isolation(agent, service_files);
            }
            if *agent == **before {
                *agent = (*before).clone();
            }
        }
    }

    /// Applies the difference to the supervision tree. Running executions continue unchanged, and queued ones stay in
    /// their queue.
    pub(super) async fn apply_changes(&mut self, agent_changes: AgentChanges) {
        self.replace_agents(agent_changes.definitions).await;
        for id in agent_changes.removed {
            // Callers of the removed agent can still poll their executions until it has finished.
            let removal = self.agent_registry.unregister(id.clone());
            self.drains.spawn(async move { removal.await.then_some(id) });
        }
    }

    /// Puts new and changed agents into force.
    pub(super) async fn replace_agents(&mut self, definitions: Vec<AgentDefinition>) {
        for definition in definitions {
            self.specs.insert(definition.spec.id.clone(), Arc::clone(&definition.spec));
            self.agent_registry.register(definition).await;
        }
    }

    /// Puts changed settings of agents into force, and keeps their drivers.
    pub(super) async fn replace_specs(&mut self, specs: Vec<Arc<AgentSpec>>) {
        for spec in specs {
            self.specs.insert(spec.id.clone(), Arc::clone(&spec));
            self.agent_registry.replace_spec(spec).await;
        }
    }

    /// Waits for a removed agent to finish its executions; `None` if no agent is leaving. An agent that came back
    /// meanwhile is an inner `None`.
    pub(super) async fn next_drained_agent(&mut self) -> Option<Option<AgentId>> {
        self.drains.join_next().await.map(|removed| removed.ok().flatten())
    }

    /// Removes an agent from those that callers can reach.
    pub(super) fn remove_agent(&mut self, id: &AgentId) {
        self.specs.remove(id);
    }
}

/// Copies the decided facts about the programs behind an agent's tools.
fn carry_over_backend_facts(
    agent: &mut ConfiguredAgent,
    in_force: &BTreeMap<BackendRole, &BackendProgram>,
) {
    for (backend, program) in agent.backends_mut() {
        let Some(before) = in_force.get(&backend) else { continue };
        program.confinement.clone_from(&before.confinement);
        let folders = |program: &BackendProgram| {
            (program.sandbox.writable.clone(), program.working_dir.clone())
        };
        if folders(program) == folders(before) {
            program.sandbox.canonical_paths.clone_from(&before.sandbox.canonical_paths);
        }
    }
    publish_backend_confinements(agent);
}

/// Returns true if the configuration names the same folders. Their resolved paths are kept: meanwhile an agent may have
/// replaced one with a link.
fn has_same_folders(one: &ConfiguredAgent, other: &ConfiguredAgent) -> bool {
    let folders = |agent: &ConfiguredAgent| {
        let ProgramSpec { sandbox, working_dir, .. } = &**agent.program()?;
        let working_dir_roots = agent.spec.override_policy.working_dir_roots.clone();
        Some((sandbox.writable.clone(), working_dir.clone(), working_dir_roots))
    };
    folders(one) == folders(other)
}

/// Returns the agents of a configuration by id.
pub(crate) fn specs_by_id<'a>(specs: impl IntoIterator<Item = &'a Arc<AgentSpec>>) -> AgentSpecs {
    let entries = specs.into_iter().map(|spec| (spec.id.clone(), Arc::clone(spec)));
    entries.collect::<BTreeMap<_, _>>()
}
