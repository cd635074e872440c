//! Secret files that agents in bubblewrap can read if another file replaces them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use algonius_actors::model::host::sandbox::{Confinement, Isolation};
use algonius_warden::confinement::service_folders::UsedFolders;

use super::protected_files;
use crate::config::{ConfiguredAgent, Settings};

/// Returns the secret files whose replacement some enabled agent in bubblewrap can read while it runs. The isolation of
/// the agents must have been decided. Lists folders, so it may block.
pub(crate) fn secret_files_visible_if_replaced(settings: &Settings) -> BTreeSet<PathBuf> {
    let service_files = protected_files(&settings.service_files);
    let enabled_agents = settings.agents.iter().filter(|agent| agent.spec.enabled);
    let uses = enabled_agents.flat_map(bubblewrap_uses);
    uses.flat_map(|it| service_files.files_visible_if_replaced(&it)).collect()
}

/// Returns the folders that an agent and the programs behind its tools use, of each that runs in bubblewrap.
fn bubblewrap_uses(agent: &ConfiguredAgent) -> Vec<UsedFolders> {
    let is_in_bubblewrap = |it: &Confinement| it.isolation == Some(Isolation::Bubblewrap);
    let mut uses = Vec::new();
    if let Some(program) = agent.program()
        && agent.spec.confinement().is_some_and(is_in_bubblewrap)
    {
        let roots = agent.spec.override_policy.working_dir_roots.iter();
        let writable = program.sandbox.writable.iter().flatten();
        // A private home is mounted over a hidden folder.
        let home = &program.runtime_settings.home;
        let home = Some(home).filter(|_| program.runtime_settings.agent_home.is_none());
        uses.push(UsedFolders {
            workspaces: roots.chain([&program.working_dir]).cloned().collect(),
            other_paths: writable.chain([&program.command]).chain(home).cloned().collect(),
        });
    }
    let backends = agent.backends().filter(|(_, it)| is_in_bubblewrap(&it.confinement));
    uses.extend(backends.map(|(_, program)| {
        UsedFolders {
            workspaces: program.working_dir.iter().cloned().collect(),
            other_paths: [&program.home, &program.command]
                .into_iter()
                .chain(program.sandbox.writable.iter().flatten())
                .cloned()
                .collect(),
        }
    }));
    uses
}
