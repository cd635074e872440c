//! `mode`: whether a program ends with its answer, or stays for the rest of the conversation.

use algonius_actors::model::agent::Capacity;
use algonius_actors::model::program::stdio_protocol::{PoolSettings, StdioProtocol};
use algonius_actors::model::program::{OutputPattern, ProgramSpec};

use crate::config::diagnostics::{Severity, from_message};
use crate::config::keys::limits::AgentSettingBounds;
use crate::config::table::{Section, ValueBounds};

/// Reads the mode into the program.
pub(crate) fn read(
    section: &mut Section<'_>,
    limits: &AgentSettingBounds,
    capacity: Capacity,
    program: Option<&mut ProgramSpec>,
) {
    let mode = section.keyword("mode", &[("task", false), ("interactive", true)]);
    let is_interactive = mode.as_ref().is_some_and(|mode| mode.value);
    if !is_interactive && mode.is_some() | !section.has("mode") {
        for key in ["keep_alive", "session_timeout", "max_sessions"] {
            if let Some(entry) = section.entry(key) {
                let diagnostic = "has a meaning with `mode = \"interactive\"` only";
                section.reader.error(&entry.position, diagnostic);
            }
        }
    }
    let keep_alive = section.flag("keep_alive", true);
    let idle = section.seconds("session_timeout", limits.session_timeout);
    let running = capacity.running.map_or(0, |running| u64::from(running.get()));
    let max_sessions = section.count("max_sessions", ValueBounds::new(1, 1000, running.max(1)));
    let Some(program) = program.filter(|_| is_interactive) else {
        let message = "needs `mode = \"interactive\"`: a turn is of a program that is kept";
        if section.has("turn") && !is_interactive {
            section.reader.error(&section.position.below("turn").hidden(), message);
        }
        return;
    };
    if running == 0 || max_sessions < running {
        let diagnostic =
            from_message("must not be less than `max_concurrent`, which must have an end");
        let position = section.position.below("max_sessions").hidden();
        section.reader.record(Severity::Error, &position, diagnostic);
    }
    if keep_alive {
        check_pooling(section, program);
        let max_sessions = usize::try_from(max_sessions).unwrap_or(usize::MAX);
        program.pool = Some(PoolSettings { idle, max_sessions });
    } else if program.session.is_none() {
        let diagnostic = from_message(
            "needs `session`: a program that ends must be able to resume",
        )
        .hint("write `session = { resume_args = [\"--resume\", \"{{ session_id }}\"], ... }`");
        section.reader.record(
            Severity::Error,
            &section.position.below("keep_alive").hidden(),
            diagnostic,
        );
    }
}

/// Checks that the end of an answer can be detected.
fn check_pooling(section: &Section<'_>, program: &ProgramSpec) {
    let at = |key: &str| section.position.below(key).hidden();
    if program.dialogue.is_none() {
        let diagnostic =
            from_message("needs `turn`, which defines the end of an answer, or \"json-rpc\"")
                .hint("write `turn = { prompt = \"> \" }` or `turn = { end_line = \"...\" }`");
        section.reader.record(Severity::Error, &at("mode"), diagnostic);
    }
    let is_turns = matches!(program.dialogue, Some(StdioProtocol::Turns(_)));
    let success = &program.success;
    if success.artifact.is_some() || success.check.is_some() || success.schema.is_some() {
        let diagnostic = "success conditions apply only to programs that end with their answer";
        section.reader.error(&at("success"), diagnostic);
    }
    if is_turns && program.output == OutputPattern::File {
        section.reader.error(&at("output"), "a program that is kept answers on standard output");
    }
}
