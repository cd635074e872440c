//! Form of Rust files: length, first line, lint attributes, sleeps in tests, and `unsafe`.

use crate::rust::{strip_comments_and_literals, tokenize};
use crate::tree::{Faults, rust_files};

/// Greatest number of lines of a file, without its tests.
const MAX_FILE_LINES: usize = 400;

/// Greatest length of a line of a comment, in characters.
const MAX_COMMENT_CHARS: usize = 120;

const RUST_FOLDERS: &[&str] = &["src/", "actors/", "crates/", "tests/", "benches/"];

#[test]
fn no_file_exceeds_the_length_limit() {
    let mut faults = Faults::default();
    for file in rust_files(RUST_FOLDERS) {
        let lines: Vec<_> = file.text.lines().collect();
        let starts_tests = |pair: &[&str]| {
            pair.first().is_some_and(|line| line.trim() == "#[cfg(test)]")
                && pair.last().is_some_and(|line| {
                    // A declaration of a file, at the top, is not the start of the tests.
                    line.trim_start().starts_with("mod ") && line.ends_with('{')
                })
        };
        let length = lines.windows(2).position(starts_tests).unwrap_or(lines.len());
        if length > MAX_FILE_LINES && !file.is_test_module() {
            faults.add(&file.path, length, format!("{length} lines, {MAX_FILE_LINES} allowed"));
        }
    }
    faults.fail_if_any("split the file by responsibility, not by kind");
}

/// A row of a table and a promise, which another check compares as a whole, are one line each.
#[test]
fn no_comment_exceeds_the_line_length() {
    let mut faults = Faults::default();
    for file in rust_files(RUST_FOLDERS) {
        for (number, line) in file.lines().filter(|(_, line)| line.trim_start().starts_with("//")) {
            let text = line.trim_start().trim_start_matches(['/', '!', ' ']);
            let length = line.chars().count();
            if length > MAX_COMMENT_CHARS && !text.starts_with('|') && !text.starts_with("R-") {
                let fault = format!("{length} characters, {MAX_COMMENT_CHARS} allowed");
                faults.add(&file.path, number, fault);
            }
        }
    }
    faults.fail_if_any("wrap the comment");
}

#[test]
fn the_first_line_states_the_purpose_of_the_file() {
    let mut faults = Faults::default();
    for file in rust_files(&["src/", "actors/", "crates/", "tests/"]) {
        if !file.text.starts_with("//! ") {
            faults.add(&file.path, 1, "does not start with `//! `");
        }
    }
    faults.fail_if_any("state the purpose of the file in one sentence");
}

#[test]
fn no_lint_is_allowed_and_no_test_is_ignored() {
    let mut faults = Faults::default();
    for file in rust_files(RUST_FOLDERS) {
        let tokens = tokenize(&file.text);
        for window in tokens.windows(3) {
            let [hash, bracket, word] = window else { continue };
            let is_attribute_start = bracket.text == "[" && (hash.text == "#" || hash.text == "!");
            if is_attribute_start && (word.text == "allow" || word.text == "ignore") {
                faults.add(&file.path, word.line, format!("`{}` attribute", word.text));
            }
        }
    }
    faults.fail_if_any(
        "write `#[expect(.., reason = \"..\")]`; fix or remove a test that cannot run",
    );
}

/// `tests/fakes` is exempt: a fake agent sleeps to imitate a slow one, not to wait for a condition.
#[test]
fn a_test_that_sleeps_gives_the_reason() {
    let mut faults = Faults::default();
    for file in rust_files(&["tests/", "actors/tests/"]) {
        if file.is_in(&["tests/fakes/"]) {
            continue;
        }
        let code = strip_comments_and_literals(&file.text);
        let mut previous_line = "";
        for ((number, line), code) in file.lines().zip(code.lines()) {
            let is_explained = previous_line.trim_start().starts_with("//") || line.contains("//");
            if code.contains("sleep(") && !is_explained {
                faults.add(&file.path, number, "sleeps without a comment");
            }
            previous_line = line;
        }
    }
    faults.fail_if_any("wait for the condition itself, or explain in a comment why time must pass");
}

/// Folders with `unsafe` code: the warden, which creates processes and passes file descriptors, and the fault injector,
/// a library that intercepts the system calls of a program.
const UNSAFE_FOLDERS: &[&str] = &["crates/warden/src/", "tests/fault/"];

#[test]
fn unsafe_code_is_in_two_folders_only() {
    let mut faults = Faults::default();
    for file in rust_files(RUST_FOLDERS).iter().filter(|file| !file.is_in(UNSAFE_FOLDERS)) {
        let tokens = tokenize(&file.text);
        for token in tokens.iter().filter(|token| token.text == "unsafe") {
            faults.add(&file.path, token.line, "`unsafe`");
        }
    }
    faults.fail_if_any("use a safe wrapper, or move the code to crates/warden");
}
