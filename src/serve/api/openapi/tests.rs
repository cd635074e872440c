//! The description is kept, whole, and of one mind.

use std::collections::BTreeSet;

use super::*;

/// Set it to write the description anew, instead of comparing.
const REWRITE: &str = "ALGONIUS_REWRITE_SNAPSHOTS";

/// Every value within a value, and itself.
fn within(value: &Value) -> Vec<&Value> {
    let inner: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    };
    inner.into_iter().flat_map(within).chain([value]).collect()
}

#[test]
fn the_description_that_is_kept_is_the_one_that_is_told() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/openapi.json");
    let told = serde_json::to_string_pretty(&document()).expect("JSON") + "\n";
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(file, &told).expect("a file");
    }
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    assert!(kept == told, "docs/openapi.json is of other operations; {REWRITE}=1 writes it anew");
}

#[test]
fn what_is_named_is_described() {
    let document = document();
    let all = within(&document);
    let refs: BTreeSet<_> = all.iter().filter_map(|value| value.get("$ref")?.as_str()).collect();
    assert!(refs.len() > 50, "{refs:?}");
    for name in refs {
        let place = name.strip_prefix('#').expect("a place in this document");
        assert!(document.pointer(place).is_some(), "{name}");
    }
}

/// A name that two types have would get a number.
#[test]
fn every_type_has_a_name_of_its_own() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let numbered = |name: &&String| name.ends_with(|last: char| last.is_ascii_digit());
    assert_eq!(schemas.keys().find(numbered), None);
}

/// A name stands for one schema, whether it is of what is asked or of what is told.
#[test]
fn what_is_asked_and_told_by_one_name_is_the_same() {
    let mut shapes = Shapes::new();
    for operation in table::operations() {
        described(&operation, &mut shapes);
    }
    let asked = shapes.asked.take_definitions(true);
    let told = shapes.told.take_definitions(true);
    for (name, schema) in asked {
        let other = told.get(&name).unwrap_or(&schema);
        assert_eq!(other, &schema, "{name}");
    }
}

#[test]
fn every_operation_is_named_and_says_what_its_path_names() {
    let operations = table::operations();
    let ids: BTreeSet<_> = operations.iter().map(|operation| operation.id).collect();
    assert_eq!(ids.len(), operations.len(), "two have one name");
    for operation in &operations {
        let places =
            operation.path.split('/').filter_map(|word| word.strip_prefix('{')?.strip_suffix('}'));
        let names: Vec<_> = operation.names.iter().map(|name| name.name).collect();
        assert_eq!(places.collect::<Vec<_>>(), names, "{}", operation.path);
        assert!(operation.says.ends_with('.') && !operation.id.is_empty(), "{}", operation.path);
        assert!(!operation.answers.is_empty(), "{}", operation.path);
    }
}

/// Where a status stands for a good answer, no refusal has it too.
#[test]
fn no_answer_hides_another() {
    for operation in table::operations() {
        let good: Vec<_> = operation.answers.iter().map(|answer| answer.status).collect();
        let refused = operation.codes.iter().map(|code| crate::wire::problem::numbers(*code).http);
        let twice: Vec<_> = refused.filter(|status| good.contains(status)).collect();
        assert!(twice.is_empty(), "{}: {twice:?}", operation.path);
    }
}
