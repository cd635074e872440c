//! `[agents.<id>.sandbox]`: what the system refuses an agent.

use std::path::{Path, PathBuf};

use algonius_actors::model::agent::Access;
use algonius_actors::model::program::ProgramSpec;
use algonius_actors::model::sandbox::Sandbox;

use super::fault::{Severity, said};
use super::reader::Found;
use super::section::Section;

/// Reads the sandbox into the program. What the machine lacks weighs `lacking`.
pub(super) fn read(
    agent: &mut Section<'_>,
    program: Option<&mut ProgramSpec>,
    access: Access,
    lacking: Severity,
) {
    let mut section = agent.section("sandbox");
    let enforce = section.flag("enforce", true);
    let network = section.flag("network", true);
    let home = program.as_ref().and_then(|program| program.env.get("HOME"));
    let home = home.map(|home| home.value.clone()).or_else(|| section.reader.env("HOME"));
    let given = section.texts("writable");
    let writable = given.as_ref().map(|given| {
        given.iter().map(|path| writable(&section, path, home.as_deref(), lacking)).collect()
    });
    let sandbox = Sandbox { enforce, required: false, writable, network };
    let is_asked = !network || access == Access::ReadWrite && sandbox.writable.is_some();
    let required = section.flag("required", is_asked && enforce);
    if !enforce && (is_asked || required) {
        let place = section.place.below("enforce").hidden();
        section.reader.error(&place, "`enforce = false` leaves nothing to require or to refuse");
    }
    if let (Access::ReadOnly, Some(program)) = (access, program.as_deref()) {
        warn_of_the_workspace(&section, &given.unwrap_or_default(), &sandbox, program);
    }
    section.finish();
    if let Some(program) = program {
        program.sandbox = Sandbox { required, ..sandbox };
    }
}

/// A path that may be changed. The system takes only what is there.
fn writable(
    section: &Section<'_>,
    path: &Found<String>,
    home: Option<&str>,
    lacking: Severity,
) -> PathBuf {
    let below_home = path.value.strip_prefix("~/").zip(home);
    let place = below_home.map_or_else(
        || section.reader.resolve(&path.value),
        |(rest, home)| Path::new(home).join(rest),
    );
    if !place.exists() {
        let complaint = said("there is no such file or folder")
            .hint("make it: only what is there can be made writable");
        section.reader.record(lacking, &path.place, complaint);
    }
    place
}

/// A read-only agent whose folder may be changed is one by its name only.
fn warn_of_the_workspace(
    section: &Section<'_>,
    given: &[Found<String>],
    sandbox: &Sandbox,
    program: &ProgramSpec,
) {
    let Ok(workspace) = program.working_dir.canonicalize() else { return };
    let writable = sandbox.writable.as_deref().unwrap_or_default();
    for (path, place) in given.iter().zip(writable) {
        if place.canonicalize().is_ok_and(|place| workspace.starts_with(place)) {
            let complaint = said("the agent's working folder is in it, and so may be changed")
                .hint("with `access = \"read-write\"` agents would not meet there");
            section.reader.warning(&path.place, complaint);
        }
    }
}
