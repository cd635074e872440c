//! Requirements table: it lists every requirement once, and the files and tests that it names exist.

use std::collections::BTreeSet;

use crate::rust::tokenize;
use crate::tree::{Faults, RepoFile, repository_files, repository_root, rust_files};

const REQUIREMENTS_PAGE: &str = "docs/requirements.md";

/// Row of the table. The cells are the id, the requirement, the files that implement it, and the tests that verify it.
struct RequirementRow {
    line: usize,
    cells: Vec<String>,
}

impl RequirementRow {
    fn cell(&self, index: usize) -> &str {
        self.cells.get(index).map_or("", String::as_str)
    }

    fn ids(&self) -> impl Iterator<Item = &str> {
        self.cell(0).split(", ")
    }

    fn is_without_test(&self) -> bool {
        self.cell(3) == "-"
    }

    /// Returns true if the product does not fulfil the requirement yet.
    fn is_open(&self) -> bool {
        self.cell(3) == "open"
    }

    fn is_decided_against(&self) -> bool {
        self.cell(3).starts_with("decided against: [ADR ")
    }
}

/// Ids of the source documents and of the project card: a prefix, and the greatest number after it.
const ID_SERIES: &[(&str, u32)] = &[
    ("S0-", 186),
    ("S0-O-", 16),
    ("S1-CL-", 6),
    ("S1-EC-", 34),
    ("S1-KE-", 4),
    ("S1-O-", 23),
    ("S2-", 129),
    ("S2-O-", 18),
    ("S3-", 142),
    ("S3-O-", 20),
    ("S4-", 93),
    ("S4-O-", 11),
    ("D-", 11),
];

/// Ids whose numbers have three digits: a prefix, and the greatest number after it.
const PADDED_ID_SERIES: &[(&str, u32)] = &[("S1-FR-", 14), ("S1-SC-", 8)];

/// Ids of user stories, which have no consecutive numbers.
const IRREGULAR_IDS: &[&str] = &[
    "S1-US1.1", "S1-US1.2", "S1-US1.3", "S1-US1.I", "S1-US2.1", "S1-US2.2", "S1-US2.3", "S1-US3.1",
    "S1-US3.2", "S1-US-P",
];

/// Prefixes of the ids whose requirements may be open.
const OPEN_SERIES: &[&str] = &["S2-", "S3-", "S4-"];

/// Number of open ids. It only becomes smaller.
const OPEN_ID_COUNT: usize = 229;

/// Folders with tests.
const TEST_FOLDERS: &[&str] = &["src/", "actors/", "crates/", "tests/", "benches/"];

/// Files with lists of functions, one per line. A macro defines a test for each function and each store.
const CONFORMANCE_FOLDER: &str = "crates/store/src/conformance";

/// Requirements without a test. Their numbers depend on the machine, so benchmarks measure them.
const IDS_WITHOUT_TEST: &[&str] = &["S1-SC-002", "S1-SC-007", "S1-O-21"];

/// Checks the columns of each row: the id, the requirement, the files that implement it, and the tests that verify it.
#[test]
fn every_requirement_has_all_columns_and_one_row() {
    let mut faults = Faults::default();
    let mut seen_ids = BTreeSet::new();
    for row in read_rows() {
        if row.cells.len() != 4 || row.cells.iter().any(String::is_empty) {
            faults.add(REQUIREMENTS_PAGE, row.line, "the row does not have four cells with text");
        }
        for id in row.ids() {
            if !seen_ids.insert(id.to_owned()) {
                faults.add(REQUIREMENTS_PAGE, row.line, format!("`{id}` occurs twice"));
            }
        }
    }
    assert!(!seen_ids.is_empty(), "{REQUIREMENTS_PAGE} has no rows");
    faults.fail_if_any(
        "write | id | requirement | `file` | `test` |, with - in place of a missing test",
    );
}

#[test]
fn every_id_of_the_source_documents_has_a_row() {
    let rows = read_rows();
    let present_ids: BTreeSet<_> = rows.iter().flat_map(RequirementRow::ids).collect();
    let unpadded_ids = ID_SERIES
        .iter()
        .flat_map(|(prefix, last)| (1..=*last).map(move |number| format!("{prefix}{number}")));
    let padded_ids = PADDED_ID_SERIES
        .iter()
        .flat_map(|(prefix, last)| (1..=*last).map(move |number| format!("{prefix}{number:03}")));
    let irregular_ids = IRREGULAR_IDS.iter().map(|&id| id.to_owned());
    let mut faults = Faults::default();
    for id in unpadded_ids
        .chain(padded_ids)
        .chain(irregular_ids)
        .filter(|id| !present_ids.contains(id.as_str()))
    {
        faults.add(REQUIREMENTS_PAGE, 1, format!("`{id}` has no row"));
    }
    faults.fail_if_any(
        "add a row with the test that verifies it, or a link to the ADR that decides against it",
    );
}

