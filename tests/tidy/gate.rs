//! `.ci/lanes`, the library of the gate: which results of tests are green, and what the last lines name.
//!
//! A simulated `cargo nextest` writes the reports, so that each case is exact and takes seconds.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::tree::repository_root;

/// Script with two lanes of tests and one that never runs here.
const GATE_SCRIPT: &str = r#"#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
readonly script=$PWD/gate
readonly LANES=(first second elsewhere)
declare -rA BUDGET=([first]=1 [second]=1 [elsewhere]=1)
readonly TOTAL=3
source ./lanes
lane_first() { run_tests --test first -E 'not test(other)'; }
lane_second() {
    run_tests --test second
    echo "four kinds" >>"$ALGONIUS_SCRATCH/details"
}
elsewhere_missing() { echo "no such program"; }
main "$@"
"#;

/// Simulated `cargo`. A test fails as often as the file of its name has lines. `hang` makes a lane hang.
const SIMULATED_CARGO: &str = r#"#!/usr/bin/env bash
lane=$(sed 's/.*--test \([a-z]*\).*/\1/' <<<"$*")
for word in "$@"; do filter=$word; done
if [[ $1 == clean ]]; then
    echo clean >>"$PLAY/cleaned"
    exit 0
fi
if [[ $1 == test && "$*" == *"--exact"* ]]; then
    if grep -qx "$filter" "$PLAY/known"; then echo "test $filter ... ok"; else echo "running 0 tests"; fi
    exit 0
elif [[ $1 == test ]]; then
    cat "$PLAY/libtest.$lane"
    exit 101
fi
fails() {
    [[ -s $PLAY/$1 ]] || return 1
    sed -i 1d "$PLAY/$1"
}
if [[ $filter == binary_id* ]]; then
    [[ "$*" == *" -E "*" -E "* ]] && exit 4 # nextest would run the tests of both filters.
    test=${filter##*=}
    if fails "${test%)}"; then exit 100; else exit 0; fi
fi
report=target/nextest/ci/junit.xml
mkdir -p "${report%/*}"
code=0
{
    echo '<testsuites>'
    while read -r test; do
        echo "<testcase name=\"$test\" classname=\"unit\" time=\"0.1\">"
        if fails "$test"; then
            code=100
            [[ ! -e $PLAY/slow ]] || echo '<failure type="test timeout"/>'
            echo '<failure type="test failure with exit code 101">'
            echo "thread panicked: &quot;$test&quot; &lt;is wrong&gt;</failure>"
            echo '<system-out>'
            [[ ! -e $PLAY/long ]] || seq 5000
            echo '</system-out>'
        fi
        echo '</testcase>'
    done <"$PLAY/tests.$lane"
    echo '</testsuites>'
} >"$report"
[[ ! -e $PLAY/lost ]] || echo '<testsuites></testsuites>' >"$report"
if [[ -e $PLAY/skips.$lane ]]; then cat "$PLAY/skips.$lane" >>"$ALGONIUS_SKIPS"; fi
if [[ -e $PLAY/hang.$lane ]]; then
    echo '        SLOW [> 60.000s] (─────────) unit waits::for_ever'
    sleep 60
fi
exit $code
"#;

/// Result of a run: exit code and printed text.
struct GateRun {
    exit_code: Option<i32>,
    text: String,
}

impl GateRun {
    fn last_line(&self) -> &str {
        self.text.lines().last().unwrap_or_default()
    }

    /// Returns the text after this line.
    fn text_after(&self, line: &str) -> &str {
        self.text.split(line).nth(1).unwrap_or_default()
    }

    fn has_line(&self, line_text: &str) -> bool {
        self.text.lines().any(|line| line == line_text)
    }
}

/// Runs lanes of three tests each, with these additional files of the simulation.
#[expect(clippy::expect_used, reason = "a helper that cannot help fails the test")]
fn run_simulated_gate(lanes: &[&str], files: &[(&str, &str)]) -> GateRun {
    try_run_simulated_gate(lanes, files).expect("files and a process of the simulation")
}

fn try_run_simulated_gate(lanes: &[&str], files: &[(&str, &str)]) -> io::Result<GateRun> {
    let folder = TempDir::new()?;
    prepare_simulation(folder.path(), files)?;
    run_gate(folder.path(), lanes)
}

/// Creates the simulation.
fn prepare_simulation(simulation: &Path, files: &[(&str, &str)]) -> io::Result<()> {
    fs::copy(repository_root().join(".ci/lanes"), simulation.join("lanes"))?;
    fs::create_dir(simulation.join("bin"))?;
    write_executable(&simulation.join("gate"), GATE_SCRIPT)?;
    write_executable(&simulation.join("bin/cargo"), SIMULATED_CARGO)?;
    write_executable(&simulation.join("bin/cargo-nextest"), SIMULATED_CARGO)?;
    fs::write(simulation.join("tests.first"), "a::one\na::two\na::three\n")?;
    fs::write(simulation.join("tests.second"), "b::one\nb::two\nb::three\n")?;
    for (name, text) in files {
        fs::write(simulation.join(name), text)?;
    }
    Ok(())
}

/// Runs lanes of the simulation.
fn run_gate(simulation: &Path, lanes: &[&str]) -> io::Result<GateRun> {
    let path = std::env::var("PATH").unwrap_or_default();
    let limit_seconds = if simulation.join("hang.first").exists() { "6" } else { "60" };
    let nextest_flag = if simulation.join("libtest.first").exists() { "0" } else { "1" };
    let mut gate = Command::new(simulation.join("gate"));
    gate.args(lanes).env("PLAY", simulation);
    match fs::read_to_string(simulation.join("cache")) {
        Ok(cache) => gate.env("XDG_CACHE_HOME", cache).env_remove("CARGO_TARGET_DIR"),
        Err(_) => gate.env("CARGO_TARGET_DIR", simulation.join("target")),
    };
    gate.env("PATH", format!("{}:{path}", simulation.join("bin").display()));
    gate.env_remove("ALGONIUS_PROFILE").env("ALGONIUS_RESULT", simulation.join("page"));
    gate.env("ALGONIUS_LIMIT_SECONDS", limit_seconds).env("ALGONIUS_NEXTEST", nextest_flag);
    let output = gate.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(GateRun { exit_code: output.status.code(), text })
}

fn write_executable(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))
}

