//! Counts the instructions of each routine with valgrind. The counts are the same on a busy machine and
//! on an idle one. The routines have the profile of tests, which optimises only the hottest crates, so
//! the counts show growth and not speed.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::is_available_or_skip;
use super::routines::ROUTINES;

/// What the test that is counted does, and how often.
const ROUTINE_VARIABLE: &str = "ALGONIUS_COUNTED_ROUTINE";
const ROUNDS_VARIABLE: &str = "ALGONIUS_COUNTED_ROUNDS";

/// Counts are kept anew where this is set.
const REWRITE_VARIABLE: &str = "ALGONIUS_REWRITE_SNAPSHOTS";

/// By how many thousandths of what is kept a count may grow; by twice as many it may shrink until it is
/// to be kept anew.
const MAX_GROWTH_THOUSANDTHS: u64 = 30;

fn counts_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guards/counts.txt")
}

/// Runs what is counted, when this process was started for it.
#[test]
fn a_routine_that_is_counted() {
    let Ok(name) = env::var(ROUTINE_VARIABLE) else { return };
    let rounds: usize = env::var(ROUNDS_VARIABLE).unwrap().parse().unwrap();
    let (_, prepare) = ROUTINES.iter().find(|(known, _)| *known == name).unwrap();
    let mut routine = prepare();
    routine(); // What is made once is not counted: both runs have it.
    (0..rounds).for_each(|_| routine());
}

/// Instructions of one round.
fn instructions_per_round(name: &str) -> u64 {
    let (few, many) = (count_run_instructions(name, 2), count_run_instructions(name, 10));
    (many - few) / 8
}

/// Instructions of a run with so many rounds.
fn count_run_instructions(name: &str, rounds: usize) -> u64 {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(env::current_exe().unwrap());
    command.args(["counts::a_routine_that_is_counted", "--exact", "--test-threads=1"]);
    command.env(ROUTINE_VARIABLE, name).env(ROUNDS_VARIABLE, rounds.to_string());
    let output = command.output().unwrap();
    let output = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = output.lines().find_map(|line| line.split_once("Collected : "));
    let count = line.map(|(_, count)| count.trim().parse().unwrap());
    count.unwrap_or_else(|| panic!("{name} is not counted:\n{output}"))
}

#[test]
fn no_routine_exceeds_its_recorded_instructions() {
    if !is_available_or_skip("valgrind") {
        return;
    }
    let counts: BTreeMap<_, _> =
        ROUTINES.iter().map(|(name, _)| (*name, instructions_per_round(name))).collect();
    let text: String = counts.iter().map(|(name, count)| format!("{count:>10} {name}\n")).collect();
    if env::var_os(REWRITE_VARIABLE).is_some() {
        return fs::write(counts_file(), text).unwrap();
    }
    let recorded_text = fs::read_to_string(counts_file()).unwrap_or_default();
    let recorded_counts: BTreeMap<_, u64> = recorded_text
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .map(|(count, name)| (name.to_owned(), count.parse().unwrap()))
        .collect();
    assert_eq!(
        recorded_counts.keys().collect::<Vec<_>>(),
        counts.keys().collect::<Vec<_>>(),
        "{REWRITE_VARIABLE}=1"
    );
    let deviations = counts
        .iter()
        .filter_map(|(name, count)| deviation_message(name, *recorded_counts.get(*name)?, *count));
    let deviations: Vec<_> = deviations.collect();
    assert!(
        deviations.is_empty(),
        "{deviations:#?}\nwhere it must be so, {REWRITE_VARIABLE}=1 keeps what is now:\n{text}"
    );
}

/// What there is to say of a count beside the one that is kept.
fn deviation_message(name: &str, recorded_count: u64, current_count: u64) -> Option<String> {
    if current_count * 1000 > recorded_count * (1000 + MAX_GROWTH_THOUSANDTHS) {
        return Some(format!(
            "{name} takes {current_count} instructions; it took {recorded_count}"
        ));
    }
    (current_count * 1000 < recorded_count * (1000 - 2 * MAX_GROWTH_THOUSANDTHS)).then(|| {
        format!("{name} takes {current_count} instructions only, of {recorded_count}: keep that")
    })
}
