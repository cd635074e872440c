//! Conformance tests of the notes of agents. Each test gets a fresh store.

use std::sync::Arc;

use algonius_actors::model::id::{AgentId, ExecutionId};
use algonius_actors::ports::note_store::{NewNote, Note, NoteStore};

use super::{at_second, default_agent_id};

pub(crate) type AnyNotes = Arc<dyn NoteStore>;

/// Instantiates all tests for notes that `$open` returns, with a guard that must live as long.
macro_rules! notes_conformance {
    ($open:path) => {
        notes_conformance! { $open:
            a_note_is_found_by_each_of_its_words
            a_note_contains_all_words_of_the_query
            words_of_all_scripts_are_found
            the_best_match_comes_first_and_then_the_newest
            a_query_without_words_returns_the_newest_notes
            a_note_after_a_clock_change_is_the_newest
            a_step_stores_one_note
            the_oldest_notes_beyond_the_limit_are_deleted
            notes_of_other_agents_are_not_found
            every_query_is_valid
            a_long_query_matches_by_its_start
        }
    };
    ($open:path: $($test:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $test() {
            let (notes, _guard) = $open().await;
            crate::conformance::notes::$test(notes).await;
        })*
    };
}
pub(crate) use notes_conformance;

pub(crate) fn new_note(second: i64, text: &str) -> NewNote {
    let note = Note { at: at_second(second), text: text.to_owned() };
    NewNote { agent: default_agent_id(), origin: (ExecutionId::generate(), 1), note }
}

/// Adds notes, each a second later than the one before.
async fn add_notes(notes: &AnyNotes, texts: &[&str]) {
    for (second, text) in texts.iter().enumerate() {
        notes.add_note(new_note(i64::try_from(second).unwrap(), text), 100).await.unwrap();
    }
}

/// Returns the texts of the notes that a query finds, in their order.
async fn found_texts(notes: &AnyNotes, query: &str) -> Vec<String> {
    let found = notes.search_notes(&default_agent_id(), query, 10).await.unwrap();
    found.into_iter().map(|note| note.text).collect()
}

pub(crate) async fn a_note_is_found_by_each_of_its_words(notes: AnyNotes) {
    let added = new_note(5, "The build of src/main.rs fails: error E0308 (mismatched types).");
    notes.add_note(added.clone(), 100).await.unwrap();
    for query in ["build", "BUILD", " e0308 ", "src/main.rs", "(mismatched", "types error", ""] {
        let found = notes.search_notes(&default_agent_id(), query, 10).await.unwrap();
        assert_eq!(found, std::slice::from_ref(&added.note), "{query}");
    }
}

pub(crate) async fn a_note_contains_all_words_of_the_query(notes: AnyNotes) {
    add_notes(&notes, &["red apple", "green apple", "red brick"]).await;
    assert_eq!(found_texts(&notes, "apple red").await, ["red apple"]);
    for query in ["apple stone", "app", "red-brick-wall", "redapple"] {
        assert_eq!(found_texts(&notes, query).await, [""; 0], "{query}");
    }
}

pub(crate) async fn words_of_all_scripts_are_found(notes: AnyNotes) {
    for (text, queries) in [
        ("Größe in Zürich: ÄNDERN", &["größe", "ZÜRICH", "ändern zürich", "zu\u{308}rich"][..]),
        ("Привет, мир", &["привет", "МИР"]),
        ("明天的会议改到三点", &["会议", "三点 明天", "会"]),
        ("サーバーを再起動した", &["サーバー", "再起動"]),
        ("서버를 다시 시작했다", &["서버", "시작"]),
        ("id 4711 v2", &["4711", "V2"]),
    ] {
        notes.add_note(new_note(0, text), 100).await.unwrap();
        for query in queries {
            assert_eq!(found_texts(&notes, query).await, [text], "{query}");
        }
    }
    assert_eq!(found_texts(&notes, "议会").await, [""; 0]);
}

pub(crate) async fn the_best_match_comes_first_and_then_the_newest(notes: AnyNotes) {
    let other = "nothing of this kind is here";
    let long = "a deploy of many long words that are about all other things than this one";
    add_notes(&notes, &["deploy deploy", "deploy now", long, "deploy now", other, other]).await;
    let found = notes.search_notes(&default_agent_id(), "deploy", 10).await.unwrap();
    let times: Vec<_> = found.iter().map(|note| note.at).collect();
    assert_eq!(times, [0, 3, 1, 2].map(at_second));
    assert_eq!(notes.search_notes(&default_agent_id(), "deploy", 1).await.unwrap(), found[..1]);
}

