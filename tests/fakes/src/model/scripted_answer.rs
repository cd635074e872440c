//! Settings of the model, by a directive in the prompt or by `POST /_mock/script`.
//!
//! | Setting | Meaning |
//! |---|---|
//! | `text="…"` | answers with this; otherwise with `ECHO: ` and the prompt |
//! | `empty` | answers with an empty text |
//! | `size=N` | answers with this many bytes, no line twice |
//! | `tool=NAME args={…}` | calls a tool, then answers with `TOOL: ` and its result |
//! | `steps=N` | calls it so often |
//! | `LISTED_FILE` in `args` | the first path that the prompt lists, on a line that begins with `- ` |
//! | `turns=[…]` | answers the turns of the model one after the other with the elements, see below |
//! | `usage=I,O` | tokens in and out; else a quarter of the bytes |
//! | `delay=S` | waits before it answers |
//! | `together=N` | waits until so many different prompts with this directive are there |
//! | `hang` | never answers |
//! | `stall` | begins a stream and never ends it |
//! | `drop` | closes the connection in the middle of the answer |
//! | `cut` | ends in the middle of the answer as if that were its end |
//! | `drip=S` | waits so long after each piece of a stream |
//! | `garbage` | 200 with a page of HTML |
//! | `status=N` | refuses with this status |
//! | `times=N` | refuses so often, then answers |
//! | `retry_after=S` | with a `Retry-After` |
//! | `reset=S` | gives the end of the limit in the dialect's own form |
//! | `piece=N` | bytes of a piece of a stream, 4096 unless given |
//! | `id=WORD` | counts `times` apart from equal directives |
//!
//! An element of `turns` is an object, with all members optional:
//! `{"text": "…", "calls": [{"name": "now", "args": {}}], "delay": S}`. Arguments that are a JSON string are sent as
//! they are. The number of a turn is that of the model's messages since the directive; after the last element, that one
//! is repeated. Messages of the user without a directive do not end it. A list of the script counts all messages of the
//! model. Only the chat dialect counts, and sends text and several calls; the other dialects always send the first
//! part of the first element: its first call, or else its text.

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::dialect::{AnswerContent, ModelAnswer, ScriptedCall, ScriptedTurn};
use crate::directive::Directive;
use crate::model_request::ModelRequest;
use crate::schema;

/// Size of a piece of a stream in bytes.
const DEFAULT_PIECE_BYTES: usize = 4096;

/// Returns the answer with this number within the process.
pub(crate) fn answer(
    request: &ModelRequest,
    directive: &Directive,
    answer_number: u64,
) -> ModelAnswer {
    let turn = scripted_turn(request, directive);
    let reply = match &turn {
        Some(turn) => turn.first_part(),
        None => scripted_reply(request, directive),
    };
    let length = answer_length(&reply, turn.as_ref());
    let (input_tokens, output_tokens) = scripted_usage(directive)
        .unwrap_or_else(|| (estimate_tokens(request.user_text.len()), estimate_tokens(length)));
    // A stream that should break must break before its text ends.
    let should_break_off = ["drop", "stall", "cut"].iter().any(|name| directive.is_set(name));
    let piece_bytes = if should_break_off { length.div_ceil(4) } else { DEFAULT_PIECE_BYTES };
    let piece_bytes = directive
        .number("piece")
        .and_then(|piece_bytes| usize::try_from(piece_bytes).ok())
        .unwrap_or(piece_bytes);
    let (model, created_at) = (request.model.clone(), now().timestamp());
    ModelAnswer {
        model,
        reply,
        turn,
        input_tokens,
        output_tokens,
        piece_bytes: piece_bytes.max(1),
        answer_number,
        created_at,
    }
}

/// Returns the element of `turns` for this request; `None` without the setting or without elements.
pub(crate) fn scripted_turn(request: &ModelRequest, directive: &Directive) -> Option<ScriptedTurn> {
    let elements = directive.value("turns")?.as_array()?;
    let element_index = match Directive::is_in(&request.user_text) {
        true => request.reply_count_after_text,
        false => request.reply_count,
    };
    let element = elements.get(element_index).or(elements.last())?;
    let text = element["text"].as_str().unwrap_or_default().to_owned();
    let calls = element["calls"].as_array().into_iter().flatten().map(|call| {
        let arguments = call.get("args").cloned();
        ScriptedCall {
            name: call["name"].as_str().unwrap_or_default().to_owned(),
            arguments: arguments.unwrap_or_else(|| Value::Object(Default::default())),
        }
    });
    let (calls, delay) = (calls.collect(), element["delay"].as_f64());
    Some(ScriptedTurn { text, calls, delay_seconds: delay })
}

