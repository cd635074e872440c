//! Sessions: a program's own record of a conversation, and the configuration of its resumption.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use regex::Regex;
use serde_json::Number;

use super::agent::success_criteria::pattern_sources;
use super::execution::request::Request;
use super::id::{AgentId, ContextId, ExecutionId, PrincipalId};

/// Longest session id that is stored, in bytes.
pub const MAX_SESSION_ID_BYTES: usize = 4096;

/// Conversation of one caller with one agent under one context.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConversationKey {
    /// Owner of the conversation. No other principal can continue it.
    pub owner: PrincipalId,
    /// Agent of the conversation.
    pub agent: AgentId,
    /// Id of the context.
    pub context: ContextId,
}

impl ConversationKey {
    /// Returns the conversation of a request.
    #[must_use]
    pub fn from_request(request: &Request) -> Self {
        let Request { origin, agent, context, .. } = request;
        Self { owner: origin.owner, agent: agent.clone(), context: context.clone() }
    }
}

/// Session id of a program, as written by the program.
///
/// The id is raw, because a redacted id would not resume the session. For this reason it is never shown, and it is
/// stored sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionId(String);

impl SessionId {
    /// Creates an id from a text; `None` if the text is empty, too long or contains control characters.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_valid = !text.is_empty()
            && text.len() <= MAX_SESSION_ID_BYTES
            && !text.contains(char::is_control);
        is_valid.then(|| Self(text.to_owned()))
    }

    /// Returns the id for the program. Do not log it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SessionId {
    /// Hides the id: its holder may be able to read the conversation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId")
    }
}

/// Session of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Session id of the program.
    pub id: SessionId,
    /// Execution that used the session last. When that execution is removed, the session is forgotten.
    pub last_execution: ExecutionId,
    /// Time of the latest use.
    pub last_used_at: DateTime<Utc>,
    /// Counters that the program had reported by then, if it counts per session.
    pub reported_counters: BTreeMap<String, Number>,
}

/// Session resume of a program that ends with its answer.
#[derive(Debug, Clone)]
pub struct SessionSpec {
    /// Templates of all arguments for the first message of a conversation.
    pub start_args: Vec<String>,
    /// Templates of all arguments for a later message.
    pub resume_args: Vec<String>,
    /// True if the service generates the id of a new session; false if the program reports it.
    pub service_generates_id: bool,
    /// Time after the last message during which a session is resumed; `None` for as long as the session is known.
    pub ttl: Option<Duration>,
    /// Pattern that finds the id in the program's output: its first group, or the whole match.
    pub id_regex: Option<Regex>,
    /// Location of the id in the JSON that the program wrote.
    pub id_json_pointer: Option<String>,
    /// Conditions under which the program reports an unknown session.
    pub lost_session_rules: LostSessionRules,
}

impl PartialEq for SessionSpec {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            start_args,
            resume_args,
            service_generates_id: generates_id,
            ttl,
            id_regex: regex,
            id_json_pointer: json_pointer,
            lost_session_rules: lost_rules,
        } = self;
        *start_args == other.start_args
            && *resume_args == other.resume_args
            && *generates_id == other.service_generates_id
            && *ttl == other.ttl
            && pattern_sources(regex) == pattern_sources(&other.id_regex)
            && *json_pointer == other.id_json_pointer
            && *lost_rules == other.lost_session_rules
    }
}

/// Conditions that identify a program that failed because it does not know the session.
#[derive(Debug, Clone, Default)]
pub struct LostSessionRules {
    /// Exit codes that mean an unknown session.
    pub exit_codes: Vec<i32>,
    /// Pattern that matches in the output or in standard error.
    pub regex: Option<Regex>,
}

impl PartialEq for LostSessionRules {
    fn eq(&self, other: &Self) -> bool {
        let Self { exit_codes, regex } = self;
        *exit_codes == other.exit_codes && pattern_sources(regex) == pattern_sources(&other.regex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_one_short_line_and_is_not_printed() {
        let id = SessionId::new(" ses_4711\n").unwrap();
        assert_eq!((id.expose(), format!("{id:?}").as_str()), ("ses_4711", "SessionId"));
        for text in ["", " \n", "a\nb", "a\0b", &"x".repeat(MAX_SESSION_ID_BYTES + 1)] {
            assert_eq!(SessionId::new(text), None);
        }
        assert!(SessionId::new(&"x".repeat(MAX_SESSION_ID_BYTES)).is_some());
    }
}
