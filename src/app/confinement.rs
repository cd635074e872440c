//! Decides the confinement of each agent from the capabilities of this machine, before any agent runs.

mod boundary_facts;
mod limits;
mod secret_files;
mod users;

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Arc;

use algonius_actors::decide::host::sandbox::choose_confinement;
use algonius_actors::model::agent::Access;
use algonius_actors::model::host::boundary::{Boundary, BoundaryGap};
use algonius_actors::model::host::host_capabilities::HostCapabilities;
use algonius_actors::model::host::sandbox::{
    BackendConfinement, Confinement, Isolation, IsolationRequirement, Sandbox,
};
use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::backend_program::{BackendProgram, BackendRole};
use algonius_warden::confinement::service_folders::ProtectedServiceFiles;

use self::boundary_facts::ConfinedProgram;
pub(crate) use self::boundary_facts::has_own_user;
use self::users::UserAssignments;
use crate::StartError;
use crate::config::{ConfiguredAgent, ServiceFiles};
use crate::drivers::files::agent_home;

pub(crate) use self::limits::{decide_and_check_limits, open_control_groups};
pub(crate) use self::secret_files::secret_files_visible_if_replaced;

/// Capabilities of this machine, and the files on it that agents must not reach.
pub(crate) struct HostContext<'m> {
    pub(crate) capabilities: &'m HostCapabilities,
    pub(crate) service_files: &'m ServiceFiles,
}

/// Returns the files of the service in the form for sandboxes.
pub(crate) fn protected_files(files: &ServiceFiles) -> ProtectedServiceFiles {
    let ServiceFiles { hidden_paths, read_only_paths, config_folder, .. } = files.clone();
    ProtectedServiceFiles { hidden_paths, read_only_paths, config_folder }
}

/// Decides how an agent is isolated. Fails if the isolation falls short of what its sandbox requires, and warns if it
/// leaves gaps.
pub(crate) fn decide_and_check_isolation(
    agent: &mut ConfiguredAgent,
    host: &HostContext<'_>,
) -> Result<(), StartError> {
    decide_isolation(agent, host);
    check_backend_sandboxes(agent, host)?;
    let (spec, program) = (&agent.spec, agent.program());
    let Some(program) = program.filter(|_| spec.enabled) else { return Ok(()) };
    if has_own_user(program) && !host.capabilities.users {
        return Err(StartError::User {
            agent: spec.id.clone(),
            cause: MISSING_USER_RIGHTS.to_owned(),
        });
    }
    let Some(confinement) = spec.confinement() else { return Ok(()) };
    let boundary = &confinement.boundary;
    let sockets = &host.capabilities.sockets;
    if has_isolation_shortfall((spec.access, confinement), &program.sandbox, sockets) {
        let (agent, mechanisms) = (spec.id.clone(), describe_mechanisms(host.capabilities));
        let gaps =
            boundary.describe_gaps("the agent").map(|gaps| format!(": {gaps}")).unwrap_or_default();
        return Err(StartError::Sandbox { agent, mechanisms, gaps });
    }
    let (agent, mechanisms) = (&spec.id, describe_mechanisms(host.capabilities));
    if confinement.enforcement.is_incomplete() {
        let enforcement = confinement.enforcement.as_str();
        tracing::warn!(%agent, enforcement, mechanisms, "sandbox not enforced for agent");
    }
    warn_about_agent_gaps(&spec.id, boundary);
    Ok(())
}

/// Warns if the boundary of an enabled agent, or of a program behind its tools, leaves gaps.
pub(crate) fn warn_about_gaps(agent: &ConfiguredAgent) {
    if !agent.spec.enabled {
        return;
    }
    if let Some(confinement) = agent.spec.confinement() {
        warn_about_agent_gaps(&agent.spec.id, &confinement.boundary);
    }
    for (backend, program) in agent.backends() {
        warn_about_backend_gaps(&agent.spec.id, &backend, &program.confinement.boundary);
    }
}

fn warn_about_agent_gaps(agent: &AgentId, boundary: &Boundary) {
    if let Some(gaps) = boundary.describe_gaps("the agent") {
        let level = boundary.level.as_str();
        tracing::warn!(%agent, level, gaps, "agent is not isolated from the service");
    }
}

