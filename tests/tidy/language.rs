//! Language of doc comments: the form of their first line, and the terms in it.

use crate::tree::{RepoFile, rust_files};

const RUST_FOLDERS: &[&str] = &["src/", "actors/", "crates/", "tests/", "benches/"];

/// Words that begin a subordinate clause without a main clause.
const HEADLESS_FIRST_WORDS: [&str; 8] =
    ["What", "Who", "Whose", "How", "Whether", "Where", "When", "Why"];

/// Colloquial words in place of report, receive, request and return.
const COLLOQUIAL_WORDS: [&str; 8] =
    ["tell", "tells", "told", "ask", "asks", "asked", "heard", "said"];

/// Greatest share of doc comments that begin with a headless clause, in thousandths.
const MAX_HEADLESS_PERMILLE: usize = 20;

/// Greatest share of doc comments with a colloquial word in the first line, in thousandths. The goal is 2.
const MAX_COLLOQUIAL_PERMILLE: usize = 12;

/// Returns the first line of each doc comment, without its marker.
fn doc_comment_first_lines(text: &str) -> impl Iterator<Item = &str> {
    let is_doc = |line: &str| line.starts_with("///") || line.starts_with("//!");
    let mut was_doc = false;
    text.lines().map(str::trim_start).filter_map(move |line| {
        let is_first = is_doc(line) && !was_doc;
        was_doc = is_doc(line);
        is_first.then(|| line.trim_start_matches(['/', '!', ' ']))
    })
}

fn is_headless(first_line: &str) -> bool {
    first_line.split(' ').next().is_some_and(|word| HEADLESS_FIRST_WORDS.contains(&word))
}

fn is_colloquial(first_line: &str) -> bool {
    let words = first_line.split(|char: char| !char.is_ascii_alphabetic());
    words.into_iter().any(|word| COLLOQUIAL_WORDS.contains(&word))
}

/// Checks that at most `max_permille` thousandths of the first lines are bad. The failure message lists the first 20
/// of them.
fn assert_share_below(files: &[RepoFile], max_permille: usize, is_bad: impl Fn(&str) -> bool) {
    let doc_lines: Vec<_> = files
        .iter()
        .filter(|file| !file.is_in(&["crates/a2a/src/grpc/proto/"]))
        .flat_map(|file| doc_comment_first_lines(&file.text).map(|first| (&file.path, first)))
        .collect();
    assert!(doc_lines.len() > 5_000, "only {} doc comments were found", doc_lines.len());
    let violations: Vec<_> = doc_lines.iter().filter(|(_, first)| is_bad(first)).collect();
    assert!(
        violations.len() * 1000 <= doc_lines.len() * max_permille,
        "{} of {} doc comments break the rule; begin each with a noun phrase or a verb in third person, and use the \
         terms of docs/glossary.md:\n{:#?}",
        violations.len(),
        doc_lines.len(),
        violations.iter().take(20).collect::<Vec<_>>(),
    );
}

#[test]
fn doc_comments_begin_with_a_noun_phrase_or_a_verb() {
    assert_share_below(&rust_files(RUST_FOLDERS), MAX_HEADLESS_PERMILLE, is_headless);
}

#[test]
fn doc_comments_use_standard_terms() {
    assert_share_below(&rust_files(RUST_FOLDERS), MAX_COLLOQUIAL_PERMILLE, is_colloquial);
}

#[test]
fn first_lines_are_extracted_and_classified() {
    let text = "//! Module.\n\n/// What is over.\n/// Who waits.\nfn a() {}\n    /// Reports what was told.\n";
    let extracted_lines: Vec<_> = doc_comment_first_lines(text).collect();
    assert_eq!(extracted_lines, ["Module.", "What is over.", "Reports what was told."]);
    assert_eq!(
        extracted_lines.iter().map(|it| is_headless(it)).collect::<Vec<_>>(),
        [false, true, false]
    );
    assert_eq!(
        extracted_lines.iter().map(|it| is_colloquial(it)).collect::<Vec<_>>(),
        [false, false, true]
    );
}
