//! Versions of programs. Only programs that are known to support `--version` are started: other programs may do
//! anything with that argument.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use algonius_actors::model::program::runtime_settings::VersionCheckSpec;
use regex::Regex;

use super::finding::Finding;
use crate::app::program_versions::VersionRequester;
use crate::config::ConfiguredAgent;

/// Maximum duration of a program without a preset.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum duration of the program of a preset: one on Node needs ten seconds of processor time.
pub(in crate::cli) const PRESET_VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Greatest number of programs that run at the same time.
const MAX_CONCURRENT_PROGRAMS: usize = 4;

/// Returns the number of programs that run at the same time.
pub(in crate::cli) fn max_concurrent_programs() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).min(MAX_CONCURRENT_PROGRAMS)
}

/// First nonblank line, up to the length that is shown.
const FIRST_LINE_PATTERN: &str = r"(?m)^[ \t]*(\S.{0,59})";

/// Programs that print one line and exit.
const PROGRAMS_WITH_VERSION_FLAG: &[&str] = &[
    "aider",
    "amp",
    "claude",
    "cn",
    "codex",
    "copilot",
    "crush",
    "cursor-agent",
    "gemini",
    "goose",
    "opencode",
    "qwen",
];

/// True if the program of an agent is started although no preset defines its version query.
pub(super) fn has_known_version_flag(agent: &ConfiguredAgent) -> bool {
    let Some(program) = agent.program() else { return false };
    let command = &program.command;
    let name = command.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    PROGRAMS_WITH_VERSION_FLAG.contains(&name) && command.is_absolute()
}

/// Returns the finding that no program can be started for its version.
pub(in crate::cli) fn unknown_versions_finding(error: &io::Error) -> Finding {
    let text = format!("the versions of programs are unknown: {error}");
    Finding::warning(
        "versions",
        text,
        "make room in the folder for temporary files, and see `ulimit -a`",
    )
}

/// Returns the version of a program in brackets, or a note that it is unknown. Empty if the program is not started.
pub(super) async fn version_text(agent: &ConfiguredAgent, requester: &VersionRequester) -> String {
    let Ok(regex) = Regex::new(FIRST_LINE_PATTERN) else { return String::new() };
    let Some(program) = agent.program().filter(|_| has_known_version_flag(agent)) else {
        return String::new();
    };
    let version_check =
        VersionCheckSpec { args: vec!["--version".into()], regex, tested_versions: None };
    let (spec, program) = (Arc::clone(&agent.spec), Arc::clone(program));
    match requester.request_version((spec, program), &version_check, VERSION_TIMEOUT).await {
        Ok(output) => format!(" ({})", output.trim_end()),
        Err(error) => format!(" (version unknown: {error})"),
    }
}
