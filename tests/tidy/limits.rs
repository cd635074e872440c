//! Fixed limits: each constant that bounds outside data is on the page of limits, with the value of the source.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde::Deserialize;

use crate::tree::{Faults, RepoFile, repository_root, rust_files};

/// Limits and their descriptions.
const LIMITS_FILE: &str = "tests/tidy/limits.toml";

/// Page that is generated from the file and the constants.
const LIMITS_PAGE: &str = "docs/limits.md";

/// Environment variable that makes the test write the page instead of comparing it.
const REWRITE_VARIABLE: &str = "ALGONIUS_REWRITE_SNAPSHOTS";

/// Words in the name of a constant that bounds something.
const BOUND_WORDS: [&str; 9] =
    ["MAX", "LIMIT", "LEAST", "GREATEST", "CAPACITY", "KEPT", "TAIL", "SEARCHED", "QUOTED"];

/// Integer types; a bound of another type bounds no data.
const INTEGER_TYPES: [&str; 7] = ["usize", "u64", "u32", "u16", "u8", "i64", "i32"];

const INTRODUCTION: &str = "# Fixed limits

<!-- Made of tests/tidy/limits.toml and the constants of the source by tests/tidy/limits.rs. -->

These limits apply besides those of the [configuration](configuration.md), and no key changes them. The last column is
what happens to data beyond the limit. No limit drops a part of an answer without a sign of it.
";

/// Content of the file.
#[derive(Deserialize)]
struct LimitList {
    section: Vec<LimitSection>,
    /// Reasons by the path of a file or a folder.
    internal: BTreeMap<String, String>,
}

/// Section of the page.
#[derive(Deserialize)]
struct LimitSection {
    heading: String,
    #[serde(default)]
    introduction: String,
    limits: Vec<FixedLimit>,
}

/// Row of the page.
#[derive(Deserialize)]
struct FixedLimit {
    /// File and name.
    constant: String,
    unit: String,
    subject: String,
    beyond: String,
}

/// Returns the integer constants of the product's code: file and name, line, and expression.
fn integer_constants() -> BTreeMap<String, (usize, String)> {
    let is_product_code = |file: &RepoFile| {
        !["/tests", "/testing/", "/conformance/", "/fuzz/", "/benches/"]
            .iter()
            .any(|part| file.path.contains(part))
    };
    let mut constants = BTreeMap::new();
    for file in rust_files(&["src/", "actors/src/", "crates/"]) {
        if !is_product_code(&file) {
            continue;
        }
        let code_end = file.text.find("#[cfg(test)]\nmod tests {").unwrap_or(file.text.len());
        let code = file.text.get(..code_end).unwrap_or_default();
        for (start, _) in code.match_indices("const ") {
            let declaration = code.get(start + 6..).unwrap_or_default();
            let Some((name, rest)) = declaration.split_once(':') else { continue };
            let Some((constant_type, rest)) = rest.split_once('=') else { continue };
            let Some((expression, _)) = rest.split_once(';') else { continue };
            if INTEGER_TYPES.contains(&constant_type.trim()) {
                let line = code.get(..start).unwrap_or_default().lines().count();
                let key = format!("{}:{name}", file.path);
                constants.insert(key, (line.max(1), expression.trim().to_owned()));
            }
        }
    }
    constants
}

/// Returns the value of an expression of numbers, products and shifts.
fn evaluate(expression: &str) -> Option<u64> {
    if let Some((number, shift)) = expression.split_once("<<") {
        return evaluate(number)?.checked_shl(u32::try_from(evaluate(shift)?).ok()?);
    }
    let factors = expression.split('*').map(|factor| factor.trim().replace('_', "").parse::<u64>());
    factors.map(Result::ok).try_fold(1_u64, |product, factor| product.checked_mul(factor?))
}

