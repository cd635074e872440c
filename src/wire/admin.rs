//! Shapes of what an administrator does while the service runs: the configuration and tokens.

use std::fmt;

use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::Right;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::api::order::NAME;
use super::problem::Problem;

/// The names of what is other than it was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// What is new.
    pub added: Vec<String>,
    /// What is other than it was.
    pub changed: Vec<String>,
    /// What is there no longer.
    pub removed: Vec<String>,
}

impl Changes {
    /// Whether all is as it was.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// What a reload has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Applied {
    /// Agents, by their ids.
    pub agents: Changes,
    /// Tokens of the configuration, by their names.
    pub tokens: Changes,
    /// Schedules of the configuration, by their ids.
    pub schedules: Changes,
    /// Keys of the configuration beside those.
    pub settings: Vec<String>,
}

impl Applied {
    /// Whether all is as it was.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.agents.is_empty()
            && self.tokens.is_empty()
            && self.schedules.is_empty()
            && self.settings.is_empty()
    }
}

/// One thing wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wrong {
    /// The name of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column in characters, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// The key with its tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What can be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl fmt::Display for Wrong {
    /// One line, as compilers write it.
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

/// What came of a reload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reloaded {
    /// The number of the configuration in force; 1 is the one of the start.
    pub generation: u64,
    /// What is in force since this reload.
    pub applied: Applied,
    /// Keys that are written otherwise than they are in force, until the service is started again.
    pub pending: Vec<String>,
    /// Why nothing was applied.
    pub rejected: Vec<Wrong>,
    /// What its writer should know.
    pub warnings: Vec<Wrong>,
}

/// Why a reload has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReloadRejected {
    /// As for every refusal.
    #[serde(flatten)]
    pub problem: Problem,
    /// What came of it.
    #[serde(flatten)]
    pub told: Reloaded,
}

/// The configuration in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationStatus {
    /// Its number; 1 is the one of the start.
    pub generation: u64,
    /// When it came into force.
    pub since: DateTime<Utc>,
    /// When the file was last read.
    pub read_at: DateTime<Utc>,
    /// Whether a change is taken up by itself.
    pub watched: bool,
    /// Keys that are written otherwise than they are in force, until the service is started again.
    pub pending: Vec<String>,
    /// Why what was last read is not in force; empty when it is.
    pub rejected: Vec<Wrong>,
    /// The agents that were switched on or off otherwise than the configuration says.
    #[serde(default)]
    pub switched: Vec<String>,
}

/// An agent that could not be switched on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchRejected {
    /// As for every refusal.
    #[serde(flatten)]
    pub problem: Problem,
    /// What is wrong with it.
    pub rejected: Vec<Wrong>,
}

/// An agent that was switched on or off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Switched {
    /// Its id.
    pub id: String,
    /// Whether it takes work now, until it is switched again.
    pub enabled: bool,
    /// Whether it does by the configuration.
    pub configured: bool,
}

/// A token that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenOrder {
    /// The name of the principal that it is for.
    #[schemars(length(min = 1, max = 64), regex(pattern = NAME))]
    pub name: String,
    /// `read`, `run`, `approve`, `admin`; to read and to run when nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Right>>", length(min = 1))]
    pub scopes: Option<Vec<String>>,
    /// The agents that it is good for; all of them when nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<AgentId>>")]
    pub agents: Option<Vec<String>>,
    /// When it stops to count; never when nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<DateTime<Utc>>,
    /// Whether it takes the place of one of the same name.
    #[serde(default)]
    pub replace: bool,
}

/// A token, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenEntry {
    /// The name of its principal.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<String>,
    /// The agents that it is good for; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// When it stops to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<DateTime<Utc>>,
    /// Whence it is: `config` or `api`.
    pub origin: String,
    /// When it was made; for one of the configuration, when that was last read.
    pub created: DateTime<Utc>,
}

/// Every token that there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenList {
    /// In the order of their names.
    pub tokens: Vec<TokenEntry>,
}

/// A token that was made. Its text is told this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenMade {
    /// What a list has.
    #[serde(flatten)]
    pub entry: TokenEntry,
    /// Its text.
    pub token: String,
}
