//! Skipped tests: each test that cannot run records its skip, and `cargo test` prints the list of skips at its end.

use crate::tree::{Faults, RepoFile, repository_files, rust_files};

/// Package whose test prints the list.
const LAST_TEST_PACKAGE: &str = "untested";

#[test]
fn no_test_prints_a_skip_without_recording_it() {
    let skip_marks = ["NOT TESTED", "SKIPPED"];
    let mut faults = Faults::default();
    for file in rust_files(&["tests/", "src/", "actors/", "crates/"]) {
        if file.path == "tests/tidy/skips.rs" {
            continue;
        }
        for (number, line) in file.lines() {
            if skip_marks.iter().any(|word| line.contains(word)) {
                faults.add(&file.path, number, "prints a skip without a record");
            }
        }
    }
    faults.fail_if_any("call algonius_skips::skip or skip_without, then return");
}

/// Cargo runs the tests of packages in the order of their names, and documentation tests after all of them.
#[test]
fn cargo_test_prints_the_list_of_skips_last() {
    let mut faults = Faults::default();
    for file in repository_files().iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        let mut is_in_package_section = false;
        for (number, line) in file.lines() {
            if line.starts_with('[') {
                is_in_package_section = line == "[package]";
            }
            let name = line.strip_prefix("name = \"").map(|rest| rest.trim_end_matches('"'));
            if is_in_package_section && name.is_some_and(|name| name > LAST_TEST_PACKAGE) {
                faults.add(&file.path, number, "the tests of this package run after the list");
            }
        }
        let has_library = file.text.contains("[lib]");
        let is_default_member =
            ["Cargo.toml", "actors/", "benches/gauge/", "crates/", "tests/fakes/", "tests/skips/"]
                .iter()
                .any(|start| file.path.starts_with(start));
        if is_default_member && has_library && !file.text.contains("doctest = false") {
            faults.add(&file.path, 1, "the documentation tests of this package run after the list");
        }
    }
    let manifest =
        repository_files().into_iter().find(|file| file.path == "tests/untested/Cargo.toml");
    let target =
        format!("[[test]]\nname = \"{LAST_TEST_PACKAGE}\"\npath = \"main.rs\"\nharness = false\n");
    assert!(
        manifest.is_some_and(|file| file.text.contains(&target)),
        "`{LAST_TEST_PACKAGE}` is not a test target"
    );
    faults.fail_if_any("choose a name that sorts before `untested`; set `doctest = false`");
}

/// With `doctest = false`, Cargo skips documentation tests and reports nothing.
#[test]
fn doc_comments_contain_no_documentation_tests() {
    let mut faults = Faults::default();
    for file in rust_files(&["src/", "actors/", "crates/", "tests/", "benches/"]) {
        let mut is_in_fence = false;
        for (number, line) in file.lines() {
            let text = line.trim_start();
            let comment = text.strip_prefix("//!").or_else(|| text.strip_prefix("///"));
            let Some(language) = comment.and_then(|text| text.trim().strip_prefix("```")) else {
                continue;
            };
            is_in_fence = !is_in_fence;
            if is_in_fence && matches!(language, "" | "rust" | "no_run" | "should_panic") {
                faults.add(&file.path, number, "Cargo does not run this documentation test");
            }
        }
    }
    faults
        .fail_if_any("write a unit test, or name another language after the fence, such as `text`");
}

#[test]
fn ci_installs_the_programs_that_tests_require() {
    let is_script = |file: &RepoFile| [".ci/run", ".ci/external"].contains(&file.path.as_str());
    let scripts: String =
        repository_files().into_iter().filter(is_script).map(|file| file.text).collect();
    let mut faults = Faults::default();
    for program in algonius_skips::INSTALLED_PROGRAMS {
        let is_installed = scripts
            .lines()
            .filter_map(|line| line.trim().strip_prefix("install_"))
            .any(|line| line.split_whitespace().nth(1) == Some(program));
        if !is_installed {
            faults.add(".ci/run", 1, format!("does not install {program}"));
        }
    }
    faults.fail_if_any(
        "add a line `install_package PROGRAM PACKAGE`, or call `skip` instead of `skip_without`",
    );
}
