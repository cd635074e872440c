//! Decides whether changed files of the configuration may be applied without a request of an operator.

use std::path::Path;

use algonius_actors::model::host::boundary::BoundaryGap;
use algonius_actors::model::host::sandbox::Confinement;

use super::{ServiceAccount, configuration_faults};
use crate::config::{ConfiguredAgent, Settings};

/// Returns the reason why changed files are not applied automatically; `None` if they are. The agents must
/// have been isolated before, because their boundary counts: a user who writes the configuration chooses
/// programs, and an agent must not. The text contains no paths, because many callers may see it.
pub(crate) fn automatic_reload_obstacle(
    settings: &Settings,
    config_file: Option<&Path>,
) -> Option<String> {
    let exposes_configuration = |gap: &BoundaryGap| {
        matches!(gap, BoundaryGap::Configuration | BoundaryGap::ConfigurationFolder)
    };
    let has_gap = |it: &Confinement| it.boundary.gaps.iter().any(exposes_configuration);
    for ConfiguredAgent { spec, .. } in settings.agents.iter().filter(|agent| agent.spec.enabled) {
        if spec.confinement().is_some_and(has_gap) {
            return Some(format!("the agent `{}` can change the configuration", spec.id));
        }
    }
    let enabled_agents = settings.agents.iter().filter(|agent| agent.spec.enabled);
    let mut backends = enabled_agents.flat_map(ConfiguredAgent::backends);
    if let Some((backend, _)) = backends.find(|(_, program)| has_gap(&program.confinement)) {
        return Some(format!("the {backend} can change the configuration"));
    }
    let fault = configuration_faults(settings, config_file, ServiceAccount::of_process());
    let fault = fault.into_iter().next()?;
    Some(fault.describe_without_path())
}
