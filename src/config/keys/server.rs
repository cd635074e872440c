//! `[server]` and `[log]`: listen address, directories and log of the service.

pub(crate) mod access;
mod tls;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use algonius_actors::model::id::AgentId;
use nix::unistd::{AccessFlags, Uid, access};

use super::tokens::find_agent;
use crate::config::diagnostics::new_diagnostic;
use crate::config::presets;
use crate::config::table::{ConfigKey, Count, Flag, Keyword, RangeWithDefault, Seconds, Section};
use crate::platform::tls::CertificateFiles;
use access::RequestAccessSettings;

/// Failures that a commit of the ledger survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DurabilitySetting {
    /// Any crash of the service. A power failure may lose the last commits.
    #[default]
    Process,
    /// A power failure too, at the cost of slower commits.
    Power,
}

/// Network settings and directories of the service. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// Address and port to listen on.
    pub listen_address: SocketAddr,
    /// Certificate and key for TLS; plain HTTP without.
    pub tls: Option<CertificateFiles>,
    /// Address and card for the public.
    pub public: PublicSettings,
    /// Directory of the ledger and the instance key.
    pub data_dir: PathBuf,
    /// Directory of sockets and of running executions' folders; preferably in memory.
    pub runtime_dir: PathBuf,
    /// File of the command line's own token; created on the first start.
    pub token_file: PathBuf,
    /// Limits of connections and requests.
    pub request_limits: RequestLimits,
    /// Time for which executions may continue after a stop of the service is requested.
    pub drain_timeout: Duration,
    /// Settings of running programs.
    pub programs: ProgramSettings,
    /// Durability of a commit.
    pub durability: DurabilitySetting,
    /// Settings of the configuration itself.
    pub configuration: ConfigFileSettings,
    /// Admission rules of requests.
    pub request_access: RequestAccessSettings,
}

/// Address and card for the public.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicSettings {
    /// Public URL of the service behind a proxy; without a slash at its end.
    pub url: Option<String>,
    /// True if the minimal card is public.
    pub is_card_public: bool,
}

/// Limits of connections and requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLimits {
    /// Greatest body of a request in bytes.
    pub max_body_bytes: usize,
    /// Greatest number of concurrent connections.
    pub max_connections: usize,
    /// Time limit for the head of a request.
    pub header_timeout: Duration,
    /// Time limit for the body of a request.
    pub body_timeout: Duration,
    /// Time for which a client may leave sent bytes unread.
    pub write_timeout: Duration,
}

/// Settings of running programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSettings {
    /// Time for which running programs wait for the next process instance of a service that was killed.
    pub reattach_grace: Duration,
    /// Bytes of memory for the output of all running programs together.
    pub max_output_memory_bytes: u64,
    /// First and last number of the users that agents with `user = "dynamic"` run as.
    pub agent_uid_range: Option<(u32, u32)>,
}

/// Settings of the configuration itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFileSettings {
    /// True if changes of the configuration are applied automatically.
    pub reloads_on_change: bool,
    /// Folder of custom presets.
    pub presets_dir: PathBuf,
}

impl ServerSettings {
    /// Returns true if cards contain the host of each request, because no address is valid for all callers.
    #[must_use]
    pub const fn uses_request_host(&self) -> bool {
        self.public.url.is_none() && self.listen_address.ip().is_unspecified()
    }
}

const PUBLIC_CARD: ConfigKey<Flag> =
    ConfigKey::flag("public_card", true, "shows the minimal agent card without a token");
const MAX_BODY_BYTES: ConfigKey<Count> =
    ConfigKey::count("max_body_bytes", RangeWithDefault::new(1024, 1 << 30, 4 << 20), "");
const MAX_CONNECTIONS: ConfigKey<Count> =
    ConfigKey::count("max_connections", RangeWithDefault::new(1, 1 << 20, 1024), "");
const HEADER_TIMEOUT: ConfigKey<Seconds> =
    ConfigKey::seconds("header_timeout", RangeWithDefault::new(0.1, 600.0, 10.0), "");
const BODY_TIMEOUT: ConfigKey<Seconds> =
    ConfigKey::seconds("body_timeout", RangeWithDefault::new(0.1, 3600.0, 30.0), "");
