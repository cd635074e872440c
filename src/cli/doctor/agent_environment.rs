//! Environment in which agents find their keys: that of the service, if it can be queried.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

use super::finding::Finding;
use crate::cli::client::ServiceClient;
use crate::cli::client::percent_encoding::percent_encode;
use crate::cli::error::CliError;
use crate::cli::service::installed_unit::InstalledUnit;
use crate::config::NETWORK_VARIABLES;
use crate::wire::admin::EnvironmentStatus;

/// Placeholder for the value of a variable that the service has and this terminal lacks: the service never reveals
/// values.
const UNKNOWN_VALUE: &str = "(set in the environment of the service)";
/// Variables that differ in each environment, such as directories, users and search paths; they are read here.
const LOCAL_VARIABLES: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];
/// Maximum time for the answers of the service. Another program at its address may accept connections and never answer.
pub(crate) const SERVICE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of names in one request to the service.
const MAX_NAMES_PER_REQUEST: usize = 200;

/// Source of the variables.
enum EnvironmentOrigin {
    /// The service at this address reported which variables are set.
    Service { url: String, presence_by_name: BTreeMap<String, bool> },
    /// The installed unit, whose file was read.
    Unit,
    /// This terminal, for this reason.
    Terminal { reason: String },
}

/// Environment for the checks of agents.
pub(crate) struct AgentEnvironment {
    origin: EnvironmentOrigin,
    unit: Option<InstalledUnit>,
    is_service_silent: bool,
}

/// Reason why the service gave no answer.
struct NoAnswer {
    reason: String,
    is_timeout: bool,
}

impl From<String> for NoAnswer {
    fn from(reason: String) -> Self {
        Self { reason, is_timeout: false }
    }
}

impl AgentEnvironment {
    /// Requests the variables that `trigger_variable_lookups` looks up from the service that reads `config_file`.
    /// Without a response, uses those of the unit that starts the service on the file, otherwise those of this
    /// terminal.
    pub(crate) async fn query_service_or_local(
        client: Result<&ServiceClient, &CliError>,
        config_file: Option<&Path>,
        unit: Option<InstalledUnit>,
        trigger_variable_lookups: impl Fn(&dyn Fn(&str) -> Option<OsString>),
    ) -> Self {
        let answer = query_service(client, config_file, trigger_variable_lookups).await;
        let is_service_silent = answer.as_ref().is_err_and(|no_answer| no_answer.is_timeout);
        let origin = match answer {
            Ok(origin) => origin,
            Err(_) if unit.is_some() => EnvironmentOrigin::Unit,
            Err(NoAnswer { reason, .. }) => EnvironmentOrigin::Terminal { reason },
        };
        Self { origin, unit, is_service_silent }
    }

    /// Returns true if a program accepts connections at the address of the service and did not answer in time.
    pub(crate) const fn is_service_silent(&self) -> bool {
        self.is_service_silent
    }

    /// Returns the unit that starts the service on the configuration.
    pub(crate) const fn unit(&self) -> Option<&InstalledUnit> {
        self.unit.as_ref()
    }

