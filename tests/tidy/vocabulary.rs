//! Vocabulary of names: colloquial words and metaphors are refused in the name of every definition, binding and file.

use std::collections::BTreeSet;
use std::path::Path;

use crate::requirements::test_names;
use crate::rust::{RustToken, split_into_words, tokenize};
use crate::tree::{Faults, RepoFile, repository_files, rust_files};

const RUST_FOLDERS: &[&str] = &["src/", "actors/", "crates/", "tests/", "benches/"];

/// Refused words and their replacements, separated by spaces. No name contains one of them.
const BANNED_WORDS: &[(&str, &str)] = &[
    ("told tell tells telling teller", "report, response, notice, output"),
    ("asked asking asks unasked", "request, question, is_requested"),
    ("said say says saying spoke spoken speaks", "message, text, output"),
    ("heard hear hears hearing", "received"),
    ("begun began", "started, attempt"),
    ("went gone", "exited, removed, outcome"),
    ("way ways", "method, direction, or the noun of the choice"),
    ("room rooms berth", "capacity, free_bytes, reservation"),
    ("world", "context, fixture"),
    ("who whom whose why", "caller, owner, reason, cause"),
    ("wish wishes meant", "requested, intended"),
    ("twin twins", "duplicate"),
    ("moment patience", "a duration or a limit, with the thing that it bounds"),
    ("ear foot bell mouth", "the noun of the field"),
    ("beside", "sibling, neighbor, alongside"),
    ("news story", "telemetry, events, scenario"),
    ("keeper keeping", "holder, pooling, retention"),
    ("masked masks", "redacted"),
    ("sight sighting glance lookout onlooker", "observation, snapshot, monitor"),
    ("pen pens stroke strokes purse purses till", "writer, write, budget"),
    ("herald courier steward postman", "dispatcher, client, handle"),
    ("shelf shelves desk errand errands", "buffer, context, timer"),
    ("door doors doorkeeper house furniture workshop", "endpoint, acceptor, listener"),
    ("lay laid lean leans leaned", "merge, coalesce"),
    ("seat seats seated", "definition, slot"),
    ("park parked parking", "defer"),
    ("stamp", "attempt_id, timestamp"),
];

/// Refused as the complete name of a variable, field or function, with replacements: a participle or a pronoun does not
/// name its value.
const BANNED_NAMES: &[(&str, &str)] = &[
    ("shown", "output, displayed"),
    ("kept", "retained, stored"),
    ("given", "input, configured"),
    ("made", "created"),
    ("taken took", "the noun of the value"),
    ("got saw", "received, actual, observed"),
    ("ran", "runs, has_run"),
    ("what how", "kind, subject, description, method"),
    ("ours theirs mine", "the noun of the value"),
    ("nobody nothing somebody something", "none, absent, or the noun of the value"),
];

/// Names that contain a refused word for a reason, each with the only part of the tree that has it.
const EXCEPTIONS: &[(&str, &str)] = &[
    // The API and the ledger publish this name.
    ("asked_at", ""),
    // A name of the crate nix.
    ("UsageWho", "crates/warden/src/memory.rs"),
];

/// Refused word of a name, with its replacements.
fn banned_word(name: &str) -> Option<(String, &'static str)> {
    let is_in = |list: &str, word: &str| list.split(' ').any(|banned| banned == word);
    let banned_name = BANNED_NAMES.iter().find(|(list, _)| is_in(list, name));
    let find_banned = |word: String| {
        let entry = BANNED_WORDS.iter().find(|(list, _)| is_in(list, &word))?;
        Some((word, entry.1))
    };
    banned_name
        .map(|(_, replacements)| (name.to_owned(), *replacements))
        .or_else(|| split_into_words(name).into_iter().find_map(find_banned))
}

/// Returns the names of a source with their lines. A name after `.` or `::` is defined elsewhere.
fn unqualified_names(source: &str) -> Vec<(usize, String)> {
    let tokens = tokenize(source);
    let previous_token =
        |index: usize| index.checked_sub(1).and_then(|previous_index| tokens.get(previous_index));
    let is_reference =
        |token: Option<&RustToken>| token.is_some_and(|it| matches!(&*it.text, "." | "::"));
    let is_name = |(index, token): &(usize, &RustToken)| {
        token.is_word() && !is_reference(previous_token(*index))
    };
    let names = tokens.iter().enumerate().filter(is_name);
    names.map(|(_, token)| (token.line, token.text.clone())).collect()
}

fn is_exception(file: &RepoFile, name: &str) -> bool {
    EXCEPTIONS.iter().any(|(known, path_prefix)| *known == name && file.is_in(&[path_prefix]))
}

#[test]
fn every_name_has_the_words_of_its_field() {
    let mut faults = Faults::default();
    for file in rust_files(RUST_FOLDERS) {
        // Names of tests are sentences.
        let tests: BTreeSet<_> = test_names(&file).into_iter().map(|(_, name)| name).collect();
        for (line, name) in unqualified_names(&file.text) {
            let Some((word, replacements)) = banned_word(&name) else { continue };
            if !tests.contains(&name) && !is_exception(&file, &name) {
                faults.add(
                    &file.path,
                    line,
                    format!("`{name}`: instead of `{word}`: {replacements}"),
                );
            }
        }
    }
    faults.fail_if_any("name the value by what it is, with a term of docs/glossary.md");
}

#[test]
fn every_file_name_has_the_words_of_its_field() {
    let mut faults = Faults::default();
    for file in repository_files().iter().filter(|file| file.is_in(RUST_FOLDERS)) {
        let find_banned_word = |part: &std::ffi::OsStr| {
            let name = Path::new(part).file_stem()?.to_str()?.to_owned();
            banned_word(&name)
        };
        for (word, replacements) in Path::new(&file.path).iter().filter_map(find_banned_word) {
            faults.add(&file.path, 1, format!("instead of `{word}`: {replacements}"));
        }
    }
    faults.fail_if_any("name the file after its responsibility, with a term of docs/glossary.md");
}

#[test]
fn every_exception_is_in_use() {
    let files = rust_files(RUST_FOLDERS);
    for (name, path_prefix) in EXCEPTIONS {
        let mut files_with_prefix = files.iter().filter(|file| file.is_in(&[path_prefix]));
        let is_used = files_with_prefix
            .any(|file| unqualified_names(&file.text).iter().any(|(_, found)| found == name));
        assert!(is_used, "`{name}` does not occur in {path_prefix} any more: remove the exception");
        assert!(banned_word(name).is_some(), "`{name}` needs no exception");
    }
}

#[test]
fn refused_words_are_found_in_names_only() {
    let source =
        "fn told_after(why: u8) { let shown = x.told(); } // heard\nstruct AskedFor; \"said\"";
    let found_words: Vec<_> = unqualified_names(source)
        .into_iter()
        .filter_map(|(line, name)| Some((line, banned_word(&name)?.0)))
        .collect();
    let expected = [(1, "told"), (1, "why"), (1, "shown"), (2, "asked")];
    assert_eq!(found_words, expected.map(|(line, word)| (line, word.to_owned())));
    assert_eq!(banned_word("shown_channels"), None, "a participle with its noun is a name");
}