fn value_text(value: u64, unit: &str) -> String {
    let group_digits = |number: u64| {
        let digits = number.to_string();
        let first_group_length = digits.len() % 3;
        let groups = digits.as_bytes().chunks(3);
        match first_group_length {
            _ if digits.len() <= 4 => digits.clone(),
            0 => groups.map(String::from_utf8_lossy).collect::<Vec<_>>().join(","),
            _ => {
                let (head, tail) = digits.split_at(first_group_length);
                let tail = tail.as_bytes().chunks(3).map(String::from_utf8_lossy);
                std::iter::once(head.into()).chain(tail).collect::<Vec<_>>().join(",")
            }
        }
    };
    match (value, unit) {
        (_, "bytes") if value >= 1 << 20 && value.is_multiple_of(1 << 20) => {
            format!("{} MiB", value >> 20)
        }
        (_, "bytes") if value >= 1 << 10 && value.is_multiple_of(1 << 10) => {
            format!("{} KiB", value >> 10)
        }
        (_, "") => group_digits(value),
        _ => format!("{} {unit}", group_digits(value)),
    }
}

#[test]
fn the_page_of_limits_has_the_values_of_the_source() {
    let text = fs::read_to_string(repository_root().join(LIMITS_FILE)).unwrap();
    let (list, constants): (LimitList, _) = (toml::from_str(&text).unwrap(), integer_constants());
    let (mut page, mut faults) = (INTRODUCTION.to_owned(), Faults::default());
    for section in &list.section {
        page.push_str(&format!("\n## {}\n\n", section.heading));
        if !section.introduction.is_empty() {
            page.push_str(&format!("{}\n\n", section.introduction));
        }
        page.push_str("| Of | Limit | Beyond it |\n|---|---|---|\n");
        for FixedLimit { constant, unit, subject, beyond } in &section.limits {
            match constants.get(constant).and_then(|(_, expression)| evaluate(expression)) {
                Some(value) => {
                    let value = value_text(value, unit);
                    page.push_str(&format!("| {subject} | {value} | {beyond} |\n"));
                }
                None => faults.add(LIMITS_FILE, 1, format!("`{constant}` is no integer constant")),
            }
        }
    }
    faults.fail_if_any("name the file and the constant");
    if std::env::var_os(REWRITE_VARIABLE).is_some() {
        fs::write(repository_root().join(LIMITS_PAGE), &page).unwrap();
    }
    let stored_page = fs::read_to_string(repository_root().join(LIMITS_PAGE)).unwrap_or_default();
    assert!(stored_page == page, "{LIMITS_PAGE} is not current; {REWRITE_VARIABLE}=1 writes it");
}

#[test]
fn each_bound_is_documented_or_internal() {
    let text = fs::read_to_string(repository_root().join(LIMITS_FILE)).unwrap();
    let (list, constants): (LimitList, _) = (toml::from_str(&text).unwrap(), integer_constants());
    let mut faults = Faults::default();
    assert!(constants.len() > 250, "{}", constants.len());
    let documented_constants: BTreeSet<_> =
        list.section.iter().flat_map(|section| &section.limits).map(|row| &row.constant).collect();
    let mut used_internal_paths = BTreeSet::new();
    for (constant, (line, _)) in &constants {
        let (file, name) = constant.split_once(':').unwrap();
        let is_bound = name.split('_').any(|word| BOUND_WORDS.contains(&word));
        if !is_bound || documented_constants.contains(constant) {
            continue;
        }
        let covers = |path: &&String| {
            file == path.as_str()
                || file.starts_with(&format!("{path}/"))
                || file == format!("{path}.rs")
        };
        match list.internal.keys().find(covers) {
            Some(path) => _ = used_internal_paths.insert(path),
            None => {
                faults.add(file, *line, format!("`{name}` bounds data without a word about it"));
            }
        }
    }
    for path in list.internal.keys().filter(|path| !used_internal_paths.contains(path)) {
        faults.add(LIMITS_FILE, 1, format!("`{path}` has no bound that is not documented"));
    }
    faults.fail_if_any(&format!(
        "describe the limit in {LIMITS_FILE}, or give the reason why nothing is lost beyond it"
    ));
}
