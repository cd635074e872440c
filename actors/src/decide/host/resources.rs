//! Resource limits of an agent or a tool: their enforcement on this machine, and the failures after an excess.

use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::host::resources::{
    CgroupLimitEvents, CgroupMode, Controllers, EnforcedLimit, LimitEnforcement, LimitEnforcer,
    ProcessTreeUsage, ResourceLimits,
};

/// Returns the limits in force if groups have these controllers; `None` means that no groups can be created.
#[must_use]
pub fn limit_enforcement(
    resources: &ResourceLimits,
    group_controllers: Option<Controllers>,
) -> LimitEnforcement {
    let group_controllers = group_controllers.filter(|_| resources.needs_cgroup());
    let controllers = group_controllers.unwrap_or_default();
    let limit = |max: Option<u64>, is_enforced: bool| {
        let enforcer = if is_enforced { LimitEnforcer::Group } else { LimitEnforcer::Watch };
        max.map(|max| EnforcedLimit { limit: max, enforcer })
    };
    LimitEnforcement {
        memory_bytes: limit(resources.max_memory_bytes, controllers.memory),
        processes: limit(resources.max_processes, controllers.pids),
        control_group: group_controllers.is_some(),
    }
}

/// Returns the missing capability of a required control group; `None` if nothing is missing.
#[must_use]
pub fn missing_cgroup_capability(
    resources: &ResourceLimits,
    group_controllers: Option<Controllers>,
) -> Option<&'static str> {
    if resources.cgroup_mode != CgroupMode::Required {
        return None;
    }
    match group_controllers {
        None => Some("no control group can be made here"),
        Some(controllers) if resources.max_memory_bytes.is_some() && !controllers.memory => {
            Some("control groups have no `memory` controller here")
        }
        Some(controllers) if resources.max_processes.is_some() && !controllers.pids => {
            Some("control groups have no `pids` controller here")
        }
        Some(_) => None,
    }
}

/// Returns the failure of an attempt that exceeds a limit. If a group enforces the memory limit, memory is not checked
/// here, because a group counts shared memory only once.
#[must_use]
pub fn exceeded_limit_failure(
    resources: &ResourceLimits,
    controllers: Controllers,
    used: ProcessTreeUsage,
) -> Option<Failure> {
    let exceeded_max = |used: u64, max: Option<u64>| max.filter(|max| used > *max);
    if let Some(max) = exceeded_max(used.processes, resources.max_processes) {
        let used = used.processes;
        let message =
            format!("had {used} processes and threads at once; `resources.processes` allows {max}");
        return Some(Failure::new(Code::ResourcesExceeded, message));
    }
    let max = exceeded_max(used.memory_bytes, resources.max_memory_bytes)
        .filter(|_| !controllers.memory)?;
    let used = used.memory_bytes;
    let message = format!("took {used} bytes of memory; `resources.memory_bytes` allows {max}");
    Some(Failure::new(Code::ResourcesExceeded, message))
}

