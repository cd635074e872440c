//! The table of requirements: what is claimed there is there.

use std::collections::BTreeSet;

use crate::rust::tokens;
use crate::tree::{Faults, File, files, root, rust_files};

const PAGE: &str = "docs/requirements.md";

/// A row: its line, its id, where the requirement lives, and the tests that show it.
struct Row {
    line: usize,
    cells: Vec<String>,
}

impl Row {
    fn cell(&self, at: usize) -> &str {
        self.cells.get(at).map_or("", String::as_str)
    }

    fn is_open(&self) -> bool {
        self.cell(3) == "-"
    }
}

/// An id, and three columns: the requirement, where it lives, the test that shows it.
#[test]
fn every_requirement_has_its_columns_and_stands_once() {
    let mut faults = Faults::default();
    let mut seen = BTreeSet::new();
    for row in rows() {
        if row.cells.len() != 4 || row.cells.iter().any(String::is_empty) {
            faults.add(PAGE, row.line, "not an id, a requirement, a home and a test");
        }
        if !seen.insert(row.cell(0).to_owned()) {
            faults.add(PAGE, row.line, format!("`{}` stands twice", row.cell(0)));
        }
    }
    assert!(!seen.is_empty(), "{PAGE} has no rows");
    faults
        .settle("write | id | requirement | `home` | `test` |, with - for a test not yet written");
}

#[test]
fn every_test_named_by_a_requirement_exists() {
    let tests = functions();
    let mut faults = Faults::default();
    let rows = rows();
    for row in rows.iter().filter(|row| !row.is_open()) {
        let named = quoted(row.cell(3));
        if named.is_empty() {
            faults.add(PAGE, row.line, "the test is not named in backticks");
        }
        for test in named {
            if !tests.contains(test.rsplit("::").next().unwrap_or_default()) {
                faults.add(PAGE, row.line, format!("there is no `fn {test}`"));
            }
        }
        for home in quoted(row.cell(2)).into_iter().filter(|home| !root().join(home).exists()) {
            faults.add(PAGE, row.line, format!("there is no `{home}`"));
        }
    }
    let open = rows.iter().filter(|row| row.is_open()).count();
    println!("{PAGE}: {open} of {} requirements are not yet shown by a test", rows.len());
    faults.settle("name a test and a home that exist, or put - until there is one");
}

/// The texts between backticks.
pub(crate) fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn rows() -> Vec<Row> {
    let page = files().into_iter().find(|file| file.path == PAGE);
    page.as_ref().map_or_else(Vec::new, rows_of)
}

/// The rows of every table, without their heads and rulers.
fn rows_of(page: &File) -> Vec<Row> {
    let read = |(line, text): (usize, &str)| {
        let inner = text.trim().strip_prefix('|')?.strip_suffix('|')?;
        let cells: Vec<_> = inner.split('|').map(|cell| cell.trim().to_owned()).collect();
        let is_row = cells.first().is_some_and(|id| id != "Id" && !id.starts_with("--"));
        is_row.then_some(Row { line, cells })
    };
    page.lines().filter_map(read).collect()
}

/// The name of every function in the house.
pub(crate) fn functions() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in rust_files(&["src/", "actors/", "tests/", "benches/"]) {
        let tokens = tokens(&file.text);
        let named = tokens.windows(2).filter_map(|pair| match pair {
            [namer, name] if namer.text == "fn" => Some(name.text.clone()),
            _ => None,
        });
        names.extend(named);
    }
    names
}