/// Returns the number of bytes of an answer's text and arguments.
fn answer_length(reply: &AnswerContent, turn: Option<&ScriptedTurn>) -> usize {
    match (turn, reply) {
        (Some(turn), _) => {
            let arguments = turn.calls.iter().map(|call| call.arguments_text().len());
            turn.text.len() + arguments.sum::<usize>()
        }
        (None, AnswerContent::Text(text)) => text.len(),
        (None, AnswerContent::Call { arguments, .. }) => arguments.to_string().len(),
    }
}

/// Returns the time for the dates of answers and limits.
#[expect(clippy::disallowed_methods, reason = "a program of its own; nobody gives it a clock")]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}

fn scripted_reply(request: &ModelRequest, directive: &Directive) -> AnswerContent {
    let max_steps = directive.number("steps").unwrap_or(1);
    if let Some(name) =
        directive.text("tool").filter(|_| (request.tool_results.len() as u64) < max_steps)
    {
        let arguments =
            directive.value("args").cloned().unwrap_or_else(|| Value::Object(Default::default()));
        let arguments = replace_listed_file(arguments, &request.user_text);
        return AnswerContent::Call { name, arguments };
    }
    AnswerContent::Text(answer_text(request, directive))
}

/// Replaces `LISTED_FILE` in arguments by the first path that the prompt lists.
fn replace_listed_file(arguments: Value, prompt: &str) -> Value {
    let items = prompt.lines().filter_map(|line| line.strip_prefix("- "));
    let path = items.filter_map(|item| item.split(' ').next()).find(|path| path.starts_with('/'));
    let Some(path) = path else { return arguments };
    let replaced = arguments.to_string().replace("LISTED_FILE", path);
    serde_json::from_str(&replaced).unwrap_or(arguments)
}

fn answer_text(request: &ModelRequest, directive: &Directive) -> String {
    if directive.is_set("empty") {
        return String::new();
    }
    if let Some(text) = directive.text("text") {
        return text;
    }
    if let Some(size) = directive.number("size") {
        return filler_text(usize::try_from(size).unwrap_or(usize::MAX));
    }
    if let Some(schema) = &request.schema {
        return schema::instance(schema).to_string();
    }
    match request.tool_results.last() {
        Some(result) => format!("TOOL: {result}"),
        None => format!("ECHO: {}", Directive::extract_from(&request.user_text).0),
    }
}

/// Returns text of this many bytes without repetitions, which agents would take for a looping model.
fn filler_text(size: usize) -> String {
    let mut text = String::new();
    let mut line = 0_u64;
    while text.len() < size {
        let mixed = line.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) ^ line;
        text.push_str(&format!("line {line:07} {mixed:016x} {:016x}\n", mixed.wrapping_mul(31)));
        line += 1;
    }
    text.truncate(size); // The text is ASCII.
    text
}

fn scripted_usage(directive: &Directive) -> Option<(u64, u64)> {
    let text = directive.text("usage")?;
    let (input, output) = text.split_once(',')?;
    Some((input.parse().ok()?, output.parse().ok()?))
}

