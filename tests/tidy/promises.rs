//! Promises of `docs/runtime.md`: each has an id and names tests, and each of these tests repeats the promise in a
//! comment above the assertion that verifies it.

use std::collections::{BTreeMap, BTreeSet};

use crate::requirements::{all_test_names, backtick_texts};
use crate::rust::tokenize;
use crate::tree::{Faults, RepoFile, repository_files, rust_files};

const PROMISES_PAGE: &str = "docs/runtime.md";
/// Heading of the part that follows the promises.
const END_HEADING: &str = "## What is not promised";
/// Macros and methods that make a test fail. A call of a function that contains one of them does so too.
const ASSERT_NAMES: [&str; 5] = ["assert", "assert_eq", "assert_ne", "panic", "expect"];
const RUST_FOLDERS: &[&str] = &["src/", "actors/", "crates/", "tests/", "benches/"];

/// Promise of the page.
struct RuntimePromise {
    line: usize,
    id: String,
    sentence: String,
    tests: Vec<String>,
}

#[test]
fn every_promise_is_asserted_by_the_tests_that_it_names() {
    let (known_tests, mut faults) = (all_test_names(), Faults::default());
    let promises = read_promises(&mut faults);
    let comments = promise_comments(&rust_files(RUST_FOLDERS));
    let mut named_pairs = BTreeSet::new();
    for promise in &promises {
        for test in &promise.tests {
            if !known_tests.contains(test) {
                faults.add(
                    PROMISES_PAGE,
                    promise.line,
                    format!("the test `{test}` does not exist"),
                );
                continue;
            }
            named_pairs.insert((promise.id.clone(), test.clone()));
            match comments.get(&(promise.id.clone(), test.clone())) {
                None => {
                    let message = format!("`{test}` has no comment `// {}: …`", promise.id);
                    faults.add(PROMISES_PAGE, promise.line, message);
                }
                Some(comment) if comment.sentence != promise.sentence => {
                    faults.add(
                        &comment.path,
                        comment.line,
                        format!("differs from {PROMISES_PAGE}: {}", promise.sentence),
                    );
                }
                Some(comment) if !comment.is_asserted => {
                    faults.add(&comment.path, comment.line, "no assertion follows the comment");
                }
                Some(_) => {}
            }
        }
    }
    for ((id, test), comment) in comments.iter().filter(|(key, _)| !named_pairs.contains(key)) {
        let message = format!("{PROMISES_PAGE} has no promise {id} that names `{test}`");
        faults.add(&comment.path, comment.line, message);
    }
    assert!(!promises.is_empty(), "{PROMISES_PAGE} has no promises");
    faults.fail_if_any(
        "write `- **R-N** The promise: `test`.` on one line, and `// R-N: The promise` in the test above the \
         assertion that fails when the promise is broken",
    );
}

fn read_promises(faults: &mut Faults) -> Vec<RuntimePromise> {
    let page = repository_files().into_iter().find(|file| file.path == PROMISES_PAGE);
    let lines =
        page.iter().flat_map(|page| page.lines()).take_while(|(_, line)| *line != END_HEADING);
    let (mut promises, mut ids) = (Vec::new(), BTreeSet::new());
    for (number, line) in lines.filter(|(_, line)| line.starts_with("- ")) {
        match parse_promise(number, line) {
            Some(promise) if ids.insert(promise.id.clone()) => promises.push(promise),
            Some(promise) => {
                faults.add(PROMISES_PAGE, number, format!("{} occurs twice", promise.id));
            }
            None => {
                faults.add(PROMISES_PAGE, number, "the id, the sentence or the tests are missing");
            }
        }
    }
    promises
}

fn parse_promise(line: usize, text: &str) -> Option<RuntimePromise> {
    let (id, rest) = text.strip_prefix("- **")?.split_once("** ")?;
    let (sentence_text, test_list) = rest.strip_suffix('.')?.rsplit_once(": ")?;
    let tests: Vec<_> = backtick_texts(test_list).into_iter().map(str::to_owned).collect();
    let (id, sentence) = (id.to_owned(), sentence_text.to_owned());
    (id.starts_with("R-") && !tests.is_empty()).then_some(RuntimePromise {
        line,
        id,
        sentence,
        tests,
    })
}

/// Comment of a test that repeats a promise.
struct PromiseComment {
    path: String,
    line: usize,
    sentence: String,
    is_asserted: bool,
}

