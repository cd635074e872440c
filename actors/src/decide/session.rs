//! Session resume: decides whether a program continues its session, and finds the session id in its output.

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::model::program::ProcessExit;
use crate::model::session::{Session, SessionId, SessionSpec};

/// Decision about the known session of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionDecision {
    /// No session is known.
    New,
    /// The session is resumed.
    Resume(SessionId),
    /// The session is too old, and a new one replaces it.
    Expired,
}

/// Decides whether the known session of a conversation is resumed.
#[must_use]
pub fn decide_session(
    session_spec: &SessionSpec,
    known_session: Option<Session>,
    now: DateTime<Utc>,
) -> SessionDecision {
    let Some(Session { id, last_used_at, .. }) = known_session else { return SessionDecision::New };
    // A clock that was set back yields a negative age, which counts as 0.
    let age = (now - last_used_at).to_std().unwrap_or_default();
    let is_fresh = session_spec.ttl.is_none_or(|ttl| age < ttl);
    if is_fresh { SessionDecision::Resume(id) } else { SessionDecision::Expired }
}

/// Returns true if a run failed because the program does not know the session.
#[must_use]
pub fn has_lost_session(session_spec: &SessionSpec, exit: ProcessExit, outputs: [&str; 2]) -> bool {
    let lost_rules = &session_spec.lost_session_rules;
    exit.code().is_some_and(|code| lost_rules.exit_codes.contains(&code))
        || lost_rules
            .regex
            .as_ref()
            .is_some_and(|regex| outputs.iter().any(|text| regex.is_match(text)))
}

/// Warning about a session id with which no later message can continue the conversation.
pub const UNUSABLE_SESSION_ID_WARNING: &str = "the agent reported a session id that is longer than 4096 bytes or has control characters; \
     the next message of the conversation cannot continue this session";

/// Session id in the output of a program.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FoundSessionId {
    /// Session id.
    pub id: Option<SessionId>,
    /// True if the program wrote an id that cannot be stored.
    pub is_unusable: bool,
}

/// Returns the session id that a program wrote within other output; the last one counts.
#[must_use]
pub fn find_session_id(session_spec: &SessionSpec, outputs: [&str; 2]) -> FoundSessionId {
    let by_regex = |text: &&str| {
        let captures = session_spec.id_regex.as_ref()?.captures_iter(text).last()?;
        non_blank(captures.get(1).or_else(|| captures.get(0))?.as_str())
    };
    let by_pointer = |text: &&str| find_at_pointer(text, session_spec.id_json_pointer.as_deref()?);
    let id_text = outputs.iter().find_map(by_regex).or_else(|| outputs.iter().find_map(by_pointer));
    let id = id_text.as_deref().and_then(SessionId::new);
    FoundSessionId { is_unusable: id_text.is_some() && id.is_none(), id }
}

/// Returns the text at a location of a JSON document, or of the last line that is a document with such a location.
fn find_at_pointer(text: &str, pointer: &str) -> Option<String> {
    let text_in = |document: &str| {
        let document: Value = serde_json::from_str(document).ok()?;
        non_blank(document.pointer(pointer)?.as_str()?)
    };
    text_in(text).or_else(|| text.lines().rev().find_map(text_in))
}

fn non_blank(text: &str) -> Option<String> {
    (!text.trim().is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use regex::Regex;

    use super::*;
    use crate::model::id::ExecutionId;
    use crate::model::session::LostSessionRules;

    fn session_spec() -> SessionSpec {
        SessionSpec {
            start_args: Vec::new(),
            resume_args: Vec::new(),
            service_generates_id: false,
            ttl: Some(Duration::from_secs(60)),
            id_regex: Some(Regex::new("session: ([a-z0-9]+)").unwrap()),
            id_json_pointer: Some("/s/id".to_owned()),
            lost_session_rules: LostSessionRules {
                exit_codes: vec![42],
                regex: Some(Regex::new("no such session").unwrap()),
            },
        }
    }

    fn decision_after(age: i64) -> SessionDecision {
        let now = DateTime::from_timestamp(1_000_000, 0).unwrap();
        let last_used_at = now - chrono::TimeDelta::seconds(age);
        let id = SessionId::new("a").unwrap();
        let (execution, reported_counters) = (ExecutionId::generate(), Default::default());
        decide_session(
            &session_spec(),
            Some(Session { id, last_execution: execution, last_used_at, reported_counters }),
            now,
        )
    }

    #[test]
    fn a_session_is_resumed_until_it_expires() {
        let resumed = SessionDecision::Resume(SessionId::new("a").unwrap());
        assert_eq!(
            (decision_after(59), decision_after(60)),
            (resumed.clone(), SessionDecision::Expired)
        );
        assert_eq!(decision_after(-3600), resumed, "the clock was set back");
        assert_eq!(
            decide_session(&session_spec(), None, DateTime::UNIX_EPOCH),
            SessionDecision::New
        );
    }

    #[test]
    fn a_lost_session_is_detected_by_exit_code_or_output() {
        let is_session_lost =
            |code, out, err| has_lost_session(&session_spec(), ProcessExit::Code(code), [out, err]);
        assert!(is_session_lost(42, "", ""));
        assert!(
            is_session_lost(1, "no such session", "")
                && is_session_lost(1, "", "sorry, no such session")
        );
        assert!(!is_session_lost(1, "", "another error"));
        assert!(!has_lost_session(&session_spec(), ProcessExit::Signal(42), ["", ""]));
    }

    #[test]
    fn the_last_session_id_counts_and_patterns_come_first() {
        let found_id = |out: &str, err: &str| {
            find_session_id(&session_spec(), [out, err])
                .id
                .map(|id| id.expose().to_owned())
                .unwrap_or_default()
        };
        assert_eq!(found_id("session: a1\nsession: b2\n", "session: c3"), "b2");
        assert_eq!(found_id("", "session: c3"), "c3");
        assert_eq!(found_id(r#"{"s":{"id":"d4"}}"#, ""), "d4");
        assert_eq!(
            found_id("{\"s\":{\"id\":\"d4\"}}\n{\"s\":{\"id\":\"e5\"}}\n{}\njunk", ""),
            "e5"
        );
        assert_eq!(found_id("nothing", r#"{"s":{"id":7}}"#), "");
        let long = "x".repeat(5000);
        let is_unusable = |out: &str| find_session_id(&session_spec(), [out, ""]).is_unusable;
        assert!(is_unusable(&format!(r#"{{"s":{{"id":"{long}"}}}}"#)));
        assert!(is_unusable(r#"{"s":{"id":"a\tb"}}"#));
        assert!(is_unusable(&format!(
            "{{\"s\":{{\"id\":\"d4\"}}}}\n{{\"s\":{{\"id\":\"{long}\"}}}}"
        )));
        assert!(!is_unusable(r#"{"s":{"id":""}}"#) && !is_unusable("session: a1"));
    }
}
