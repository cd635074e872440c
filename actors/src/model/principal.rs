//! Who may ask, and for what.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::{AgentId, PrincipalId};
use super::record::Record;

/// What a token allows.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// See agents, status and one's own executions.
    Read,
    /// Send messages and cancel one's own executions.
    Run,
    /// Answer questions of agents.
    Approve,
    /// See and cancel everybody's executions.
    Admin,
}

impl Right {
    /// Every right.
    pub const ALL: &[Self] = &[Self::Read, Self::Run, Self::Approve, Self::Admin];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|right| right.as_str() == word)
    }
}

/// The rights of a token and the agents they hold for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// What may be done.
    pub rights: Vec<Right>,
    /// With which agents; `None` is all of them.
    pub agents: Option<Vec<AgentId>>,
}

impl Scope {
    /// Whether `right` holds for `agent`; for no agent in particular when `None`.
    #[must_use]
    pub fn allows(&self, right: Right, agent: Option<&AgentId>) -> bool {
        let agent_fits = match (agent, &self.agents) {
            (Some(agent), Some(named)) => named.contains(agent),
            (None, _) | (_, None) => true,
        };
        agent_fits && self.rights.contains(&right)
    }

    /// Whether everything that `other` allows is allowed by this too.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let agents_fit = match (&self.agents, &other.agents) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(ours), Some(theirs)) => theirs.iter().all(|agent| ours.contains(agent)),
        };
        agents_fit && other.rights.iter().all(|right| self.rights.contains(right))
    }
}

/// A token as stored: never its text, only its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Whose it is.
    pub principal: PrincipalId,
    /// The principal's name for people.
    pub name: String,
    /// SHA-256 of the token's text.
    pub hash: [u8; 32],
    /// What it allows.
    pub scope: Scope,
    /// When it stops to count.
    pub expires: Option<DateTime<Utc>>,
}

/// A token of the configuration; it makes or keeps the principal of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSeed {
    /// The principal's name.
    pub name: String,
    /// SHA-256 of the token's text.
    pub hash: [u8; 32],
    /// What it allows.
    pub scope: Scope,
    /// When it stops to count.
    pub expires: Option<DateTime<Utc>>,
}

/// Who asks now: a principal, by one of its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Whose token it is.
    pub principal: PrincipalId,
    /// The principal's name for people.
    pub name: String,
    /// What the token allows.
    pub scope: Scope,
}

impl Caller {
    /// Whether it asked for an execution itself.
    #[must_use]
    pub fn owns(&self, record: &Record) -> bool {
        record.owner == self.principal
    }

    /// Whether an execution is there for this caller.
    #[must_use]
    pub fn may_see(&self, record: &Record) -> bool {
        let agent = Some(&record.agent);
        let own = self.owns(record) && self.scope.allows(Right::Read, agent);
        own || self.scope.allows(Right::Admin, agent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(rights: &[Right], agents: Option<&[&str]>) -> Scope {
        let ids = |ids: &[&str]| ids.iter().filter_map(|id| AgentId::new(*id).ok()).collect();
        Scope { rights: rights.to_vec(), agents: agents.map(ids) }
    }

    #[test]
    fn a_scope_covers_what_allows_no_more_than_it() {
        let ours = scope(&[Right::Read, Right::Run], Some(&["one", "two"]));
        let covered = [
            scope(&[Right::Read], Some(&["one"])),
            scope(&[Right::Run, Right::Read], Some(&["two", "one"])),
            scope(&[], Some(&[])),
        ];
        let beyond = [
            scope(&[Right::Admin], Some(&["one"])),
            scope(&[Right::Read], Some(&["one", "three"])),
            scope(&[Right::Read], None),
        ];
        assert!(covered.iter().all(|scope| ours.covers(scope)));
        assert!(!beyond.iter().any(|scope| ours.covers(scope)));
        assert!(scope(&[Right::Read], None).covers(&scope(&[Right::Read], Some(&["one"]))));
    }
}
