//! Size and names of types: one meaning for each name, few fields, little code for each object, few entries in a
//! folder.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust::{RustToken, tokenize};
use crate::tree::{Faults, RepoFile, repository_files, rust_files};

const CRATES: &[&str] = &["src/", "actors/src/", "crates/"];

/// Names that generated or foreign interfaces prescribe for more than one type.
const SHARED_TYPE_NAMES: &[&str] = &[];

/// Greatest number of fields of a structure.
const MAX_FIELDS: usize = 12;

/// Greatest number of lines of inherent `impl` blocks for a type, over all files.
const MAX_IMPL_LINES: usize = 300;

/// Greatest number of entries of a folder; `name.rs` and the folder `name` are one entry.
const MAX_FOLDER_ENTRIES: usize = 15;

/// Structures with more fields, each with their number. An entry shrinks or goes with its structure.
const FIELD_EXCEPTIONS: &[(&str, usize)] = &[
    ("AcceptCommand", 18),
    // The API returns these members side by side.
    ("ExecutionDetail", 21),
    // The API returns these members side by side.
    ("ExecutionEntry", 19),
    ("EndpointConfig", 14),
    ("ExecutionFilter", 17),
    ("ExecutionRow", 20),
    ("LaunchRequest", 16),
    // Query parameters, which serde reads into one flat structure only.
    ("ListQuery", 17),
    ("Occurrence", 14),
    // The API returns these members side by side.
    ("OccurrenceEntry", 14),
    ("ProgramSpec", 21),
    ("ExecutionRecord", 26),
    ("AnswerCommand", 15),
    // The API returns these members side by side.
    ("ScheduleEntry", 13),
    // Refuses unknown members, which serde does for one flat structure only.
    ("ScheduleRequest", 15),
    ("TestTree", 18),
];

/// Types with more lines, each with a number that is not exceeded.
const IMPL_LINE_EXCEPTIONS: &[(&str, usize)] = &[("TestTree", 413)];

/// Folders with more entries, each with their number.
const FOLDER_ENTRY_EXCEPTIONS: &[(&str, usize)] = &[];

#[test]
fn a_type_name_has_one_meaning() {
    let mut places: BTreeMap<String, Vec<(String, usize)>> = BTreeMap::new();
    for file in product_files() {
        for (name, line) in type_definitions(&file) {
            places.entry(name).or_default().push((file.path.clone(), line));
        }
    }
    let mut faults = Faults::default();
    for (name, places) in places {
        if places.len() > 1 && !SHARED_TYPE_NAMES.contains(&&*name) {
            for (path, line) in places {
                faults.add(&path, line, format!("another type is called `{name}` too"));
            }
        }
    }
    faults.fail_if_any(
        "name the type by what it is in its module, so that a search finds one definition",
    );
}

#[test]
fn a_structure_has_few_fields() {
    let mut counts = BTreeMap::new();
    for file in product_files() {
        for (name, field_count) in struct_field_counts(&file) {
            counts.insert(name, (field_count, file.path.clone()));
        }
    }
    assert_counts(
        &counts,
        (MAX_FIELDS, FIELD_EXCEPTIONS),
        "fields: group those that change together",
    );
}

#[test]
fn an_object_has_little_code() {
    let mut counts: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for file in product_files() {
        for (name, line_count) in impl_line_counts(&file) {
            let count = counts.entry(name).or_insert((0, file.path.clone()));
            count.0 += line_count;
        }
    }
    assert_counts(
        &counts,
        (MAX_IMPL_LINES, IMPL_LINE_EXCEPTIONS),
        "lines of `impl`: split the object into parts",
    );
}

#[test]
fn a_folder_has_few_entries() {
    let mut entries: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in repository_files().iter().filter(|file| file.is_in(CRATES)) {
        let mut folder = String::new();
        for part in file.path.split('/') {
            let name = part.trim_end_matches(".rs");
            if name != "README.md" {
                entries.entry(folder.clone()).or_default().insert(name.to_owned());
            }
            folder = if folder.is_empty() { part.to_owned() } else { format!("{folder}/{part}") };
        }
    }
    let entry_count =
        |(folder, names): (String, BTreeSet<String>)| (folder.clone(), (names.len(), folder));
    let counts =
        entries.into_iter().filter(|(folder, _)| !folder.is_empty()).map(entry_count).collect();
    assert_counts(
        &counts,
        (MAX_FOLDER_ENTRIES, FOLDER_ENTRY_EXCEPTIONS),
        "entries: group modules of one subject in a folder",
    );
}

