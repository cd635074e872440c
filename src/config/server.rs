//! `[server]` and `[log]`: where the service listens, keeps its things and writes its log.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use algonius_actors::model::id::AgentId;
use nix::unistd::{AccessFlags, Uid, access};

use super::entry::{self, Entry};
use super::fault::said;
use super::presets;
use super::section::Section;
use super::tls;
use super::tokens::existing;
use super::value::Bounds;
use crate::tls::Pair;

/// What a commit of the ledger survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Any crash of the service. The last commits may be lost when the power fails.
    #[default]
    Process,
    /// A power failure too, at the price of slower commits.
    Power,
}

/// How the service is reached and where it keeps its things. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// What it speaks TLS with; in the clear without.
    pub tls: Option<Pair>,
    /// How callers reach the service when it stands behind a proxy; without a slash at its end.
    pub public_url: Option<String>,
    /// Whether the minimal card is shown without a token.
    pub public_card: bool,
    /// The ledger and the instance key.
    pub data_dir: PathBuf,
    /// Sockets and the folders of running executions; best in memory.
    pub runtime_dir: PathBuf,
    /// The command line's own token; made on the first start.
    pub token_file: PathBuf,
    /// Longest body of a request in bytes.
    pub max_body_bytes: usize,
    /// Connections at once.
    pub max_connections: usize,
    /// How long the head of a request may take.
    pub header_timeout: Duration,
    /// How long the body of a request may take.
    pub body_timeout: Duration,
    /// How long a client may leave what it is sent unread.
    pub write_timeout: Duration,
    /// How long executions may go on when the service is asked to end.
    pub drain_timeout: Duration,
    /// How long running programs wait for the next life of a service that was killed.
    pub reattach_grace: Duration,
    /// What a commit survives.
    pub durability: Durability,
    /// Whether a change of the configuration is taken up by itself.
    pub watch: bool,
    /// Where presets of one's own are.
    pub presets: PathBuf,
    /// Which requests are looked at.
    pub entry: Entry,
}

/// How a log line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people on a terminal, as JSON otherwise.
    #[default]
    Auto,
    /// For people.
    Human,
    /// One JSON object each.
    Json,
}

/// What is logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Lowest level that is written.
    pub level: tracing::Level,
    /// How it is written.
    pub format: LogFormat,
}

const LEVELS: [(&str, tracing::Level); 5] = [
    ("error", tracing::Level::ERROR),
    ("warn", tracing::Level::WARN),
    ("info", tracing::Level::INFO),
    ("debug", tracing::Level::DEBUG),
    ("trace", tracing::Level::TRACE),
];

/// Reads `[log]`.
pub(super) fn log(mut section: Section<'_>) -> Log {
    let level = section.word("level", &LEVELS).map_or(tracing::Level::INFO, |found| found.value);
    let formats = [
        ("auto", LogFormat::Auto),
        ("human", LogFormat::Human),
        ("text", LogFormat::Human), // Its name in earlier releases.
        ("json", LogFormat::Json),
    ];
    let format = section.word("format", &formats).map(|found| found.value).unwrap_or_default();
    section.finish();
    Log { level, format }
}

/// Reads `[server]`, and the default agent, which is one of `agents`.
pub(super) fn read(
    mut section: Section<'_>,
    agents: &[AgentId],
) -> (Option<Server>, Option<AgentId>) {
    let from = &mut section;
    let default_agent = default_agent(from, agents);
    let tls = tls::read(from);
    let found = data_dir(from);
    let data_dir = found.clone().unwrap_or_default();
    let runtime_dir = folder(from, "runtime_dir");
    let token_file = folder(from, "token_file");
    let durabilities = [("process", Durability::Process), ("power", Durability::Power)];
    let entry = entry::read(from);
    let server = Server {
        listen: listen(from, tls.is_given || !entry.trusted_proxies.is_empty()),
        tls: tls.pair,
        public_url: public_url(from),
        public_card: from.flag("public_card", true),
        runtime_dir: runtime_dir.unwrap_or_else(|| usual_runtime_dir(from, &data_dir)),
        token_file: token_file.unwrap_or_else(|| data_dir.join("token")),
        data_dir,
        max_body_bytes: size(from, "max_body_bytes", Bounds::new(1024, 1 << 30, 4 << 20)),
        max_connections: size(from, "max_connections", Bounds::new(1, 1 << 20, 1024)),
        header_timeout: from.seconds("header_timeout", Bounds::new(0.1, 600.0, 10.0)),
        body_timeout: from.seconds("body_timeout", Bounds::new(0.1, 3600.0, 30.0)),
        write_timeout: from.seconds("write_timeout", Bounds::new(0.1, 3600.0, 30.0)),
        drain_timeout: from.seconds("drain_timeout", Bounds::new(0.0, 86_400.0, 30.0)),
        reattach_grace: from.seconds("reattach_grace", Bounds::new(0.0, 86_400.0, 60.0)),
        durability: from.word("durability", &durabilities).map(|d| d.value).unwrap_or_default(),
        watch: from.flag("watch", true),
        presets: folder(from, "presets").unwrap_or_else(|| from.reader.resolve(presets::FOLDER)),
        entry,
    };
    section.finish();
    (found.map(|_| server), default_agent)
}

