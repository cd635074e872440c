//! `files`: delivery of the files of a message to a program.

use algonius_actors::model::agent::file_delivery::FileDelivery;
use algonius_actors::model::agent::{AgentKind, AgentSpec};
use algonius_actors::model::program::ProgramSpec;

use crate::config::diagnostics::new_diagnostic;
use crate::config::table::{Positioned, Section};
use crate::platform::template::Template;

/// Name that templates use for the list of files.
const FILES_TEMPLATE_VARIABLE: &str = "files";

/// Methods by keyword.
const DELIVERIES: [(&str, FileDelivery); 3] = [
    ("none", FileDelivery::None),
    ("list", FileDelivery::ListInVariable),
    ("prompt", FileDelivery::ListInPrompt),
];

/// Starts of the media types that a text or data can have.
const INLINE_TYPE_PREFIXES: [&str; 3] = ["*/", "text/", "application/json"];

/// Reads the key. Without it, a program whose arguments contain `{{ files }}` gets a list, and every other one no
/// files.
pub(crate) fn read(section: &mut Section<'_>, program: Option<&ProgramSpec>) -> FileDelivery {
    let found = section.keyword("files", &DELIVERIES);
    let Some(program) = program else { return FileDelivery::None };
    let uses_file_list = uses_file_list(program);
    if program.stdio_protocol.is_some() {
        return read_for_protocol(section, program, (found, uses_file_list));
    }
    match found {
        Some(found) if found.value == FileDelivery::None && uses_file_list => {
            let message = "must be \"list\" or \"prompt\": a template contains `{{ files }}`";
            section.reader.report_error(&found.position, message);
            FileDelivery::None
        }
        Some(found) => found.value,
        None if uses_file_list => FileDelivery::ListInVariable,
        None => FileDelivery::None,
    }
}

/// Returns the delivery to a program that reads its messages from an open standard input: its folder and its arguments
/// do not belong to one message.
fn read_for_protocol(
    section: &Section<'_>,
    program: &ProgramSpec,
    (found, uses_file_list): (Option<Positioned<FileDelivery>>, bool),
) -> FileDelivery {
    if uses_file_list {
        let position = section.position.child("args").without_excerpt();
        section.reader.report_error(
            &position,
            "`{{ files }}` has no value with `protocol`, `json_rpc` or `turn`",
        );
    }
    let is_interactive = program.interactive_spec().is_some();
    if let Some(found) = found.filter(|found| is_interactive || found.value.writes_files()) {
        let diagnostic = match is_interactive {
            true => new_diagnostic("has no meaning with `protocol`, which transfers files"),
            false => new_diagnostic("must be \"none\" with `json_rpc` or `turn`")
                .with_hint("set `files = \"none\"` if a preset sets another value"),
        };
        section.reader.report_error(&found.position, diagnostic);
    }
    if is_interactive { FileDelivery::AgentProtocol } else { FileDelivery::None }
}

/// Warns if a program's declared media types have files among them, which the agent rejects.
pub(crate) fn check_input_modes(
    section: &Section<'_>,
    spec: &AgentSpec,
    program: Option<&ProgramSpec>,
) {
    if spec.kind() != AgentKind::Program || spec.file_delivery() != FileDelivery::None {
        return;
    }
    let is_inline = |mode: &&String| INLINE_TYPE_PREFIXES.iter().any(|kind| mode.starts_with(kind));
    if let Some(mode) = spec.endpoint_config.input_modes.iter().find(|mode| !is_inline(mode)) {
        let position = section.position.child("a2a").child("input_modes").without_excerpt();
        let has_protocol = program.is_some_and(|program| program.stdio_protocol.is_some());
        let hint = match has_protocol {
            true => "leave it out: a program with `json_rpc` or `turn` receives no files",
            false => "set `files` to \"list\" or \"prompt\", so that its program receives them",
        };
        let diagnostic =
            new_diagnostic(format!("the agent rejects files of the type `{mode}`")).with_hint(hint);
        section.reader.report_warning(&position, diagnostic);
    }
}

/// Returns true if an argument or a success condition of the program contains the list of files.
fn uses_file_list(program: &ProgramSpec) -> bool {
    let ProgramSpec { args, session_resume: session, success_criteria: success, .. } = program;
    let session_args = session.iter().flat_map(|it| it.start_args.iter().chain(&it.resume_args));
    let check_args = success.check.iter().flat_map(|check| &check.args);
    let templates = args.iter().chain(session_args).chain(check_args).chain(&success.artifact_path);
    templates.into_iter().any(|template| {
        Template::new(template)
            .is_ok_and(|it| it.used_variables().contains(FILES_TEMPLATE_VARIABLE))
    })
}
