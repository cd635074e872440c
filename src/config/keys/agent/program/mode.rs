//! `mode`: whether a program ends with its answer, or stays for the rest of the conversation.

use algonius_actors::model::agent::Capacity;
use algonius_actors::model::program::stdio_protocol::{PoolSettings, StdioProtocol};
use algonius_actors::model::program::{OutputMethod, ProgramSpec};

use crate::config::diagnostics::{Severity, new_diagnostic};
use crate::config::keys::limits::AgentSettingBounds;
use crate::config::table::{RangeWithDefault, Section};

/// Reads the mode into the program.
pub(crate) fn read_into_program(
    section: &mut Section<'_>,
    bounds: &AgentSettingBounds,
    capacity: Capacity,
    program: Option<&mut ProgramSpec>,
) {
    let mode = section.keyword("mode", &[("task", false), ("interactive", true)]);
    let has_interactive_mode = mode.as_ref().is_some_and(|mode| mode.value);
    if !has_interactive_mode && mode.is_some() | !section.has_key("mode") {
        for key in ["keep_alive", "session_timeout", "max_sessions"] {
            if let Some(entry) = section.entry(key) {
                let diagnostic = "has a meaning with `mode = \"interactive\"` only";
                section.reader.report_error(&entry.position, diagnostic);
            }
        }
    }
    let keep_alive = section.flag("keep_alive", true);
    let idle_timeout = section.duration("session_timeout", bounds.session_timeout);
    let max_running = capacity.max_running.map_or(0, |max_running| u64::from(max_running.get()));
    let max_sessions =
        section.count("max_sessions", RangeWithDefault::new(1, 1000, max_running.max(1)));
    let Some(program) = program.filter(|_| has_interactive_mode) else {
        let message = "needs `mode = \"interactive\"`: a turn is of a program that is kept";
        if section.has_key("turn") && !has_interactive_mode {
            section.reader.report_error(&section.position.child("turn").without_excerpt(), message);
        }
        return;
    };
    if max_running == 0 || max_sessions < max_running {
        let diagnostic =
            new_diagnostic("must not be less than `max_concurrent`, which must have an end");
        let position = section.position.child("max_sessions").without_excerpt();
        section.reader.record_fault(Severity::Error, &position, diagnostic);
    }
    if keep_alive {
        check_pooling(section, program);
        let max_programs = usize::try_from(max_sessions).unwrap_or(usize::MAX);
        program.pool = Some(PoolSettings { idle_timeout, max_programs });
    } else if program.session_resume.is_none() {
        let diagnostic =
            new_diagnostic("needs `session`: a program that ends must be able to resume")
                .with_hint(
                    "write `session = { resume_args = [\"--resume\", \"{{ session_id }}\"], ... }`",
                );
        section.reader.record_fault(
            Severity::Error,
            &section.position.child("keep_alive").without_excerpt(),
            diagnostic,
        );
    }
}

/// Checks that the end of an answer can be detected.
fn check_pooling(section: &Section<'_>, program: &ProgramSpec) {
    let position_of = |key: &str| section.position.child(key).without_excerpt();
    if program.stdio_protocol.is_none() {
        let diagnostic =
            new_diagnostic("needs `turn`, which defines the end of an answer, or \"json-rpc\"")
                .with_hint("write `turn = { prompt = \"> \" }` or `turn = { end_line = \"...\" }`");
        section.reader.record_fault(Severity::Error, &position_of("mode"), diagnostic);
    }
    let has_turns = matches!(program.stdio_protocol, Some(StdioProtocol::Turns(_)));
    let success = &program.success_criteria;
    if success.artifact_path.is_some() || success.check.is_some() || success.answer_schema.is_some()
    {
        let diagnostic = "success conditions apply only to programs that end with their answer";
        section.reader.report_error(&position_of("success"), diagnostic);
    }
    if has_turns && program.output_method == OutputMethod::File {
        section.reader.report_error(
            &position_of("output"),
            "a program that is kept answers on standard output",
        );
    }
}
