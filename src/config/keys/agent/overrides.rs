//! `[agents.<id>.overrides]`: settings that callers may override for one request.

use std::collections::BTreeMap;
use std::path::PathBuf;

use algonius_actors::model::agent::OverridePolicy;
use algonius_actors::model::program::{EnvVariable, ProgramSpec, VariableSecrecy};

use crate::config::diagnostics::{Severity, new_diagnostic};
use crate::config::keys::programs::environment::{is_identifier, is_secret_name};
use crate::config::table::{Positioned, Section};
use crate::platform::template::Template;

/// Names that decide which code runs, or that the service sets itself.
const RESERVED_VARIABLES: [&str; 6] = ["PATH", "HOME", "SHELL", "BASH_ENV", "ENV", "IFS"];
/// Prefixes of the names of the dynamic loader, and of those that the service sets.
const RESERVED_PREFIXES: [&str; 3] = ["LD_", "A2A_", "ALGONIUS_"];

/// Reads the permitted overrides. A fault of the machine has the severity `machine_fault_severity`.
pub(crate) fn read(
    agent: &mut Section<'_>,
    program: Option<&ProgramSpec>,
    machine_fault_severity: Severity,
) -> OverridePolicy {
    let mut section = agent.section("overrides");
    let no_variables = BTreeMap::new();
    let own_variables = program.map_or(&no_variables, |program| &program.env);
    let override_policy = OverridePolicy {
        working_dir_roots: read_working_dir_roots(&mut section, machine_fault_severity),
        variables: read_variables(&mut section, own_variables),
        params: read_params(&mut section, program),
    };
    section.report_unknown_keys();
    override_policy
}

/// Reads the folders in which a caller may choose one.
fn read_working_dir_roots(
    section: &mut Section<'_>,
    machine_fault_severity: Severity,
) -> Vec<PathBuf> {
    let reader = section.reader;
    let mut folders = Vec::new();
    for text in section.text_list("working_dirs").unwrap_or_default() {
        let folder = reader.resolve_path(&text.value);
        if !folder.is_dir() {
            reader.record_fault(
                machine_fault_severity,
                &text.position,
                new_diagnostic("there is no such folder"),
            );
        }
        // A caller may write the folder with its links or without them.
        let real = folder.canonicalize().ok().filter(|real| *real != folder);
        folders.push(folder);
        folders.extend(real);
    }
    folders
}

/// Reads the variables that a caller may set.
fn read_variables(
    section: &mut Section<'_>,
    own_variables: &BTreeMap<String, EnvVariable>,
) -> Vec<String> {
    let reader = section.reader;
    let mut variables = Vec::new();
    for name in section.text_list("env").unwrap_or_default() {
        match variable_fault(&name, own_variables) {
            None => variables.push(name.value),
            Some(text) => reader.report_error(&name.position, text),
        }
    }
    variables
}

/// Reads the parameters that a caller may set, among those that the agent has.
fn read_params(section: &mut Section<'_>, program: Option<&ProgramSpec>) -> Vec<String> {
    let is_used = |name: &str| program.is_none_or(|program| uses_param(program, name));
    let is_pooled = program.is_some_and(|program| program.pool.is_some());
    let names = section.text_list("params").unwrap_or_default();
    for name in &names {
        if !is_identifier(&name.value) {
            section.reader.report_error(&name.position, "is not the name of a parameter");
        } else if !has_param(program, &name.value) {
            let diagnostic = "the agent has no such parameter in `params` or in a template";
            section.reader.report_error(&name.position, diagnostic);
        } else if is_pooled && !is_used(&name.value) {
            // Other programs find all parameters in a variable of each message.
            let diagnostic =
                "no template of this program uses the parameter, so it changes nothing";
            section.reader.record_fault(
                Severity::Warning,
                &name.position,
                new_diagnostic(diagnostic),
            );
        }
    }
    names.into_iter().map(|name| name.value).collect()
}

/// Returns true if an agent has a parameter: a template of its program uses it, or `params` has a value for it. An
/// agent without a program takes each parameter.
pub(crate) fn has_param(program: Option<&ProgramSpec>, name: &str) -> bool {
    program.is_none_or(|it| it.params.contains_key(name) || uses_param(it, name))
}

/// Returns true if a template of a program uses a parameter.
fn uses_param(program: &ProgramSpec, name: &str) -> bool {
    let session_args =
        program.session_resume.iter().flat_map(|it| it.start_args.iter().chain(&it.resume_args));
    let args = program.args.iter().chain(session_args).map(String::as_str);
    let protocol = program.stdio_protocol.iter();
    let messages =
        protocol.flat_map(|it| it.start_templates().into_iter().chain(it.message_templates()));
    let check_args =
        program.success_criteria.check.iter().flat_map(|check| &check.args).map(String::as_str);
    let file_names = [program.input_file_template.as_str(), program.output_file_template.as_str()];
    args.chain(messages)
        .chain(check_args)
        .chain(file_names)
        .chain(program.success_criteria.artifact_path.as_deref())
        .filter_map(|source| Template::new(source).ok())
        .any(|template| template.used_params().contains(name))
}

/// Returns the reason why callers may not set a variable.
fn variable_fault(
    name: &Positioned<String>,
    own_variables: &BTreeMap<String, EnvVariable>,
) -> Option<&'static str> {
    let name = name.value.as_str();
    let is_secret =
        own_variables.get(name).is_some_and(|variable| variable.secrecy == VariableSecrecy::Secret);
    if !is_identifier(name) {
        Some("is not the name of a variable")
    } else if RESERVED_VARIABLES.contains(&name)
        || RESERVED_PREFIXES.iter().any(|start| name.starts_with(start))
    {
        Some("callers may not set this variable: it decides what runs, or the service sets it")
    } else if is_secret || is_secret_name(name) {
        Some("callers may not set a secret: what they choose is stored as it is")
    } else {
        None
    }
}
