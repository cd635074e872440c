//! `[agents.<id>.session]`: session resumption of a program that ends with its answer.

use std::time::Duration;

use algonius_actors::model::program::stdio_protocol::InteractiveProtocol;
use algonius_actors::model::program::{InputMethod, OutputMethod};
use algonius_actors::model::session::{LostSessionRules, SessionSpec};
use regex::Regex;

use super::arguments::Arguments;
use super::control::InteractiveSessionSettings;
use super::success::read_exit_codes;
use crate::config::diagnostics::new_diagnostic;
use crate::config::table::pattern::{read_json_pointer, read_regex};
use crate::config::table::{RangeWithDefault, Section, value};

/// Bounds in seconds of a session's lifetime: up to a year.
const TTL_BOUNDS: RangeWithDefault<f64> = RangeWithDefault::new(0.1, 31_536_000.0, 86_400.0);

const MISSING_SESSION_ID_MESSAGE: &str = "nothing tells the id of a session: give `new_args` with `{{ uuid }}`, `regex` or \
                     `json_pointer`, or let the program tell it by events";

/// Reads the section; `None` if there is none.
pub(crate) fn read(
    agent: &mut Section<'_>,
    program_arguments: &Arguments,
    input: Option<InputMethod>,
    output: Option<OutputMethod>,
    protocol: Option<InteractiveProtocol>,
) -> (Option<SessionSpec>, InteractiveSessionSettings) {
    let is_given = agent.has_key("session");
    let mut table = agent.section("session");
    let section = &mut table;
    let added_arguments = Arguments::read_list(section, "resume_args");
    let replacing_arguments = Arguments::read_list(section, "args");
    let new_session_arguments = Arguments::read_list(section, "new_args");
    let templates = |arguments: &Option<Arguments>| arguments.as_ref().map(Arguments::templates);
    let with_added = |added: Vec<String>| program_arguments.templates_with_inserted(added);
    let mut session_spec = SessionSpec {
        start_args: with_added(templates(&new_session_arguments).unwrap_or_default()),
        resume_args: templates(&replacing_arguments)
            .unwrap_or_else(|| with_added(templates(&added_arguments).unwrap_or_default())),
        service_generates_id: new_session_arguments
            .as_ref()
            .is_some_and(|new_session_arguments| new_session_arguments.uses_placeholder("uuid")),
        ttl: read_ttl(section),
        id_regex: read_regex(section, "regex"),
        id_json_pointer: read_json_pointer(section, "json_pointer"),
        lost_session_rules: LostSessionRules {
            exit_codes: read_exit_codes(section, "unknown_session_exit_codes").unwrap_or_default(),
            regex: read_regex(section, "unknown_session_regex"),
        },
    };
    let session_settings = InteractiveSessionSettings::read(section, protocol.is_some());
    if let Some(protocol) = protocol {
        refuse_non_protocol_keys(section);
        if protocol == InteractiveProtocol::ClaudeControl {
            set_claude_resume_rules(&mut session_spec, program_arguments);
        }
    } else if is_given {
        if let (Some(replacing_arguments), Some(input), Some(output)) =
            (&replacing_arguments, input, output)
        {
            replacing_arguments.check_method_placeholders(section, input, output);
        }
        check_session(
            section,
            [&added_arguments, &replacing_arguments, &new_session_arguments],
            &session_spec,
            output,
        );
    }
    table.report_unknown_keys();
    // An interactive agent names its sessions itself.
    ((is_given || protocol.is_some()).then_some(session_spec), session_settings)
}

/// Sets how claude-control resumes a session: no message of the protocol does, only the arguments of the program.
fn set_claude_resume_rules(session_spec: &mut SessionSpec, program_arguments: &Arguments) {
    let added = ["--resume", "{{ session_id }}"];
    session_spec.resume_args =
        program_arguments.templates_with_inserted(added.map(str::to_owned).to_vec());
    session_spec.lost_session_rules.regex =
        Regex::new("No conversation found with session ID").ok();
}

/// Reports the keys of programs that end with their answer.
fn refuse_non_protocol_keys(section: &Section<'_>) {
    let keys = [
        "resume_args",
        "args",
        "new_args",
        "regex",
        "json_pointer",
        "unknown_session_regex",
        "unknown_session_exit_codes",
    ];
    for key in keys.into_iter().filter(|key| section.has_key(key)) {
        section.reader.report_error(
            &section.position.child(key).without_excerpt(),
            "has no meaning with `protocol`",
        );
    }
}

/// Checks that the program can resume a session, and that a session id is available.
fn check_session(
    section: &Section<'_>,
    [added_arguments, replacing_arguments, new_session_arguments]: [&Option<Arguments>; 3],
    session_spec: &SessionSpec,
    output: Option<OutputMethod>,
) {
    let position_of = |key: &str| section.position.child(key).without_excerpt();
    match (added_arguments, replacing_arguments) {
        (Some(_), Some(_)) => {
            let diagnostic =
                "give `args`, which are all, or `resume_args`, which are added: not both";
            section.reader.report_error(&position_of("args"), diagnostic);
        }
        (Some(resume), None) | (None, Some(resume)) => {
            resume.require_placeholder(section, "session_id");
            resume.forbid_placeholder(section, "uuid", "with `new_args` only");
        }
        (None, None) => {
            let diagnostic = new_diagnostic("is needed")
                .with_hint("write `[\"--resume\", \"{{ session_id }}\"]`");
            section.reader.record_fault(
                crate::config::diagnostics::Severity::Error,
                &position_of("resume_args"),
                diagnostic,
            );
        }
    }
    if let Some(new_session_arguments) = new_session_arguments {
        new_session_arguments.forbid_placeholder(
            section,
            "session_id",
            "when a session is resumed only",
        );
    }
    let has_id_source = session_spec.id_regex.is_some() || session_spec.id_json_pointer.is_some();
    let is_plain_output = matches!(output, Some(OutputMethod::Stdout | OutputMethod::File));
    if is_plain_output && !has_id_source && !session_spec.service_generates_id {
        section
            .reader
            .report_error(&section.position.clone().without_excerpt(), MISSING_SESSION_ID_MESSAGE);
    }
}

fn read_ttl(section: &mut Section<'_>) -> Option<Duration> {
    let entry = section.entry("ttl")?;
    let seconds = value::seconds(section.reader, &entry, TTL_BOUNDS)?;
    Duration::try_from_secs_f64(seconds).ok()
}