const WRITE_TIMEOUT: ConfigKey<Seconds> = ConfigKey::seconds(
    "write_timeout",
    RangeWithDefault::new(0.1, 3600.0, 30.0),
    "a client that reads nothing for this time is disconnected",
);
const DRAIN_TIMEOUT: ConfigKey<Seconds> = ConfigKey::seconds(
    "drain_timeout",
    RangeWithDefault::new(0.0, 86_400.0, 30.0),
    "time for running executions to finish when the service stops",
);
const REATTACH_GRACE: ConfigKey<Seconds> = ConfigKey::seconds(
    "reattach_grace",
    RangeWithDefault::new(0.0, 86_400.0, 60.0),
    "time that programs continue after the service was killed, until it restarts",
);
const OUTPUT_MEMORY: ConfigKey<Count> = ConfigKey::count(
    "output_memory",
    RangeWithDefault::new(1 << 20, 1 << 40, 256 << 20),
    "bytes of program output in memory files; beyond it programs wait",
);
const DURABILITY: ConfigKey<Keyword<DurabilitySetting>> = ConfigKey::keyword(
    "durability",
    (
        &[("process", DurabilitySetting::Process), ("power", DurabilitySetting::Power)],
        DurabilitySetting::Process,
    ),
    "\"power\": commits survive a power failure, and are slower",
);
const WATCH: ConfigKey<Flag> = ConfigKey::flag(
    "watch",
    true,
    "reloads automatically when this file, or a file that it names, changes",
);

/// Lowest user id that may be an agent's: lower ones belong to the system and to people.
const MIN_AGENT_UID: u32 = 1000;

/// Reads `[server]`, and the default agent, which is one of `agents`.
pub(crate) fn read(
    mut section: Section<'_>,
    agents: &[AgentId],
) -> (Option<ServerSettings>, Option<AgentId>) {
    let table = &mut section;
    let default_agent = read_default_agent(table, agents);
    let tls = tls::read(table);
    let known_data_dir = read_data_dir(table);
    let data_dir = known_data_dir.clone().unwrap_or_default();
    let runtime_dir = read_absolute_utf8_path(table, "runtime_dir");
    let token_file = read_absolute_path(table, "token_file");
    let request_access = access::read(table);
    let url = read_public_url(table);
    let server = ServerSettings {
        listen_address: read_listen_address(
            table,
            tls.is_configured || !request_access.trusted_proxies.is_empty(),
        ),
        tls: tls.files,
        public: PublicSettings { url, is_card_public: PUBLIC_CARD.read(table) },
        runtime_dir: runtime_dir.unwrap_or_else(|| default_runtime_dir(table, &data_dir)),
        token_file: token_file.unwrap_or_else(|| data_dir.join("token")),
        data_dir,
        request_limits: read_request_limits(table),
        drain_timeout: DRAIN_TIMEOUT.read(table),
        programs: read_program_settings(table),
        durability: DURABILITY.read(table),
        configuration: ConfigFileSettings {
            reloads_on_change: WATCH.read(table),
            presets_dir: read_absolute_path(table, "presets")
                .unwrap_or_else(|| table.reader.resolve_path(presets::PRESETS_DIR)),
        },
        request_access,
    };
    if server.uses_request_host() && !server.request_access.trusted_proxies.is_empty() {
        let diagnostic =
            new_diagnostic("is needed behind a proxy: cards name the host of the proxy's requests")
                .with_hint(
                    "give the address that callers use, such as \"https://agents.example.org\"",
                );
        section
            .reader
            .report_warning(&section.position.child("public_url").without_excerpt(), diagnostic);
    }
    section.report_unknown_keys();
    (known_data_dir.map(|_| server), default_agent)
}

/// Reads the limits of connections and requests.
fn read_request_limits(section: &mut Section<'_>) -> RequestLimits {
    RequestLimits {
        max_body_bytes: to_usize(MAX_BODY_BYTES.read(section)),
        max_connections: to_usize(MAX_CONNECTIONS.read(section)),
        header_timeout: HEADER_TIMEOUT.read(section),
        body_timeout: BODY_TIMEOUT.read(section),
        write_timeout: WRITE_TIMEOUT.read(section),
    }
}

/// Reads the settings of running programs.
fn read_program_settings(section: &mut Section<'_>) -> ProgramSettings {
    ProgramSettings {
        reattach_grace: REATTACH_GRACE.read(section),
        max_output_memory_bytes: OUTPUT_MEMORY.read(section),
        agent_uid_range: read_agent_uid_range(section),
    }
}

/// Reads the range of users from which the service may pick.
fn read_agent_uid_range(section: &mut Section<'_>) -> Option<(u32, u32)> {
    let text = section.nonblank_text("agent_users")?;
    let uid_bounds = text.value.split_once('-');
    let uid_bounds =
        uid_bounds.map(|(first, last)| (first.trim().parse().ok(), last.trim().parse().ok()));
    match uid_bounds {
        Some((Some(first), Some(last))) if MIN_AGENT_UID <= first && first <= last => {
            return Some((first, last));
        }
        _ => {
            let diagnostic = new_diagnostic(format!("must be two numbers from {MIN_AGENT_UID} on"))
                .with_hint("write \"61184-61999\", which no account of the machine has");
            section.reader.report_error(&text.position, diagnostic);
        }
    }
    None
}

