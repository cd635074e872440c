//! What the fuzzers have found interesting is checked again with every run of the tests.
#![expect(clippy::print_stdout, reason = "a test that fails shows which file it was")]

#[path = "checks.rs"]
pub mod checks;

use std::fs;
use std::path::Path;

use checks::{FuzzCheck, conversions, envelope, rest, rpc};

/// Every file of a corpus, by name. None at all means that the folder is not where it was.
fn corpus_files(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let read_entry = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        fs::read(entry.path()).ok().map(|bytes| (name, bytes))
    };
    entries.filter_map(read_entry).collect()
}

/// Checks every file of a corpus. The last name that is printed is that of a file that fails.
fn replay(target: &str, check: FuzzCheck) {
    let files = corpus_files(target);
    assert!(!files.is_empty(), "fuzz/corpus/{target} is missing or empty");
    for (name, bytes) in files {
        println!("fuzz/corpus/{target}/{name}");
        check(&bytes);
    }
}

#[test]
fn events_read_in_one_dialect_are_written_in_every_dialect() {
    replay("conversions", conversions::check);
}

#[test]
fn fuzzed_envelopes_get_valid_responses() {
    replay("envelope", envelope::check);
}

#[test]
fn fuzzed_http_bodies_concern_the_task_of_the_path() {
    replay("rest", rest::check);
}

#[test]
fn fuzzed_calls_are_answered_with_their_id() {
    replay("rpc", rpc::check);
}

#[test]
fn every_fuzz_target_has_a_replayed_corpus() {
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
