//! `[agents.<id>.resources]`: resource limits of an attempt.

use algonius_actors::model::host::resources::{CgroupMode, ResourceLimits};
use algonius_actors::model::program::ProgramSpec;

use crate::config::table::{Section, ValueBounds, value};

/// Bounds in bytes of memory: no program runs with less, and no machine has more.
const MEMORY_BOUNDS: ValueBounds<u64> = ValueBounds::new(1 << 20, 1 << 46, 0);
/// Bounds of processes and threads: the kernel has no more ids.
const PROCESS_BOUNDS: ValueBounds<u64> = ValueBounds::new(1, 1 << 22, 0);

const GROUPINGS: [(&str, CgroupMode); 3] =
    [("auto", CgroupMode::Auto), ("required", CgroupMode::Required), ("off", CgroupMode::Off)];

/// Reads the limits into the program; returns the expected memory of an attempt in bytes.
pub(crate) fn read(agent: &mut Section<'_>, program: Option<&mut ProgramSpec>) -> Option<u64> {
    let mut section = agent.section("resources");
    let resources = ResourceLimits {
        memory: limit(&mut section, "memory_bytes", MEMORY_BOUNDS),
        processes: limit(&mut section, "processes", PROCESS_BOUNDS),
        cgroup_mode: section
            .keyword("group", &GROUPINGS)
            .map(|found| found.value)
            .unwrap_or_default(),
    };
    let expected_memory = limit(&mut section, "expected_bytes", MEMORY_BOUNDS);
    section.finish();
    if let Some(program) = program {
        program.resources = resources;
    }
    expected_memory
}

/// Reads an optional limit.
fn limit(section: &mut Section<'_>, key: &'static str, bounds: ValueBounds<u64>) -> Option<u64> {
    let entry = section.entry(key)?;
    value::count(section.reader, &entry, bounds)
}
