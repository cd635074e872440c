//! The configuration: TOML as written, every fault at once with its place, checked settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::TokenSeed;
use algonius_actors::model::redaction::Redaction;
use toml::de::DeTable;

mod agent;
mod alerts;
mod allowance;
mod arguments;
mod budget;
mod command;
mod continuity;
mod contract;
mod deadlines;
mod dialogue;
mod entry;
mod environment;
mod exposure;
mod fault;
mod interactive;
mod json;
mod limits;
mod outfit;
pub mod presets;
mod pressure;
mod program;
mod prompting;
mod prompts;
mod push;
mod quota;
mod reader;
mod redaction;
mod resources;
mod retention;
mod sandbox;
mod schedules;
mod schema;
mod section;
mod server;
mod shape;
mod source;
mod telemetry;
mod tls;
mod tokens;
mod value;

pub use agent::Agent;
pub use alerts::Alerts;
pub use entry::{Entry, Lockout};
pub use fault::{Fault, Faults, Severity};
pub use pressure::Pressure;
pub use push::Push;
pub use retention::Retention;
pub use schedules::{Scheduled, Scheduling};
pub use schema::schema;
pub use server::{Durability, Log, LogFormat, Server, usual_token_file};
pub use source::Source;
pub use telemetry::Telemetry;

use agent::Basis;
use exposure::Doors;
use limits::Limits;
use presets::{Laid, Shelf};
use reader::{Findings, Found, Place, Reader};
use section::Section;

/// A configuration without an error.
#[derive(Clone)]
pub struct Settings {
    /// How the service is reached and where it keeps its things.
    pub server: Server,
    /// What is logged.
    pub log: Log,
    /// How the machine is watched; it is not without.
    pub pressure: Option<Pressure>,
    /// Where may be told about executions; nobody is told without.
    pub push: Option<Push>,
    /// How the history is kept; all of it is without.
    pub retention: Option<Retention>,
    /// The agents in the order of the file; never empty.
    pub agents: Vec<Agent>,
    /// The agent that is meant when nobody names one.
    pub default_agent: Option<AgentId>,
    /// The configured tokens, those of single agents among them.
    pub tokens: Vec<TokenSeed>,
    /// What becomes of an address that shows wrong credentials.
    pub lockout: Lockout,
    /// Texts that must be masked wherever they turn up.
    pub secrets: Vec<String>,
    /// What else is masked.
    pub redaction: Redaction,
    /// What is asked for at set times.
    pub scheduling: Scheduling,
    /// The files that were read besides the configuration itself.
    pub files: Vec<PathBuf>,
    /// Whether those who may read are shown the numbers.
    pub metrics: bool,
    /// When somebody is told that they should look, and who.
    pub alerts: Alerts,
    /// Who is told what happens.
    pub telemetry: Option<Telemetry>,
}

impl std::fmt::Debug for Settings {
    /// Leaves the secrets out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("server", &self.server)
            .field("log", &self.log)
            .field("pressure", &self.pressure)
            .field("push", &self.push)
            .field("retention", &self.retention)
            .field("agents", &self.agents)
            .field("default_agent", &self.default_agent)
            .field("tokens", &self.tokens)
            .field("lockout", &self.lockout)
            .field("redaction", &self.redaction)
            .field("scheduling", &self.scheduling)
            .field("metrics", &self.metrics)
            .field("alerts", &self.alerts)
            .field("telemetry", &self.telemetry)
            .finish_non_exhaustive()
    }
}

/// The configuration that comes with the program; it works as it stands.
pub const SHIPPED: &str = include_str!("../config/supervisor.toml");

/// Settings that can be used, and what their writer should know.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The settings.
    pub settings: Settings,
    /// Faults that keep nothing from working, in the order of the file.
    pub warnings: Vec<Fault>,
}

/// Reads a file and checks it against this machine. `env` is the service's environment.
///
/// # Errors
/// When anything in the file is wrong: all of it, warnings included. A file that is not TOML
/// yields its errors of syntax alone, for what it means is not known then.
pub fn load(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Checked, Faults> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| unreadable(path, &format!("cannot be read: {error}")))?;
    check(path, &text, env)
}

/// Reads the configuration that comes with the program.
///
/// # Errors
/// When it does not suit this machine.
pub fn load_shipped(env: &dyn Fn(&str) -> Option<String>) -> Result<Checked, Faults> {
    check(Path::new("supervisor.toml"), SHIPPED, env)
}

