//! `[agents.<id>.resources]`: how much of the machine an attempt may take.

use algonius_actors::model::program::ProgramSpec;
use algonius_actors::model::resources::{Grouping, Resources};

use super::section::Section;
use super::value::{self, Bounds};

/// Bytes of memory: no program runs in less, and no machine has more.
const MEMORY: Bounds<u64> = Bounds::new(1 << 20, 1 << 46, 0);
/// Processes and threads: the kernel has no more numbers than that.
const PROCESSES: Bounds<u64> = Bounds::new(1, 1 << 22, 0);

const GROUPINGS: [(&str, Grouping); 3] =
    [("auto", Grouping::Auto), ("required", Grouping::Required), ("off", Grouping::Off)];

/// Reads the limits into the program; answers how much memory an attempt is said to take.
pub(super) fn read(agent: &mut Section<'_>, program: Option<&mut ProgramSpec>) -> Option<u64> {
    let mut section = agent.section("resources");
    let resources = Resources {
        memory: limit(&mut section, "memory_bytes", MEMORY),
        processes: limit(&mut section, "processes", PROCESSES),
        grouping: section.word("group", &GROUPINGS).map(|found| found.value).unwrap_or_default(),
    };
    let expects = limit(&mut section, "expected_bytes", MEMORY);
    section.finish();
    if let Some(program) = program {
        program.resources = resources;
    }
    expects
}

/// A number that limits only where it is given.
fn limit(section: &mut Section<'_>, key: &'static str, bounds: Bounds<u64>) -> Option<u64> {
    let entry = section.entry(key)?;
    value::count(section.reader, &entry, bounds)
}
