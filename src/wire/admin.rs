//! Shapes of the administration interface: configuration, agent switches, tokens and environment.

use std::fmt;

use algonius_a2a::problem::Problem;
use algonius_actors::model::access::principal::Right;
use algonius_actors::model::id::AgentId;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NON_BLANK_PATTERN;

/// Names of the changed items of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// Items that are new.
    pub added: Vec<String>,
    /// Items that exist as before but with other content.
    pub changed: Vec<String>,
    /// Items that no longer exist.
    pub removed: Vec<String>,
}

impl Changes {
    /// True if nothing has changed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// Changes that a reload has applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Applied")]
pub struct AppliedChanges {
    /// Changed agents, by their ids.
    pub agents: Changes,
    /// Changed tokens of the configuration, by their names.
    pub tokens: Changes,
    /// Changed schedules of the configuration, by their ids.
    pub schedules: Changes,
    /// Other changed keys of the configuration.
    pub settings: Vec<String>,
}

impl AppliedChanges {
    /// True if the reload has changed nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.agents.is_empty()
            && self.tokens.is_empty()
            && self.schedules.is_empty()
            && self.settings.is_empty()
    }
}

/// Error or warning about the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationError {
    /// Name of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line number; the first line is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Column in characters; the first column is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// Key with the names of its tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Description of the error.
    pub message: String,
    /// Hint for the correction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl fmt::Display for ConfigurationError {
    /// Writes the error on one line in the form of compiler messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, key, message, hint } = self;
        if let (Some(file), Some(line), Some(column)) = (file, line, column) {
            write!(f, "{file}:{line}:{column}: ")?;
        }
        if let Some(key) = key {
            write!(f, "{key}: ")?;
        }
        f.write_str(message)?;
        hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

/// Result of a reload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Reloaded")]
pub struct ReloadResult {
    /// Generation of the configuration in force; the configuration of the start is generation 1.
    pub generation: u64,
    /// Changes that this reload has applied.
    pub applied: AppliedChanges,
    /// Keys whose new value takes effect only after a restart of the service.
    pub pending: Vec<String>,
    /// Errors because of which the service has applied nothing.
    pub rejected: Vec<ConfigurationError>,
    /// Warnings about the configuration.
    pub warnings: Vec<ConfigurationError>,
}

/// Reload that the service has rejected without any change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReloadRejected")]
pub struct ReloadRejection {
    /// Problem document, as for every error.
    #[serde(flatten)]
    pub problem: Problem,
    /// Result of the reload.
    #[serde(flatten)]
    pub result: ReloadResult,
}

/// Configuration in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationStatus {
    /// Generation of the configuration; the configuration of the start is generation 1.
    pub generation: u64,
    /// Time at which this generation took effect.
    pub since: DateTime<Utc>,
    /// Time at which the service last read the file.
    pub read_at: DateTime<Utc>,
    /// True if the service applies changed files automatically.
    pub watched: bool,
    /// Reason why changed files are not applied automatically although the configuration enables it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwatched_reason: Option<String>,
    /// Keys whose new value takes effect only after a restart of the service.
    pub pending: Vec<String>,
    /// Errors because of which the last read configuration is not in force; empty if it is in force.
    pub rejected: Vec<ConfigurationError>,
    /// Agents that an administrator has enabled or disabled contrary to the configuration.
    #[serde(default)]
    pub switched: Vec<String>,
}

/// Failure to enable an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SwitchRejected")]
pub struct SwitchRejection {
    /// Problem document, as for every error.
    #[serde(flatten)]
    pub problem: Problem,
    /// Errors in the configuration of the agent.
    pub rejected: Vec<ConfigurationError>,
}

/// Agent that an administrator has enabled or disabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Switched")]
pub struct SwitchedAgent {
    /// Id of the agent.
    pub id: String,
    /// True if the agent accepts work now.
    pub enabled: bool,
    /// True if the agent is enabled in the configuration.
    pub configured: bool,
}

/// Request for a new token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// Name of the principal to which the token belongs.
    #[schemars(length(min = 1, max = 64), regex(pattern = NON_BLANK_PATTERN))]
    pub name: String,
    /// Scopes of the token: `read`, `run`, `admin`; by default `read` and `run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Right>>", length(min = 1))]
    pub scopes: Option<Vec<String>>,
    /// Agents for which the token is valid; if absent, all agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<AgentId>>")]
    pub agents: Option<Vec<String>>,
    /// Time at which the token expires; if absent, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<DateTime<Utc>>,
    /// True if the new token replaces one with the same name.
    #[serde(default)]
    pub replace: bool,
}

/// Token without its secret text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenEntry {
    /// Name of the principal to which the token belongs.
    pub name: String,
    /// Scopes of the token.
    pub scopes: Vec<String>,
    /// Agents for which the token is valid; if absent, all agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// Time at which the token expires; if absent, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<DateTime<Utc>>,
    /// Origin of the token: `config` or `api`.
    pub origin: String,
    /// Time at which the token was created; for a token of the configuration, the time of the last reading.
    pub created: DateTime<Utc>,
}

/// List of all tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenList {
    /// Tokens in the order of their names.
    pub tokens: Vec<TokenEntry>,
}

/// Token that the service has created. This is the only response that contains its secret text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedToken {
    /// Token as in a list.
    #[serde(flatten)]
    pub entry: TokenEntry,
    /// Secret text of the token.
    pub token: String,
}

/// Environment of the service: the names of the requested variables and which of them are set. It contains no value
/// of a variable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentStatus {
    /// Requested variables, in the order of the request.
    pub variables: Vec<VariableEntry>,
    /// True if the service reads its configuration from the requested file or, without a requested file, if the
    /// service runs on the shipped configuration.
    pub reads_file: bool,
}

/// Environment variable without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VariableEntry {
    /// Name of the variable.
    pub name: String,
    /// True if the variable is set.
    pub set: bool,
}
