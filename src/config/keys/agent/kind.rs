//! `agents.<id>.kind`: what performs the work of an agent, and the keys that agents of each kind do not have.

use algonius_actors::model::agent::AgentKind;

use crate::config::diagnostics::from_message;
use crate::config::table::Section;

/// Kinds by keyword.
const KINDS: [(&str, AgentKind); 3] =
    [("program", AgentKind::Program), ("remote", AgentKind::Remote), ("team", AgentKind::Team)];

/// Keys that only agents with a program have.
pub(crate) const PROGRAM_KEYS: [&str; 43] = [
    "access_args",
    "access_env",
    "args",
    "cli_args",
    "command",
    "consent",
    "env",
    "env_allow",
    "env_file",
    "env_from",
    "failures",
    "heartbeat",
    "home",
    "home_files",
    "input",
    "input_args",
    "input_file",
    "interactive_prompts",
    "json_rpc",
    "keep_alive",
    "max_sessions",
    "mode",
    "model",
    "model_args",
    "network_env",
    "on_supervisor_loss",
    "output",
    "output_file",
    "overrides",
    "params",
    "program_version",
    "prompt_silence",
    "protocol",
    "resources",
    "sandbox",
    "session",
    "session_timeout",
    "success",
    "transient_exit_codes",
    "transient_regex",
    "turn",
    "usage",
    "user",
];

/// Keys that have no meaning for a team, each with what applies instead.
const NO_TEAM_KEYS: [(&str, &str); 7] = [
    ("access", "a team has the access of its strongest member"),
    ("answer_timeout", "a team asks no question: its members do"),
    ("idle_timeout", "set it for the members; `timeout` limits the whole run"),
    ("max_output_bytes", "set it for the members: the answer is that of the last one"),
    ("quota", "set it for the members"),
    ("retry", "set it for the members: a team is not tried again as a whole"),
    ("stop_grace", "a team gets two seconds more than its members"),
];

/// Keys that a team does not have yet.
const FUTURE_TEAM_KEYS: [&str; 3] = ["budget", "dedup", "unredacted_response"];

/// Reads the kind of an agent. A key of other kinds is a fault.
pub(super) fn read(section: &mut Section<'_>) -> AgentKind {
    let kind = section.keyword("kind", &KINDS).map(|found| found.value).unwrap_or_default();
    match kind {
        AgentKind::Program => {}
        AgentKind::Remote => refuse_program_keys(section, kind),
        AgentKind::Team => {
            refuse_program_keys(section, kind);
            refuse_member_keys(section);
        }
    }
    kind
}

/// Reports each key of programs in the section of an agent of another kind.
fn refuse_program_keys(section: &mut Section<'_>, kind: AgentKind) {
    let has_preset = section.has("preset");
    for key in PROGRAM_KEYS.into_iter().chain(["working_dir", "preset"]) {
        let Some(entry) = section.entry(key) else { continue };
        // The preset itself has many of these keys, and is reported alone.
        if !has_preset || key == "preset" {
            let diagnostic = from_message("has a meaning for agents with a program only")
                .hint(format!("leave it out, or leave out `kind = \"{}\"`", kind.as_str()));
            section.reader.error(&entry.position.hidden(), diagnostic);
        }
    }
}

/// Reports each key of members in the section of a team.
fn refuse_member_keys(section: &mut Section<'_>) {
    for (key, hint) in NO_TEAM_KEYS {
        if let Some(entry) = section.entry(key) {
            let diagnostic = from_message("has no meaning for a team").hint(hint);
            section.reader.error(&entry.position.hidden(), diagnostic);
        }
    }
    for key in FUTURE_TEAM_KEYS {
        if let Some(entry) = section.entry(key) {
            let diagnostic = from_message("is not supported for a team yet");
            section.reader.error(&entry.position.hidden(), diagnostic);
        }
    }
}