/// Returns the default agent: the configured one, or the only one.
fn read_default_agent(section: &mut Section<'_>, agents: &[AgentId]) -> Option<AgentId> {
    match (section.nonblank_text("default_agent"), agents) {
        (Some(word), _) => find_agent(section, &word, agents),
        (None, [only]) => Some(only.clone()),
        (None, _) => None,
    }
}

/// Reads the listen address. A warning follows if others can reach it, unless TLS is used there or by a proxy in front
/// of it.
fn read_listen_address(section: &mut Section<'_>, is_secured: bool) -> SocketAddr {
    let default = SocketAddr::from(([127, 0, 0, 1], 8080));
    let Some(text) = section.text("listen") else { return default };
    let Ok(listen_address) = text.value.parse::<SocketAddr>() else {
        let diagnostic = "must be an address and a port, such as \"127.0.0.1:8080\"";
        section.reader.report_error(&text.position, diagnostic);
        return default;
    };
    if !listen_address.ip().is_loopback() && !is_secured {
        let diagnostic =
            new_diagnostic("others can reach this address, and connections are not encrypted")
                .with_hint(
                    "set `server.tls`, or name the proxy that speaks TLS in `trusted_proxies`",
                );
        section.reader.report_warning(&text.position, diagnostic);
    }
    listen_address
}

/// Reads the public URL.
fn read_public_url(section: &mut Section<'_>) -> Option<String> {
    let text = section.nonblank_text("public_url")?;
    let reader = section.reader;
    let rest = ["https://", "http://"].iter().find_map(|scheme| text.value.strip_prefix(scheme));
    let authority = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
    if authority.contains('@') {
        reader.report_error(&text.position.without_excerpt(), "must not hold a name or password");
        return None;
    }
    if authority.is_empty() || text.value.contains(['?', '#', ' ']) {
        let diagnostic = "must be an address such as \"https://agents.example.org\"";
        reader.report_error(&text.position, diagnostic);
        return None;
    }
    Some(text.value.trim_end_matches('/').to_owned())
}

/// Reads a path, and makes it absolute.
fn read_absolute_path(section: &mut Section<'_>, key: &'static str) -> Option<PathBuf> {
    let path = section.nonblank_text(key)?;
    if path.value.starts_with('~') {
        section.reader.report_error(&path.position, "`~` means nothing here: write the whole path");
    }
    Some(section.reader.resolve_path(&path.value))
}

/// Reads a path below which programs have files. They get its name in variables, arguments and JSON.
fn read_absolute_utf8_path(section: &mut Section<'_>, key: &'static str) -> Option<PathBuf> {
    let position = section.position.child(key).without_excerpt();
    let path = read_absolute_path(section, key)?;
    if path.to_str().is_none() {
        let diagnostic = new_diagnostic("the whole path is not UTF-8, so programs cannot get it")
            .with_hint("write an absolute path, or rename the folder of the configuration");
        section.reader.report_error(&position, diagnostic);
    }
    Some(path)
}

/// Returns the directory of the ledger: as configured, or in the user's state directory.
fn read_data_dir(section: &mut Section<'_>) -> Option<PathBuf> {
    let reader = section.reader;
    let found = read_absolute_utf8_path(section, "data_dir")
        .or_else(|| default_data_dir(&|name| reader.env(name).map(OsString::from)));
    if found.is_none() {
        let diagnostic = "is needed where neither XDG_STATE_HOME nor HOME is set";
        reader.report_error(&section.position.child("data_dir").without_excerpt(), diagnostic);
    }
    found
}

/// Returns the default directory of the ledger: in the user's state directory.
fn default_data_dir(env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".local/state"));
    Some(absolute("XDG_STATE_HOME").or_else(home)?.join("algonius"))
}

/// Returns the default path of the command line's own token; `None` if neither `XDG_STATE_HOME` nor `HOME` is absolute.
#[must_use]
pub fn default_token_file(env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    Some(default_data_dir(env)?.join("token"))
}

/// Returns the default directory of sockets and running executions: in memory if possible.
fn default_runtime_dir(section: &Section<'_>, data_dir: &std::path::Path) -> PathBuf {
    let folder = section.reader.env("XDG_RUNTIME_DIR").filter(|path| path.starts_with('/'));
    if let Some(folder) = folder {
        return PathBuf::from(folder).join("algonius");
    }
    let memory_dir = PathBuf::from("/dev/shm");
    if access(&memory_dir, AccessFlags::W_OK).is_ok() {
        return memory_dir.join(format!("algonius-{}", Uid::effective()));
    }
    data_dir.join("run")
}

/// Returns a count of things in memory.
fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
