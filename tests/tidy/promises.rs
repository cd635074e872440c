//! The page of promises: each names a test that exists.

use crate::requirements::{functions, quoted};
use crate::tree::{Faults, files};

const PAGE: &str = "docs/runtime.md";
/// From here on nothing is promised.
const END: &str = "## What is not promised";

#[test]
fn every_promise_names_a_test_that_exists() {
    let (tests, mut faults) = (functions(), Faults::default());
    let page = files().into_iter().find(|file| file.path == PAGE);
    let lines = page.iter().flat_map(|page| page.lines());
    let lines = lines.take_while(|(_, line)| *line != END);
    let promises: Vec<_> = lines.filter(|(_, line)| line.starts_with("- ")).collect();
    for (number, line) in &promises {
        match quoted(line).last() {
            Some(test) if tests.contains(*test) && line.ends_with("`.") => {}
            _ => faults.add(PAGE, *number, "does not end in the name of a test that exists"),
        }
    }
    assert!(!promises.is_empty(), "{PAGE} promises nothing");
    faults.settle("write one line: the promise, a colon and the test in backticks");
}