#[test]
fn every_test_named_in_the_table_exists() {
    let tests = all_test_names();
    let mut faults = Faults::default();
    let rows = read_rows();
    for row in rows.iter().filter(|row| !row.is_without_test()) {
        if row.is_open() {
            for id in
                row.ids().filter(|id| !OPEN_SERIES.iter().any(|prefix| id.starts_with(prefix)))
            {
                faults.add(REQUIREMENTS_PAGE, row.line, format!("`{id}` must not be open"));
            }
            continue;
        }
        if row.is_decided_against() {
            continue; // `tests/tidy/pages.rs` checks the link, as those of all pages.
        }
        let test_names = backtick_texts(row.cell(3));
        if test_names.is_empty() {
            faults.add(REQUIREMENTS_PAGE, row.line, "the test is not named in backticks");
        }
        for test in test_names {
            if !tests.contains(test.rsplit("::").next().unwrap_or_default()) {
                faults.add(
                    REQUIREMENTS_PAGE,
                    row.line,
                    format!("the test `{test}` does not exist"),
                );
            }
        }
        for file in backtick_texts(row.cell(2))
            .into_iter()
            .filter(|file| !repository_root().join(file).exists())
        {
            faults.add(REQUIREMENTS_PAGE, row.line, format!("`{file}` does not exist"));
        }
    }
    faults.fail_if_any("name tests and files that exist");
    let open_count = rows.iter().filter(|row| row.is_open()).flat_map(RequirementRow::ids).count();
    assert_eq!(open_count, OPEN_ID_COUNT, "name a test, or reduce `OPEN_ID_COUNT`");
    let ids_without_test: Vec<_> =
        rows.iter().filter(|row| row.is_without_test()).flat_map(RequirementRow::ids).collect();
    assert_eq!(
        ids_without_test, IDS_WITHOUT_TEST,
        "rows without a test: name a test, or add the ids to `IDS_WITHOUT_TEST`"
    );
}

/// Checks that each crate of this list is a dependency, and that code uses it.
#[test]
fn every_prescribed_crate_is_in_use() {
    let prescribed_crates = [
        "ractor",
        "tokio",
        "axum",
        "serde",
        "serde_json",
        "toml",
        "croner",
        "tracing",
        "regex",
        "uuid",
        "chrono",
        "sysinfo",
        "thiserror",
    ];
    let manifest = repository_files().into_iter().find(|file| file.path == "Cargo.toml");
    let manifest = manifest.map(|file| file.text).unwrap_or_default();
    let code_words: BTreeSet<_> = rust_files(&["src/", "actors/src/", "crates/"])
        .iter()
        .filter(|file| !file.is_test_module())
        .flat_map(|file| tokenize(&file.text))
        .map(|token| token.text)
        .collect();
    let mut faults = Faults::default();
    for name in prescribed_crates {
        if !manifest.lines().any(|line| line.starts_with(&format!("{name} = "))) {
            faults.add("Cargo.toml", 1, format!("`{name}` is not a dependency"));
        }
        if !code_words.contains(name) {
            faults.add("src", 1, format!("no code uses `{name}`"));
        }
    }
    faults.fail_if_any("use the crate that the requirements prescribe for this purpose");
}

#[test]
fn the_top_level_has_the_prescribed_entries() {
    for name in ["Cargo.toml", "src", "actors", "config", "tests", "benches", "README.md"] {
        assert!(repository_root().join(name).exists(), "{name} is missing at the top level");
    }
}

/// Returns the texts between backticks.
pub(crate) fn backtick_texts(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn read_rows() -> Vec<RequirementRow> {
    let page = repository_files().into_iter().find(|file| file.path == REQUIREMENTS_PAGE);
    page.as_ref().map_or_else(Vec::new, parse_rows)
}

/// Returns the rows of all tables, without headers and separators.
fn parse_rows(page: &RepoFile) -> Vec<RequirementRow> {
    let parse_row = |(line, text): (usize, &str)| {
        let inner = text.trim().strip_prefix('|')?.strip_suffix('|')?;
        let cells: Vec<_> = inner.split('|').map(|cell| cell.trim().to_owned()).collect();
        let is_row = cells.first().is_some_and(|id| id != "Id" && !id.starts_with("--"));
        is_row.then_some(RequirementRow { line, cells })
    };
    page.lines().filter_map(parse_row).collect()
}

/// Returns the names of all tests.
pub(crate) fn all_test_names() -> BTreeSet<String> {
    let files = rust_files(TEST_FOLDERS);
    files.iter().flat_map(test_names).map(|(_, name)| name).collect()
}

/// Returns the names of the tests in a file, with their lines.
pub(crate) fn test_names(file: &RepoFile) -> Vec<(usize, String)> {
    let (mut names, mut is_test) = (Vec::new(), false);
    for (number, line) in file.lines() {
        let line = line.trim();
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if file.is_in(&[CONFORMANCE_FOLDER]) && line.contains('_') && line.chars().all(is_name) {
            names.push((number, line.to_owned()));
        }
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let Some((before, rest)) = line.split_once("fn ") else { continue };
        if !matches!(before, "" | "async " | "pub " | "pub(crate) " | "pub(super) ") {
            continue;
        }
        if std::mem::take(&mut is_test) {
            names.extend(rest.split('(').next().map(|name| (number, name.to_owned())));
        }
    }
    names
}