#[test]
fn a_gate_without_failures_is_green() {
    let result = run_simulated_gate(&["first", "second"], &[]);
    assert_eq!((result.exit_code, result.last_line()), (Some(0), "6 passed, 0 failed, 0 skipped"));
}

#[test]
fn one_failed_test_makes_the_gate_red() {
    let result = run_simulated_gate(&["first", "second"], &[("a::two", "1\n2\n3\n")]);
    assert_eq!((result.exit_code, result.last_line()), (Some(1), "5 passed, 1 failed, 0 skipped"));
    let failed_section = result.text_after("== FAILED (1)");
    assert!(
        failed_section.contains("unit a::two") && failed_section.contains("\"a::two\" <is wrong>"),
        "{}",
        result.text
    );
}

#[test]
fn a_test_that_passes_when_it_runs_again_is_flaky() {
    let result = run_simulated_gate(&["first", "second"], &[("a::two", "1\n2\n")]);
    assert_eq!((result.exit_code, result.last_line()), (Some(0), "6 passed, 0 failed, 0 skipped"));
    let flaky_section = result.text_after("== FLAKY (1)");
    assert!(
        flaky_section.contains("unit a::two") && flaky_section.contains("\"a::two\" <is wrong>"),
        "{}",
        result.text
    );
}

#[test]
fn a_fourth_flaky_test_makes_the_gate_red() {
    let three_failures = [("a::one", "1\n"), ("a::two", "1\n"), ("b::one", "1\n")];
    let result = run_simulated_gate(&["first", "second"], &three_failures);
    assert_eq!((result.exit_code, result.last_line()), (Some(0), "6 passed, 0 failed, 0 skipped"));
    let four_failures = [three_failures.as_slice(), &[("b::two", "1\n")]].concat();
    let result = run_simulated_gate(&["first", "second"], &four_failures);
    assert_eq!((result.exit_code, result.last_line()), (Some(1), "6 passed, 1 failed, 0 skipped"));
    assert!(result.has_line("FAILED: 4 tests are flaky"), "{}", result.text);
}

#[test]
fn many_failures_of_a_lane_are_not_repeated() {
    let failures = [("a::one", "1\n"), ("a::two", "1\n"), ("a::three", "1\n"), ("a::four", "1\n")];
    let tests = [("tests.first", "a::one\na::two\na::three\na::four\n")];
    let result = run_simulated_gate(&["first"], &[failures.as_slice(), &tests].concat());
    assert_eq!((result.exit_code, result.last_line()), (Some(1), "0 passed, 4 failed, 0 skipped"));
}

#[test]
fn a_failure_with_much_output_is_named() {
    let result = run_simulated_gate(
        &["first"],
        &[("a::two", "1\n2\n3\n"), ("a::three", "1\n"), ("long", "")],
    );
    assert_eq!((result.exit_code, result.last_line()), (Some(1), "2 passed, 1 failed, 0 skipped"));
    assert!(result.text_after("== FLAKY (1)").contains("unit a::three"), "{}", result.text);
    assert!(result.text_after("== FAILED (1)").contains("unit a::two"), "{}", result.text);
}

