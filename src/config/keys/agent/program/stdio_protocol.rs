//! Protocol of a program with an open standard input: `[agents.<id>.json_rpc]` and `[agents.<id>.turn]`.

use std::collections::BTreeMap;

use algonius_actors::model::program::stdio_protocol::{
    Framing, InteractiveSpec, MessageTemplate, NotificationKind, NotificationRule, ReadyPrompt,
    RpcCall, RpcSpec, StdioProtocol, TurnEnd, TurnSpec,
};
use algonius_actors::model::program::{InputMethod, OutputMethod};
use serde_json::Value;

use super::arguments::parse_placeholders;
use crate::config::diagnostics::new_diagnostic;
use crate::config::table::pattern::{read_json_pointer, read_regex};
use crate::config::table::{ConfigReader, PositionedValue, Section, ValueShape, json};

const FRAMINGS: [(&str, Framing); 2] =
    [("lines", Framing::Lines), ("content-length", Framing::ContentLength)];

const NOTIFICATION_KINDS: [(&str, NotificationKind); 4] = [
    ("text", NotificationKind::Text),
    ("status", NotificationKind::Status),
    ("usage", NotificationKind::Usage),
    ("session", NotificationKind::Session),
];

/// Names of files, which only programs that end with their answer have.
const FILE_PLACEHOLDERS: [&str; 4] = ["input_file", "output_file", "files", "own_folder"];

/// Reads the protocol; `None` if the program reads its input to the end.
pub(crate) fn read(
    agent: &mut Section<'_>,
    input: Option<InputMethod>,
    output: Option<OutputMethod>,
    interactive_spec: Option<InteractiveSpec>,
) -> Option<StdioProtocol> {
    let (has_rpc, has_turns) = (agent.has_key("json_rpc"), agent.has_key("turn"));
    let rpc = read_rpc(agent.section("json_rpc"), has_rpc);
    let turns = read_turns(agent.section("turn"), has_turns);
    if let Some(interactive_spec) = interactive_spec {
        return Some(StdioProtocol::Interactive(Box::new(interactive_spec)));
    }
    let (is_rpc_input, is_rpc_output) =
        (input == Some(InputMethod::JsonRpc), output == Some(OutputMethod::JsonRpc));
    let position_of = |key: &str| agent.position.child(key).without_excerpt();
    if is_rpc_input != is_rpc_output && input.is_some() && output.is_some() {
        let diagnostic = "`input` and `output` are \"json-rpc\" together or not at all";
        agent
            .reader
            .report_error(&position_of(if is_rpc_input { "output" } else { "input" }), diagnostic);
    }
    if is_rpc_input && !has_rpc {
        let diagnostic = new_diagnostic("is needed with `input = \"json-rpc\"`");
        let diagnostic = diagnostic.with_hint("write `json_rpc = { method = \"...\" }`");
        agent.reader.record_fault(
            crate::config::diagnostics::Severity::Error,
            &position_of("json_rpc"),
            diagnostic,
        );
    }
    if has_rpc && !is_rpc_input {
        agent.reader.report_error(
            &position_of("json_rpc"),
            "has a meaning with `input = \"json-rpc\"` only",
        );
    }
    if has_turns && input != Some(InputMethod::Stdin) {
        agent
            .reader
            .report_error(&position_of("turn"), "has a meaning with `input = \"stdin\"` only");
    }
    if is_rpc_input {
        rpc.map(|rpc| StdioProtocol::Rpc(Box::new(rpc)))
    } else {
        turns.map(|turns| StdioProtocol::Turns(Box::new(turns)))
    }
}

fn read_rpc(mut table: Section<'_>, is_given: bool) -> Option<RpcSpec> {
    let section = &mut table;
    let framing =
        section.keyword("framing", &FRAMINGS).map(|found| found.value).unwrap_or_default();
    let method = section.nonblank_text("method").map(|text| text.value);
    let params = read_json_template(section, "params");
    if is_given && method.is_none() {
        section
            .reader
            .report_error(&section.position.child("method").without_excerpt(), "is needed");
    }
    let spec = RpcSpec {
        framing,
        initialize: read_call(section, "initialize"),
        initialized: read_call(section, "initialized"),
        submit: RpcCall { method: method.unwrap_or_default(), params: params.unwrap_or_default() },
        cancel: read_call(section, "cancel"),
        result_pointer: read_json_pointer(section, "result").unwrap_or_default(),
        session_pointer: read_json_pointer(section, "session"),
        usage_pointer: read_json_pointer(section, "usage"),
        notifications: read_notifications(section),
        transient_codes: read_error_codes(section),
    };
    table.report_unknown_keys();
    is_given.then_some(spec)
}

/// Reads a method call, with a template of its parameters.
fn read_call(section: &mut Section<'_>, key: &'static str) -> Option<RpcCall> {
    let is_given = section.has_key(key);
    let mut table = section.section(key);
    let method = table.nonblank_text("method").map(|text| text.value);
    if is_given && method.is_none() {
        table.reader.report_error(&table.position.child("method").without_excerpt(), "is needed");
    }
    let params = read_json_template(&mut table, "params").unwrap_or_default();
    table.report_unknown_keys();
    Some(RpcCall { method: method?, params })
}

