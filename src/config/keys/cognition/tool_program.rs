//! `[tools.<name>.handler]` of the kind `command`: the program of a tool, with templates of its arguments.

use algonius_actors::model::program::tool_program::ToolProgram;
use serde_json::{Map, Value};

use super::backend_program::{self, BackendReadContext};
use super::tool_inputs::ConfiguredToolInputs;
use crate::config::diagnostics::{Severity, new_diagnostic};
use crate::config::keys::programs::command::MissingProgramReport;
use crate::config::table::{Positioned, Section};
use crate::platform::template::TemplateError;
use crate::platform::template::tool_inputs::{ALL_ARGUMENTS_NAME, ToolTemplate};

/// Keys that only handlers of the kind `command` have.
const COMMAND_KEYS: [&str; 10] = [
    "args",
    "command",
    "env",
    "env_allow",
    "env_file",
    "env_from",
    "resources",
    "sandbox",
    "stdin",
    "working_dir",
];

/// Reports each key of programs in a handler of another kind.
pub(super) fn refuse_command_keys(handler: &mut Section<'_>) {
    for key in COMMAND_KEYS {
        // Only a key that is there: the others would be suggested for unknown keys.
        if handler.has_key(key)
            && let Some(entry) = handler.entry(key)
        {
            let message = "has a meaning with `kind = \"command\"` only";
            handler.reader.report_error(&entry.position.without_excerpt(), message);
        }
    }
}

/// Skips the keys of programs in a handler whose kind is not known.
pub(super) fn skip_command_keys(handler: &mut Section<'_>) {
    for key in COMMAND_KEYS {
        handler.entry(key);
    }
}

/// Reads the program of a tool. A fault of the machine has the severity `machine_fault_severity`.
pub(super) fn read(
    handler: &mut Section<'_>,
    inputs: &ConfiguredToolInputs,
    machine_fault_severity: Severity,
) -> Option<ToolProgram> {
    let reader = handler.reader;
    let context = BackendReadContext {
        noun: "a tool",
        missing_report: MissingProgramReport::TOOL,
        machine_fault_severity,
    };
    let program = backend_program::read(handler, &context);
    let sample = inputs.sample_arguments();
    let args = handler.text_list("args").unwrap_or_default();
    let stdin = handler.text("stdin");
    let templates = || args.iter().chain(&stdin);
    let faults_before = reader.fault_count();
    templates().for_each(|template| check_template(handler, template, &sample));
    if reader.fault_count() == faults_before {
        let templates = templates().map(|template| ToolTemplate(&template.value));
        inputs.warn_about_unused(handler, templates);
    }
    Some(ToolProgram {
        program: program?,
        args: args.into_iter().map(|template| template.value).collect(),
        stdin_template: stdin.map(|template| template.value).unwrap_or_default(),
    })
}

fn check_template(
    handler: &Section<'_>,
    template: &Positioned<String>,
    sample: &Map<String, Value>,
) {
    let Err(error) = ToolTemplate(&template.value).check(sample) else { return };
    let diagnostic = new_diagnostic(error.to_string());
    let diagnostic = match &error {
        TemplateError::UnknownVariable { name } => {
            let names = sample.keys().map(String::as_str).chain([ALL_ARGUMENTS_NAME]);
            diagnostic.suggest_from(name, names)
        }
        _ => diagnostic,
    };
    handler.reader.report_error(&template.position, diagnostic);
}
