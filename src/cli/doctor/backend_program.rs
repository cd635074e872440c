//! Check of a backend program, such as that of a tool: its file and its isolation.

use algonius_actors::model::host::boundary::BoundaryGap;
use algonius_actors::model::host::host_capabilities::HostCapabilities;
use algonius_actors::model::host::sandbox::IsolationRequirement;
use algonius_actors::model::program::backend_program::{BackendProgram, BackendRole};

use super::finding::Finding;
use super::resource_limits::{CGROUP_FIX, LimitReport};
use crate::app::confinement::has_isolation_shortfall;
use crate::config::{ConfiguredAgent, is_executable};

/// Returns the finding about a backend program, whose isolation has been decided.
pub(super) fn finding(
    agent: &ConfiguredAgent,
    (backend, program): (BackendRole, &BackendProgram),
    capabilities: &HostCapabilities,
) -> Finding {
    let subject = format!("agent {}, {} {}", agent.spec.id, backend.kind_name(), backend.name());
    let BackendProgram { command, confinement, sandbox, .. } = program;
    let disabled_note = if agent.spec.enabled { "" } else { " (disabled)" };
    let limits = LimitReport::new(&program.resource_limits, capabilities, agent.spec.enabled);
    let group_fix = if limits.lacks_cgroup { format!("; {CGROUP_FIX}") } else { String::new() };
    if !command.is_absolute() || !is_executable(command) {
        let (file, clause) = (command.display(), &limits.clause);
        let text = format!("the program {file} is not installed{disabled_note}{clause}");
        let fix = format!("install it, and run `algonius reload`{group_fix}");
        return Finding::warning(&subject, text, fix);
    }
    let isolation = confinement.isolation.map(|isolation| format!(" by {}", isolation.as_str()));
    let text = format!(
        "runs {}{disabled_note}; sandbox {}{}; boundary {}{}",
        command.display(),
        confinement.enforcement.as_str(),
        isolation.unwrap_or_default(),
        confinement.boundary,
        limits.clause,
    );
    let gaps = &confinement.boundary.gaps;
    let is_insufficient = confinement.enforcement.is_incomplete() || !gaps.is_empty();
    if !is_insufficient || !agent.spec.enabled {
        return match limits.lacks_cgroup {
            true => Finding::warning(&subject, text, CGROUP_FIX),
            false => Finding::good(subject, text),
        };
    }
    let is_configuration = |gap: &BoundaryGap| {
        matches!(gap, BoundaryGap::Configuration | BoundaryGap::ConfigurationFolder)
    };
    let fix = if !sandbox.is_enforced {
        "leave out `sandbox.enforce = false`"
    } else if gaps.iter().any(is_configuration) {
        "move the configuration out of the folders that `sandbox.writable` names"
    } else if gaps.contains(&BoundaryGap::Sockets) && !sandbox.allowed_sockets.is_empty() {
        "leave out `sandbox.sockets`"
    } else {
        "install bubblewrap or a newer kernel"
    };
    let is_required = sandbox.isolation_requirement != IsolationRequirement::Nothing;
    let hint = if is_required {
        let key = backend.program_key("sandbox.required");
        format!("; `{key} = false` starts the service nevertheless")
    } else {
        String::new()
    };
    let fix = format!("{fix}{hint}{group_fix}");
    match has_isolation_shortfall(
        (BackendProgram::ACCESS, confinement),
        sandbox,
        &capabilities.sockets,
    ) {
        true => Finding::bad(&subject, text, fix),
        false => Finding::warning(&subject, text, fix),
    }
}
