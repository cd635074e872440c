//! Decides the confinement of each agent from the capabilities of this machine, before any agent runs.

mod environment_facts;
mod homes;
mod users;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Arc;

use algonius_actors::decide::host::resources::{enforced_limits, missing_capability};
use algonius_actors::decide::host::sandbox::isolate;
use algonius_actors::model::agent::Access;
use algonius_actors::model::host::boundary::BoundaryGap;
use algonius_actors::model::host::host_capabilities::HostCapabilities;
use algonius_actors::model::host::sandbox::{Confinement, Requirement, Sandbox};
use algonius_warden::confinement::group::{CgroupRoot, ControlGroups};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use self::environment_facts::has_own_user;
use self::users::UserAssignments;
use crate::StartError;
use crate::config::{Agent, ServiceFiles};

/// Capabilities of this machine, and the files on it that agents must not reach.
pub(crate) struct HostContext<'m> {
    pub(crate) capabilities: &'m HostCapabilities,
    pub(crate) files: &'m ServiceFiles,
}

/// Decides how an agent is isolated, and warns if the isolation leaves gaps.
pub(crate) fn decide_sandbox(
    agent: &mut Agent,
    machine: &HostContext<'_>,
) -> Result<(), StartError> {
    decide_isolation(agent, machine);
    let (spec, program) = (&agent.spec, agent.program());
    let Some(program) = program.filter(|_| spec.enabled) else { return Ok(()) };
    if has_own_user(program) && !machine.capabilities.users {
        return Err(StartError::User {
            agent: spec.id.clone(),
            cause: MISSING_USER_RIGHTS.to_owned(),
        });
    }
    let Some(confinement) = spec.confinement() else { return Ok(()) };
    let boundary = &confinement.boundary;
    if falls_short((spec.access, confinement), &program.sandbox) {
        let (agent, mechanisms) = (spec.id.clone(), describe_mechanisms(machine.capabilities));
        let gaps = boundary.warning().map(|gaps| format!(": {gaps}")).unwrap_or_default();
        return Err(StartError::Sandbox { agent, mechanisms, gaps });
    }
    let (agent, mechanisms) = (&spec.id, describe_mechanisms(machine.capabilities));
    if confinement.enforcement.is_incomplete() {
        let enforcement = confinement.enforcement.as_str();
        tracing::warn!(%agent, enforcement, mechanisms, "sandbox not enforced for agent");
    }
    if let Some(gaps) = boundary.warning() {
        let level = boundary.level.as_str();
        tracing::warn!(%agent, level, gaps, "agent is not isolated from the service");
    }
    Ok(())
}

/// Decides the isolation of an agent on a machine, whether that suffices or not. Reads files.
pub(crate) fn decide_isolation(agent: &mut Agent, machine: &HostContext<'_>) {
    let Some(program) = agent.program().cloned() else { return };
    if program.sandbox.roots.is_none() {
        let roots = environment_facts::resolve_roots(agent, &program, machine.files);
        if let Some(program) = agent.program_mut() {
            program.sandbox.roots = Some(roots);
        }
    }
    let Some(program) = agent.program().cloned() else { return };
    let sockets = &machine.capabilities.sockets;
    let around = environment_facts::inspect_surroundings(agent, &program, (machine.files, sockets));
    let spec = Arc::make_mut(&mut agent.spec);
    let found = isolate(
        spec.access,
        &program.sandbox,
        machine.capabilities.sandbox_capabilities(),
        &around,
    );
    if let Some(program_spec) = spec.program_mut() {
        program_spec.confinement = found;
    }
}

/// Returns true if the isolation of an agent falls short of the required isolation.
pub(crate) fn falls_short((access, found): (Access, &Confinement), sandbox: &Sandbox) -> bool {
    let is_open = match sandbox.required {
        Requirement::Nothing => return false,
        // The agent could change the configuration although it is confined to some folders.
        Requirement::Sandbox => {
            sandbox.guards_files(access)
                && found.boundary.gaps.contains(&BoundaryGap::Configuration)
        }
        Requirement::Boundary => found.boundary.is_open(),
    };
    is_open || found.enforcement.is_incomplete()
}

