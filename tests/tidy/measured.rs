//! Measurement tables of the agent pages. The test generates each table from a file that the agents job writes.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::tree::{Faults, repository_root};

/// Measurements by preset. `ALGONIUS_MEASURED=DATE just agents` writes this file.
const MEASUREMENTS_FILE: &str = "docs/agents/measured.json";

/// Environment variable that makes the test write the tables instead of comparing them.
const REWRITE_VARIABLE: &str = "ALGONIUS_REWRITE_SNAPSHOTS";

/// Rows that every page has, in this order. Other rows follow.
const COMMON_ROWS: [&str; 6] =
    ["short answer", "stream", "cut answer", "session", "tokens", "cancel"];

const HEADING: &str = "\n## Measured\n";

/// Returns the section of a page with the measurements of its agent.
fn measured_section(measurements: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("not measured").to_owned();
    let (version, date) = (text(&measurements["version"]), text(&measurements["date"]));
    let mut section = format!(
        "{HEADING}\nThe tests of real agents wrote this table. They drive the program over A2A, without a network, \
         against a\nmodel that runs beside it.\n\n| | version {version}, {date} |\n|---|---|\n"
    );
    let rows = measurements["rows"].as_object().cloned().unwrap_or_default();
    let other_rows = rows.keys().map(String::as_str).filter(|row| !COMMON_ROWS.contains(row));
    for row in COMMON_ROWS.into_iter().chain(other_rows) {
        section.push_str(&format!(
            "| {row} | {} |\n",
            rows.get(row).map_or_else(|| "not measured".to_owned(), &text)
        ));
    }
    section
}

/// Returns the presets of the agents that the agents job tests.
fn tested_presets() -> Vec<String> {
    let folder =
        fs::read_dir(repository_root().join("tests/agents")).into_iter().flatten().flatten();
    let files = folder.map(|entry| entry.path());
    let settings_files = files.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let presets = settings_files.filter_map(|path| {
        let text = fs::read_to_string(path).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("preset = "))?;
        Some(line.trim_matches('"').to_owned())
    });
    presets.collect()
}

#[test]
fn agent_pages_show_the_measurements() {
    let text = fs::read_to_string(repository_root().join(MEASUREMENTS_FILE)).unwrap();
    let measurements_by_preset: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    let agents_source =
        fs::read_to_string(repository_root().join("tests/agents/agents.rs")).unwrap();
    let (mut faults, presets) = (Faults::default(), tested_presets());
    assert!(presets.len() > 8, "{presets:?}");
    for preset in presets {
        let name = format!("docs/agents/{preset}.md");
        let path = repository_root().join(&name);
        let page = fs::read_to_string(&path).expect("each tested preset has a page");
        let Some(agent_measurements) = measurements_by_preset.get(&preset) else {
            if page.contains(HEADING) {
                faults.add(&name, 1, format!("{MEASUREMENTS_FILE} has no entry for `{preset}`"));
            }
            continue;
        };
        let version = agent_measurements["version"].as_str().unwrap_or_default();
        if !agents_source.contains(&format!("@{version}\""))
            && !agents_source.contains(&format!("=={version}\""))
        {
            faults.add(&name, 1, format!("tests/agents/agents.rs does not pin version {version}"));
        }
        let path = repository_root().join(&name);
        let page = fs::read_to_string(&path).unwrap();
        let handwritten_part = page.split(HEADING).next().unwrap_or_default();
        let expected = format!("{handwritten_part}{}", measured_section(agent_measurements));
        if std::env::var_os(REWRITE_VARIABLE).is_some() {
            fs::write(&path, &expected).unwrap();
        } else if page != expected {
            faults.add(
                &name,
                1,
                format!("the section \"Measured\" differs from {MEASUREMENTS_FILE}"),
            );
        }
    }
    faults.fail_if_any(&format!(
        "run `{REWRITE_VARIABLE}=1 cargo test --test tidy measured` to write the tables"
    ));
}
