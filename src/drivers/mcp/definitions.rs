//! Definitions of the tools of a server as a model may read them. A server is not trusted: its texts could hide
//! instructions from the operator, and a definition that a provider refuses would end every run.

use algonius_actors::decide::output::characters::is_invisible;
use algonius_actors::model::completion::ToolDefinition;
use algonius_actors::ports::tools::TextRedactor;
use algonius_mcp::ListedTool;
use serde_json::{Map, Value, json};

use super::schema_check;

/// Greatest length of the description of a tool in bytes.
const MAX_DESCRIPTION_BYTES: usize = 2 << 10;

/// Greatest length of the schema of a tool's arguments in bytes.
const MAX_SCHEMA_BYTES: usize = 32 << 10;

/// Greatest length of a name in a list of tools in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Greatest number of names in a list of tools.
const MAX_LISTED_NAMES: usize = 20;

/// Returns the definition of a tool.
pub(super) fn tool_definition(tool: ListedTool) -> ToolDefinition {
    let mut description = visible_text(&tool.description);
    description.truncate(description.floor_char_boundary(MAX_DESCRIPTION_BYTES));
    let parameters = sanitize_schema(tool.input_schema).unwrap_or_else(|| {
        let tool = visible_text(&tool.name);
        tracing::warn!(
            tool,
            "schema of MCP tool is too large or cannot be used; the model gets none"
        );
        any_object_schema()
    });
    ToolDefinition { description, parameters }
}

/// Returns a definition without secrets.
pub(super) fn redacted_definition(
    definition: &ToolDefinition,
    redactor: &TextRedactor,
) -> ToolDefinition {
    let description = redactor.redact(&definition.description);
    let mut parameters = definition.parameters.clone();
    redact_strings(&mut parameters, redactor);
    if !schema_check::is_usable(&parameters) {
        parameters = any_object_schema();
    }
    ToolDefinition { description, parameters }
}

fn redact_strings(value: &mut Value, redactor: &TextRedactor) {
    match value {
        Value::String(text) => *text = redactor.redact(text),
        Value::Array(items) => items.iter_mut().for_each(|item| redact_strings(item, redactor)),
        // The names of arguments stay: the server would not know others.
        Value::Object(members) => {
            members.values_mut().for_each(|member| redact_strings(member, redactor));
        }
        _ => {}
    }
}

/// Returns the names of tools as a text, as far as a model can call them.
pub(super) fn list_callable_names<'n>(names: impl Iterator<Item = &'n String>) -> String {
    let is_usable = |name: &&String| {
        name.len() <= MAX_NAME_BYTES && name.chars().all(|it| it.is_ascii_graphic() && it != '`')
    };
    let (mut listed, mut is_cut) = (Vec::new(), false);
    for name in names.filter(is_usable) {
        is_cut = listed.len() == MAX_LISTED_NAMES;
        if is_cut {
            break;
        }
        listed.push(format!("`{name}`"));
    }
    match (listed.is_empty(), is_cut) {
        (true, _) => "none".to_owned(),
        (false, true) => format!("{} and more", listed.join(", ")),
        (false, false) => listed.join(", "),
    }
}

/// Returns the definition of a tool that cannot be called for this reason.
pub(super) fn unavailable_definition(reason: &str) -> ToolDefinition {
    ToolDefinition {
        description: format!("The definition of this tool is not available: {reason}."),
        parameters: any_object_schema(),
    }
}

/// Returns the schema of arguments; `None` if a model cannot use it.
fn sanitize_schema(schema: Map<String, Value>) -> Option<Value> {
    let mut schema = remove_invisible_characters(Value::Object(schema))?;
    schema_check::add_missing_item_schemas(&mut schema);
    let is_usable = schema_check::is_usable(&schema);
    (is_usable && schema.to_string().len() <= MAX_SCHEMA_BYTES).then_some(schema)
}

fn any_object_schema() -> Value {
    json!({"type": "object"})
}

