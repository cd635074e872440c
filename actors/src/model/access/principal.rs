//! Principals, their tokens and their rights.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::model::id::{AgentId, PrincipalId};

/// Right that a token grants.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// Read agents, the status and the caller's own executions.
    Read,
    /// Send messages and cancel the caller's own executions.
    Run,
    /// Answer the questions of agents, within the permission policy of each agent.
    Approve,
    /// Read and cancel the executions of every caller.
    Admin,
}

impl Right {
    /// Every right.
    pub const ALL: &[Self] = &[Self::Read, Self::Run, Self::Approve, Self::Admin];

    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }

    /// Parses the published name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|right| right.as_str() == word)
    }
}

/// Rights of a token and the agents to which they apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Rights of the token. A name that is no longer a right allows nothing: the ledger may contain old
    /// names.
    #[serde(deserialize_with = "known_rights")]
    pub rights: Vec<Right>,
    /// Agents to which the rights apply; `None` is all agents.
    pub agents: Option<Vec<AgentId>>,
}

fn known_rights<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Right>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    Ok(words.iter().filter_map(|word| Right::parse(word)).collect())
}

impl Scope {
    /// Returns true if the scope grants `right` for `agent`; `None` stands for no particular agent.
    #[must_use]
    pub fn allows(&self, right: Right, agent: Option<&AgentId>) -> bool {
        let agent_fits = match (agent, &self.agents) {
            (Some(agent), Some(named)) => named.contains(agent),
            (None, _) | (_, None) => true,
        };
        agent_fits && self.rights.contains(&right)
    }

    /// Returns true if this scope grants everything that `other` grants.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let agents_fit = match (&self.agents, &other.agents) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own_agents), Some(other_agents)) => {
                other_agents.iter().all(|agent| own_agents.contains(agent))
            }
        };
        agents_fit && other.rights.iter().all(|right| self.rights.contains(right))
    }
}

/// Token as stored: its hash, never its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Owner of the token.
    pub principal: PrincipalId,
    /// Display name of the principal.
    pub principal_name: String,
    /// SHA-256 of the token's text.
    pub hash: [u8; 32],
    /// Scope of the token.
    pub scope: Scope,
    /// Expiry time; `None` if the token never expires.
    pub expires_at: Option<DateTime<Utc>>,
}

/// Token from the configuration; it creates or keeps the principal of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Name of the principal.
    pub name: String,
    /// SHA-256 of the token's text.
    pub hash: [u8; 32],
    /// Scope of the token.
    pub scope: Scope,
    /// Expiry time; `None` if the token never expires.
    pub expires_at: Option<DateTime<Utc>>,
}

/// Authenticated caller: a principal with one of its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Owner of the token.
    pub principal: PrincipalId,
    /// Display name of the principal.
    pub name: String,
    /// Scope of the token.
    pub scope: Scope,
}

impl Caller {
    /// Returns true if the caller may see an execution of this owner and agent.
    #[must_use]
    pub fn may_see(&self, owner: PrincipalId, agent: &AgentId) -> bool {
        let agent = Some(agent);
        let is_own = owner == self.principal && self.scope.allows(Right::Read, agent);
        is_own || self.scope.allows(Right::Admin, agent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_stored_right_allows_nothing() {
        let stored = r#"{"rights":["read","teleport"],"agents":null}"#;
        assert_eq!(serde_json::from_str::<Scope>(stored).ok(), Some(scope(&[Right::Read], None)));
    }

    fn scope(rights: &[Right], agents: Option<&[&str]>) -> Scope {
        let ids = |ids: &[&str]| ids.iter().filter_map(|id| AgentId::new(*id).ok()).collect();
        Scope { rights: rights.to_vec(), agents: agents.map(ids) }
    }

    #[test]
    fn a_scope_covers_narrower_scopes_only() {
        let granted = scope(&[Right::Read, Right::Run], Some(&["one", "two"]));
        let covered = [
            scope(&[Right::Read], Some(&["one"])),
            scope(&[Right::Run, Right::Read], Some(&["two", "one"])),
            scope(&[], Some(&[])),
        ];
        let broader = [
            scope(&[Right::Admin], Some(&["one"])),
            scope(&[Right::Read], Some(&["one", "three"])),
            scope(&[Right::Read], None),
        ];
        assert!(covered.iter().all(|scope| granted.covers(scope)));
        assert!(!broader.iter().any(|scope| granted.covers(scope)));
        assert!(scope(&[Right::Read], None).covers(&scope(&[Right::Read], Some(&["one"]))));
    }
}
