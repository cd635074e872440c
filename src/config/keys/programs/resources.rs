//! `resources` of an agent and of a backend program: resource limits of their programs.

use algonius_actors::model::host::resources::{CgroupMode, ResourceLimits};

use crate::config::table::{RangeWithDefault, Section, value};

/// Bounds in bytes of memory: no program runs with less, and no machine has more.
const MEMORY_BOUNDS: RangeWithDefault<u64> = RangeWithDefault::new(1 << 20, 1 << 46, 0);
/// Bounds of processes and threads: the kernel has no more ids.
const PROCESS_BOUNDS: RangeWithDefault<u64> = RangeWithDefault::new(1, 1 << 22, 0);

const CGROUP_MODES: [(&str, CgroupMode); 3] =
    [("auto", CgroupMode::Auto), ("required", CgroupMode::Required), ("off", CgroupMode::Off)];

/// Reads the limits of a program.
pub(crate) fn read(resources: &mut Section<'_>) -> ResourceLimits {
    ResourceLimits {
        max_memory_bytes: read_memory_bytes(resources, "memory_bytes"),
        max_processes: read_limit(resources, "processes", PROCESS_BOUNDS),
        cgroup_mode: resources
            .keyword("group", &CGROUP_MODES)
            .map(|found| found.value)
            .unwrap_or_default(),
    }
}

/// Reads an optional number of bytes of memory.
pub(crate) fn read_memory_bytes(resources: &mut Section<'_>, key: &'static str) -> Option<u64> {
    read_limit(resources, key, MEMORY_BOUNDS)
}

fn read_limit(
    section: &mut Section<'_>,
    key: &'static str,
    bounds: RangeWithDefault<u64>,
) -> Option<u64> {
    let entry = section.entry(key)?;
    value::count(section.reader, &entry, bounds)
}
