//! Subject of a tool call: the fields that permission rules compare, extracted from the reports of an agent.

use serde_json::Value;

use crate::model::tool_call::ToolCall;

/// Names of arguments that hold a command line.
const COMMAND_ARGUMENTS: [&str; 2] = ["command", "cmd"];
/// Names of arguments that hold a path.
const PATH_ARGUMENTS: [&str; 4] = ["file_path", "filePath", "filepath", "path"];

/// Replaces the arguments of the call, and the command, paths and address that they contain.
///
/// Agents report empty arguments first and the real ones later, so empty arguments change nothing.
pub(crate) fn apply_args(call: &mut ToolCall, args: &Value) {
    if args.is_null() || args.as_object().is_some_and(serde_json::Map::is_empty) {
        return;
    }
    call.args = args.clone();
    // Other arguments are another action: a rule must not match the command of an earlier report.
    call.command = COMMAND_ARGUMENTS.iter().find_map(|name| parse_command_line(args.get(name)?));
    call.url = args.get("url").and_then(Value::as_str).map(str::to_owned);
    for path in PATH_ARGUMENTS.iter().filter_map(|name| args.get(name)?.as_str()) {
        add_path(call, path);
    }
}

/// Adds a path that the call names, once.
pub(crate) fn add_path(call: &mut ToolCall, path: &str) {
    if !path.is_empty() && !call.paths.iter().any(|known| known == path) {
        call.paths.push(path.to_owned());
    }
}

/// Returns a command line from text or from a list of arguments.
pub(crate) fn parse_command_line(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Option<Vec<_>> =
                words.iter().map(|it| it.as_str().map(shell_quote)).collect();
            words.filter(|words| !words.is_empty()).map(|words| words.join(" "))
        }
        _ => None,
    }
}

/// Quotes an argument, so that a rule for one simple command cannot match several joined arguments.
fn shell_quote(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-./=:,@%+".contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