#[test]
fn a_test_that_was_ended_is_named_with_the_reason() {
    let result = run_simulated_gate(&["first"], &[("a::two", "1\n2\n3\n"), ("slow", "")]);
    let failed_section = result.text_after("== FAILED (1)");
    assert!(
        failed_section.contains("ended at its limit of .config/nextest.toml"),
        "{}",
        result.text
    );
}

#[test]
fn a_report_without_the_failed_test_is_no_success() {
    let result = run_simulated_gate(&["first"], &[("a::two", "1\n"), ("lost", "")]);
    assert_eq!((result.exit_code, result.last_line()), (Some(1), "0 passed, 1 failed, 0 skipped"));
}

#[test]
fn a_lane_that_hangs_is_ended_and_names_its_test() {
    let skips = "it boundary::one: only root can\n";
    let result = run_simulated_gate(&["first"], &[("hang.first", ""), ("skips.first", skips)]);
    assert_eq!((result.exit_code, result.last_line()), (Some(1), "0 passed, 1 failed, 1 skipped"));
    let expected = "lane first: ended at its limit of 6 s; it ran: unit waits::for_ever";
    assert!(result.has_line(expected), "{}", result.text);
}

#[test]
fn cargo_test_replaces_a_missing_nextest() {
    let failed_report = "test a::one ... ok\ntest a::two ... FAILED\ntest result: FAILED. 1 passed\n\
        error: test failed, to rerun pass `--test first`\n";
    let result =
        run_simulated_gate(&["first"], &[("libtest.first", failed_report), ("known", "a::two\n")]);
    assert_eq!((result.exit_code, result.last_line()), (Some(0), "2 passed, 0 failed, 0 skipped"));
    assert!(result.text.contains("== FLAKY (1)"), "{}", result.text);
    let result = run_simulated_gate(&["first"], &[("libtest.first", failed_report), ("known", "")]);
    assert_eq!((result.exit_code, result.last_line()), (Some(1), "1 passed, 1 failed, 0 skipped"));
    let crash_report =
        format!("{failed_report}error: test failed, to rerun pass `--test second`\n");
    let result =
        run_simulated_gate(&["first"], &[("libtest.first", &crash_report), ("known", "a::two\n")]);
    assert_eq!((result.exit_code, result.last_line()), (Some(1), "1 passed, 1 failed, 0 skipped"));
}

#[test]
fn skips_are_counted_with_their_reasons() {
    let skips = "it boundary::one: only root can\nit boundary::one: only root can\n";
    let result = run_simulated_gate(&["first", "elsewhere"], &[("skips.first", skips)]);
    assert_eq!((result.exit_code, result.last_line()), (Some(0), "2 passed, 0 failed, 2 skipped"));
    assert!(result.has_line("lane elsewhere: no such program"), "{}", result.text);
    assert!(result.has_line("it boundary::one: only root can"), "{}", result.text);
}

#[test]
fn a_page_shows_lanes_skips_failures_and_details() -> io::Result<()> {
    let folder = TempDir::new()?;
    prepare_simulation(folder.path(), &[("b::one", "1\n2\n3\n")])?;
    run_gate(folder.path(), &["second", "elsewhere"])?;
    let page = fs::read_to_string(folder.path().join("page"))?;
    let expected_parts = [
        ": 2 passed, 1 failed, 1 skipped.\n",
        " s | 1 tests FAILED |\n| elsewhere |  | skipped |\n",
        "\nNot run, or not in full:\n\n- lane elsewhere: no such program\n",
        "\nFailed:\n\n- unit b::one\n",
        "\n```text\nfour kinds\n```\n",
    ];
    for part in expected_parts {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
    Ok(())
}

/// Cargo compares only the times of files, so it would run the tests of the other clone.
#[test]
fn a_clone_does_not_use_crates_of_another_clone() -> io::Result<()> {
    let (cache, first_clone, second_clone) = (TempDir::new()?, TempDir::new()?, TempDir::new()?);
    let cache_folder = cache.path().display().to_string();
    for simulation in [&first_clone, &second_clone] {
        prepare_simulation(simulation.path(), &[("cache", &cache_folder)])?;
    }
    let clean_count = |simulation: &TempDir| {
        let list = fs::read_to_string(simulation.path().join("cleaned"));
        list.map_or(0, |list| list.lines().count())
    };
    for (simulation, expected) in
        [(&first_clone, 1), (&first_clone, 1), (&second_clone, 1), (&first_clone, 2)]
    {
        let result = run_gate(simulation.path(), &["first"])?;
        assert_eq!(result.exit_code, Some(0), "{}", result.text);
        assert_eq!(clean_count(simulation), expected);
    }
    Ok(())
}

#[test]
fn an_unknown_lane_is_refused() {
    assert_eq!(run_simulated_gate(&["third"], &[]).exit_code, Some(2));
}
