//! `[tools.<name>]`: tools that models call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::cognitive::{
    FINAL_ANSWER_CALL, InputType, ToolHandler, ToolInput, ToolSpec,
};
use algonius_actors::model::program::tool_program::ToolProgram;

use super::configured_tool::{ConfiguredTool, TIMEOUT_BOUNDS, ToolPerformer, UNSUPPORTED_KEYS};
use super::tool_inputs::{self, ConfiguredToolInputs};
use super::{McpServerCatalog, check_name, server_tools, tool_program};
use crate::config::diagnostics::Severity;
use crate::config::table::{Section, ValueShape};

/// Sources of tools by keyword.
const SOURCES: [(&str, ToolSource); 2] =
    [("handler", ToolSource::Handler), ("mcp", ToolSource::Mcp)];
/// Keys that only a tool with the source `handler` has.
const HANDLER_KEYS: [&str; 2] = ["handler", "inputs"];
/// Keys that only a tool with the source `mcp` has.
const MCP_KEYS: [&str; 2] = ["server", "mcp_tool_name"];
/// Kinds of handlers by keyword.
const HANDLER_KINDS: [(&str, HandlerKind); 3] = [
    ("clock", HandlerKind::Clock),
    ("command", HandlerKind::Command),
    ("notes", HandlerKind::Notes),
];
/// Kinds of handlers that are not supported yet.
const UNSUPPORTED_HANDLER_KINDS: [&str; 2] = ["agent", "prompt"];
/// Operations on notes by keyword.
const NOTE_OPERATIONS: [(&str, ToolHandler); 2] =
    [("add", ToolHandler::AddNote), ("search", ToolHandler::SearchNotes)];

/// Source of a tool as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolSource {
    Handler,
    Mcp,
}

/// Kind of a handler as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HandlerKind {
    Clock,
    Command,
    Notes,
}

/// Reads every tool. `used_tools` are the names of the tools of enabled agents: a fault of the machine is an error
/// only if such an agent needs the tool.
pub(super) fn read_all(
    root: &mut Section<'_>,
    used_tools: &BTreeSet<&str>,
    servers: &McpServerCatalog,
) -> BTreeMap<String, Option<ConfiguredTool>> {
    let mut tools = BTreeMap::new();
    for (name, section) in root.sections("tools") {
        let is_reserved = name.value == FINAL_ANSWER_CALL;
        if is_reserved {
            let message = format!("`{FINAL_ANSWER_CALL}` is the name of the call with the answer");
            section.reader.report_error(&name.position, message);
        }
        let is_valid = check_name(&section, &name) && !is_reserved;
        let is_used = used_tools.contains(name.value.as_str());
        let machine_fault_severity =
            if is_used { Severity::Error } else { Severity::WarningWhileDisabled };
        let tool =
            read(section, &name.value, (machine_fault_severity, servers)).filter(|_| is_valid);
        tools.insert(name.value, tool);
    }
    tools
}

fn read(
    mut section: Section<'_>,
    name: &str,
    (machine_fault_severity, servers): (Severity, &McpServerCatalog),
) -> Option<ConfiguredTool> {
    let table = &mut section;
    table.report_if_missing("source");
    let source = table.keyword("source", &SOURCES).map(|found| found.value);
    match source {
        Some(ToolSource::Handler) => {
            table.report_if_missing("handler");
            refuse_keys(table, &MCP_KEYS, "has a meaning with `source = \"mcp\"` only");
        }
        Some(ToolSource::Mcp) => {
            refuse_keys(table, &HANDLER_KEYS, "has a meaning with `source = \"handler\"` only");
            let tool = server_tools::read(table, name, servers);
            section.report_unknown_keys();
            return tool;
        }
        None => MCP_KEYS.iter().for_each(|key| _ = table.nonblank_text(key)),
    }
    let inputs_position = table.entry("inputs").map(|entry| entry.position.without_excerpt());
    let configured_inputs = tool_inputs::read(table);
    let handler = ConfiguredHandler::read(table, &configured_inputs, machine_fault_severity);
    let description = table.nonblank_text("description").map(|text| text.value);
    let may_be_command = handler.as_ref().is_none_or(ConfiguredHandler::is_command);
    if let Some(position) = inputs_position.filter(|_| !may_be_command) {
        table.reader.report_error(&position, "has a meaning with `kind = \"command\"` only");
    }
    if handler.as_ref().is_some_and(ConfiguredHandler::is_command) {
        table.report_if_missing("description");
    }
    // A program may have effects, and a repetition of its call has them twice.
    let is_idempotent = table.flag("idempotent", !may_be_command);
    // The schema knows no default that depends on the handler.
    table.record_shape("idempotent", || ValueShape::Flag(None));
    let timeout: Duration = table.duration("timeout", TIMEOUT_BOUNDS);
    table.refuse_unsupported_keys(&UNSUPPORTED_KEYS);
    section.report_unknown_keys();
    let (handler, performer) = handler?.into_parts()?;
    let spec = ToolSpec {
        name: name.to_owned(),
        description: description.unwrap_or_else(|| default_description(handler).to_owned()),
        inputs: Some(handler_inputs(handler, configured_inputs.into_inputs())),
        idempotent: is_idempotent,
        timeout,
        handler,
    };
    Some(ConfiguredTool { spec: Arc::new(spec), performer })
}

