//! What the fuzzers have found interesting is checked again with every run of the tests.
#![expect(clippy::print_stdout, reason = "a test that fails shows which file it was")]

#[path = "checks.rs"]
pub mod checks;

use std::fs;
use std::path::Path;

use checks::{Check, conversions, envelope, rest, rpc};

/// Every file of a corpus, by name. None at all means that the folder is not where it was.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        fs::read(entry.path()).ok().map(|bytes| (name, bytes))
    };
    entries.filter_map(read).collect()
}

/// Checks every file of a corpus. The last name that is printed is that of a file that fails.
fn replay(target: &str, check: Check) {
    let files = corpus(target);
    assert!(!files.is_empty(), "fuzz/corpus/{target} is missing or empty");
    for (name, bytes) in files {
        println!("fuzz/corpus/{target}/{name}");
        check(&bytes);
    }
}

#[test]
fn what_one_dialect_hears_every_dialect_tells() {
    replay("conversions", conversions::check);
}

#[test]
fn an_envelope_is_answered_by_one_that_is_no_request() {
    replay("envelope", envelope::check);
}

#[test]
fn a_body_over_http_is_about_the_task_of_the_path() {
    replay("rest", rest::check);
}

#[test]
fn a_call_is_answered_with_its_id() {
    replay("rpc", rpc::check);
}

#[test]
fn every_target_has_a_corpus_that_is_replayed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let names = |folder: &str| {
        let entries = fs::read_dir(root.join(folder)).expect("the folder is there").flatten();
        let stem = |entry: fs::DirEntry| {
            Path::new(&entry.file_name()).file_stem()?.to_str().map(str::to_owned)
        };
        let mut names: Vec<_> = entries.filter_map(stem).collect();
        names.sort();
        names
    };
    let targets = ["conversions", "envelope", "rest", "rpc"];
    assert_eq!(names("fuzz_targets"), targets);
    assert_eq!(names("corpus"), targets);
}
