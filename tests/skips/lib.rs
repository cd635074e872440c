//! Record of skipped tests: tests that cannot run on this machine.
//!
//! The test harness of Rust counts a test that returns early as passed. Each such test therefore records the
//! skip with its reason before it returns. The test target `untested`, which `cargo test` runs last, prints
//! the list; `.ci/run` counts its lines and prints it.
#![expect(clippy::panic, reason = "a skip that cannot be recorded fails the test")]

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::{env, process, thread};

/// Programs that `.ci/run` and `.ci/external` install where they can.
pub const INSTALLED_PROGRAMS: [&str; 12] = [
    "bash",
    "bc",
    "bwrap",
    "curl",
    "man",
    "mdbook",
    "psql",
    "python3",
    "sqlite3",
    "strace",
    "systemd-analyze",
    "valgrind",
];

/// Environment variable that names the file of the list. `.ci/run` sets it.
const LIST_FILE_VARIABLE: &str = "ALGONIUS_SKIPS";

/// Records that the calling test does not run here, or not in full, for a reason that no installation
/// removes, such as the user, the kernel or an option that is not set.
pub fn skip(reason: &str) {
    record_skip(&test_name(), reason);
}

/// Records that the calling test does not run because `program` is missing or does not work here.
///
/// # Panics
///
/// For a program that is not in [`INSTALLED_PROGRAMS`]: the test would run on no machine.
pub fn skip_without(program: &str) {
    assert!(
        INSTALLED_PROGRAMS.contains(&program),
        "`.ci/run` does not install {program}: use `skip`"
    );
    record_skip(&test_name(), &format!("{program} is missing or does not work here"));
}

/// Returns the skips of this run as lines `NAME: REASON`, sorted, each once.
pub fn recorded_skips() -> Vec<String> {
    let text = fs::read_to_string(list_file()).unwrap_or_default();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// Removes the list of this run and all lists whose run has ended.
pub fn remove_skip_lists() {
    if env::var_os(LIST_FILE_VARIABLE).is_some() {
        return; // Who named the file reads it.
    }
    _ = fs::remove_file(list_file()); // Without a skip there is none.
    let folder = program_folder();
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let run_id = name.to_str().and_then(|name| name.strip_prefix("skipped-"));
        let has_ended = run_id.is_some_and(|run| {
            let pid = run.split('-').next().and_then(|pid| pid.parse().ok());
            pid.is_none_or(|pid| run_id_of_process(pid) != run)
        });
        if has_ended {
            _ = fs::remove_file(entry.path()); // Another run may have removed it first.
        }
    }
}

/// Appends in one write, so that lines of tests that run at the same time stay whole.
fn record_skip(test: &str, reason: &str) {
    let line = format!("{test}: {}\n", reason.replace('\n', " "));
    let file = list_file();
    let open_result = OpenOptions::new().create(true).append(true).open(&file);
    let write_result = open_result.and_then(|mut file| file.write_all(line.as_bytes()));
    // A skip that is not recorded would be a test that passes without having run.
    if let Err(error) = write_result {
        panic!(
            "{test} cannot run here ({reason}), which {} cannot record: {error}",
            file.display()
        );
    }
}

/// The list of this run. A run is one process of `cargo test`, the parent of all test programs.
fn list_file() -> PathBuf {
    if let Some(file) = env::var_os(LIST_FILE_VARIABLE) {
        return PathBuf::from(file);
    }
    let run_id = run_id_of_process(std::os::unix::process::parent_id());
    program_folder().join(format!("skipped-{run_id}"))
}

/// The folder of the test programs, which is the same for all targets.
fn program_folder() -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    program.parent().map_or_else(env::temp_dir, PathBuf::from)
}

/// Id of a run: the process id and its start time, because the system uses process ids again.
fn run_id_of_process(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in parentheses may hold blanks; the start time is the twentieth field after it.
    let start_time = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19));
    format!("{pid}-{}", start_time.unwrap_or("0"))
}

/// The harness names the thread after its test. When it runs one test at a time it uses the main thread:
/// then the only argument that is not an option is the name.
fn test_name() -> String {
    let thread = thread::current();
    let thread_name = thread.name().filter(|name| *name != "main").map(str::to_owned);
    let name_from_arguments = || env::args().skip(1).find(|word| !word.starts_with('-'));
    let name = thread_name
        .or_else(name_from_arguments)
        .unwrap_or_else(|| format!("process {}", process::id()));
    let program = env::current_exe().unwrap_or_default();
    let program = program.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let target = program.rsplit_once('-').map_or(program, |(target, _)| target);
    format!("{target} {name}")
}
