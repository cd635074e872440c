//! Detection of agent programs that are installed or removed while the service runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::ProgramSpec;
use tokio::task::spawn_blocking;

use super::Reloader;
use crate::config::{AgentWorker, ConfiguredAgent, ProgramSearch, is_executable};

/// Program of an agent in the configuration in force.
struct WatchedProgram {
    agent: AgentId,
    program: Arc<ProgramSpec>,
    search: Arc<ProgramSearch>,
    is_missing: bool,
}

/// Agents whose program file was moved, removed or installed: its new path, or `None` if the program is missing.
type ChangedProgramFiles = BTreeMap<AgentId, Option<PathBuf>>;

impl Reloader {
    /// Makes an agent unavailable whose program was removed, and available again
    /// when the program is installed.
    ///
    /// A program file that has not changed costs two system calls, for any number of agents that use it.
    pub(super) async fn apply_program_changes(&mut self) {
        let enabled_agents = self.settings.agents.iter().filter(|agent| agent.spec.enabled);
        let programs: Vec<_> = enabled_agents.filter_map(WatchedProgram::for_agent).collect();
        // A file system that hangs must not delay the tasks of this thread.
        let search_result = spawn_blocking(move || find_changed_program_files(programs)).await;
        let Ok(changed_files) = search_result else { return };
        if changed_files.is_empty() {
            return;
        }
        let mut settings = self.settings.clone();
        set_programs(&mut settings.agents, &changed_files);
        match self.agents.prepare_changes(&self.settings, &mut settings) {
            Ok(agent_changes) => {
                (self.settings, self.program_error) = (settings, None);
                self.agents.apply_changes(agent_changes).await;
                self.publish_http_state();
            }
            // The next check retries, and must not fill the log.
            Err(error) => record_program_error(&mut self.program_error, error.to_string()),
        }
    }
}

impl WatchedProgram {
    fn for_agent(agent: &ConfiguredAgent) -> Option<Self> {
        let AgentWorker::Program { program, search } = &agent.worker else { return None };
        Some(Self {
            agent: agent.spec.id.clone(),
            program: Arc::clone(program),
            search: Arc::clone(search),
            is_missing: agent.spec.program_worker()?.missing_program.is_some(),
        })
    }
}

/// Checks the files. A program keeps its path while the file exists, also when a program of the same name is
/// installed in a folder that is searched earlier.
fn find_changed_program_files(watched_programs: Vec<WatchedProgram>) -> ChangedProgramFiles {
    let existing_files: BTreeSet<&Path> = watched_programs
        .iter()
        .filter(|watched_program| !watched_program.is_missing)
        .map(|watched_program| watched_program.program.command.as_path())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .filter(|file| is_executable(file))
        .collect();
    let exists = |watched_program: &WatchedProgram| {
        !watched_program.is_missing
            && existing_files.contains(watched_program.program.command.as_path())
    };
    let absent = watched_programs.iter().filter(|watched_program| !exists(watched_program));
    let searched = absent.map(|watched_program| (watched_program, watched_program.search.find()));
    let changed =
        searched.filter(|(watched_program, found)| found.is_some() || !watched_program.is_missing);
    changed.map(|(watched_program, found)| (watched_program.agent.clone(), found)).collect()
}

/// Records why an installed program cannot be used, and logs it unless the previous check found the same.
fn record_program_error(program_error: &mut Option<String>, error: String) {
    if program_error.as_ref() != Some(&error) {
        tracing::error!(error, "an installed program cannot be used");
    }
    *program_error = Some(error);
}

/// Sets the programs of the agents whose program file has changed.
fn set_programs(agents: &mut [ConfiguredAgent], changed_files: &ChangedProgramFiles) {
    for agent in agents {
        if let Some(new_file) = changed_files.get(&agent.spec.id) {
            set_program(agent, new_file.clone());
        }
    }
}

/// Sets the program of an agent, or removes it.
fn set_program(agent: &mut ConfiguredAgent, new_file: Option<PathBuf>) {
    let AgentWorker::Program { program: program_spec, search } = &mut agent.worker else {
        return;
    };
    let (id, program_name) = (agent.spec.id.clone(), search.name());
    let Some(worker_spec) = Arc::make_mut(&mut agent.spec).program_worker_mut() else { return };
    if let Some(file) = new_file {
        tracing::info!(agent = %id, program = program_name, "program found: agent is available");
        worker_spec.missing_program = None;
        Arc::make_mut(program_spec).command = file;
    } else {
        tracing::warn!(agent = %id, program = program_name, "program not found: agent is unavailable");
        worker_spec.missing_program = Some(program_name);
    }
}
