//! Control groups, and the enforcement of resource limits of agents and their backend programs.

use std::io;
use std::sync::Arc;

use algonius_actors::decide::host::resources::{limit_enforcement, missing_cgroup_capability};
use algonius_actors::model::host::resources::Controllers;
use algonius_warden::confinement::cgroup::{CgroupRoot, ControlGroups};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::StartError;
use crate::config::ConfiguredAgent;

/// Prepares control groups if an agent or a backend program needs one.
pub(crate) async fn open_control_groups(
    agents: &[ConfiguredAgent],
    data_dir_id: Uuid,
) -> Result<Option<Arc<ControlGroups>>, StartError> {
    let are_needed = agents.iter().any(needs_group);
    let opened = spawn_blocking(move || {
        ControlGroups::open(CgroupRoot::for_this_process(), data_dir_id, are_needed)
    })
    .await;
    let groups = opened.map_err(|error| StartError::Warden { source: io::Error::other(error) })?;
    Ok(groups.map(Arc::new))
}

fn needs_group(agent: &ConfiguredAgent) -> bool {
    let program = agent.program().map(|program| &program.resource_limits);
    let backends = agent.backends().map(|(_, program)| &program.resource_limits);
    agent.spec.enabled && backends.chain(program).any(|resources| resources.needs_cgroup())
}

/// Decides how the limits of an agent are enforced, and checks those of its backend programs.
pub(crate) fn decide_and_check_limits(
    agent: &mut ConfiguredAgent,
    groups: Option<&ControlGroups>,
) -> Result<(), StartError> {
    let controllers = groups.map(ControlGroups::controllers);
    if agent.spec.enabled {
        check_backend_limits(agent, controllers)?;
    }
    let Some(program) = agent.program().cloned() else { return Ok(()) };
    let (spec, resources) = (Arc::make_mut(&mut agent.spec), &program.resource_limits);
    if let Some(worker_spec) = spec.program_worker_mut() {
        worker_spec.limit_enforcement = limit_enforcement(resources, controllers);
    }
    match missing_cgroup_capability(resources, controllers).filter(|_| spec.enabled) {
        Some(reason) => Err(StartError::ControlGroup { agent: spec.id.clone(), reason }),
        None => Ok(()),
    }
}

/// Checks that the backend programs get the control groups that they require.
fn check_backend_limits(
    agent: &ConfiguredAgent,
    controllers: Option<Controllers>,
) -> Result<(), StartError> {
    for (backend, program) in agent.backends() {
        if let Some(reason) = missing_cgroup_capability(&program.resource_limits, controllers) {
            let agent = agent.spec.id.clone();
            return Err(StartError::BackendControlGroup { agent, backend, reason });
        }
    }
    Ok(())
}
