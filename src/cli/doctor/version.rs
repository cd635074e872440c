//! Versions of programs. Only programs that are known to support `--version` are started: other programs may do
//! anything with that argument.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::program::runtime_settings::VersionSpec;
use regex::Regex;

use crate::app::program_versions::VersionRequester;
use crate::config::ConfiguredAgent;

/// Maximum duration of the program.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

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

/// Returns the version of a program in brackets, or a note that it is unknown. Empty if the program is not started.
pub(super) async fn version_text(agent: &ConfiguredAgent, requester: &VersionRequester) -> String {
    let Ok(regex) = Regex::new(FIRST_LINE_PATTERN) else { return String::new() };
    let Some(program) = agent.program().filter(|_| has_known_version_flag(agent)) else {
        return String::new();
    };
    let version = VersionSpec { args: vec!["--version".into()], regex, tested: None };
    let (spec, program) = (Arc::clone(&agent.spec), Arc::clone(program));
    match requester.request_version((spec, program), &version, VERSION_TIMEOUT).await {
        Ok(output) => format!(" ({})", output.trim_end()),
        Err(_) => " (it does not report its version)".to_owned(),
    }
}
