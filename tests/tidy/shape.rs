//! Sizes, first lines, and exceptions that must not be made.

use crate::rust::{code, tokens};
use crate::tree::{Faults, rust_files};

/// The longest file, without its tests.
const LONGEST: usize = 400;

const EVERYWHERE: &[&str] = &["src/", "actors/", "tests/", "benches/"];

#[test]
fn no_file_is_longer_than_a_reader_can_hold() {
    let mut faults = Faults::default();
    for file in rust_files(EVERYWHERE) {
        let lines: Vec<_> = file.text.lines().collect();
        let starts_tests = |pair: &[&str]| {
            pair.first().is_some_and(|line| line.trim() == "#[cfg(test)]")
                && pair.last().is_some_and(|line| line.trim_start().starts_with("mod "))
        };
        let length = lines.windows(2).position(starts_tests).unwrap_or(lines.len());
        if length > LONGEST && !file.is_test() {
            faults.add(&file.path, length, format!("{length} lines, {LONGEST} are allowed"));
        }
    }
    faults.settle("split the file by decision, not by kind");
}

#[test]
fn line_one_says_what_a_file_is_for() {
    let mut faults = Faults::default();
    for file in rust_files(&["src/", "actors/", "tests/"]) {
        if !file.text.starts_with("//! ") {
            faults.add(&file.path, 1, "does not start with `//! `");
        }
    }
    faults.settle("say in one sentence what the file is for");
}

#[test]
fn no_lint_is_silenced_and_no_test_is_skipped() {
    let mut faults = Faults::default();
    for file in rust_files(EVERYWHERE) {
        let tokens = tokens(&file.text);
        for window in tokens.windows(3) {
            let [hash, bracket, word] = window else { continue };
            let opens = bracket.text == "[" && (hash.text == "#" || hash.text == "!");
            if opens && (word.text == "allow" || word.text == "ignore") {
                faults.add(&file.path, word.line, format!("`{}` attribute", word.text));
            }
        }
    }
    faults.settle("write `#[expect(.., reason = \"..\")]`; mend or remove a test that cannot run");
}

/// The fakes are left out: to sleep is their part, and nobody waits by it.
#[test]
fn a_test_that_sleeps_says_why() {
    let mut faults = Faults::default();
    for file in rust_files(&["tests/", "actors/tests/"]) {
        if file.is_in(&["tests/fakes/"]) {
            continue;
        }
        let code = code(&file.text);
        let mut above = "";
        for ((number, line), code) in file.lines().zip(code.lines()) {
            let explained = above.trim_start().starts_with("//") || line.contains("//");
            if code.contains("sleep(") && !explained {
                faults.add(&file.path, number, "sleeps without a reason");
            }
            above = line;
        }
    }
    faults.settle("wait for the thing itself, or say in a comment why time must pass");
}

/// Where the compiler cannot vouch for memory: the warden, which makes processes and passes
/// descriptors, and the library that stands between a program and its system.
const UNSAFE: &[&str] = &["src/warden/", "tests/fault/"];

#[test]
fn what_the_compiler_cannot_vouch_for_stands_in_two_places() {
    let mut faults = Faults::default();
    for file in rust_files(EVERYWHERE).iter().filter(|file| !file.is_in(UNSAFE)) {
        let tokens = tokens(&file.text);
        for token in tokens.iter().filter(|token| token.text == "unsafe") {
            faults.add(&file.path, token.line, "`unsafe`");
        }
    }
    faults.settle("use a safe wrapper, or let src/warden do it");
}
