//! Measurements of each agent, from which the table of its page is generated.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use serde_json::{Value, json};

use crate::agents::TestedAgent;

/// Variable with the date of the measurement, as `2026-11-23`; without it the documents stay unchanged.
const DATE_VARIABLE: &str = "ALGONIUS_MEASURED";

/// Stores the rows of an agent under the name of its preset.
pub(crate) fn store_measurements(agent: &TestedAgent, rows: BTreeMap<String, String>) {
    let Ok(date) = std::env::var(DATE_VARIABLE) else { return };
    let preset = agent.settings.lines().find_map(|line| line.strip_prefix("preset = "));
    let preset = preset.expect("a preset").trim_matches('"').to_owned();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/agents/measured.json");
    let lock = File::create(Path::new(env!("CARGO_TARGET_TMPDIR")).join("measured.lock"));
    lock.and_then(|lock| lock.lock().map(|()| lock)).map(drop).expect("a lock");
    let stored_json = fs::read_to_string(&file).unwrap_or_else(|_| "{}".to_owned());
    let mut stored_presets: BTreeMap<String, Value> =
        serde_json::from_str(&stored_json).expect("an object");
    let version = agent.package.version();
    stored_presets.insert(preset, json!({"version": version, "date": date, "rows": rows}));
    let text = serde_json::to_string_pretty(&stored_presets).expect("an object");
    fs::write(file, text + "\n").expect("a file");
}
