//! Published names are parsed back to the same value, and no two values share a name.

use std::collections::BTreeSet;
use std::fmt::{Debug, Display};

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::{ExecutionState, Outcome, TRANSITIONS};
use algonius_actors::model::id::{AgentId, ExecutionId};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Each is parsed from its word and from its JSON, and all words differ.
fn assert_round_trip<T>(values: &[T], parse: impl Fn(&str) -> Option<T>)
where
    T: Display + Debug + PartialEq + Copy + Serialize + DeserializeOwned,
{
    let words: BTreeSet<_> = values.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), values.len(), "two share a word: {words:?}");
    for value in values {
        let word = value.to_string();
        let json = serde_json::to_string(value).unwrap();
        assert_eq!(json, format!("\"{word}\""));
        assert_eq!((parse(&word), serde_json::from_str(&json).ok()), (Some(*value), Some(*value)));
    }
    assert_eq!(parse("no such word"), None);
}

#[test]
fn state_and_code_words_survive_a_round_trip() {
    assert_round_trip(ExecutionState::ALL, ExecutionState::parse);
    assert_round_trip(Outcome::ALL, Outcome::parse);
    assert_round_trip(Code::ALL, Code::parse);
}

#[test]
fn every_code_has_a_hint_that_is_a_clause() {
    for code in Code::ALL {
        let hint = code.hint();
        assert!(hint.starts_with(|first: char| first.is_lowercase()), "{code}: {hint}");
        assert!(!hint.ends_with('.'), "{code}: {hint}");
        let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
        assert!(code.as_str().bytes().all(is_allowed), "{code}");
    }
}

#[test]
fn an_unknown_code_reads_as_internal() {
    assert_eq!(serde_json::from_str::<Code>("\"of-a-later-release\"").unwrap(), Code::Internal);
}

/// The table as a map: from every state the rest is reached, and no move is listed twice.
#[test]
fn every_state_leads_to_an_end() {
    let distinct: BTreeSet<_> = TRANSITIONS.iter().collect();
    assert_eq!(distinct.len(), TRANSITIONS.len());
    for state in ExecutionState::ALL {
        let mut reached = BTreeSet::from([*state]);
        for _ in ExecutionState::ALL {
            let next =
                TRANSITIONS.iter().filter(|(from, _)| reached.contains(from)).map(|(_, to)| *to);
            reached.extend(next.collect::<Vec<_>>());
        }
        assert!(reached.contains(&ExecutionState::Idle), "{state} is a dead end");
        assert!(TRANSITIONS.iter().any(|(_, to)| to == state), "{state} is never reached");
    }
}

proptest! {
    #[test]
    fn an_agent_id_is_64_plain_characters_at_most(text in "\\PC{0,70}|[A-Za-z0-9_-]{0,70}") {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let expected = (1..=64).contains(&text.len()) && text.chars().all(is_allowed);
        prop_assert_eq!(AgentId::new(text).is_ok(), expected);
    }

    #[test]
    fn an_execution_id_survives_a_round_trip(number: u128) {
        let id = ExecutionId(uuid::Uuid::from_u128(number));
        prop_assert_eq!(ExecutionId::parse(&id.to_string()), Some(id));
    }
}

#[test]
fn new_ids_sort_by_creation() {
    let ids: Vec<_> = (0..10_000).map(|_| ExecutionId::generate()).collect();
    assert!(ids.is_sorted_by(|one, next| one < next));
}
