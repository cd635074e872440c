//! `[agents.<id>.overrides]`: what callers may choose for one request.

use std::collections::BTreeMap;
use std::path::PathBuf;

use algonius_actors::model::agent::Allowance;
use algonius_actors::model::program::{ProgramSpec, Secrecy, Variable};

use super::environment::{is_name, is_telling};
use super::fault::{Severity, said};
use super::reader::Found;
use super::section::Section;

/// Names that decide which code runs, or which the service sets itself.
const RESERVED: [&str; 6] = ["PATH", "HOME", "SHELL", "BASH_ENV", "ENV", "IFS"];
/// So begin the names of the loader, and those that the service sets.
const RESERVED_STARTS: [&str; 3] = ["LD_", "A2A_", "ALGONIUS_"];

/// Reads what callers may choose. What the machine lacks weighs `lacking`.
pub(super) fn read(
    agent: &mut Section<'_>,
    program: Option<&ProgramSpec>,
    lacking: Severity,
) -> Allowance {
    let mut section = agent.section("overrides");
    let none = BTreeMap::new();
    let known = program.map_or(&none, |program| &program.env);
    let allowance = Allowance {
        folders: folders(&mut section, lacking),
        variables: variables(&mut section, known),
    };
    section.finish();
    allowance
}

/// The folders below which a caller may choose one.
fn folders(section: &mut Section<'_>, lacking: Severity) -> Vec<PathBuf> {
    let reader = section.reader;
    let mut folders = Vec::new();
    for given in section.texts("working_dirs").unwrap_or_default() {
        let folder = reader.resolve(&given.value);
        if !folder.is_dir() {
            reader.record(lacking, &given.place, said("there is no such folder"));
        }
        // A caller may write it with its links or without them.
        let real = folder.canonicalize().ok().filter(|real| *real != folder);
        folders.push(folder);
        folders.extend(real);
    }
    folders
}

/// The variables that a caller may set.
fn variables(section: &mut Section<'_>, known: &BTreeMap<String, Variable>) -> Vec<String> {
    let reader = section.reader;
    let mut variables = Vec::new();
    for name in section.texts("env").unwrap_or_default() {
        match fault(&name, known) {
            None => variables.push(name.value),
            Some(text) => reader.error(&name.place, text),
        }
    }
    variables
}

/// What is wrong with letting callers set a variable.
fn fault(name: &Found<String>, known: &BTreeMap<String, Variable>) -> Option<&'static str> {
    let name = name.value.as_str();
    let is_secret = known.get(name).is_some_and(|variable| variable.secrecy == Secrecy::Secret);
    if !is_name(name) {
        Some("is not the name of a variable")
    } else if RESERVED.contains(&name)
        || RESERVED_STARTS.iter().any(|start| name.starts_with(start))
    {
        Some("callers may not set this variable: it decides what runs, or the service sets it")
    } else if is_secret || is_telling(name) {
        Some("callers may not set a secret: what they choose is stored as it is")
    } else {
        None
    }
}
