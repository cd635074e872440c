//! Names of items, tests and files: no meaningless words, tests with a subject, and `task` only at the A2A boundary.

use std::path::Path;

use crate::requirements::test_names;
use crate::rust::{RustToken, split_into_words, tokenize};
use crate::tree::{Faults, repository_files, rust_files};

/// Words without meaning in every position of a name.
const MEANINGLESS_WORDS: &[&str] = &["util", "utils", "helper", "helpers", "manager", "handler2"];

/// Words without meaning when they are the complete name.
const MEANINGLESS_NAMES: &[&str] = &["misc", "common"];

/// Prefixes that add no meaning to the name of a function.
const REDUNDANT_PREFIXES: &[&str] = &["get_", "do_"];

/// Method names that the A2A protocol prescribes for its service.
const PRESCRIBED_METHODS: &[&str] =
    &["get_agent_card", "get_extended_agent_card", "get_task", "get_task_push_notification_config"];

/// Keywords before the name in a definition.
const DEFINITION_KEYWORDS: &[&str] =
    &["fn", "mod", "struct", "enum", "trait", "type", "union", "static", "const"];

/// Longest name of a test, in characters.
const MAX_TEST_NAME_CHARS: usize = 60;

/// First words that leave a test without a subject.
const SUBJECTLESS_WORDS: &[&str] = &[
    "what", "who", "whether", "where", "how", "it", "nothing", "nobody", "whatever", "whoever",
    "wherever", "why", "which", "whose",
];

const RUST_FOLDERS: &[&str] = &["src/", "actors/", "crates/", "tests/", "benches/"];

#[test]
fn every_name_has_a_meaning() {
    let mut faults = Faults::default();
    for file in rust_files(RUST_FOLDERS) {
        let tokens = tokenize(&file.text);
        for pair in tokens.windows(2) {
            let [keyword, name] = pair else { continue };
            if DEFINITION_KEYWORDS.contains(&keyword.text.as_str())
                && name.is_word()
                && is_meaningless(keyword, name)
            {
                faults.add(&file.path, name.line, format!("`{}`", name.text));
            }
        }
    }
    faults.fail_if_any("name the item by what it is or does, with a term of docs/glossary.md");
}

fn is_meaningless(keyword: &RustToken, name: &RustToken) -> bool {
    let is_prescribed = PRESCRIBED_METHODS.contains(&name.text.as_str());
    let is_redundant =
        !is_prescribed && REDUNDANT_PREFIXES.iter().any(|start| name.text.starts_with(start));
    has_meaningless_word(&name.text) || keyword.text == "fn" && is_redundant
}

fn has_meaningless_word(name: &str) -> bool {
    let words = split_into_words(name.trim_end_matches(".rs"));
    let only_word = words.first().filter(|_| words.len() == 1);
    let is_in = |list: &[&str], word: &String| list.contains(&word.as_str());
    only_word.is_some_and(|word| is_in(MEANINGLESS_NAMES, word))
        || words.iter().any(|word| is_in(MEANINGLESS_WORDS, word))
}

#[test]
fn every_test_name_is_short_and_has_a_subject() {
    let (mut faults, mut count) = (Faults::default(), 0);
    for file in rust_files(RUST_FOLDERS) {
        for (line, name) in test_names(&file) {
            count += 1;
            if let Some(fault) = test_name_fault(&name) {
                faults.add(&file.path, line, format!("`{name}` {fault}"));
            }
        }
    }
    assert!(count > 1000, "only {count} tests were found");
    faults.fail_if_any(
        "state the subject and the effect, as in `a_deleted_target_gets_no_more_pushes`",
    );
}

fn test_name_fault(name: &str) -> Option<String> {
    let first_word = name.split('_').next().unwrap_or_default();
    if name.len() > MAX_TEST_NAME_CHARS {
        return Some(format!("has {} characters, more than {MAX_TEST_NAME_CHARS}", name.len()));
    }
    SUBJECTLESS_WORDS.contains(&first_word).then(|| format!("begins with `{first_word}`"))
}

#[test]
fn long_and_headless_test_names_are_reported() {
    let longest_name = "a".repeat(MAX_TEST_NAME_CHARS);
    assert_eq!(test_name_fault(&longest_name), None);
    assert_eq!(test_name_fault("items_are_found"), None);
    for faulty in
        ["what_is_missing_is_found", "who_waits_is_told", "nobody_is_first", &(longest_name + "a")]
    {
        assert!(test_name_fault(faulty).is_some(), "{faulty}");
    }
}

#[test]
fn every_file_name_has_a_meaning() {
    let mut faults = Faults::default();
    for file in repository_files() {
        let mut parts = Path::new(&file.path).components();
        if parts.any(|part| part.as_os_str().to_str().is_some_and(has_meaningless_word)) {
            faults.add(&file.path, 1, "a part of the path has no meaning");
        }
    }
    faults.fail_if_any("name the file after its responsibility");
}

/// A task is the view that an A2A client has of an execution. All other modules use the internal terms.
#[test]
fn only_wire_and_serve_use_the_term_task() {
    let mut faults = Faults::default();
    for file in rust_files(&["src/", "actors/src/", "crates/"]) {
        // The driver of remote agents is itself a client.
        if file.is_in(&["crates/a2a", "src/wire", "src/serve", "src/drivers/remote"]) {
            continue;
        }
        for token in tokenize(&file.text).iter().filter(|token| token.is_word()) {
            let is_type = token.text.starts_with(char::is_uppercase);
            // Users of the command line know executions as tasks, and `task` alone is a module of tokio.
            let is_allowed = !is_type && (file.is_in(&["src/cli"]) || token.text == "task");
            if !is_allowed && split_into_words(&token.text).iter().any(|word| word == "task") {
                faults.add(&file.path, token.line, format!("`{}`", token.text));
            }
        }
    }
    faults.fail_if_any("use execution, request or turn, and convert to a task in wire or serve");
}
