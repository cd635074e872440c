//! Sessions: in what a program remembers a conversation, and how it is asked to go on with it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use regex::Regex;
use serde_json::Number;

use super::contract::written;
use super::id::{AgentId, ContextId, ExecutionId, PrincipalId};
use super::request::Request;

/// The longest id of a session that is kept, in bytes.
pub const LONGEST: usize = 512;

/// What one caller and one agent say to each other under one context.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Conversation {
    /// Who asks. Nobody goes on with what another began.
    pub owner: PrincipalId,
    /// Who is asked.
    pub agent: AgentId,
    /// The context.
    pub context: ContextId,
}

impl Conversation {
    /// The conversation to which a request belongs.
    #[must_use]
    pub fn of(request: &Request) -> Self {
        let Request { owner, agent, context, .. } = request;
        Self { owner: *owner, agent: agent.clone(), context: context.clone() }
    }
}

/// The id by which a program knows a conversation, as the program wrote it.
///
/// It is raw: a masked one would open nothing. So it is never shown, and stored sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionId(String);

impl SessionId {
    /// Takes a text as an id; `None` where no program would have meant it as one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_one = !text.is_empty() && text.len() <= LONGEST && !text.contains(char::is_control);
        is_one.then(|| Self(text.to_owned()))
    }

    /// The id for the program. Not for a log.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SessionId {
    /// Hides the id: whoever has it may be able to read the conversation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId")
    }
}

/// A session of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// How the program knows it.
    pub id: SessionId,
    /// The execution that used it last. When that is removed, the session is forgotten.
    pub execution: ExecutionId,
    /// When that was.
    pub used: DateTime<Utc>,
    /// What the program had counted in it by then, where it counts so.
    pub counted: BTreeMap<String, Number>,
}

/// How a program that ends with its answer goes on with a conversation.
#[derive(Debug, Clone)]
pub struct Continuity {
    /// Templates of all arguments for the first message of a conversation.
    pub begin: Vec<String>,
    /// Templates of all arguments for a later one.
    pub resume: Vec<String>,
    /// Whether the program is given the id of a new session, instead of telling it.
    pub gives_id: bool,
    /// How long after its last message a session is still resumed; `None` for as long as it is known.
    pub ttl: Option<Duration>,
    /// Finds the id in what the program wrote: its first group, or all of the match.
    pub regex: Option<Regex>,
    /// Where the id stands in the JSON that the program wrote.
    pub json_pointer: Option<String>,
    /// How the program says that it does not know a session.
    pub lost: LostContract,
}

impl PartialEq for Continuity {
    fn eq(&self, other: &Self) -> bool {
        let Self { begin, resume, gives_id, ttl, regex, json_pointer, lost } = self;
        *begin == other.begin
            && *resume == other.resume
            && *gives_id == other.gives_id
            && *ttl == other.ttl
            && written(regex) == written(&other.regex)
            && *json_pointer == other.json_pointer
            && *lost == other.lost
    }
}

/// How a failed program says that it does not know the session which it was to resume.
#[derive(Debug, Clone, Default)]
pub struct LostContract {
    /// By one of these exit codes.
    pub exit_codes: Vec<i32>,
    /// By a match in its output or in standard error.
    pub regex: Option<Regex>,
}

impl PartialEq for LostContract {
    fn eq(&self, other: &Self) -> bool {
        let Self { exit_codes, regex } = self;
        *exit_codes == other.exit_codes && written(regex) == written(&other.regex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_short_line_and_is_not_printed() {
        let id = SessionId::new(" ses_4711\n").unwrap();
        assert_eq!((id.expose(), format!("{id:?}").as_str()), ("ses_4711", "SessionId"));
        for text in ["", " \n", "a\nb", "a\0b", &"x".repeat(LONGEST + 1)] {
            assert_eq!(SessionId::new(text), None);
        }
        assert!(SessionId::new(&"x".repeat(LONGEST)).is_some());
    }
}