pub(crate) async fn a_query_without_words_returns_the_newest_notes(notes: AnyNotes) {
    add_notes(&notes, &["one", "two", "three"]).await;
    for query in ["", " \t\n", "-", "*", "\"", "\0", "( ) : ^ + -", "…"] {
        assert_eq!(found_texts(&notes, query).await, ["three", "two", "one"], "{query}");
    }
    let newest = notes.search_notes(&default_agent_id(), "", 1).await.unwrap();
    assert_eq!(newest, [Note { at: at_second(2), text: "three".to_owned() }]);
    assert_eq!(notes.search_notes(&default_agent_id(), "one", 0).await.unwrap(), []);
}

pub(crate) async fn a_note_after_a_clock_change_is_the_newest(notes: AnyNotes) {
    for (second, text) in [(100, "first"), (50, "second"), (60, "third")] {
        notes.add_note(new_note(second, text), 2).await.unwrap();
    }
    assert_eq!(found_texts(&notes, "").await, ["third", "second"]);
}

pub(crate) async fn a_step_stores_one_note(notes: AnyNotes) {
    let first = new_note(1, "first");
    let repeated = NewNote { origin: first.origin, ..new_note(2, "repeated") };
    let next_step = NewNote { origin: (first.origin.0, 2), ..new_note(3, "next") };
    for note in [&first, &first, &repeated, &next_step, &next_step] {
        notes.add_note(note.clone(), 100).await.unwrap();
    }
    assert_eq!(found_texts(&notes, "").await, ["next", "first"]);
    assert_eq!(found_texts(&notes, "first").await, ["first"]);
    assert_eq!(found_texts(&notes, "repeated").await, [""; 0]);
}

pub(crate) async fn the_oldest_notes_beyond_the_limit_are_deleted(notes: AnyNotes) {
    let other_agent = AgentId::new("other").unwrap();
    let other = NewNote { agent: other_agent.clone(), ..new_note(0, "number none") };
    notes.add_note(other.clone(), 1).await.unwrap();
    for number in 0..7 {
        notes.add_note(new_note(number, &format!("number {number}")), 3).await.unwrap();
    }
    for query in ["", "number"] {
        let expected = ["number 6", "number 5", "number 4"];
        assert_eq!(found_texts(&notes, query).await, expected);
    }
    assert_eq!(found_texts(&notes, "3").await, [""; 0]);
    assert_eq!(notes.search_notes(&other_agent, "number", 10).await.unwrap(), [other.note]);
    // A lower limit deletes several notes.
    notes.add_note(new_note(8, "number 8"), 1).await.unwrap();
    assert_eq!(found_texts(&notes, "number").await, ["number 8"]);
}

pub(crate) async fn notes_of_other_agents_are_not_found(notes: AnyNotes) {
    add_notes(&notes, &["a secret plan"]).await;
    let other = AgentId::new("other").unwrap();
    for query in ["", "secret", "a plan"] {
        assert_eq!(notes.search_notes(&other, query, 10).await.unwrap(), [], "{query}");
    }
}

pub(crate) async fn every_query_is_valid(notes: AnyNotes) {
    let text = "a near text or not";
    add_notes(&notes, &[text, "another note"]).await;
    for query in [
        "a OR text",
        "NEAR(",
        "NEAR(a text)",
        "a NOT",
        "text:a",
        "te\"xt",
        "\"text",
        "^text",
        "a AND",
        "{text}:a",
        "tex*",
        "-text",
        "text\0\"",
        "'; DROP TABLE notes; --",
        "Ⓐ",
        "a Ⓐ",
        "$1",
        "?1",
        "\u{feff}a",
        "\u{e000}",
        "rank",
        "note_words",
    ] {
        notes.search_notes(&default_agent_id(), query, 10).await.expect(query);
    }
    for query in ["text OR", "NOT text", "NEAR(text", "^text", "-text", "text*", "text\0\""] {
        assert_eq!(found_texts(&notes, query).await, [text], "{query}");
    }
    for query in ["a NOT another", "another OR near"] {
        assert_eq!(found_texts(&notes, query).await, [""; 0], "{query}");
    }
}

pub(crate) async fn a_long_query_matches_by_its_start(notes: AnyNotes) {
    let long_word = "x".repeat(10_000);
    let many_words: String = (0..2500).map(|number| format!("w{number} ")).collect();
    add_notes(&notes, &["short", &long_word, &many_words]).await;
    assert_eq!(found_texts(&notes, &long_word).await, [long_word.as_str()]);
    assert_eq!(found_texts(&notes, &many_words).await, [many_words.as_str()]);
    for query in ["\"".repeat(10_000) + "a", "y ".repeat(5000), "-y".repeat(5000), "y".repeat(9999)]
    {
        notes.search_notes(&default_agent_id(), &query, 10).await.unwrap();
    }
}