/// Returns the comments, by the id of the promise and the name of the test.
fn promise_comments(files: &[RepoFile]) -> BTreeMap<(String, String), PromiseComment> {
    let asserting_names = asserting_functions(files);
    let mut comments = BTreeMap::new();
    for file in files.iter().filter(|file| file.path != "tests/tidy/promises.rs") {
        let lines: Vec<_> = file.text.lines().map(str::trim).collect();
        let mut function = String::new();
        for (index, line) in lines.iter().enumerate() {
            if let Some(name) = parse_function_name(line) {
                name.clone_into(&mut function);
            }
            let Some((id, first_line)) =
                line.strip_prefix("// R-").and_then(|it| it.split_once(": "))
            else {
                continue;
            };
            let following_lines = lines.iter().skip(index + 1);
            let continuation_lines: Vec<_> =
                following_lines.clone().map_while(|line| line.strip_prefix("// ")).collect();
            let sentence = [&[first_line], continuation_lines.as_slice()].concat().join(" ");
            let is_asserted =
                is_asserted(following_lines.skip(continuation_lines.len()), &asserting_names);
            let (path, line) = (file.path.clone(), index + 1);
            let comment = PromiseComment { path, line, sentence, is_asserted };
            comments.insert((format!("R-{id}"), function.clone()), comment);
        }
    }
    comments
}

fn parse_function_name(line: &str) -> Option<&str> {
    let (qualifiers, rest) = line.split_once("fn ")?;
    let is_definition = qualifiers
        .split_whitespace()
        .all(|word| matches!(word, "async" | "const" | "pub" | "pub(crate)" | "pub(super)"));
    rest.split(['(', '<']).next().filter(|_| is_definition)
}

/// Returns whether the first statement of these lines can fail the test.
fn is_asserted<'l>(
    lines: impl Iterator<Item = &'l &'l str>,
    asserting_names: &BTreeSet<String>,
) -> bool {
    let mut statement = String::new();
    for line in lines {
        statement.push_str(line);
        statement.push('\n');
        if line.ends_with([';', '{', '}']) {
            break;
        }
    }
    tokenize(&statement).iter().any(|token| {
        ASSERT_NAMES.contains(&token.text.as_str()) || asserting_names.contains(&token.text)
    })
}

/// Wait functions of the test harness. They fail a test when their deadline expires.
const WAIT_FUNCTIONS: [&str; 2] = ["poll_until", "within_deadline"];

/// Returns the names of the functions in test files that can fail a test: they contain an assertion or a wait, or call
/// such a function of the same file. A name counts only if each function with this name can fail a test, because a call
/// does not show which of them it means.
fn asserting_functions(files: &[RepoFile]) -> BTreeSet<String> {
    let (mut names, mut harmless_names) = (BTreeSet::new(), BTreeSet::new());
    let is_test = |file: &&RepoFile| file.path.contains("tests") || file.path.contains("testing");
    for file in files.iter().filter(is_test) {
        let wait_calls = WAIT_FUNCTIONS.iter().map(|word| format!("{word}("));
        let assert_calls: Vec<_> =
            ASSERT_NAMES.iter().map(|word| format!("{word}!(")).chain(wait_calls).collect();
        let functions = functions_containing(file, &assert_calls);
        let calls: Vec<_> = functions.iter().map(|name| format!("{name}(")).collect();
        let asserting_names = &functions_containing(file, &calls) | &functions;
        harmless_names.extend(&function_names(file) - &asserting_names);
        names.extend(asserting_names);
    }
    &names - &harmless_names
}

/// Returns the names of all functions of a file.
fn function_names(file: &RepoFile) -> BTreeSet<String> {
    file.text
        .lines()
        .filter_map(|line| parse_function_name(line.trim()))
        .map(str::to_owned)
        .collect()
}

/// Returns the functions of a file whose body contains one of these texts.
fn functions_containing(file: &RepoFile, texts: &[String]) -> BTreeSet<String> {
    let (mut function, mut functions) = (None, BTreeSet::new());
    for line in file.text.lines() {
        if let Some(name) = parse_function_name(line.trim()) {
            function = Some(name.to_owned());
        } else if texts.iter().any(|text| line.contains(text.as_str())) {
            functions.extend(function.clone());
        }
    }
    functions
}

#[test]
fn a_promise_comment_without_assertion_is_reported() {
    let text = "fn a() {\n    // R-1: It holds\n    // always\n    assert_eq!(1, 1);\n\
        // R-2: It holds\n    let x = 1;\n    // R-3: It holds\n    b();\n}\nfn b() {\n    assert!(true);\n}\n";
    let file = RepoFile { path: "tests/a.rs".to_owned(), text: text.to_owned() };
    let other_file = RepoFile { path: "tests/b.rs".to_owned(), text: "fn b() {}\n".to_owned() };
    let files = [file, other_file];
    for (file_count, is_call_asserted) in [(1, true), (2, false)] {
        let comments = promise_comments(&files[..file_count]);
        let comment_of = |id: &str| &comments[&(id.to_owned(), "a".to_owned())];
        assert_eq!(comment_of("R-1").sentence, "It holds always");
        let are_asserted = [comment_of("R-1"), comment_of("R-2"), comment_of("R-3")]
            .map(|comment| comment.is_asserted);
        assert_eq!(are_asserted, [true, false, is_call_asserted]);
    }
}
