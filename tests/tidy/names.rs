//! Names that say nothing, and the one name that has its place.

use std::path::Path;

use crate::rust::{Token, tokens, words};
use crate::tree::{Faults, files, rust_files};

/// Words that say nothing about what is named, wherever they stand in a name.
const EMPTY: &[&str] = &["util", "utils", "helper", "helpers", "manager", "handler2"];

/// Words that say nothing when they are the whole name.
const EMPTY_ALONE: &[&str] = &["misc", "common"];

/// Beginnings of function names that only repeat that it is a function.
const STUTTERS: &[&str] = &["get_", "do_"];

/// Names that the protocol gives to the methods of its service.
const GIVEN: &[&str] =
    &["get_agent_card", "get_extended_agent_card", "get_task", "get_task_push_notification_config"];

/// What names a thing.
const NAMERS: &[&str] =
    &["fn", "mod", "struct", "enum", "trait", "type", "union", "static", "const"];

const EVERYWHERE: &[&str] = &["src/", "actors/", "tests/", "benches/"];

#[test]
fn every_name_says_something() {
    let mut faults = Faults::default();
    for file in rust_files(EVERYWHERE) {
        let tokens = tokens(&file.text);
        for pair in tokens.windows(2) {
            let [namer, name] = pair else { continue };
            if NAMERS.contains(&namer.text.as_str()) && name.is_word() && says_nothing(namer, name)
            {
                faults.add(&file.path, name.line, format!("`{}`", name.text));
            }
        }
    }
    faults.settle("name the thing by what it is or does, in the words of the field");
}

fn says_nothing(namer: &Token, name: &Token) -> bool {
    let given = GIVEN.contains(&name.text.as_str());
    let stutters = !given && STUTTERS.iter().any(|start| name.text.starts_with(start));
    has_empty_word(&name.text) || namer.text == "fn" && stutters
}

fn has_empty_word(name: &str) -> bool {
    let words = words(name.trim_end_matches(".rs"));
    let alone = words.first().filter(|_| words.len() == 1);
    let is_in = |list: &[&str], word: &String| list.contains(&word.as_str());
    alone.is_some_and(|word| is_in(EMPTY_ALONE, word))
        || words.iter().any(|word| is_in(EMPTY, word))
}

#[test]
fn every_file_name_says_something() {
    let mut faults = Faults::default();
    for file in files() {
        let mut parts = Path::new(&file.path).components();
        if parts.any(|part| part.as_os_str().to_str().is_some_and(has_empty_word)) {
            faults.add(&file.path, 1, "a part of the path says nothing");
        }
    }
    faults.settle("name the file by the decision it holds");
}

/// Inside, work is an execution; a task is what an A2A client sees of it.
#[test]
fn task_is_a_word_of_wire_and_serve_only() {
    let mut faults = Faults::default();
    for file in rust_files(&["src/", "actors/src/"]) {
        if file.is_in(&["src/wire", "src/serve"]) {
            continue;
        }
        for token in tokens(&file.text).iter().filter(|token| token.is_word()) {
            let is_type = token.text.starts_with(char::is_uppercase);
            // The command line speaks of tasks to people; `task` alone is tokio's word.
            let excused = !is_type && (file.is_in(&["src/cli"]) || token.text == "task");
            if !excused && words(&token.text).iter().any(|word| word == "task") {
                faults.add(&file.path, token.line, format!("`{}`", token.text));
            }
        }
    }
    faults.settle("inside it is an execution, a request or a turn; map it in wire or serve");
}
