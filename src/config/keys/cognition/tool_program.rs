//! `[tools.<name>.handler]` of the kind `command`: the program of a tool, its environment and its sandbox.

use std::path::PathBuf;

use algonius_actors::model::host::sandbox::{Confinement, Sandbox};
use algonius_actors::model::program::tool_program::ToolProgram;
use serde_json::{Map, Value};

use super::tool_inputs::WrittenInputs;
use crate::config::diagnostics::{Severity, from_message};
use crate::config::keys::programs::command::{self, MissingProgram};
use crate::config::keys::programs::sandbox::{self, SandboxOwner};
use crate::config::keys::programs::{environment, resources, working_dir};
use crate::config::table::{Section, Spanned};
use crate::platform::template::TemplateError;
use crate::platform::template::tool_inputs::{ALL_ARGUMENTS, ToolTemplate};

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

/// Key of programs that the program of a tool does not have yet.
const FUTURE_KEYS: [&str; 1] = ["user"];

/// Reports each key of programs in a handler of another kind.
pub(super) fn refuse_keys(handler: &mut Section<'_>) {
    for key in COMMAND_KEYS {
        // Only a key that is there: the others would be suggested for unknown keys.
        if handler.has(key)
            && let Some(entry) = handler.entry(key)
        {
            let message = "has a meaning with `kind = \"command\"` only";
            handler.reader.error(&entry.position.hidden(), message);
        }
    }
}

/// Skips the keys of programs in a handler whose kind is not known.
pub(super) fn skip_keys(handler: &mut Section<'_>) {
    for key in COMMAND_KEYS {
        handler.entry(key);
    }
}

/// Reads the program of a tool. A fault of the machine has the severity `missing_severity`.
pub(super) fn read(
    handler: &mut Section<'_>,
    inputs: &WrittenInputs,
    missing_severity: Severity,
) -> Option<ToolProgram> {
    let reader = handler.reader;
    let env = environment::read_of_tool(handler, missing_severity);
    let variable = |name: &str| {
        let configured = env.get(name).map(|variable| variable.value.clone());
        configured.or_else(|| reader.env(name))
    };
    let search_path = variable("PATH");
    let command =
        command::read(handler, search_path.as_deref(), missing_severity, MissingProgram::TOOL);
    let command = command.map(|command| command.file.value);
    let sample = inputs.sample_arguments();
    let args = handler.texts("args").unwrap_or_default();
    let stdin = handler.text("stdin");
    let templates = || args.iter().chain(&stdin);
    let faults_before = reader.fault_count();
    templates().for_each(|template| check_template(handler, template, &sample));
    if reader.fault_count() == faults_before {
        let templates = templates().map(|template| ToolTemplate(&template.value));
        inputs.warn_about_unused(handler, templates);
    }
    let working_dir = working_dir::read(handler, missing_severity);
    let home = variable("HOME");
    let sandbox_owner = SandboxOwner {
        access: ToolProgram::ACCESS,
        home: home.clone(),
        command: command.as_deref(),
        // Without it there is no warning about a writable working folder: a tool claims no workspace.
        working_dir: None,
        has_network: false,
        is_required: true,
        missing_severity,
    };
    let sandbox = read_sandbox(handler, &sandbox_owner, working_dir.is_some());
    let mut limits = handler.section("resources");
    let resources = resources::read(&mut limits);
    limits.finish();
    handler.refuse_future_keys(&FUTURE_KEYS);
    Some(ToolProgram {
        command: command?,
        args: args.into_iter().map(|template| template.value).collect(),
        stdin: stdin.map(|template| template.value).unwrap_or_default(),
        env,
        working_dir,
        home: home.map(PathBuf::from).unwrap_or_default(),
        sandbox,
        resources,
        confinement: Confinement::default(),
    })
}

/// Reads the sandbox, and reports keys that a tool does not support.
fn read_sandbox(
    handler: &mut Section<'_>,
    owner: &SandboxOwner<'_>,
    has_working_dir: bool,
) -> Sandbox {
    let sandbox = sandbox::read(handler, owner);
    if sandbox.has_own_sandbox {
        let position = handler.position.below("sandbox.nested").hidden();
        handler.reader.error(&position, "is not supported for a tool");
    }
    if !has_working_dir && sandbox.protected.iter().any(|path| path.is_relative()) {
        let position = handler.position.below("sandbox.protected").hidden();
        handler.reader.error(&position, "a relative path needs `working_dir`");
    }
    sandbox
}

fn check_template(handler: &Section<'_>, template: &Spanned<String>, sample: &Map<String, Value>) {
    let Err(error) = ToolTemplate(&template.value).check(sample) else { return };
    let diagnostic = from_message(error.to_string());
    let diagnostic = match &error {
        TemplateError::Unknown { name } => {
            let names = sample.keys().map(String::as_str).chain([ALL_ARGUMENTS]);
            diagnostic.suggest_from(name, names)
        }
        _ => diagnostic,
    };
    handler.reader.error(&template.position, diagnostic);
}
