//! Agents of the configuration in force: their definitions, their paths, and the facts about their programs.

use std::collections::BTreeMap;
use std::sync::Arc;

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::observation::status::ProgramStatus;

/// Function that returns the known facts about the program of an agent.
pub type ProgramStatusFn = Arc<dyn Fn(&AgentId) -> Option<ProgramStatus> + Send + Sync>;

/// Aliases: the additional paths of agents beside `/agents/<id>`.
pub type PathAliases = BTreeMap<String, AgentId>;

/// Agents by id, with what requests need to find one.
pub struct AgentDirectory {
    specs: BTreeMap<AgentId, Arc<AgentSpec>>,
    program_status_fn: ProgramStatusFn,
    /// Additional paths of agents.
    pub aliases: PathAliases,
    /// Agent whose card is the card of the host.
    pub default_agent: Option<AgentId>,
}

impl AgentDirectory {
    /// Creates the directory of these agents.
    #[must_use]
    pub fn new(
        specs: BTreeMap<AgentId, Arc<AgentSpec>>,
        default_agent: Option<AgentId>,
        program_status_fn: ProgramStatusFn,
    ) -> Self {
        let alias = |spec: &Arc<AgentSpec>| {
            Some((spec.endpoint_config.base_path.clone()?, spec.id.clone()))
        };
        let aliases = specs.values().filter_map(alias).collect();
        Self { specs, program_status_fn, aliases, default_agent }
    }

    /// Returns the definition of an agent.
    #[must_use]
    pub fn get(&self, id: &AgentId) -> Option<&Arc<AgentSpec>> {
        self.specs.get(id)
    }

    /// Returns all definitions, by id.
    pub fn all(&self) -> impl Iterator<Item = &Arc<AgentSpec>> {
        self.specs.values()
    }

    /// True if the agent is configured.
    #[must_use]
    pub fn contains(&self, id: &AgentId) -> bool {
        self.specs.contains_key(id)
    }

    /// Returns the id of a configured agent.
    ///
    /// # Errors
    /// `agent-unknown`.
    pub fn resolve_id(&self, name: &str) -> Result<AgentId, Failure> {
        AgentId::new(name).ok().filter(|id| self.contains(id)).ok_or_else(unknown_agent)
    }

    /// Returns the known facts about the program of an agent.
    #[must_use]
    pub fn program_status(&self, id: &AgentId) -> Option<ProgramStatus> {
        (self.program_status_fn)(id)
    }
}

/// Creates the failure of a request to an agent that is not configured.
pub(super) fn unknown_agent() -> Failure {
    Failure::new(Code::AgentUnknown, "there is no such agent")
}

/// Returns what follows an alias at the beginning of a path, and the agent that the alias stands for.
pub(super) fn strip_alias<'p, 'a>(
    path: &'p str,
    aliases: &'a PathAliases,
) -> Option<(&'p str, &'a AgentId)> {
    aliases.iter().find_map(|(alias, id)| {
        let subpath = path.strip_prefix(alias.as_str())?;
        (subpath.is_empty() || subpath.starts_with('/')).then_some((subpath, id))
    })
}