/// Reads a text as if it stood in a file.
///
/// # Errors
/// As [`load`] does.
pub fn load_text(
    path: &Path,
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Checked, Faults> {
    check(path, text, env)
}

/// Checks the text of a file. Relative paths are seen from the file's folder.
fn check(path: &Path, text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Checked, Faults> {
    let file = std::path::absolute(path);
    let file = file.map_err(|error| unreadable(path, &format!("has no folder: {error}")))?;
    let reader = Reader::new(path, text, file.parent().unwrap_or(&file).to_owned(), env);
    let (document, broken) = DeTable::parse_recoverable(text);
    for error in &broken {
        let span = error.span().unwrap_or_default();
        let place = Place { path: String::new(), span, shown: false };
        reader.error(&place, error.message());
    }
    let shelf = Shelf::open(document.get_ref(), file.parent().unwrap_or(&file));
    let laid = broken.is_empty().then(|| presets::lay(document.get_ref(), &shelf, &reader));
    let settings = laid.as_ref().and_then(|laid| read(&reader, laid));
    let Findings { faults, secrets, files } = reader.finish();
    let is_sound = faults.iter().all(|fault| fault.severity != Severity::Error);
    match settings {
        Some(settings) if is_sound => Ok(Checked {
            settings: Settings { secrets, files, ..settings },
            warnings: fault::in_order(faults),
        }),
        _ => Err(Faults::new(faults).naming(files)),
    }
}

/// Reads the whole document. Nothing is given when there is nothing to give; a fault says why.
fn read<'c>(reader: &'c Reader<'c>, laid: &'c Laid<'c>) -> Option<Settings> {
    let top = Place { path: String::new(), span: 0..0, shown: true };
    let mut root = Section::new(reader, top, Some(&laid.document));
    let limits = Limits::read(root.section("limits"));
    let sections = identified(reader, root.sections("agents"));
    if sections.is_empty() {
        reader.error(&root.place.below("agents"), "one agent at least is needed");
    }
    let ids: Vec<AgentId> = sections.iter().map(|(id, _)| id.value.clone()).collect();
    let (server, default_agent) = server::read(root.section("server"), &ids);
    let log = server::log(root.section("log"));
    let lockout = entry::lockout(root.section("lockout"));
    let is_loopback = server.as_ref().is_none_or(|server| server.listen.ip().is_loopback());
    let pressure = pressure::read(root.section("pressure"));
    let push = push::read(root.section("push"));
    let retention = retention::read(root.section("retention"));
    let redaction = redaction::read(root.section("redaction"));
    let metrics = alerts::metrics(root.section("metrics"));
    let alerts = alerts::read(root.section("alerts"));
    let telemetry = telemetry::read(root.section("telemetry"));
    let tokens = tokens::read(&mut root, &ids);
    let mut doors = Doors { is_loopback, tokens, paths: Vec::new(), usual: Arc::default() };
    let data_dir = server.as_ref().map_or(Path::new(""), |server| &server.data_dir);
    let basis = Basis { limits: &limits, data_dir, behind: &laid.behind };
    let agents = agent::read_all(reader, sections, &basis, &mut doors);
    let known = schedules::Known {
        agents: agents.iter().map(|agent| &*agent.spec).collect(),
        tokens: doors.tokens.iter().map(|token| token.name.as_str()).collect(),
    };
    let scheduling = schedules::read(&mut root, &known);
    root.finish();
    let (tokens, secrets, server) = (doors.tokens, Vec::new(), server?);
    let settings = Settings {
        server,
        log,
        pressure,
        push,
        retention,
        agents,
        default_agent,
        tokens,
        lockout,
        secrets,
        redaction,
        scheduling,
        files: Vec::new(),
        metrics,
        alerts,
        telemetry,
    };
    Some(settings)
}

/// The sections whose name can be an id.
fn identified<'c>(
    reader: &Reader<'c>,
    sections: Vec<(Found<String>, Section<'c>)>,
) -> Vec<(Found<AgentId>, Section<'c>)> {
    let mut identified = Vec::new();
    for (name, section) in sections {
        match AgentId::new(name.value.as_str()) {
            Ok(value) => identified.push((Found { value, place: name.place }, section)),
            Err(error) => reader.error(&name.place, error.to_string()),
        }
    }
    identified
}

/// The fault of a file as a whole.
fn unreadable(path: &Path, message: &str) -> Faults {
    Faults::new(vec![Fault {
        file: path.to_owned(),
        line: 0,
        column: 0,
        path: String::new(),
        value: None,
        message: message.to_owned(),
        hint: None,
        severity: Severity::Error,
    }])
}

#[cfg(test)]
mod tests;