/// Reports each of these keys that is there.
fn refuse_keys(table: &mut Section<'_>, keys: &[&'static str], message: &str) {
    for key in keys {
        if table.has_key(key)
            && let Some(entry) = table.entry(key)
        {
            table.reader.report_error(&entry.position.without_excerpt(), message);
        }
    }
}

/// Handler as it is written.
struct ConfiguredHandler {
    kind: HandlerKind,
    note_operation: Option<ToolHandler>,
    program: Option<ToolProgram>,
}

impl ConfiguredHandler {
    /// Reads the handler; `None` without a known kind. A key of another kind is a fault.
    fn read(
        tool: &mut Section<'_>,
        inputs: &ConfiguredToolInputs,
        machine_fault_severity: Severity,
    ) -> Option<Self> {
        let is_given = tool.has_key("handler");
        let mut section = tool.section("handler");
        let kind = section.supported_keyword("kind", &HANDLER_KINDS, &UNSUPPORTED_HANDLER_KINDS);
        if is_given {
            section.report_if_missing("kind");
        }
        let kind = kind.map(|found| found.value);
        let operation = section.keyword("operation", &NOTE_OPERATIONS);
        if kind == Some(HandlerKind::Notes) {
            section.report_if_missing("operation");
        } else if let Some(operation) = operation.as_ref().filter(|_| kind.is_some()) {
            let message = "has a meaning with `kind = \"notes\"` only";
            section.reader.report_error(&operation.position, message);
        }
        let program = match kind {
            Some(HandlerKind::Clock | HandlerKind::Notes) => {
                tool_program::refuse_command_keys(&mut section);
                None
            }
            Some(HandlerKind::Command) => {
                tool_program::read(&mut section, inputs, machine_fault_severity)
            }
            None => {
                tool_program::skip_command_keys(&mut section);
                None
            }
        };
        section.report_unknown_keys();
        Some(Self { kind: kind?, note_operation: operation.map(|found| found.value), program })
    }

    const fn is_command(&self) -> bool {
        matches!(self.kind, HandlerKind::Command)
    }

    /// Returns the handler, with the performer of its calls; `None` if a part has a fault.
    fn into_parts(self) -> Option<(ToolHandler, ToolPerformer)> {
        match self.kind {
            HandlerKind::Clock => Some((ToolHandler::Clock, ToolPerformer::Service)),
            HandlerKind::Notes => {
                self.note_operation.map(|operation| (operation, ToolPerformer::Service))
            }
            HandlerKind::Command => self
                .program
                .map(|program| (ToolHandler::Command, ToolPerformer::Program(Arc::new(program)))),
        }
    }
}

/// Returns the description for the model of a tool without one.
const fn default_description(handler: ToolHandler) -> &'static str {
    match handler {
        ToolHandler::Clock => "Returns the present date and time.",
        ToolHandler::AddNote => "Stores a note, which you can find again in later requests.",
        ToolHandler::SearchNotes => "Returns your stored notes that match a text.",
        // The key is needed: nothing is known about the program.
        ToolHandler::Command => "",
        // The server has a description.
        ToolHandler::Mcp => "",
    }
}

/// Returns the inputs of a handler; those of a program are configured.
fn handler_inputs(
    handler: ToolHandler,
    configured: BTreeMap<String, ToolInput>,
) -> BTreeMap<String, ToolInput> {
    let text_input = |name: &str, description: &str, optional| {
        let description = description.to_owned();
        (name.to_owned(), ToolInput { input_type: InputType::String, description, optional })
    };
    let input = match handler {
        ToolHandler::Command | ToolHandler::Mcp => return configured,
        ToolHandler::Clock => None,
        ToolHandler::AddNote => Some(text_input("text", "Text of the note.", false)),
        ToolHandler::SearchNotes => {
            Some(text_input("query", "Words of the notes; without it, the latest notes.", true))
        }
    };
    input.into_iter().collect()
}