fn warn_about_backend_gaps(agent: &AgentId, backend: &BackendRole, boundary: &Boundary) {
    if let Some(gaps) = describe_backend_gaps(backend, boundary) {
        let level = boundary.level.as_str();
        tracing::warn!(%agent, %backend, level, gaps, "backend program is not isolated from the service");
    }
}

fn describe_backend_gaps(backend: &BackendRole, boundary: &Boundary) -> Option<String> {
    boundary.describe_gaps(&format!("the {}", backend.kind_name()))
}

/// Checks the isolation of the programs behind an agent's tools, and warns if it leaves gaps.
fn check_backend_sandboxes(
    agent: &ConfiguredAgent,
    host: &HostContext<'_>,
) -> Result<(), StartError> {
    if !agent.spec.enabled {
        return Ok(());
    }
    for (backend, program) in agent.backends() {
        let (confinement, agent) = (&program.confinement, &agent.spec.id);
        let mechanisms = describe_mechanisms(host.capabilities);
        let subject = (BackendProgram::ACCESS, confinement);
        if has_isolation_shortfall(subject, &program.sandbox, &host.capabilities.sockets) {
            let agent = agent.clone();
            let gaps = describe_backend_gaps(&backend, &confinement.boundary)
                .map(|gaps| format!(": {gaps}"))
                .unwrap_or_default();
            return Err(StartError::BackendSandbox { agent, backend, mechanisms, gaps });
        }
        if confinement.enforcement.is_incomplete() {
            let enforcement = confinement.enforcement.as_str();
            tracing::warn!(%agent, %backend, enforcement, mechanisms, "sandbox not enforced for backend program");
        }
        warn_about_backend_gaps(agent, &backend, &confinement.boundary);
    }
    Ok(())
}

/// Decides the isolation of an agent and of the programs behind its tools, whether that suffices or not. Reads files.
pub(crate) fn decide_isolation(agent: &mut ConfiguredAgent, host: &HostContext<'_>) {
    for (_, program) in agent.backends_mut() {
        decide_backend_isolation(program, host);
    }
    publish_backend_confinements(agent);
    let Some(program) = agent.program().cloned() else { return };
    if program.sandbox.canonical_paths.is_none() {
        let canonical_paths =
            ConfinedProgram::for_agent(agent, &program).resolve_sandbox_paths(host.service_files);
        if let Some(program) = agent.program_mut() {
            program.sandbox.canonical_paths = Some(canonical_paths);
        }
    }
    let Some(program) = agent.program().cloned() else { return };
    let sockets = &host.capabilities.sockets;
    let boundary_facts = ConfinedProgram::for_agent(agent, &program)
        .collect_boundary_facts((host.service_files, sockets));
    let spec = Arc::make_mut(&mut agent.spec);
    let confinement = choose_confinement(
        spec.access,
        &program.sandbox,
        host.capabilities.sandbox_capabilities(),
        &boundary_facts,
    );
    if let Some(worker_spec) = spec.program_worker_mut() {
        worker_spec.confinement = confinement;
    }
}

/// Copies the confinement of an agent's backend programs into its specification, which the status shows.
pub(crate) fn publish_backend_confinements(agent: &mut ConfiguredAgent) {
    let Some(cognitive) = agent.spec.cognitive() else { return };
    let backends: Vec<_> = agent
        .backends()
        .map(|(backend, program)| BackendConfinement {
            section: backend.section(),
            confinement: program.confinement.clone(),
        })
        .collect();
    if cognitive.backends == backends {
        return; // Avoids a copy: the actor of the agent shares the specification.
    }
    if let Some(cognitive) = Arc::make_mut(&mut agent.spec).cognitive_mut() {
        cognitive.backends = backends;
    }
}

fn decide_backend_isolation(program: &mut BackendProgram, host: &HostContext<'_>) {
    if program.sandbox.canonical_paths.is_none() {
        program.sandbox.canonical_paths =
            Some(ConfinedProgram::for_backend(program).resolve_sandbox_paths(host.service_files));
    }
    let sockets = &host.capabilities.sockets;
    let boundary_facts =
        ConfinedProgram::for_backend(program).collect_boundary_facts((host.service_files, sockets));
    program.confinement = choose_confinement(
        BackendProgram::ACCESS,
        &program.sandbox,
        host.capabilities.sandbox_capabilities(),
        &boundary_facts,
    );
}

