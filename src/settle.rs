//! Settles what holds each agent, from what this machine offers, before any of them runs.

mod homes;

use std::io;
use std::sync::Arc;

use algonius_actors::decide::resources::{holding, wanting};
use algonius_actors::decide::sandbox::enforcement;
use algonius_actors::model::rungs::Rungs;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::StartError;
use crate::config::Agent;
use crate::warden::group::{Groups, Place};

/// Settles how far the system holds an agent to what it may do, and warns where that is too little.
pub(super) fn sandbox(agent: &mut Agent, machine: &Rungs) -> Result<(), StartError> {
    let Agent { spec, program, .. } = agent;
    let spec = Arc::make_mut(spec);
    (spec.enforcement, spec.isolation) =
        enforcement(spec.access, &program.sandbox, machine.means());
    if !spec.enforcement.is_wanting() || !spec.enabled {
        return Ok(());
    }
    let landlock = machine.landlock.map_or("no Landlock".to_owned(), |v| format!("Landlock {v}"));
    let means = format!("{landlock}, bubblewrap {}", machine.bubblewrap.as_str());
    if program.sandbox.required {
        return Err(StartError::Sandbox { agent: spec.id.clone(), means });
    }
    let (agent, enforcement) = (&spec.id, spec.enforcement.as_str());
    tracing::warn!(%agent, enforcement, means, "what the agent may not do is not refused to it");
    Ok(())
}

/// Makes ready for control groups where an agent wants one.
pub(super) async fn groups(
    agents: &[Agent],
    instance: Uuid,
) -> Result<Option<Arc<Groups>>, StartError> {
    let wants = |agent: &Agent| agent.spec.enabled && agent.program.resources.wants_group();
    let are_wanted = agents.iter().any(wants);
    let opened = spawn_blocking(move || Groups::open(Place::own(), instance, are_wanted)).await;
    let groups = opened.map_err(|error| StartError::Warden { source: io::Error::other(error) })?;
    Ok(groups.map(Arc::new))
}

/// Settles what holds an agent to its limits.
pub(super) fn limit(agent: &mut Agent, groups: Option<&Groups>) -> Result<(), StartError> {
    let (spec, resources) = (Arc::make_mut(&mut agent.spec), &agent.program.resources);
    let controllers = groups.map(Groups::controllers);
    spec.holding = holding(resources, controllers);
    match wanting(resources, controllers).filter(|_| spec.enabled) {
        Some(lack) => Err(StartError::Group { agent: spec.id.clone(), lack }),
        None => Ok(()),
    }
}

/// Makes the home of an agent's own, with the files that are to be there.
pub(super) fn home(agent: &Agent) -> Result<(), StartError> {
    let own = agent.program.outfit.own.as_deref().filter(|_| agent.spec.enabled);
    let made = own.map_or(Ok(()), homes::make);
    made.map_err(|source| StartError::Home { agent: agent.spec.id.clone(), source })
}
