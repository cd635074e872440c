//! Runtime settings of a program besides its arguments: a model, a home, and the detection of its version.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::runtime_settings::{
    AgentHome, ProgramRuntimeSettings, VersionCheckSpec,
};
use algonius_actors::model::program::version::VersionRange;
use algonius_actors::model::program::{EnvVariable, VariableSecrecy};

use crate::config::diagnostics::new_diagnostic;
use crate::config::table::pattern::parse_regex;
use crate::config::table::{Positioned, Section, value};

/// Kind of HOME that a program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum HomeKind {
    #[default]
    Shared,
    PerAgent,
}

const HOME_KINDS: [(&str, HomeKind); 2] =
    [("shared", HomeKind::Shared), ("per-agent", HomeKind::PerAgent)];
/// Directory of the agents' homes, in the data directory.
const HOMES_DIR: &str = "homes";
/// Default pattern of a version.
const DEFAULT_VERSION_PATTERN: &str = r"\d+(?:\.\d+)+";

/// Reads the runtime settings, and sets the home among the variables.
pub(crate) fn read(
    section: &mut Section<'_>,
    agent_home: Option<AgentHome>,
    env: &mut BTreeMap<String, EnvVariable>,
) -> ProgramRuntimeSettings {
    let home = set_and_resolve_home(section, agent_home.as_ref(), env);
    ProgramRuntimeSettings {
        model: read_model(section),
        home,
        agent_home: agent_home.map(Box::new),
        version_check: read_version_spec(section).map(Box::new),
        preset: None,
    }
}

/// Reads the model of the program. A name that begins with `-` would be read as an option.
fn read_model(section: &mut Section<'_>) -> Option<String> {
    let model = section.nonblank_text("model")?;
    if model.value.starts_with('-') {
        section.reader.report_error(&model.position, "must not begin with `-`");
    }
    Some(model.value)
}

/// Reads the agent's private home, if it has one, and the files that are written into it.
///
/// An agent with a dynamic user always has one.
pub(crate) fn read_agent_home(
    section: &mut Section<'_>,
    (id, data_dir): (&AgentId, &Path),
    has_dynamic_user: bool,
) -> Option<AgentHome> {
    let home = section.keyword("home", &HOME_KINDS);
    let has_home_files = section.has_key("home_files");
    let files = read_home_files(section.section("home_files"));
    let is_private = home.as_ref().is_some_and(|home| home.value == HomeKind::PerAgent);
    if !is_private && !has_dynamic_user {
        if has_home_files {
            let position = section.position.child("home_files").without_excerpt();
            section
                .reader
                .report_error(&position, "has a meaning with `home = \"per-agent\"` only");
        }
        return None;
    }
    if let Some(home) = home.as_ref().filter(|_| !is_private) {
        let diagnostic = "must be \"per-agent\": a dynamic user has no other home";
        section.reader.report_error(&home.position, diagnostic);
    }
    let position =
        home.map_or_else(|| section.position.child("user").without_excerpt(), |home| home.position);
    if data_dir.starts_with("/tmp") {
        let diagnostic = new_diagnostic(
            "the agent's home is below /tmp, where some programs cannot confine themselves",
        )
        .with_hint("set `server.data_dir` to a folder elsewhere");
        section.reader.report_warning(&position, diagnostic);
    }
    Some(AgentHome { path: data_dir.join(HOMES_DIR).join(id.as_str()), initial_files: files })
}

/// Reads texts by their paths in the home.
fn read_home_files(section: Section<'_>) -> BTreeMap<String, String> {
    let reader = section.reader;
    let mut files = BTreeMap::new();
    for (name, entry) in section.entries() {
        let entry = Positioned { position: entry.position.without_excerpt(), ..entry };
        let mut parts = Path::new(&name.value).components().peekable();
        let is_below =
            parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)));
        if !is_below {
            reader.report_error(&name.position, "must be a path in the home, without `..`");
        }
        let text = value::text(reader, &entry).map(str::to_owned);
        files.extend(text.map(|text| (name.value, text)));
    }
    files
}

/// Sets HOME to the private home; a fault if the file sets another one.
fn set_and_resolve_home(
    section: &Section<'_>,
    agent_home: Option<&AgentHome>,
    env: &mut BTreeMap<String, EnvVariable>,
) -> PathBuf {
    if let Some(agent_home) = agent_home {
        let value = agent_home.path.display().to_string();
        let home = EnvVariable { value, secrecy: VariableSecrecy::Plain };
        if env.insert("HOME".to_owned(), home).is_some() {
            let position = section.position.child("env.HOME").without_excerpt();
            let diagnostic = new_diagnostic("the agent has a home of its own already")
                .with_hint("leave it out, or set `home = \"shared\"`");
            section.reader.report_error(&position, diagnostic);
        }
    }
    let home = env.get("HOME").map(|home| home.value.clone());
    home.or_else(|| section.reader.nonempty_env("HOME")).map(PathBuf::from).unwrap_or_default()
}

/// Reads `[agents.<id>.program_version]`: the arguments and pattern for the version of the program.
fn read_version_spec(agent: &mut Section<'_>) -> Option<VersionCheckSpec> {
    let is_given = agent.has_key("program_version");
    let mut section = agent.section("program_version");
    let args = section.text_list("args");
    let regex = section.nonblank_text("regex").map(|text| parse_regex(section.reader, &text));
    let tested = section.nonblank_text("tested");
    section.report_unknown_keys();
    let tested = tested.and_then(|text| {
        let range = VersionRange::parse(&text.value);
        if range.is_none() {
            let diagnostic = new_diagnostic("must be bounds with commas between them")
                .with_hint("write `>=2.1, <3`");
            agent.reader.report_error(&text.position, diagnostic);
        }
        range
    });
    let args = args.map(|args| args.into_iter().map(|arg| arg.value).collect());
    if !is_given {
        return None;
    }
    Some(VersionCheckSpec {
        args: args.unwrap_or_else(|| vec!["--version".to_owned()]),
        regex: regex.unwrap_or_else(|| agent.reader.compile_regex(DEFAULT_VERSION_PATTERN).ok())?,
        tested_versions: tested,
    })
}