/// Reads the meaning of notifications by method.
fn read_notifications(section: &mut Section<'_>) -> BTreeMap<String, NotificationRule> {
    let mut notifications = BTreeMap::new();
    for (method, mut table) in section.sections("notifications") {
        let kind = table.keyword("kind", &NOTIFICATION_KINDS).map(|found| found.value);
        let pointer = read_json_pointer(&mut table, "pointer").unwrap_or_default();
        if kind.is_none() && !table.has_key("kind") {
            table.reader.report_error(&table.position.child("kind").without_excerpt(), "is needed");
        }
        table.report_unknown_keys();
        notifications.extend(kind.map(|kind| (method.value, NotificationRule { kind, pointer })));
    }
    notifications
}

/// Reads error codes.
fn read_error_codes(section: &mut Section<'_>) -> Vec<i64> {
    let reader = section.reader;
    let items = section.list("transient_codes").unwrap_or_default();
    let code = |item: PositionedValue<'_>| {
        let code = item.value.as_integer().and_then(crate::config::table::value::parse_integer);
        let code = code.and_then(|code| i64::try_from(code).ok());
        if code.is_none() {
            reader.report_error(&item.position, "must be a whole number");
        }
        code
    };
    items.into_iter().filter_map(code).collect()
}

fn read_turns(mut table: Section<'_>, is_given: bool) -> Option<TurnSpec> {
    let section = &mut table;
    let message = read_message_template(section, "message");
    let interrupt = read_message_template(section, "interrupt");
    let line = section.nonblank_text("end_line").map(|text| TurnEnd::Line(text.value));
    let regex = read_regex(section, "end_regex").map(TurnEnd::Regex);
    let json = read_json_object(section, "end_json").map(TurnEnd::Json);
    let prompt = read_prompt(section).map(TurnEnd::Prompt);
    let echo = section.flag("echo", false);
    let mut ends: Vec<_> = [line, regex, json, prompt].into_iter().flatten().collect();
    if is_given && ends.len() != 1 {
        let diagnostic = "needs one of `prompt`, `end_line`, `end_regex` and `end_json`";
        section.reader.report_error(&section.position.clone().without_excerpt(), diagnostic);
    }
    table.report_unknown_keys();
    let message = message.unwrap_or_else(MessageTemplate::default_template);
    is_given
        .then(|| Some(TurnSpec { message, end: ends.pop()?, interrupt, echoes_messages: echo }))?
}

/// Reads `prompt` and `prompt_at_start`.
fn read_prompt(section: &mut Section<'_>) -> Option<ReadyPrompt> {
    let text = section.nonblank_text("prompt");
    let at_start_position = section.entry("prompt_at_start").map(|entry| entry.position.clone());
    let is_at_start = section.flag("prompt_at_start", true);
    if let Some(position) = at_start_position.filter(|_| text.is_none()) {
        section.reader.report_error(&position, "has a meaning with `prompt` only");
    }
    let text = text?;
    if text.value.contains(['\n', '\r']) {
        let diagnostic = new_diagnostic("must stand on one line")
            .with_hint("use `end_line` for an end with a line break");
        section.reader.record_fault(
            crate::config::diagnostics::Severity::Error,
            &text.position,
            diagnostic,
        );
    }
    Some(ReadyPrompt { text: text.value, is_printed_at_startup: is_at_start })
}

/// Reads a text, or a table that is sent as a JSON document on a line.
fn read_message_template(section: &mut Section<'_>, key: &'static str) -> Option<MessageTemplate> {
    match read_json_template(section, key)? {
        Value::String(text) => Some(MessageTemplate::Text(text)),
        document => Some(MessageTemplate::Json(document)),
    }
}

/// Reads the members of an object, as they are.
fn read_json_object(
    section: &mut Section<'_>,
    key: &'static str,
) -> Option<serde_json::Map<String, Value>> {
    section.record_shape(key, || ValueShape::AnyKeys);
    let entry = section.entry(key)?;
    match json::from_toml(section.reader, &entry)? {
        Value::Object(members) => Some(members),
        _ => {
            section.reader.report_error(&entry.position, "must be a table");
            None
        }
    }
}

/// Reads a JSON value whose texts are templates.
fn read_json_template(section: &mut Section<'_>, key: &'static str) -> Option<Value> {
    section.record_shape(key, || ValueShape::Any);
    let entry = section.entry(key)?;
    let document = json::from_toml(section.reader, &entry)?;
    check_templates(section.reader, &entry, &document);
    Some(document)
}

fn check_templates(reader: &ConfigReader<'_>, entry: &PositionedValue<'_>, document: &Value) {
    match document {
        Value::String(text) => {
            let position = entry.position.clone().without_excerpt();
            let names = parse_placeholders(reader, (text, &position)).unwrap_or_default();
            for name in names.iter().filter(|name| FILE_PLACEHOLDERS.contains(&name.as_str())) {
                reader.report_error(&position, format!("`{{{{ {name} }}}}` has no value here"));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| check_templates(reader, entry, item)),
        Value::Object(members) => {
            members.values().for_each(|item| check_templates(reader, entry, item));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
