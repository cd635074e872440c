//! `[agents.<id>.sandbox]`: what the system refuses an agent.

use std::path::{Component, Path, PathBuf};

use algonius_actors::model::agent::Access;
use algonius_actors::model::program::ProgramSpec;
use algonius_actors::model::sandbox::{Isolation, Sandbox};

use super::fault::{Severity, said};
use super::reader::Found;
use super::section::Section;

const ISOLATIONS: [(&str, Isolation); 2] =
    [("landlock", Isolation::Landlock), ("bubblewrap", Isolation::Bubblewrap)];

const MAKE_WRITABLE: &str = "make it: only what is there can be made writable";
const MAKE_HIDDEN: &str = "leave it out: only what is there can be hidden";
const MAKE_PROTECTED: &str = "make it: only what is there can be protected";

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
    let places = Places { home, lacking };
    let given = section.texts("writable");
    let writable = given
        .as_ref()
        .map(|given| given.iter().map(|path| places.find(&section, path, MAKE_WRITABLE)).collect());
    let isolation = section.word("isolation", &ISOLATIONS);
    let hidden = hidden(&mut section, &places, program.as_deref());
    let protected = protected(&mut section, &places);
    let sandbox = Sandbox {
        enforce,
        required: false,
        writable,
        network,
        isolation: isolation.as_ref().map(|found| found.value),
        hidden,
        protected,
    };
    refuse_landlock(&section, isolation, &sandbox);
    let required = required(&mut section, access, &sandbox);
    if let (Access::ReadOnly, Some(program)) = (access, program.as_deref()) {
        warn_of_the_workspace(&section, &given.unwrap_or_default(), &sandbox, program);
    }
    section.finish();
    if let Some(program) = program {
        program.sandbox = Sandbox { required, ..sandbox };
    }
}

/// Whether the service starts only where all of it can be had: so it is where more is asked than
/// what `access` says.
fn required(section: &mut Section<'_>, access: Access, sandbox: &Sandbox) -> bool {
    let is_kept = access == Access::ReadWrite && sandbox.writable.is_some();
    let is_asked = sandbox.needs_bubblewrap() || !sandbox.network || is_kept;
    let required = section.flag("required", is_asked && sandbox.enforce);
    if !sandbox.enforce && (is_asked || required) {
        let place = section.place.below("enforce").hidden();
        section.reader.error(&place, "`enforce = false` leaves nothing to require or to refuse");
    }
    required
}

/// Landlock alone cannot say "everything but this".
fn refuse_landlock(section: &Section<'_>, isolation: Option<Found<Isolation>>, sandbox: &Sandbox) {
    let landlock = isolation.filter(|isolation| isolation.value == Isolation::Landlock);
    if let Some(isolation) = landlock.filter(|_| sandbox.needs_bubblewrap()) {
        let complaint = said("Landlock can neither hide nor protect a path")
            .hint("leave it out, or write \"bubblewrap\"");
        section.reader.error(&isolation.place, complaint);
    }
}

/// How paths of a sandbox are looked up.
struct Places {
    home: Option<String>,
    /// What a missing one weighs.
    lacking: Severity,
}

impl Places {
    /// A path seen from the home or from the file's folder. The system takes only what is there.
    fn find(&self, section: &Section<'_>, path: &Found<String>, hint: &str) -> PathBuf {
        let place = self.below_home(&path.value);
        let place = place.unwrap_or_else(|| section.reader.resolve(&path.value));
        if !place.exists() {
            let complaint = said("there is no such file or folder").hint(hint);
            section.reader.record(self.lacking, &path.place, complaint);
        }
        place
    }

    fn below_home(&self, path: &str) -> Option<PathBuf> {
        let (rest, home) = path.strip_prefix("~/").zip(self.home.as_ref())?;
        Some(Path::new(home).join(rest))
    }
}

/// Paths of which nothing is seen. The program itself must be.
fn hidden(
    section: &mut Section<'_>,
    places: &Places,
    program: Option<&ProgramSpec>,
) -> Vec<PathBuf> {
    let given = section.texts("hidden").unwrap_or_default();
    let hidden: Vec<_> = given.iter().map(|path| places.find(section, path, MAKE_HIDDEN)).collect();
    let command = program.and_then(|program| program.command.canonicalize().ok());
    let holds = |place: &PathBuf| {
        place
            .canonicalize()
            .is_ok_and(|place| command.as_ref().is_some_and(|command| command.starts_with(place)))
    };
    for (path, _) in given.iter().zip(&hidden).filter(|(_, place)| holds(place)) {
        section.reader.error(&path.place, "the agent's program is in it, and could not be started");
    }
    hidden
}

/// Paths that are not changed. A relative one stands in the working folder, which a caller may
/// choose, so whether it is there is seen when an attempt begins.
fn protected(section: &mut Section<'_>, places: &Places) -> Vec<PathBuf> {
    let given = section.texts("protected").unwrap_or_default();
    let place = |path: &Found<String>| {
        let relative = Path::new(&path.value);
        if relative.is_absolute() || path.value.starts_with("~/") {
            return places.find(section, path, MAKE_PROTECTED);
        }
        let mut parts = relative.components().peekable();
        let is_below = parts.peek().is_some();
        if !is_below || !parts.all(|part| matches!(part, Component::Normal(_))) {
            let complaint = said("must be absolute, or below the working folder without `..`");
            section.reader.error(&path.place, complaint);
        }
        relative.to_owned()
    };
    given.iter().map(place).collect()
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