    /// Returns a variable of the service, as far as it is known.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        let local_value = || InstalledUnit::unit_or_process_variable(self.unit.as_ref(), name);
        match &self.origin {
            EnvironmentOrigin::Service { presence_by_name, .. } => {
                match presence_by_name.get(name) {
                    // The service has a value of its own, so one of this terminal that is no text proves nothing.
                    Some(true) => [local_value(), terminal_variable(name)]
                        .into_iter()
                        .flatten()
                        .find(|value| value.to_str().is_some())
                        .or_else(|| Some(UNKNOWN_VALUE.into())),
                    Some(false) => None,
                    None => local_value(),
                }
            }
            EnvironmentOrigin::Unit | EnvironmentOrigin::Terminal { .. } => local_value(),
        }
    }

    /// Returns the findings about the source of the variables, and about variables that only this terminal has.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        const SUBJECT: &str = "variables";
        let origin_finding = match &self.origin {
            EnvironmentOrigin::Service { url, .. } => {
                Finding::good(SUBJECT, format!("read from the service that runs at {url}"))
            }
            EnvironmentOrigin::Unit => Finding::good(
                SUBJECT,
                "read from the installed unit and its file of variables, not from a running service",
            ),
            EnvironmentOrigin::Terminal { reason } => Finding::good(
                SUBJECT,
                format!("read from this terminal, and a service may have others: {reason}"),
            ),
        };
        let mut findings = vec![origin_finding];
        findings.extend(self.network_variables_finding());
        findings
    }

    /// Returns the finding about network variables that this terminal has and the service lacks.
    fn network_variables_finding(&self) -> Option<Finding> {
        let is_service_environment_known =
            !matches!(self.origin, EnvironmentOrigin::Terminal { .. });
        let is_missing = |name: &&&str| {
            is_service_environment_known
                && terminal_variable(name).is_some()
                && self.variable(name).is_none()
        };
        let missing_variables: Vec<_> =
            NETWORK_VARIABLES.iter().filter(is_missing).copied().collect();
        if missing_variables.is_empty() {
            return None;
        }
        let text = format!("{} set here, and not for the service", missing_variables.join(", "));
        let fix = "start the service with them (under systemd: the file `environment` beside the \
            configuration), or its agents do not get them";
        Some(Finding::warning("network", text, fix))
    }
}

fn terminal_variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Queries the service.
async fn query_service(
    client: Result<&ServiceClient, &CliError>,
    config_file: Option<&Path>,
    trigger_variable_lookups: impl Fn(&dyn Fn(&str) -> Option<OsString>),
) -> Result<EnvironmentOrigin, NoAnswer> {
    let client = client.map_err(|_error| "no token for a request to it was found".to_owned())?;
    let names = RefCell::new(BTreeSet::new());
    trigger_variable_lookups(&|name| {
        names.borrow_mut().insert(name.to_owned());
        terminal_variable(name)
    });
    let mut names = names.into_inner();
    names.extend(NETWORK_VARIABLES.map(str::to_owned));
    let is_requested =
        |name: &String| !LOCAL_VARIABLES.contains(&name.as_str()) && is_variable_name(name);
    let names: Vec<_> = names.into_iter().filter(is_requested).collect();
    let config_path = config_file.and_then(|file| file.canonicalize().ok());
    let file_query = config_path
        .map_or(String::new(), |it| format!("&file={}", percent_encode(&it.to_string_lossy())));
    match timeout(SERVICE_TIMEOUT, request_variables(client, &names, &file_query)).await {
        Ok(answer) => answer.map_err(NoAnswer::from),
        Err(_) => {
            let (url, seconds) = (client.url(), SERVICE_TIMEOUT.as_secs());
            let reason = format!("the service at {url} did not answer within {seconds} seconds");
            Err(NoAnswer { reason, is_timeout: true })
        }
    }
}

/// Requests the variables with these names.
async fn request_variables(
    client: &ServiceClient,
    names: &[String],
    file_query: &str,
) -> Result<EnvironmentOrigin, String> {
    let mut presence_by_name = BTreeMap::new();
    for chunk in names.chunks(MAX_NAMES_PER_REQUEST) {
        let path = format!("/api/v1/environment?names={}{file_query}", chunk.join(","));
        let status: EnvironmentStatus =
            client.get(&path).await.map_err(|error| failure_reason(client, &error))?;
        if !status.reads_file {
            let url = client.url();
            return Err(format!("the service at {url} reads another configuration"));
        }
        presence_by_name.extend(status.variables.into_iter().map(|it| (it.name, it.set)));
    }
    Ok(EnvironmentOrigin::Service { url: client.url().to_owned(), presence_by_name })
}

/// Returns the reason why the service gave no answer.
fn failure_reason(client: &ServiceClient, error: &CliError) -> String {
    match error.error_body() {
        Some(error_body) => {
            format!("the service at {} does not report them: {}", client.url(), error_body.message)
        }
        None => format!("no service answers at {}", client.url()),
    }
}

fn is_variable_name(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts_validly = text.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    starts_validly && text.len() <= 128 && text.bytes().all(is_word)
}
