//! Numbers and lists that the documentation repeats: the tests compare each with its source.

use std::collections::BTreeSet;
use std::process::Command;

use crate::tree::{Faults, repository_files, repository_root};

fn read_file(path: &str) -> String {
    std::fs::read_to_string(repository_root().join(path)).unwrap_or_default()
}

/// Returns the pinned versions of agents, from `NAME@VERSION` and `NAME==VERSION` in the agent tests.
fn pinned_versions() -> Vec<String> {
    let agents_source = read_file("tests/agents/agents.rs");
    let packages =
        agents_source.lines().filter_map(|line| line.trim().strip_prefix("package: Package::"));
    let quoted_packages = packages.filter_map(|rest| rest.split('"').nth(1));
    quoted_packages
        .filter_map(|package| package.rsplit(['@', '=']).next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn agent_pages_name_the_pinned_versions() {
    let mut faults = Faults::default();
    let versions = pinned_versions();
    assert!(versions.len() > 5, "{versions:?}");
    for page in ["docs/agents.md", "docs/conformance.md"] {
        let page_text = read_file(page);
        for version in
            versions.iter().filter(|version| !page_text.contains(&format!("| {version} |")))
        {
            faults.add(page, 1, format!("does not name the version {version}"));
        }
    }
    faults.fail_if_any(
        "copy the versions from tests/agents/agents.rs, and repeat the measurements for them",
    );
}

#[test]
fn the_conformance_page_names_every_agent_case() {
    let cases_source = read_file("tests/agents/cases.rs");
    let ten_at_once_name = cases_source
        .split("const TEN_AT_ONCE: &str = ")
        .nth(1)
        .and_then(|rest| rest.split(';').next());
    let cases_source = cases_source
        .replace("(TEN_AT_ONCE,", &format!("({},", ten_at_once_name.unwrap_or_default()));
    let case_list =
        cases_source.split("const CASES").nth(1).and_then(|rest| rest.split("];").next());
    let names: BTreeSet<_> = case_list.unwrap_or_default().split('"').skip(1).step_by(2).collect();
    assert!(names.len() > 9, "{names:?}");
    let page = read_file("docs/conformance.md").replace('\n', " ");
    let listed_names = page.split("The cases: ").nth(1).and_then(|rest| rest.split(". ").next());
    let listed_names: BTreeSet<_> = listed_names.unwrap_or_default().split(", ").collect();
    assert_eq!(
        listed_names, names,
        "docs/conformance.md must name the cases of tests/agents/cases.rs"
    );
}

#[test]
fn the_contributor_page_lists_lanes_and_budgets() {
    let script = read_file(".ci/run");
    let budget_list = script.split("BUDGET=(").nth(1).and_then(|rest| rest.split(')').next());
    let budgets = budget_list.unwrap_or_default().split_whitespace().filter_map(|pair| {
        let (name, minutes) = pair.strip_prefix('[')?.split_once("]=")?;
        Some(format!("| `{name}` | {minutes} min |"))
    });
    let (budgets, page): (Vec<_>, _) = (budgets.collect(), read_file("CONTRIBUTING.md"));
    assert!(budgets.len() > 4, "{budgets:?}");
    let mut faults = Faults::default();
    for row in budgets.iter().filter(|row| !page.contains(row.as_str())) {
        faults.add("CONTRIBUTING.md", 1, format!("has no row {row}"));
    }
    let rows = page.lines().filter(|line| line.starts_with("| `") && line.contains(" min |"));
    assert_eq!(rows.count(), budgets.len(), "CONTRIBUTING.md lists a lane that .ci/run lacks");
    faults.fail_if_any("copy the name and the budget from .ci/run");
}

#[test]
fn the_contributor_page_states_the_number_of_crates() {
    let mut command = Command::new(env!("CARGO"));
    command.args([
        "tree",
        "-p",
        "algonius-supervisor",
        "-e",
        "normal,build",
        "--prefix",
        "none",
        "--locked",
        "--offline",
    ]);
    let output = command.current_dir(repository_root()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let output_text = String::from_utf8_lossy(&output.stdout).into_owned();
    let crate_name = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let crates: BTreeSet<_> =
        output_text.lines().map(crate_name).filter(|crate_name| !crate_name.is_empty()).collect();
    let page = repository_files().into_iter().find(|file| file.path == "CONTRIBUTING.md");
    let claim = format!("from {} crates", crates.len());
    assert!(
        page.is_some_and(|page| page.text.contains(&claim)),
        "CONTRIBUTING.md does not contain `{claim}`"
    );
}