/// Compares counts with the limit, or with the recorded number of a known exception. A number that became smaller must
/// be recorded, so that it cannot grow again.
fn assert_counts(
    counts: &BTreeMap<String, (usize, String)>,
    (limit, exceptions): (usize, &[(&str, usize)]),
    remedy: &str,
) {
    let mut faults = Faults::default();
    for (name, (count, path)) in counts {
        let allowed_count = exceptions
            .iter()
            .find(|(exception, _)| exception == name)
            .map_or(limit, |exception| exception.1);
        if *count > allowed_count {
            faults.add(path, 1, format!("`{name}` has {count}, more than {allowed_count}"));
        }
    }
    for (name, recorded_count) in exceptions {
        let count = counts.get(*name).map_or(0, |(count, _)| *count);
        if count <= limit || count < *recorded_count {
            let advice = format!("`{name}` has {count} only: record the smaller number");
            faults.add("tests/tidy/objects.rs", 1, advice);
        }
    }
    faults.fail_if_any(remedy);
}

/// Files of the product, without tests and without generated code.
fn product_files() -> Vec<RepoFile> {
    let mut files = rust_files(CRATES);
    files.retain(|file| !file.is_test_module() && !file.path.contains("/tests/"));
    for file in &mut files {
        if let Some(end) = file.text.find("#[cfg(test)]\nmod tests {") {
            file.text.truncate(end);
        }
    }
    files
}

/// Returns the types that a file defines outside of functions and `impl` blocks, with their lines.
fn type_definitions(file: &RepoFile) -> Vec<(String, usize)> {
    let tokens = tokenize(&file.text);
    let mut depth = 0_usize;
    let mut definitions = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "struct" | "enum" | "trait" | "type" | "union" if depth == 0 => {
                let name = tokens.get(index + 1).filter(|name| is_type_name(name));
                definitions.extend(name.map(|name| (name.text.clone(), name.line)));
            }
            _ => {}
        }
    }
    definitions
}

fn is_type_name(token: &RustToken) -> bool {
    token.text.starts_with(char::is_uppercase)
}

/// Returns the structures with named fields in a file, with the number of fields.
fn struct_field_counts(file: &RepoFile) -> Vec<(String, usize)> {
    let tokens = tokenize(&file.text);
    let mut structures = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let name =
            tokens.get(index + 1).filter(|name| token.text == "struct" && is_type_name(name));
        if let Some(name) = name {
            let body = tokens.iter().skip(index + 2);
            structures.push((name.text.clone(), count_fields(body)));
        }
    }
    structures
}

/// Counts the colons of the outer braces that follow a field's name.
fn count_fields<'t>(tokens: impl Iterator<Item = &'t RustToken>) -> usize {
    let (mut depth, mut count) = (0_usize, 0);
    for token in tokens {
        match token.text.as_str() {
            ";" if depth == 0 => break,
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && token.text == "}" {
                    break;
                }
            }
            ":" if depth == 1 => count += 1,
            _ => {}
        }
    }
    count
}

/// Returns the inherent `impl` blocks of a file, with their lines.
fn impl_line_counts(file: &RepoFile) -> Vec<(String, usize)> {
    let mut blocks: Vec<(String, usize)> = Vec::new();
    let mut open_block: Option<(String, usize)> = None;
    for (number, line) in file.lines() {
        match &open_block {
            None if line.starts_with("impl") && !line.contains(" for ") && !line.ends_with('}') => {
                open_block = impl_type(line).map(|name| (name, number));
            }
            Some((name, start)) if line == "}" => {
                blocks.push((name.clone(), number + 1 - start));
                open_block = None;
            }
            _ => {}
        }
    }
    blocks
}

/// Returns the type of an `impl` line without a trait.
fn impl_type(line: &str) -> Option<String> {
    let tokens = tokenize(line);
    let mut depth = 0_i32;
    for token in tokens.iter().skip(1) {
        match token.text.as_str() {
            "<" => depth += 1,
            ">" => depth -= 1,
            _ if depth == 0 && is_type_name(token) => return Some(token.text.clone()),
            _ => {}
        }
    }
    None
}

#[test]
fn types_fields_and_blocks_are_counted() {
    let text = "struct A<T: B> {\n    a: Vec<(u8, C)>,\n    pub b: fn(d: u8) -> u8,\n}\n\
                struct D(u8);\nimpl<T: B> A<T> {\n    type E = u8;\n}\nimpl F for A {\n}\n";
    let file = RepoFile { path: "src/x.rs".to_owned(), text: text.to_owned() };
    let names: Vec<_> = type_definitions(&file).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["A", "D"]);
    assert_eq!(struct_field_counts(&file), [("A".to_owned(), 2), ("D".to_owned(), 0)]);
    assert_eq!(impl_line_counts(&file), [("A".to_owned(), 3)]);
}
