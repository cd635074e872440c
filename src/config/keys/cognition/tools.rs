//! `[tools.<name>]`: tools that models call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::cognitive::{
    FINAL_ANSWER, InputType, ToolHandler, ToolInput, ToolSpec,
};

use super::check_name;
use crate::config::table::{Section, ValueBounds};

/// Keys of a tool that are not supported yet.
const FUTURE_KEYS: [&str; 5] =
    ["energy_cost", "handler_class", "inputs", "max_result_bytes", "tool_calling_only"];
/// Kinds of handlers by keyword.
const HANDLER_KINDS: [(&str, HandlerKind); 2] =
    [("clock", HandlerKind::Clock), ("notes", HandlerKind::Notes)];
/// Kinds of handlers that are not supported yet.
const FUTURE_HANDLER_KINDS: [&str; 3] = ["agent", "command", "prompt"];
/// Operations on notes by keyword.
const OPERATIONS: [(&str, ToolHandler); 2] =
    [("add", ToolHandler::AddNote), ("search", ToolHandler::SearchNotes)];

/// Bounds of the time of a call in seconds.
const TIMEOUT_BOUNDS: ValueBounds<f64> = ValueBounds::new(1.0, 3600.0, 60.0);

/// Kind of a handler as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HandlerKind {
    Clock,
    Notes,
}

/// Reads every tool.
pub(super) fn read_all(root: &mut Section<'_>) -> BTreeMap<String, Option<Arc<ToolSpec>>> {
    let mut tools = BTreeMap::new();
    for (name, section) in root.sections("tools") {
        let is_reserved = name.value == FINAL_ANSWER;
        if is_reserved {
            let message = format!("`{FINAL_ANSWER}` is the name of the call with the answer");
            section.reader.error(&name.position, message);
        }
        let is_valid = check_name(&section, &name) && !is_reserved;
        let tool = read(section, &name.value).filter(|_| is_valid);
        tools.insert(name.value, tool.map(Arc::new));
    }
    tools
}

fn read(mut section: Section<'_>, name: &str) -> Option<ToolSpec> {
    let table = &mut section;
    table.require("source");
    let source = table.supported_keyword("source", &[("handler", ())], &["mcp"]);
    // The handler of another source is unknown.
    if source.is_some() {
        table.require("handler");
    }
    let handler = handler(table);
    let description = table.nonblank("description").map(|text| text.value);
    let is_idempotent = table.flag("idempotent", true);
    let timeout: Duration = table.seconds("timeout", TIMEOUT_BOUNDS);
    table.refuse_future_keys(&FUTURE_KEYS);
    section.finish();
    let handler = handler?;
    Some(ToolSpec {
        name: name.to_owned(),
        description: description.unwrap_or_else(|| default_description(handler).to_owned()),
        inputs: inputs(handler),
        idempotent: is_idempotent,
        timeout,
        handler,
    })
}

/// Reads the handler. The operation of one without operations is a fault.
fn handler(tool: &mut Section<'_>) -> Option<ToolHandler> {
    let is_given = tool.has("handler");
    let mut section = tool.section("handler");
    let kind = section.supported_keyword("kind", &HANDLER_KINDS, &FUTURE_HANDLER_KINDS);
    if is_given {
        section.require("kind");
    }
    let kind = kind.map(|found| found.value);
    let operation = section.keyword("operation", &OPERATIONS);
    match (kind, &operation) {
        (Some(HandlerKind::Notes), _) => section.require("operation"),
        (Some(HandlerKind::Clock), Some(operation)) => {
            let message = "has a meaning with `kind = \"notes\"` only";
            section.reader.error(&operation.position, message);
        }
        _ => {}
    }
    section.finish();
    match kind? {
        HandlerKind::Clock => Some(ToolHandler::Clock),
        HandlerKind::Notes => operation.map(|operation| operation.value),
    }
}

/// Returns the description for the model of a tool without one.
const fn default_description(handler: ToolHandler) -> &'static str {
    match handler {
        ToolHandler::Clock => "Returns the present date and time.",
        ToolHandler::AddNote => "Stores a note, which you can find again in later requests.",
        ToolHandler::SearchNotes => "Returns your stored notes that match a text.",
    }
}

/// Returns the inputs of a handler.
fn inputs(handler: ToolHandler) -> BTreeMap<String, ToolInput> {
    let text = |name: &str, description: &str, optional| {
        let description = description.to_owned();
        (name.to_owned(), ToolInput { input_type: InputType::String, description, optional })
    };
    let input = match handler {
        ToolHandler::Clock => None,
        ToolHandler::AddNote => Some(text("text", "Text of the note.", false)),
        ToolHandler::SearchNotes => {
            Some(text("query", "Words of the notes; without it, the latest notes.", true))
        }
    };
    input.into_iter().collect()
}