/// Reason why the service can assign no user.
const MISSING_USER_RIGHTS: &str = "the service may not change users: run it as root, or give it the capabilities \
     CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID and SETUID";

/// Returns the sandbox mechanisms of a machine as text.
fn describe_mechanisms(machine: &HostCapabilities) -> String {
    let landlock = machine.landlock.map_or("no Landlock".to_owned(), |v| format!("Landlock {v}"));
    format!("{landlock}, bubblewrap {}", machine.bubblewrap.as_str())
}

/// Folders of agents that have their own users, and the range of the dynamic users.
#[derive(Clone)]
pub(crate) struct UserFolders {
    pub(crate) data_dir: PathBuf,
    pub(crate) runtime_dir: PathBuf,
    pub(crate) range: Option<(u32, u32)>,
}

/// Sets the user id of an agent with a dynamic user, and lets an agent of another user pass through the service's
/// folders to its own.
pub(crate) fn assign_user(agent: &mut Agent, places: &UserFolders) -> Result<(), StartError> {
    let Some(program) = agent.program().filter(|_| agent.spec.enabled) else { return Ok(()) };
    if !has_own_user(program) {
        return Ok(());
    }
    let has_dynamic_user = program.has_dynamic_user;
    let id = agent.spec.id.clone();
    let failed = |cause: String| StartError::User { agent: id.clone(), cause };
    if has_dynamic_user {
        let users = UserAssignments::read(&places.data_dir, places.range);
        let user = users.and_then(|mut users| users.of(&agent.spec.id));
        let user = user.map_err(|error| failed(error.to_string()))?;
        if let Some(program) = agent.program_mut() {
            program.user = Some(user);
        }
    }
    for folder in [&places.data_dir, &places.runtime_dir] {
        let opened = DirBuilder::new().recursive(true).mode(PASS_THROUGH_MODE).create(folder);
        let opened =
            // The umask may have removed bits, and the folder may have existed before.
            opened.and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(PASS_THROUGH_MODE)));
        opened
            .map_err(|error| failed(format!("a folder cannot be opened for passage: {error}")))?;
    }
    Ok(())
}

/// Mode of a folder that others may pass through, but not list.
const PASS_THROUGH_MODE: u32 = 0o711;

/// Prepares control groups if an agent needs one.
pub(crate) async fn open_control_groups(
    agents: &[Agent],
    instance: Uuid,
) -> Result<Option<Arc<ControlGroups>>, StartError> {
    let needs_group = |agent: &Agent| {
        agent.spec.enabled && agent.program().is_some_and(|program| program.resources.wants_group())
    };
    let are_needed = agents.iter().any(needs_group);
    let opened =
        spawn_blocking(move || ControlGroups::open(CgroupRoot::own(), instance, are_needed)).await;
    let groups = opened.map_err(|error| StartError::Warden { source: io::Error::other(error) })?;
    Ok(groups.map(Arc::new))
}

/// Decides how the limits of an agent are enforced.
pub(crate) fn decide_limits(
    agent: &mut Agent,
    groups: Option<&ControlGroups>,
) -> Result<(), StartError> {
    let Some(program) = agent.program().cloned() else { return Ok(()) };
    let (spec, resources) = (Arc::make_mut(&mut agent.spec), &program.resources);
    let controllers = groups.map(ControlGroups::controllers);
    if let Some(program_spec) = spec.program_mut() {
        program_spec.resources = enforced_limits(resources, controllers);
    }
    match missing_capability(resources, controllers).filter(|_| spec.enabled) {
        Some(reason) => Err(StartError::Group { agent: spec.id.clone(), reason }),
        None => Ok(()),
    }
}

/// Creates the private home of an agent, with its configured files.
pub(crate) fn create_home(agent: &Agent) -> Result<(), StartError> {
    let Some(program) = agent.program().filter(|_| agent.spec.enabled) else { return Ok(()) };
    let own = program.program_runtime.own.as_deref();
    let created = own.map_or(Ok(()), |own| homes::create(own, program.user));
    created.map_err(|source| StartError::Home { agent: agent.spec.id.clone(), source })
}