/// The agent that is meant when nobody names one: the only one, unless another is given.
fn default_agent(section: &mut Section<'_>, agents: &[AgentId]) -> Option<AgentId> {
    match (section.nonblank("default_agent"), agents) {
        (Some(word), _) => existing(section, &word, agents),
        (None, [only]) => Some(only.clone()),
        (None, _) => None,
    }
}

/// The address to listen on. One that others can reach is worth a warning, unless TLS is spoken there
/// or by a proxy in front of it.
fn listen(section: &mut Section<'_>, is_secured: bool) -> SocketAddr {
    let usual = SocketAddr::from(([127, 0, 0, 1], 8080));
    let Some(text) = section.text("listen") else { return usual };
    let Ok(listen) = text.value.parse::<SocketAddr>() else {
        let complaint = "must be an address and a port, such as \"127.0.0.1:8080\"";
        section.reader.error(&text.place, complaint);
        return usual;
    };
    if !listen.ip().is_loopback() && !is_secured {
        let complaint =
            said("others can reach this address, and what is said there can be overheard")
                .hint("give `server.tls`, or name the proxy that speaks TLS in `trusted_proxies`");
        section.reader.warning(&text.place, complaint);
    }
    listen
}

/// How callers reach the service.
fn public_url(section: &mut Section<'_>) -> Option<String> {
    let text = section.nonblank("public_url")?;
    let reader = section.reader;
    let rest = ["https://", "http://"].iter().find_map(|scheme| text.value.strip_prefix(scheme));
    let host = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
    if host.contains('@') {
        reader.error(&text.place.hidden(), "must not hold a name or password");
        return None;
    }
    if host.is_empty() || text.value.contains(['?', '#', ' ']) {
        let complaint = "must be an address such as \"https://agents.example.org\"";
        reader.error(&text.place, complaint);
        return None;
    }
    Some(text.value.trim_end_matches('/').to_owned())
}

/// A path of the file, made absolute.
fn folder(section: &mut Section<'_>, key: &'static str) -> Option<PathBuf> {
    let path = section.nonblank(key)?;
    if path.value.starts_with('~') {
        section.reader.error(&path.place, "`~` means nothing here: write the whole path");
    }
    Some(section.reader.resolve(&path.value))
}

/// Where the ledger is: as given, or in the user's folder of states.
fn data_dir(section: &mut Section<'_>) -> Option<PathBuf> {
    let reader = section.reader;
    let found = folder(section, "data_dir").or_else(|| usual_data_dir(&|name| reader.env(name)));
    if found.is_none() {
        let complaint = "is needed where neither XDG_STATE_HOME nor HOME is set";
        reader.error(&section.place.below("data_dir").hidden(), complaint);
    }
    found
}

/// Where the ledger is when no configuration says: in the user's folder of states.
fn usual_data_dir(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name| env(name).filter(|path| path.starts_with('/')).map(PathBuf::from);
    let home = || absolute("HOME").map(|home| home.join(".local/state"));
    Some(absolute("XDG_STATE_HOME").or_else(home)?.join("algonius"))
}

/// Where the command line's own token is when no configuration says.
#[must_use]
pub fn usual_token_file(env: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    usual_data_dir(env).unwrap_or_default().join("token")
}

/// Where sockets and running executions live: in memory wherever the machine offers it.
fn usual_runtime_dir(section: &Section<'_>, data_dir: &std::path::Path) -> PathBuf {
    let given = section.reader.env("XDG_RUNTIME_DIR").filter(|path| path.starts_with('/'));
    if let Some(given) = given {
        return PathBuf::from(given).join("algonius");
    }
    let memory = PathBuf::from("/dev/shm");
    if access(&memory, AccessFlags::W_OK).is_ok() {
        return memory.join(format!("algonius-{}", Uid::effective()));
    }
    data_dir.join("run")
}

/// A number of things in memory.
fn size(section: &mut Section<'_>, key: &'static str, bounds: Bounds<u64>) -> usize {
    usize::try_from(section.count(key, bounds)).unwrap_or(usize::MAX)
}
