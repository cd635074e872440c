//! Words that no file may hold.

use crate::tree::{Faults, files};

/// The one page on which the source documents' own numbers stand.
const CATALOGUE: &str = "docs/requirements.md";

/// Texts that are wrong wherever they stand. In pieces, so that this file passes its own rule.
const TEXTS: &[(&str, &str)] = &[
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("..", "/shared"), "a file that is not part of the house"),
    (concat!("index.", "crates.io"), "a registry's host"),
    (concat!("static.", "crates.io"), "a registry's host"),
    (concat!("pypi", ".org"), "a registry's host"),
    (concat!("python", "hosted.org"), "a registry's host"),
    (concat!("registry.", "npmjs.org"), "a registry's host"),
    (concat!("proxy.", "golang.org"), "a registry's host"),
];

/// Words that say that something is missing.
const UNFINISHED: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Beginnings of the numbers of the source documents; a digit follows.
const NUMBERS: &[&str] = &[
    "S0-", "S1-", "S2-", "S3-", "S4-", "S0-O-", "S1-O-", "S2-O-", "S3-O-", "S4-O-", "S1-CL-",
    "S1-EC-", "S1-FR-", "S1-KE-", "S1-SC-", "S1-US", "C-", "D-",
];

#[test]
fn no_text_names_a_machine_or_a_registry() {
    let mut faults = Faults::default();
    for file in files() {
        for (number, line) in file.lines() {
            for (text, what) in TEXTS {
                if has_text(line, text) {
                    faults.add(&file.path, number, format!("`{text}`: {what}"));
                }
            }
            if names_a_home(line) {
                faults.add(&file.path, number, "a home folder: a path of one machine");
            }
        }
    }
    faults.settle("name things by what they are, relative to the house");
}

/// Whether the line has the text, other than as the whole of a quoted literal: a program may know
/// how paths begin.
fn has_text(line: &str, text: &str) -> bool {
    line.match_indices(text).any(|(at, _)| {
        let (before, after) = line.split_at(at);
        let rest = after.strip_prefix(text).unwrap_or_default();
        !(before.ends_with('"') && rest.starts_with('"'))
    })
}

fn names_a_home(line: &str) -> bool {
    let mut after = line.split(concat!("/ho", "me/")).skip(1);
    after.any(|rest| rest.starts_with(|first: char| first.is_ascii_alphanumeric()))
}

#[test]
fn nothing_is_marked_as_unfinished() {
    let mut faults = Faults::default();
    for file in files() {
        for (number, line) in file.lines() {
            let mut words = line.split(|char: char| !char.is_alphanumeric() && char != '_');
            if let Some(word) = words.find(|word| UNFINISHED.contains(word)) {
                faults.add(&file.path, number, format!("`{word}`"));
            }
        }
    }
    faults.settle("finish it, or open an issue and leave the text without the mark");
}

#[test]
fn numbers_of_the_source_documents_stand_in_one_place() {
    let mut faults = Faults::default();
    for file in files() {
        if file.path == CATALOGUE {
            continue;
        }
        for (number, line) in file.lines() {
            if let Some(found) = NUMBERS.iter().find(|start| has_number(line, start)) {
                faults.add(&file.path, number, format!("`{found}` and a digit"));
            }
        }
    }
    faults.settle("say the requirement itself; its number stands in docs/requirements.md");
}

/// Whether `start` begins a word of the line and a digit follows it.
fn has_number(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let (before, after) = line.split_at(at);
        let begins = !before.ends_with(|char: char| char.is_alphanumeric() || "-_".contains(char));
        let rest = after.strip_prefix(start).unwrap_or_default();
        begins && rest.starts_with(|char: char| char.is_ascii_digit())
    })
}

#[test]
fn numbers_are_told_from_other_text() {
    assert!(has_number(concat!("see C", "-12."), "C-") && has_number(concat!("(S", "0-4)"), "S0-"));
    assert!(!has_number("RFC-822, ABC-1, C-like", "C-"));
}
