//! `agents.<id>.kind`: what performs the work of an agent, and the keys that agents of each kind do not have.

use algonius_actors::model::agent::AgentKind;

use toml::de::DeValue;

use super::team;
use crate::config::diagnostics::new_diagnostic;
use crate::config::keys::cognition::cognitive_agent;
use crate::config::keys::limits::AgentSettingBounds;
use crate::config::table::Section;

/// Kinds by keyword.
const KINDS: [(&str, AgentKind); 4] = [
    ("program", AgentKind::Program),
    ("remote", AgentKind::Remote),
    ("team", AgentKind::Team),
    ("cognitive", AgentKind::Cognitive),
];

/// Keys that only agents with a program have.
pub(crate) const PROGRAM_KEYS: [&str; 44] = [
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
    "files",
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
const INAPPLICABLE_TEAM_KEYS: [(&str, &str); 7] = [
    ("access", "a team has the access of its strongest member"),
    ("answer_timeout", "a team asks no question: its members do"),
    ("idle_timeout", "set it for the members; `timeout` limits the whole run"),
    ("max_output_bytes", "set it for the members: the answer is that of the last one"),
    ("quota", "set it for the members"),
    ("retry", "set it for the members: a team is not tried again as a whole"),
    ("stop_grace", "a team gets two seconds more than its members"),
];

/// Keys that a team does not have yet.
const UNSUPPORTED_TEAM_KEYS: [&str; 3] = ["budget", "dedup", "unredacted_response"];

/// Keys that have no meaning for a cognitive agent, each with what applies instead.
const INAPPLICABLE_COGNITIVE_KEYS: [(&str, &str); 4] = [
    ("answer_timeout", "a cognitive agent requests no input"),
    ("idle_timeout", "`timeout` of `[models.<prefix>]` limits a reply"),
    ("max_output_bytes", "a run with 8 MiB of text requests no further reply"),
    ("retry", "a model call is repeated three times; a run is not tried again"),
];

/// Keys that a cognitive agent does not have yet. `consent` is also a key of programs.
const UNSUPPORTED_COGNITIVE_KEYS: [&str; 13] = [
    CONSENT_KEY,
    "energy",
    "engine",
    "fallback",
    "is_manager",
    "keep_observations",
    "managed",
    "on_max_steps",
    "parallel_tools",
    "planning_interval",
    "quota",
    "sandbox_config",
    "unredacted_response",
];
/// Key of the permission policy.
const CONSENT_KEY: &str = "consent";

/// Returns the bounds of an agent's settings.
pub(super) fn bounds(bounds: &AgentSettingBounds, kind: AgentKind) -> AgentSettingBounds {
    match kind {
        AgentKind::Program | AgentKind::Remote => *bounds,
        AgentKind::Team => team::bounds(*bounds),
        AgentKind::Cognitive => cognitive_agent::bounds(*bounds),
    }
}

/// Reads the kind of an agent. A key of other kinds is a fault.
pub(super) fn read(section: &mut Section<'_>) -> AgentKind {
    let kind = section.keyword("kind", &KINDS).map(|found| found.value).unwrap_or_default();
    match kind {
        AgentKind::Program => {}
        AgentKind::Remote => refuse_program_keys(section, kind),
        AgentKind::Team => {
            refuse_program_keys(section, kind);
            refuse_non_team_keys(section);
        }
        AgentKind::Cognitive => {
            refuse_program_keys(section, kind);
            refuse_non_cognitive_keys(section);
        }
    }
    kind
}

/// Reports each key of programs in the section of an agent of another kind.
fn refuse_program_keys(section: &mut Section<'_>, kind: AgentKind) {
    let has_preset = section.has_key("preset");
    for key in PROGRAM_KEYS.into_iter().chain(["working_dir", "preset"]) {
        let Some(entry) = section.entry(key) else { continue };
        // Another function reports the policy of a cognitive agent.
        let is_reported_elsewhere = kind == AgentKind::Cognitive && key == CONSENT_KEY;
        // The preset itself has many of these keys, and is reported alone.
        if (!has_preset || key == "preset") && !is_reported_elsewhere {
            let diagnostic = new_diagnostic("has a meaning for agents with a program only")
                .with_hint(format!("leave it out, or leave out `kind = \"{}\"`", kind.as_str()));
            section.reader.report_error(&entry.position.without_excerpt(), diagnostic);
        }
    }
}

/// Reports each key of members in the section of a team.
fn refuse_non_team_keys(section: &mut Section<'_>) {
    for (key, hint) in INAPPLICABLE_TEAM_KEYS {
        if let Some(entry) = section.entry(key) {
            let diagnostic = new_diagnostic("has no meaning for a team").with_hint(hint);
            section.reader.report_error(&entry.position.without_excerpt(), diagnostic);
        }
    }
    for key in UNSUPPORTED_TEAM_KEYS {
        if let Some(entry) = section.entry(key) {
            let diagnostic = new_diagnostic("is not supported for a team yet");
            section.reader.report_error(&entry.position.without_excerpt(), diagnostic);
        }
    }
}

/// Reports each key in the section of a cognitive agent that it does not have. A preset has some of these keys, and is
/// reported alone.
fn refuse_non_cognitive_keys(section: &mut Section<'_>) {
    let has_preset = section.has_key("preset");
    for (key, hint) in INAPPLICABLE_COGNITIVE_KEYS {
        if let Some(entry) = section.entry(key).filter(|_| !has_preset) {
            let diagnostic = new_diagnostic("has no meaning for a cognitive agent").with_hint(hint);
            section.reader.report_error(&entry.position.without_excerpt(), diagnostic);
        }
    }
    for key in UNSUPPORTED_COGNITIVE_KEYS {
        // Only a key that is there: the others would be suggested for unknown keys.
        if section.has_key(key)
            && let Some(entry) = section.entry(key).filter(|_| !has_preset)
        {
            let message = "is not supported for a cognitive agent yet";
            section.reader.report_error(&entry.position.without_excerpt(), message);
        }
    }
    if section.peek("access").and_then(DeValue::as_str) == Some("read-write")
        && let Some(entry) = section.entry("access").filter(|_| !has_preset)
    {
        section.reader.report_error(&entry.position, "a cognitive agent has no access of its own: `sandbox.writable` of a tool or of an MCP server permits changes");
    }
}
