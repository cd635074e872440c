//! Resource limits of a program, and their enforcement on this machine.

use algonius_actors::decide::host::resources::{limit_enforcement, missing_cgroup_capability};
use algonius_actors::model::host::host_capabilities::{CapabilityState, HostCapabilities};
use algonius_actors::model::host::resources::ResourceLimits;

/// Suggested fix for a missing control group.
pub(super) const CGROUP_FIX: &str = "delegate a control group to the service (docs/service.md)";

/// Limits of a program for a finding.
pub(super) struct LimitReport {
    /// Clause for the text; empty without limits.
    pub(super) clause: String,
    /// True if a required control group is missing. The service may run in another group than this command.
    pub(super) lacks_cgroup: bool,
}

impl LimitReport {
    /// Examines the limits of a program. The groups of a disabled agent are not missing.
    pub(super) fn new(
        resources: &ResourceLimits,
        capabilities: &HostCapabilities,
        is_enabled: bool,
    ) -> Self {
        let is_usable = capabilities.cgroup == CapabilityState::Usable;
        let controllers = is_usable.then_some(capabilities.controllers);
        let missing_reason =
            missing_cgroup_capability(resources, controllers).filter(|_| is_enabled);
        let clause = match (missing_reason, limit_enforcement(resources, controllers)) {
            (Some(reason), _) => format!("; requires a control group, and from here {reason}"),
            (None, limits) if limits.is_empty() => String::new(),
            (None, limits) => format!("; {limits}"),
        };
        Self { clause, lacks_cgroup: missing_reason.is_some() }
    }
}
