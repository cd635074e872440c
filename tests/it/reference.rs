//! The reference of the configuration is made of the files that are shipped, and names every key that
//! the reader knows.

mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::harness::Setup;
use page::{ReferenceTable, merge_tables, render_page};

/// Set it to write the page anew, instead of comparing.
const REWRITE_VARIABLE: &str = "ALGONIUS_REWRITE_SNAPSHOTS";

/// What the reader knows to refuse it with words of its own.
const REFUSED_KEYS: [&str; 4] = [
    "agents.<id>.auth.token",
    "agents.<id>.remote.token",
    "models.<prefix>.api_key",
    "tokens.<name>.token",
];

/// A key that nobody could have meant anything by.
const UNKNOWN_KEY: &str = "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz";

fn repository_root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn shipped_tables() -> Vec<ReferenceTable> {
    let read_config_file =
        |file: &str| fs::read_to_string(repository_root().join("config").join(file)).unwrap();
    merge_tables(&read_config_file("supervisor.toml"), &read_config_file("examples/your-own.toml"))
}

#[test]
fn the_reference_matches_the_shipped_files() {
    let (file, page) =
        (repository_root().join("docs/configuration.md"), render_page(&shipped_tables()));
    if std::env::var_os(REWRITE_VARIABLE).is_some() {
        fs::write(&file, &page).unwrap();
    }
    let stored_page = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        stored_page == page,
        "docs/configuration.md is not made of config; {REWRITE_VARIABLE}=1 makes it"
    );
}

#[tokio::test]
async fn the_reference_lists_exactly_the_known_keys() {
    let documented_paths = documented_key_paths(&shipped_tables());
    let known_keys_by_table = query_known_keys(&ancestor_tables(&documented_paths)).await;
    assert!(
        known_keys_by_table.contains_key("") && known_keys_by_table.contains_key("agents.<id>"),
        "{:?}",
        known_keys_by_table.keys()
    );
    let is_documented = |path: &String| {
        // The page refers to the sandbox of agents for the other keys.
        let path = &path.replace("mcp.servers.<name>.sandbox.", "agents.<id>.sandbox.");
        let prefix = format!("{path}.");
        documented_paths
            .iter()
            .any(|documented_path| documented_path == path || documented_path.starts_with(&prefix))
    };
    let known_paths: BTreeSet<String> =
        known_keys_by_table.iter().flat_map(|(table, keys)| table_key_paths(table, keys)).collect();
    let missing_paths: Vec<_> = known_paths.iter().filter(|path| !is_documented(path)).collect();
    let missing_paths: Vec<_> =
        missing_paths.iter().filter(|path| !REFUSED_KEYS.contains(&path.as_str())).collect();
    assert!(missing_paths.is_empty(), "config/*.toml says nothing of {missing_paths:#?}");
    let is_known = |path: &&String| {
        let (table, _) = path.rsplit_once('.').unwrap_or(("", path));
        !known_keys_by_table.contains_key(table) || known_paths.contains(*path)
    };
    let unknown_paths: Vec<_> = documented_paths.iter().filter(|path| !is_known(path)).collect();
    assert!(unknown_paths.is_empty(), "the reader knows nothing of {unknown_paths:#?}");
}

/// The paths of all keys, those inside a value that is a table among them.
fn documented_key_paths(tables: &[ReferenceTable]) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for (table, row) in tables.iter().flat_map(|table| table.rows().map(move |row| (table, row))) {
        let path = format!("{}.{}", table.name, row.key);
        let inner_parts = row.value.split(['{', ',']).filter_map(|part| part.split_once(" = "));
        let inner_keys = inner_parts.map(|(key, _)| key.trim()).filter(|key| is_key(key));
        paths.extend(inner_keys.map(|key| format!("{path}.{key}")));
        paths.insert(path);
    }
    paths
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|char| char.is_ascii_alphanumeric() || "_-".contains(char))
}

/// Every table that holds one of these.
fn ancestor_tables(paths: &BTreeSet<String>) -> BTreeSet<String> {
    let ancestors = |path: &String| {
        let parents = path.match_indices('.').map(|(at, _)| path.get(..at).unwrap().to_owned());
        parents.collect::<Vec<_>>()
    };
    paths.iter().flat_map(ancestors).collect()
}

fn table_key_paths(table: &str, keys: &BTreeSet<String>) -> Vec<String> {
    let path = |key: &String| if table.is_empty() { key.clone() } else { format!("{table}.{key}") };
    keys.iter().map(path).collect()
}

/// Asks the reader itself: in each table stands a key that it cannot know, and its answer names
/// those that it does. A table that may have any keys has no such answer.
async fn query_known_keys(tables: &BTreeSet<String>) -> BTreeMap<String, BTreeSet<String>> {
    let setup = Setup::from_config_text("");
    let mut keys_by_table = BTreeMap::new();
    for table in tables.iter().map(String::as_str).chain([""]) {
        let file = setup.test_folder().join("asked.toml");
        fs::write(&file, config_with_unknown_key(table)).unwrap();
        let stderr = setup.run_command(&["check", file.to_str().unwrap()], "").await.stderr;
        let known_keys_line = stderr.lines().find_map(|line| {
            line.contains(UNKNOWN_KEY).then(|| line.split_once("unknown key; known: "))?
        });
        if let Some((_, keys)) = known_keys_line {
            keys_by_table.insert(table.to_owned(), keys.split(", ").map(str::to_owned).collect());
        }
    }
    keys_by_table
}

/// A file whose key of this table nobody knows.
fn config_with_unknown_key(table: &str) -> String {
    let array_tables = ["agents.<id>.consent.rules", "agents.<id>.skills", "redaction.patterns"]
        .map(|name| (name, "[", "]"));
    let array_table = array_tables.into_iter().find(|(name, ..)| *name == table);
    let placeholders = ["<id>", "<input>", "<name>", "<prefix>"];
    let concrete_table =
        placeholders.iter().fold(table.to_owned(), |name, word| name.replace(word, "a"));
    let required_settings = if table == "agents.<id>.auth" { "type = 'api_key'\n" } else { "" };
    match (table, array_table) {
        ("", _) => format!("{UNKNOWN_KEY} = 1\n"),
        (_, Some((_, open, close))) => {
            format!("{concrete_table} = {open}{{ {UNKNOWN_KEY} = 1 }}{close}\n")
        }
        (_, None) => format!("[{concrete_table}]\n{required_settings}{UNKNOWN_KEY} = 1\n"),
    }
}