/// Explains the failure of an attempt by the limit events of its control group.
#[must_use]
pub fn cgroup_limit_failure(
    resources: &ResourceLimits,
    limit_events: CgroupLimitEvents,
) -> Option<Failure> {
    let CgroupLimitEvents { oom_kills: killed, failed_forks: refused_forks } = limit_events;
    let message = match (resources.max_memory_bytes, resources.max_processes) {
        (Some(max), _) if killed > 0 => format!(
            "was killed for taking more memory than the {max} bytes of `resources.memory_bytes`"
        ),
        (_, Some(max)) if refused_forks > 0 => format!(
            "failed after it was refused more processes and threads than the {max} of \
             `resources.processes`"
        ),
        _ => return None,
    };
    Some(Failure::new(Code::ResourcesExceeded, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Controllers = Controllers { memory: true, pids: true };
    const NONE: Controllers = Controllers { memory: false, pids: false };

    fn both_limits(cgroup_mode: CgroupMode) -> ResourceLimits {
        ResourceLimits { max_memory_bytes: Some(100), max_processes: Some(10), cgroup_mode }
    }

    fn enforcers(
        cgroup_mode: CgroupMode,
        group_controllers: Option<Controllers>,
    ) -> [LimitEnforcer; 2] {
        let enforcement = limit_enforcement(&both_limits(cgroup_mode), group_controllers);
        [enforcement.memory_bytes, enforcement.processes].map(|limit| limit.unwrap().enforcer)
    }

    #[test]
    fn the_group_enforces_what_it_can_and_the_watch_the_rest() {
        use LimitEnforcer::{Group, Watch};
        let pids_only = Controllers { pids: true, ..NONE };
        assert_eq!(enforcers(CgroupMode::Auto, None), [Watch, Watch]);
        assert_eq!(enforcers(CgroupMode::Auto, Some(pids_only)), [Watch, Group]);
        assert_eq!(enforcers(CgroupMode::Required, Some(ALL)), [Group, Group]);
        assert_eq!(enforcers(CgroupMode::Off, Some(ALL)), [Watch, Watch]);
    }

    #[test]
    fn an_agent_without_limits_has_no_group_unless_it_requires_one() {
        let without_limits =
            |cgroup_mode| ResourceLimits { cgroup_mode, ..ResourceLimits::default() };
        assert!(limit_enforcement(&without_limits(CgroupMode::Auto), Some(ALL)).is_empty());
        assert!(limit_enforcement(&without_limits(CgroupMode::Required), Some(NONE)).control_group);
        assert_eq!(
            missing_cgroup_capability(&without_limits(CgroupMode::Required), Some(NONE)),
            None
        );
        assert!(missing_cgroup_capability(&without_limits(CgroupMode::Required), None).is_some());
    }

    #[test]
    fn only_a_required_group_can_be_missing() {
        assert_eq!(missing_cgroup_capability(&both_limits(CgroupMode::Auto), None), None);
        assert_eq!(missing_cgroup_capability(&both_limits(CgroupMode::Required), Some(ALL)), None);
        let missing_with = |controllers| {
            missing_cgroup_capability(&both_limits(CgroupMode::Required), Some(controllers))
                .unwrap()
        };
        assert!(missing_with(Controllers { pids: true, ..NONE }).contains("`memory`"));
        assert!(missing_with(Controllers { memory: true, ..NONE }).contains("`pids`"));
    }

    #[test]
    fn an_exceeded_limit_is_reported_with_both_numbers() {
        let resources = both_limits(CgroupMode::Auto);
        let failure_for = |memory, processes| {
            exceeded_limit_failure(
                &resources,
                NONE,
                ProcessTreeUsage { memory_bytes: memory, processes },
            )
        };
        assert_eq!(failure_for(100, 10), None);
        for (memory, processes, numbers) in [(101, 10, ["101", "100"]), (1, 11, ["11", "10"])] {
            let failure = failure_for(memory, processes).unwrap();
            assert_eq!(failure.code, Code::ResourcesExceeded);
            assert!(numbers.iter().all(|number| failure.message.contains(number)), "{failure}");
        }
    }

    #[test]
    fn the_watch_leaves_only_memory_to_the_group() {
        let used = ProcessTreeUsage { memory_bytes: 101, processes: 10 };
        assert_eq!(exceeded_limit_failure(&both_limits(CgroupMode::Auto), ALL, used), None);
        let used = ProcessTreeUsage { processes: 11, ..used };
        assert!(exceeded_limit_failure(&both_limits(CgroupMode::Auto), ALL, used).is_some());
    }

    #[test]
    fn only_a_configured_limit_explains_a_refusal() {
        let limit_events = CgroupLimitEvents { oom_kills: 1, failed_forks: 4 };
        let message_of = |resources: &ResourceLimits| {
            cgroup_limit_failure(resources, limit_events).map(|it| it.message)
        };
        assert!(message_of(&both_limits(CgroupMode::Auto)).unwrap().contains("100 bytes"));
        let processes = ResourceLimits { max_memory_bytes: None, ..both_limits(CgroupMode::Auto) };
        assert!(message_of(&processes).unwrap().contains("the 10 of"));
        assert_eq!(message_of(&ResourceLimits::default()), None);
        assert_eq!(
            cgroup_limit_failure(&both_limits(CgroupMode::Auto), CgroupLimitEvents::default()),
            None
        );
    }
}
