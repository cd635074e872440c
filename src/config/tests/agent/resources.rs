//! Tests of `[agents.<id>.resources]`.

use algonius_actors::model::host::resources::{CgroupMode, ResourceLimits};

use super::*;

#[test]
fn agents_have_no_resource_limits_by_default() {
    let resources = |lines: &str| {
        load_settings(&format!("{CAT}{lines}\n")).agents[0].program().unwrap().resource_limits
    };
    assert_eq!(resources(""), ResourceLimits::default());
    assert!(!resources("").needs_cgroup());
    let configured = resources("resources.memory_bytes = 1_048_576\nresources.processes = 10");
    let expected = ResourceLimits {
        max_memory_bytes: Some(1 << 20),
        max_processes: Some(10),
        cgroup_mode: CgroupMode::Auto,
    };
    assert_eq!(configured, expected);
    assert_eq!(resources("resources.group = 'required'").cgroup_mode, CgroupMode::Required);
}

#[test]
fn resource_limits_have_bounds_and_three_group_modes() {
    assert_agent_faults(&[
        (
            "resources.memory_bytes = 1000",
            &[
                "c:3:26: error: agents.a.resources.memory_bytes = 1000: must be 1048576 to 70368744177664",
            ],
        ),
        (
            "resources.processes = 0",
            &["c:3:23: error: agents.a.resources.processes = 0: must be 1 to 4194304"],
        ),
        (
            "resources.group = 'must'",
            &[
                "c:3:19: error: agents.a.resources.group = 'must': must be \"auto\" or \"required\" or \"off\"",
            ],
        ),
    ]);
}
