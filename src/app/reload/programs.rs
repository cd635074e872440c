//! Detection of agent programs that are installed or removed while the service runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::ProgramSpec;
use tokio::task::spawn_blocking;

use super::Reloader;
use crate::config::{Agent, AgentWorker, ProgramSearch, is_executable};

/// Program of an agent in the configuration in force.
struct CheckedProgram {
    agent: AgentId,
    program: Arc<ProgramSpec>,
    search: Arc<ProgramSearch>,
    is_missing: bool,
}

/// Agents whose program has moved: its new file, or `None` if the program is missing.
type MovedPrograms = BTreeMap<AgentId, Option<PathBuf>>;

impl Reloader {
    /// Makes an agent unavailable whose program was removed, and available again
    /// when the program is installed.
    ///
    /// A program that has not moved costs two system calls, for any number of agents that use it.
    pub(super) async fn check_programs(&mut self) {
        let enabled = self.settings.agents.iter().filter(|agent| agent.spec.enabled);
        let checked_programs: Vec<_> = enabled.filter_map(CheckedProgram::of).collect();
        // A file system that hangs must not delay the tasks of this thread.
        let Ok(moves) = spawn_blocking(move || find_moved(checked_programs)).await else { return };
        if moves.is_empty() {
            return;
        }
        let mut settings = self.settings.clone();
        for agent in &mut settings.agents {
            if let Some(found) = moves.get(&agent.spec.id) {
                set_program(agent, found.clone());
            }
        }
        match self.agents.prepare(&self.settings, &mut settings) {
            Ok(agents) => {
                (self.settings, self.program_error) = (settings, None);
                self.agents.apply_changes(agents).await;
                self.publish();
            }
            // The next check retries, and must not fill the log.
            Err(error) => {
                let error = error.to_string();
                if self.program_error.as_ref() != Some(&error) {
                    tracing::error!(error, "an installed program cannot be used");
                }
                self.program_error = Some(error);
            }
        }
    }
}

impl CheckedProgram {
    fn of(agent: &Agent) -> Option<Self> {
        let AgentWorker::Program { program, search } = &agent.worker else { return None };
        Some(Self {
            agent: agent.spec.id.clone(),
            program: Arc::clone(program),
            search: Arc::clone(search),
            is_missing: agent.spec.program()?.missing.is_some(),
        })
    }
}

/// Checks the files. A program keeps its path while the file exists, also when a program of the same name is
/// installed in a folder that is searched earlier.
fn find_moved(checked_programs: Vec<CheckedProgram>) -> MovedPrograms {
    let existing: BTreeSet<&Path> = checked_programs
        .iter()
        .filter(|checked_program| !checked_program.is_missing)
        .map(|checked_program| checked_program.program.command.as_path())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .filter(|file| is_executable(file))
        .collect();
    let exists = |checked_program: &CheckedProgram| {
        !checked_program.is_missing && existing.contains(checked_program.program.command.as_path())
    };
    let absent = checked_programs.iter().filter(|checked_program| !exists(checked_program));
    let searched = absent.map(|checked_program| (checked_program, checked_program.search.find()));
    let moved =
        searched.filter(|(checked_program, found)| found.is_some() || !checked_program.is_missing);
    moved.map(|(checked_program, found)| (checked_program.agent.clone(), found)).collect()
}

/// Sets the program of an agent, or removes it.
fn set_program(agent: &mut Agent, found: Option<PathBuf>) {
    let AgentWorker::Program { program: settings, search } = &mut agent.worker else { return };
    let (id, program) = (agent.spec.id.clone(), search.name());
    let Some(program_spec) = Arc::make_mut(&mut agent.spec).program_mut() else { return };
    if let Some(file) = found {
        tracing::info!(agent = %id, program, "program found: agent is available");
        program_spec.missing = None;
        Arc::make_mut(settings).command = file;
    } else {
        tracing::warn!(agent = %id, program, "program not found: agent is unavailable");
        program_spec.missing = Some(program);
    }
}
