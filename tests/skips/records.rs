//! Skips are recorded for each run, and a skip that is not recorded is a failure.
#![expect(clippy::unwrap_used, reason = "a helper that cannot help fails the test")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A copy of the test program in its own folder, which also contains its lists.
fn copy_program(folder: &Path) -> String {
    let program = folder.join("skipping");
    fs::copy(env!("CARGO_BIN_EXE_skipping"), &program).unwrap();
    program.display().to_string()
}

/// Runs a script, whose shell plays `cargo test`: the parent of the test programs.
fn run_script(script: &str) -> Output {
    let mut shell = Command::new("sh");
    // The last word keeps the shell from becoming the last program.
    shell.args(["-c", &format!("{script}; exit $?")]).env("CI", "true");
    shell.env_remove("ALGONIUS_SKIPS").output().unwrap()
}

fn stdout_lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn a_run_lists_exactly_its_skips() {
    let folder = tempfile::tempdir().unwrap();
    let program = copy_program(folder.path());
    let stale_output = run_script(&format!("{program} skip 'an old reason'"));
    assert!(stale_output.status.success(), "{stale_output:?}");
    let output = run_script(&format!(
        "{program} skip 'no root'; {program} without bwrap; {program} skip 'no root'; {program} end"
    ));
    assert_eq!(
        stdout_lines(&output),
        ["skipping skip: no root", "skipping without: bwrap is missing or does not work here"]
    );
    let next_output = run_script(&format!("{program} end"));
    assert_eq!(stdout_lines(&next_output), Vec::<String>::new());
    let remaining_files: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(remaining_files.len(), 1, "lists of runs that ended are left: {remaining_files:?}");
}

#[test]
fn an_unrecorded_skip_fails_the_test() {
    let folder = tempfile::tempdir().unwrap();
    let program = copy_program(folder.path());
    let output = run_script(&format!("ALGONIUS_SKIPS=/nowhere/list {program} skip 'no root'"));
    assert!(!output.status.success(), "{output:?}");
}

#[test]
fn a_program_that_ci_does_not_install_is_no_reason_to_skip() {
    let folder = tempfile::tempdir().unwrap();
    let output = run_script(&format!("{} without emacs", copy_program(folder.path())));
    assert!(!output.status.success(), "{output:?}");
}
