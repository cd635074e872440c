//! `[agents.<id>.resources]`: resource limits of an attempt.

use algonius_actors::model::program::ProgramSpec;

use crate::config::keys::programs::resources;
use crate::config::table::Section;

/// Reads the limits into the program; returns the expected memory of an attempt in bytes.
pub(crate) fn read_into_program(
    agent: &mut Section<'_>,
    program: Option<&mut ProgramSpec>,
) -> Option<u64> {
    let mut section = agent.section("resources");
    let limits = resources::read(&mut section);
    let expected_memory = resources::read_memory_bytes(&mut section, "expected_bytes");
    section.report_unknown_keys();
    if let Some(program) = program {
        program.resource_limits = limits;
    }
    expected_memory
}
