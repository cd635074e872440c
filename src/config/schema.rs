//! The JSON schema of the configuration, for editors: made by the very calls that read a file.
//!
//! A document that opens every branch is read, and each key notes what it may hold. So a key that is
//! read is in the schema, and no other is.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use toml::de::DeTable;

use super::presets::Laid;
use super::reader::Reader;
use super::shape::{Shape, Shapes};
use super::value::Bounds;

pub(super) mod words;

/// What opens every branch of the readers: a table of each kind that has a name, an item of each list
/// of tables, and a value where a reader looks at nothing else.
const SAMPLE: &str = r#"
[agents.x]
command = "cat"
mode = "interactive"
keep_alive = true
session_timeout = 60
idle_timeout = 60
skills = [{ id = "x" }]
json_rpc = { notifications = { x = { kind = "text" } } }
session = { resume_args = ["{{ session_id }}"], new_args = ["{{ uuid }}"], ttl = 60 }
resources = { memory_bytes = 1048576, processes = 1, expected_bytes = 1048576 }
auth = { type = "api_key" }
quota = { park_max = 60 }
budget = { run = { turns = 1 }, day = { turns = 1 } }
home = "private"
[schedules.x]
agent = "x"
cron = "@daily"
input = "x"
deadline = 60
[redaction]
patterns = [{ name = "x", regex = "x" }]
[telemetry]
otlp_endpoint = "http://127.0.0.1:4318"
[tokens.x]
"#;

/// Of the lists whose items are no texts: what an item is.
const ITEMS: [(&str, &str); 5] = [
    ("exit_codes", "integer"),
    ("transient_exit_codes", "integer"),
    ("status", "integer"),
    ("lost_exit_codes", "integer"),
    ("transient_codes", "integer"),
];

/// The schema, in the words of JSON Schema 2020-12.
#[must_use]
pub fn schema() -> Value {
    let words = words::of(super::SHIPPED);
    let shapes = described(&format!("{}{SAMPLE}", widest(&described(SAMPLE))));
    let mut root = Node::default();
    for (path, shape) in shapes {
        root.plant(&path, shape);
    }
    let mut schema = root.object("", &words);
    schema.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("title".to_owned(), "The configuration of algonius-supervisor".into());
    schema.insert("required".to_owned(), json!(["agents"]));
    Value::Object(schema)
}

/// What the readers say of the keys of the sample.
#[cfg(test)]
pub(super) fn described_sample() -> BTreeMap<String, Shape> {
    described(SAMPLE)
}

/// What the readers say of the keys of a document, and of those that it might have.
fn described(text: &str) -> BTreeMap<String, Shape> {
    let env = |_: &str| None;
    let file = Path::new("supervisor.toml");
    let reader = Reader::new(file, text, file.to_owned(), &env).describing();
    let (document, _) = DeTable::parse_recoverable(text);
    super::read(&reader, &Laid::bare(document.get_ref()));
    reader.into_shapes().map(Shapes::into_map).unwrap_or_default()
}

/// `[limits]` that let every other bound be as wide as it can be.
fn widest(shapes: &BTreeMap<String, Shape>) -> String {
    let mut text = "[limits]\n".to_owned();
    for (path, shape) in shapes {
        let Some(key) = path.strip_prefix("limits.") else { continue };
        let bound = match shape {
            Shape::Seconds(Bounds { min, .. }, _) if key.ends_with("_min") => min.to_string(),
            Shape::Seconds(Bounds { max, .. }, _) => max.to_string(),
            Shape::Count(Bounds { max, .. }, _) => max.to_string(),
            _ => continue,
        };
        text.push_str(&format!("{key} = {bound}\n"));
    }
    text
}

/// A key, and the keys below it.
#[derive(Default)]
struct Node {
    shape: Option<Shape>,
    below: BTreeMap<String, Self>,
}

impl Node {
    /// Puts a shape at a path such as `agents.x.skills[0].id`.
    fn plant(&mut self, path: &str, shape: Shape) {
        let path = path.replace("[0]", ".[]");
        let mut node = self;
        for key in path.split('.') {
            node = node.below.entry(key.to_owned()).or_default();
        }
        node.shape = Some(shape);
    }

    /// A table of known keys. What is refused by its name is none of them.
    fn object(&self, path: &str, words: &BTreeMap<String, String>) -> Map<String, Value> {
        let known = self.below.iter().filter(|(_, node)| node.shape != Some(Shape::Unsaid));
        let properties: Map<String, Value> = known
            .map(|(key, node)| {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let mut schema = node.schema(key, &path, words);
                if let Some(words) = words.get(&path).filter(|words| !words.is_empty()) {
                    schema.insert("description".to_owned(), words.clone().into());
                }
                (key.clone(), Value::Object(schema))
            })
            .collect();
        object(json!({
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        }))
    }

    fn schema(
        &self,
        key: &str,
        path: &str,
        words: &BTreeMap<String, String>,
    ) -> Map<String, Value> {
        match &self.shape {
            Some(Shape::Table) | None => self.object(path, words),
            Some(Shape::Named) => {
                let one =
                    self.below.values().next().map(|one| one.object(&format!("{path}.*"), words));
                object(json!({"type": "object", "additionalProperties": one}))
            }
            Some(Shape::List) => {
                let one = self.below.get("[]").map(|one| one.object(&format!("{path}.[]"), words));
                let plain = ITEMS.iter().find(|(list, _)| *list == key);
                let plain = plain.map(|(_, kind)| object(json!({"type": kind})));
                object(json!({"type": "array", "items": one.or(plain)}))
            }
            Some(shape) => object(plain(shape)),
        }
    }
}

/// What holds no tables.
fn plain(shape: &Shape) -> Value {
    match shape {
        Shape::Text => json!({"type": "string"}),
        Shape::Word(words) => json!({"enum": words}),
        Shape::Flag(None) => json!({"type": "boolean"}),
        Shape::Flag(Some(default)) => json!({"type": "boolean", "default": default}),
        Shape::Count(bounds, has_default) => number("integer", *bounds, *has_default),
        Shape::Number(bounds, has_default) => number("number", *bounds, *has_default),
        Shape::Seconds(bounds, has_default) => {
            let mut number = object(number("number", *bounds, *has_default));
            let default = number.remove("default");
            let text = json!({"type": "string", "pattern": "^[0-9.]+ *(ms|s|m|h|d)$"});
            let mut either = object(json!({"anyOf": [number, text]}));
            either.extend(default.map(|default| ("default".to_owned(), default)));
            Value::Object(either)
        }
        Shape::Date => json!({"type": "string", "format": "date-time"}),
        Shape::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Shape::Words(words) => json!({"type": "array", "items": {"enum": words}}),
        Shape::Free => {
            let scalars = json!({"type": ["string", "number", "boolean"]});
            json!({"type": "object", "additionalProperties": scalars})
        }
        Shape::Any => json!({}),
        Shape::Unsaid | Shape::List | Shape::Table | Shape::Named => json!({}),
    }
}

fn number<T: Into<Value> + Copy>(kind: &str, bounds: Bounds<T>, has_default: bool) -> Value {
    let Bounds { min, max, default } = bounds;
    let mut number = object(json!({"type": kind}));
    number.insert("minimum".to_owned(), min.into());
    number.insert("maximum".to_owned(), max.into());
    if has_default {
        number.insert("default".to_owned(), default.into());
    }
    Value::Object(number)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