/// Returns true if the isolation of an agent or a backend program falls short of the required isolation. These sockets
/// exist on the machine.
pub(crate) fn has_isolation_shortfall(
    (access, confinement): (Access, &Confinement),
    sandbox: &Sandbox,
    sockets: &[PathBuf],
) -> bool {
    let has_forbidden_gap = match sandbox.isolation_requirement {
        IsolationRequirement::Nothing => return false,
        // The agent could change the configuration although it is confined to some folders.
        IsolationRequirement::Sandbox => {
            sandbox.restricts_writes(access)
                && confinement.boundary.gaps.contains(&BoundaryGap::Configuration)
        }
        IsolationRequirement::SandboxAndServiceFiles => {
            // A configured socket is a decision of the operator.
            let is_forbidden = |socket: &PathBuf| !sandbox.allowed_sockets.contains(socket);
            let reaches_sockets = confinement.isolation != Some(Isolation::Bubblewrap)
                && confinement.boundary.gaps.contains(&BoundaryGap::Sockets)
                && sockets.iter().any(is_forbidden);
            let reaches_other_agents =
                confinement.boundary.gaps.contains(&BoundaryGap::OtherAgents);
            confinement.boundary.allows_privilege_escalation()
                || reaches_sockets
                || reaches_other_agents
        }
    };
    has_forbidden_gap || confinement.enforcement.is_incomplete()
}

/// Reason why the service can assign no user.
const MISSING_USER_RIGHTS: &str = "the service may not change users: run it as root, or give it the capabilities \
     CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID and SETUID";

/// Returns the sandbox mechanisms of a machine as text.
fn describe_mechanisms(capabilities: &HostCapabilities) -> String {
    let landlock =
        capabilities.landlock.map_or("no Landlock".to_owned(), |v| format!("Landlock {v}"));
    format!("{landlock}, bubblewrap {}", capabilities.bubblewrap.as_str())
}

/// Folders of agents that have their own users, and the range of the dynamic users.
#[derive(Clone)]
pub(crate) struct AgentUserSettings {
    pub(crate) data_dir: PathBuf,
    pub(crate) runtime_dir: PathBuf,
    pub(crate) uid_range: Option<(u32, u32)>,
}

/// Sets the user id of an agent with a dynamic user, and lets an agent of another user pass through the service's
/// folders to its own.
pub(crate) fn prepare_agent_user(
    agent: &mut ConfiguredAgent,
    user_settings: &AgentUserSettings,
) -> Result<(), StartError> {
    let Some(program) = agent.program().filter(|_| agent.spec.enabled) else { return Ok(()) };
    if !has_own_user(program) {
        return Ok(());
    }
    let has_dynamic_user = program.user.is_dynamic;
    let id = agent.spec.id.clone();
    let user_error = |cause: String| StartError::User { agent: id.clone(), cause };
    if has_dynamic_user {
        let users = UserAssignments::read(&user_settings.data_dir, user_settings.uid_range);
        let user = users.and_then(|mut users| users.find_or_assign(&agent.spec.id));
        let user = user.map_err(|error| user_error(error.to_string()))?;
        if let Some(program) = agent.program_mut() {
            program.user.ids = Some(user);
        }
    }
    for folder in [&user_settings.data_dir, &user_settings.runtime_dir] {
        let result = DirBuilder::new().recursive(true).mode(PASS_THROUGH_MODE).create(folder);
        let result =
            // The umask may have removed bits, and the folder may have existed before.
            result.and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(PASS_THROUGH_MODE)));
        result.map_err(|error| {
            user_error(format!("a folder cannot be opened for passage: {error}"))
        })?;
    }
    Ok(())
}

/// Mode of a folder that others may pass through, but not list.
const PASS_THROUGH_MODE: u32 = 0o711;

/// Creates the private home of an agent, with its configured files.
pub(crate) fn create_home(agent: &ConfiguredAgent) -> Result<(), StartError> {
    let Some(program) = agent.program().filter(|_| agent.spec.enabled) else { return Ok(()) };
    let home = program.runtime_settings.agent_home.as_deref();
    let created = home.map_or(Ok(()), |home| agent_home::create_or_update(home, program.user.ids));
    created.map_err(|source| StartError::Home { agent: agent.spec.id.clone(), source })
}
