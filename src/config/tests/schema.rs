//! Tests of the schema for editors: complete, equal to the stored file, and valid for the shipped files.

use serde_json::Value;

use crate::config::schema::{key_descriptions, keys_of_sample_config, schema};
use crate::config::table::ValueShape;
use crate::config::{BUILT_IN_CONFIG, load};

/// Returns the shipped configurations as documents.
fn parse_shipped_files() -> Vec<(String, toml::Value)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let examples = std::fs::read_dir(folder.join("examples")).unwrap().flatten();
    let files = examples.map(|entry| entry.path()).chain([folder.join("supervisor.toml")]);
    let files: Vec<_> = files
        .map(|file| {
            let text = std::fs::read_to_string(&file).unwrap();
            (file.display().to_string(), toml::from_str(&text).unwrap())
        })
        .collect();
    assert!(files.len() > 2);
    files
}

/// Returns the schema of a key.
fn child_schema<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    let property = schema.get("properties").and_then(|keys| keys.get(key));
    property
        .or_else(|| schema.get("additionalProperties").filter(|additional| additional.is_object()))
}

/// Returns the parts of a value that violate its schema.
fn schema_violations(path: &str, value: &toml::Value, schema: &Value) -> Vec<String> {
    if let Some(alternatives) = schema.get("anyOf").and_then(Value::as_array) {
        let faults_of_each: Vec<_> = alternatives
            .iter()
            .map(|alternative| schema_violations(path, value, alternative))
            .collect();
        return faults_of_each.into_iter().min_by_key(Vec::len).unwrap_or_default();
    }
    let fault = |reason: &str| vec![format!("{path}: {reason}")];
    if let Some(allowed_words) = schema.get("enum").and_then(Value::as_array) {
        let is_allowed_word = allowed_words.iter().any(|word| word.as_str() == value.as_str());
        return if is_allowed_word { Vec::new() } else { fault("none of the words") };
    }
    let kinds = match &schema["type"] {
        Value::String(kind) => vec![kind.as_str()],
        kinds => kinds.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
    };
    let is_out_of_bounds = |number: f64| {
        let bound =
            |name: &str, default| schema.get(name).and_then(Value::as_f64).unwrap_or(default);
        number < bound("minimum", f64::MIN) || number > bound("maximum", f64::MAX)
    };
    let (kind, is_out_of_bounds) = match value {
        toml::Value::Integer(number) => ("integer", is_out_of_bounds(*number as f64)),
        toml::Value::Float(number) => ("number", is_out_of_bounds(*number)),
        toml::Value::Boolean(_) => ("boolean", false),
        toml::Value::String(_) | toml::Value::Datetime(_) => ("string", false),
        toml::Value::Array(_) => ("array", false),
        toml::Value::Table(_) => ("object", false),
    };
    if !(kinds.contains(&kind) || kind == "integer" && kinds.contains(&"number")) {
        return fault("of another type");
    }
    let inner_faults = match value {
        toml::Value::Table(table) => table
            .iter()
            .flat_map(|(key, value)| match child_schema(schema, key) {
                Some(schema) => schema_violations(&format!("{path}.{key}"), value, schema),
                None => vec![format!("{path}.{key}: unknown")],
            })
            .collect(),
        toml::Value::Array(items) => {
            items.iter().flat_map(|item| schema_violations(path, item, &schema["items"])).collect()
        }
        _ => Vec::new(),
    };
    if is_out_of_bounds { fault("beyond its bounds") } else { inner_faults }
}

#[test]
fn the_stored_schema_equals_the_generated_one() {
    let stored = include_str!("../../../config/schema.json");
    let generated = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
    assert!(stored == generated, "run `cargo run -- check --schema > config/schema.json`");
}

#[test]
fn each_configuration_key_has_a_described_shape() {
    let shapes = keys_of_sample_config().shapes;
    let without_shape: Vec<_> =
        shapes.iter().filter(|(_, shape)| **shape == ValueShape::Unknown).collect();
    let without_shape: Vec<_> = without_shape.into_iter().map(|(path, _)| path.as_str()).collect();
    let inline_secret_keys =
        ["agents.x.auth.token", "agents.x.remote.token", "models.x.api_key", "tokens.x.token"];
    assert_eq!(without_shape, inline_secret_keys);
    assert!(shapes.len() > 150, "{} keys", shapes.len());
    fn find_parts_without_schema(path: &str, schema: &Value) -> Vec<String> {
        let keys = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let mut found: Vec<_> = keys
            .flat_map(|(key, child)| find_parts_without_schema(&format!("{path}.{key}"), child))
            .collect();
        for part in ["items", "additionalProperties"] {
            match schema.get(part) {
                Some(Value::Null) => found.push(format!("{path} {part}")),
                Some(child) if child.is_object() => {
                    found.extend(find_parts_without_schema(&format!("{path}.*"), child));
                }
                _ => {}
            }
        }
        found
    }
    assert_eq!(find_parts_without_schema("", &schema()), [] as [&str; 0]);
}

#[test]
fn each_key_of_the_shipped_file_is_in_the_schema() {
    let (schema, comments) = (schema(), key_descriptions::from_comments(BUILT_IN_CONFIG));
    assert!(comments.len() > 100, "{} keys", comments.len());
    for path in comments.keys() {
        let found = path.split('.').try_fold(&schema, |schema, key| match key {
            "*" => schema.get("additionalProperties"),
            "[]" => schema.get("items"),
            key => child_schema(schema, key),
        });
        assert!(found.is_some(), "{path} is not in the schema");
    }
    let description = &schema["properties"]["server"]["properties"]["durability"]["description"];
    assert_eq!(description, "\"power\": commits survive a power failure, and are slower");
}

#[test]
fn the_shipped_file_describes_each_key_like_its_row() {
    let (declared_descriptions, comments) =
        (keys_of_sample_config().descriptions, key_descriptions::from_comments(BUILT_IN_CONFIG));
    assert!(declared_descriptions.len() > 25, "{} rows", declared_descriptions.len());
    let comment_of = |path: &String| comments.get(path).map(String::as_str);
    let differing_rows: Vec<_> = declared_descriptions
        .iter()
        .filter(|(path, text)| comment_of(path) != Some(text))
        .collect();
    assert!(differing_rows.is_empty(), "{differing_rows:?}");
}

#[test]
fn shipped_configuration_files_fit_the_schema() {
    let schema = schema();
    for (file, document) in parse_shipped_files() {
        assert_eq!(schema_violations("", &document, &schema), [] as [&str; 0], "{file}");
    }
    for (text, expected) in [
        ("[server]\nlistn = 'x'", ".server.listn: unknown"),
        ("[agents.a]\ntimeout = true", ".agents.a.timeout: of another type"),
        ("[agents.a]\ntimeout = 1e9", ".agents.a.timeout: beyond its bounds"),
        ("[agents.a]\naccess = 'all'", ".agents.a.access: none of the words"),
        ("[agents.a]\nskills = [{ name = 1 }]", ".agents.a.skills.name: of another type"),
    ] {
        assert_eq!(schema_violations("", &toml::from_str(text).unwrap(), &schema), [expected]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("supervisor.toml");
        std::fs::write(&file, text).unwrap();
        assert!(load(&file, &|_| None).is_err(), "{text}");
    }
}