fn estimate_tokens(bytes: usize) -> u64 {
    (bytes as u64 / 4).max(1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dialect::ApiDialect;

    const DIRECTIVE: &str = r#"do [[mock turns=[
        {"text": "I look.", "calls": [{"name": "now"}, {"name": "find", "args": {"n": [1]}}]},
        {"calls": [{"name": "now", "args": "no JSON"}], "delay": 0.5},
        {"text": "done"}]]] it"#;

    fn chat_document(messages: &Value) -> Value {
        let body = json!({"model": "m", "messages": messages});
        let request = ModelRequest::parse(ApiDialect::Chat, "/v1/chat/completions", &body);
        let directive = Directive::extract_from(&request.user_text).1.unwrap_or_default();
        ApiDialect::Chat.full_document(&answer(&request, &directive, 7))
    }

    fn answer_message(messages: &Value) -> Value {
        chat_document(messages)["choices"][0]["message"].clone()
    }

    #[test]
    fn each_turn_has_the_text_and_the_calls_of_its_element() {
        let user = json!({"role": "user", "content": DIRECTIVE});
        let call = |id: &str, name: &str, arguments: &str| {
            let function = json!({"name": name, "arguments": arguments});
            json!({"id": id, "type": "function", "function": function})
        };
        let calls = [
            call("call_mock_00000007", "now", "{}"),
            call("call_mock_00000007_1", "find", r#"{"n":[1]}"#),
        ];
        let first = json!({"role": "assistant", "content": "I look.", "tool_calls": calls});
        let document = chat_document(&json!([user]));
        assert_eq!(document["choices"][0]["message"], first);
        assert_eq!(document["choices"][0]["finish_reason"], "tool_calls");

        let result = json!({"role": "tool", "tool_call_id": "x", "content": "a result"});
        let mut messages = vec![user, first, result.clone(), result];
        let calls = [call("call_mock_00000007", "now", "no JSON")];
        let second = json!({"role": "assistant", "content": null, "tool_calls": calls});
        assert_eq!(answer_message(&json!(messages)), second);

        // A note of the service has no directive.
        messages.extend([second, json!({"role": "user", "content": "these are no arguments"})]);
        let last = json!({"role": "assistant", "content": "done"});
        assert_eq!(answer_message(&json!(messages)), last);
        messages.extend([last.clone(), json!({"role": "user", "content": "go on"})]);
        assert_eq!(answer_message(&json!(messages)), last, "the last element is repeated");

        // Another directive begins its own turns.
        let next = r#"[[mock turns=[{"text": "again"}, {"text": "never"}]]]"#;
        messages.push(json!({"role": "user", "content": next}));
        assert_eq!(answer_message(&json!(messages))["content"], "again");
        messages.push(json!({"role": "user", "content": "[[mock text=plain]]"}));
        assert_eq!(answer_message(&json!(messages))["content"], "plain");
    }

    #[test]
    fn a_script_with_turns_counts_all_messages_of_the_model() {
        let directive = Directive::parse(r#"turns=[{"text": "one"}, {"text": "two"}]"#);
        let reply = json!({"role": "assistant", "content": "one"});
        let user = json!({"role": "user", "content": "no directive"});
        let body = json!({"messages": [user, reply, user]});
        let request = ModelRequest::parse(ApiDialect::Chat, "/v1/chat/completions", &body);
        assert_eq!(
            scripted_turn(&request, &directive).map(|turn| turn.text),
            Some("two".to_owned())
        );
    }

    #[test]
    fn a_turn_is_streamed_as_text_and_numbered_calls() {
        let body = json!({"messages": [{"role": "user", "content": DIRECTIVE}]});
        let request = ModelRequest::parse(ApiDialect::Chat, "/v1/chat/completions", &body);
        let directive = Directive::extract_from(&request.user_text).1.unwrap_or_default();
        let events = ApiDialect::Chat.events(&answer(&request, &directive, 7));
        let documents = events.iter().filter_map(|event| serde_json::from_str(&event.data).ok());
        let deltas: Vec<Value> =
            documents.map(|document: Value| document["choices"][0]["delta"].clone()).collect();
        assert_eq!(deltas[1]["content"], "I look.");
        let names = [&deltas[2], &deltas[3]].map(|delta| {
            let call = &delta["tool_calls"][0];
            (call["index"].clone(), call["function"]["name"].clone())
        });
        assert_eq!(names, [(json!(0), json!("now")), (json!(1), json!("find"))]);
    }

    #[test]
    fn another_dialect_sends_the_first_part_of_the_first_turn() {
        let body = json!({"messages": [{"role": "user", "content": DIRECTIVE}]});
        let request = ModelRequest::parse(ApiDialect::Anthropic, "/v1/messages", &body);
        let directive = Directive::extract_from(&request.user_text).1.unwrap_or_default();
        let document = ApiDialect::Anthropic.full_document(&answer(&request, &directive, 7));
        assert_eq!(document["content"][0]["name"], "now");
    }
}
