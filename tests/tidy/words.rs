//! Text that no file may contain: machine paths, registry hosts, unfinished work, ids of source documents.

use crate::tree::{Faults, repository_files};

/// Page with the ids of the source documents.
const REQUIREMENTS_PAGE: &str = "docs/requirements.md";

/// Forbidden texts and their meanings. `concat!` splits each one, so that this file follows its own rule.
const FORBIDDEN_TEXTS: &[(&str, &str)] = &[
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("..", "/shared"), "a file outside of the repository"),
    (concat!("index.", "crates.io"), "a registry's host"),
    (concat!("static.", "crates.io"), "a registry's host"),
    (concat!("pypi", ".org"), "a registry's host"),
    (concat!("python", "hosted.org"), "a registry's host"),
    (concat!("registry.", "npmjs.org"), "a registry's host"),
    (concat!("proxy.", "golang.org"), "a registry's host"),
];

/// Words that mark unfinished work.
const UNFINISHED_MARKS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Prefixes of the ids of the source documents. A digit follows each.
const ID_PREFIXES: &[&str] = &[
    "S0-", "S1-", "S2-", "S3-", "S4-", "S0-O-", "S1-O-", "S2-O-", "S3-O-", "S4-O-", "S1-CL-",
    "S1-EC-", "S1-FR-", "S1-KE-", "S1-SC-", "S1-US", "C-", "D-",
];

#[test]
fn no_file_names_a_machine_path_or_a_registry() {
    let mut faults = Faults::default();
    for file in repository_files() {
        for (number, line) in file.lines() {
            for (text, description) in FORBIDDEN_TEXTS {
                if has_forbidden_text(line, text) {
                    faults.add(&file.path, number, format!("`{text}`: {description}"));
                }
            }
            if contains_home_folder(line) {
                faults.add(&file.path, number, "a home folder is a path of one machine");
            }
        }
    }
    faults.fail_if_any(
        "write a path relative to the root of the repository, or describe the registry",
    );
}

/// Returns whether the line contains the text, except as a complete string literal: the program compares paths with
/// such prefixes.
fn has_forbidden_text(line: &str, text: &str) -> bool {
    line.match_indices(text).any(|(index, _)| {
        let (before, after) = line.split_at(index);
        let rest = after.strip_prefix(text).unwrap_or_default();
        !(before.ends_with('"') && rest.starts_with('"'))
    })
}

fn contains_home_folder(line: &str) -> bool {
    let mut user_names = line.split(concat!("/ho", "me/")).skip(1);
    user_names.any(|rest| rest.starts_with(|first: char| first.is_ascii_alphanumeric()))
}

#[test]
fn no_file_is_marked_as_unfinished() {
    let mut faults = Faults::default();
    for file in repository_files() {
        for (number, line) in file.lines() {
            let mut words = line.split(|char: char| !char.is_alphanumeric() && char != '_');
            if let Some(word) = words.find(|word| UNFINISHED_MARKS.contains(word)) {
                faults.add(&file.path, number, format!("`{word}`"));
            }
        }
    }
    faults.fail_if_any("finish the work, or open an issue and remove the mark");
}

#[test]
fn ids_of_the_source_documents_are_on_one_page_only() {
    let mut faults = Faults::default();
    for file in repository_files() {
        // The test of the requirements table lists all ids.
        if file.path == REQUIREMENTS_PAGE || file.path == "tests/tidy/requirements.rs" {
            continue;
        }
        for (number, line) in file.lines() {
            if let Some(found_prefix) = ID_PREFIXES.iter().find(|start| has_id(line, start)) {
                faults.add(&file.path, number, format!("`{found_prefix}` and a digit"));
            }
        }
    }
    faults.fail_if_any("describe the requirement; only docs/requirements.md contains its id");
}

/// Returns whether a word of the line begins with `start` and a digit.
fn has_id(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(index, _)| {
        let (before, after) = line.split_at(index);
        let is_word_start =
            !before.ends_with(|char: char| char.is_alphanumeric() || "-_".contains(char));
        let rest = after.strip_prefix(start).unwrap_or_default();
        is_word_start && rest.starts_with(|char: char| char.is_ascii_digit())
    })
}

#[test]
fn ids_are_distinguished_from_other_text() {
    assert!(has_id(concat!("see C", "-12."), "C-") && has_id(concat!("(S", "0-4)"), "S0-"));
    assert!(!has_id("RFC-822, ABC-1, C-like", "C-"));
}