/// Returns the value without the characters that a reader does not see; `None` if two keys of an object become equal.
fn remove_invisible_characters(value: Value) -> Option<Value> {
    Some(match value {
        Value::String(text) => Value::String(visible_text(&text)),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(remove_invisible_characters).collect::<Option<_>>()?)
        }
        Value::Object(members) => {
            let count = members.len();
            let members = members.into_iter();
            let members = members.map(|(key, value)| {
                Some((visible_text(&key), remove_invisible_characters(value)?))
            });
            let members = members.collect::<Option<Map<_, _>>>()?;
            (members.len() == count).then_some(Value::Object(members))?
        }
        value => value,
    })
}

/// Returns the text without the characters that a reader does not see, except for tabs and ends of lines.
fn visible_text(text: &str) -> String {
    let visible_character = |character: char| match character {
        '\n' | '\t' => Some(character),
        _ if !is_invisible(character) => Some(character),
        _ if character.is_whitespace() => Some(' '),
        _ => None,
    };
    text.chars().filter_map(visible_character).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn define(description: &str, schema: Value) -> ToolDefinition {
        let Value::Object(input_schema) = schema else { panic!("{schema}") };
        let (name, description) = ("tool".to_owned(), description.to_owned());
        tool_definition(ListedTool { name, description, input_schema })
    }

    #[test]
    fn hidden_characters_are_removed() {
        let hidden = "a\u{200b}b\u{e0041}\u{202e}c\u{1b}[31m\u{a0}d\n\te";
        let schema = json!({
            "type": "object",
            "properties": {"x\u{2066}": {"type": "string", "description": hidden, "enum": [hidden]}},
        });
        let ToolDefinition { description, parameters } = define(hidden, schema);
        let visible = "abc[31m d\n\te";
        assert_eq!(description, visible);
        let x = json!({"type": "string", "description": visible, "enum": [visible]});
        assert_eq!(parameters, json!({"type": "object", "properties": {"x": x}}));
    }

    #[test]
    fn the_list_of_names_is_short_and_visible() {
        let list = |names: &[&str]| {
            let owned: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            super::list_callable_names(owned.iter())
        };
        assert_eq!(list(&[]), "none");
        assert_eq!(list(&["a", "b.c", "d e", "f\u{e0041}", "`", &"x".repeat(65)]), "`a`, `b.c`");
        let twenty = vec!["x"; 20];
        assert!(list(&twenty).ends_with("`x`"));
        assert!(list(&vec!["x"; 21]).ends_with("`x` and more"));
    }

    #[test]
    fn a_schema_that_redaction_damages_is_replaced() {
        let secret = "property-with-a-secret-name";
        let redactor =
            TextRedactor(std::sync::Arc::new(move |text: &str| text.replace(secret, "***")));
        let parameters =
            json!({"type": "object", "properties": {secret: {}}, "required": [secret]});
        let definition = ToolDefinition { description: secret.to_owned(), parameters };
        let ToolDefinition { description, parameters } =
            redacted_definition(&definition, &redactor);
        assert_eq!((description.as_str(), parameters), ("***", any_object_schema()));
    }

    #[test]
    fn a_long_description_is_cut() {
        let definition = define(&"ä".repeat(2000), json!({"type": "object"}));
        assert_eq!(definition.description, "ä".repeat(1024));
    }

    #[test]
    fn a_schema_that_no_provider_takes_is_replaced() {
        let long = json!({"type": "object", "description": "x".repeat(40_000)});
        let remote_reference = json!({
            "type": "object",
            "properties": {"a": {"anyOf": [{"$ref": "https://x.org/schema"}]}},
        });
        let hidden = json!({"type": "object", "typ\u{200b}e": "string"});
        let hidden_reference = json!({
            "type": "object",
            "properties": {"a": {"$\u{200b}ref": "https://x.org/schema"}},
        });
        for schema in
            [json!({}), json!({"type": "string"}), long, remote_reference, hidden, hidden_reference]
        {
            assert_eq!(define("x", schema).parameters, any_object_schema());
        }
        let local_reference = json!({
            "type": "object",
            "$defs": {"b": {"type": "string"}},
            "properties": {"a": {"$ref": "#/$defs/b"}},
        });
        assert_eq!(define("x", local_reference.clone()).parameters, local_reference);
    }
}
