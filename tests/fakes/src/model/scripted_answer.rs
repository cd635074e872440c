//! Settings of the model, by a directive in the prompt or by `POST /_mock/script`.
//!
//! | Setting | Meaning |
//! |---|---|
//! | `text="…"` | answers with this; otherwise with `ECHO: ` and the prompt |
//! | `empty` | answers with an empty text |
//! | `size=N` | answers with this many bytes, no line twice |
//! | `tool=NAME args={…}` | calls a tool, then answers with `TOOL: ` and its result |
//! | `steps=N` | calls it so often |
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

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::dialect::{ModelAnswer, ModelReply};
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
    let reply = reply(request, directive);
    let length = match &reply {
        ModelReply::Text(text) => text.len(),
        ModelReply::Call { arguments, .. } => arguments.to_string().len(),
    };
    let (input_tokens, output_tokens) = usage(directive)
        .unwrap_or_else(|| (estimate_tokens(request.text.len()), estimate_tokens(length)));
    // A stream that should break must break before its text ends.
    let is_broken = ["drop", "stall", "cut"].iter().any(|name| directive.has(name));
    let piece_bytes = if is_broken { length.div_ceil(4) } else { DEFAULT_PIECE_BYTES };
    let piece_bytes = directive
        .number("piece")
        .and_then(|piece_bytes| usize::try_from(piece_bytes).ok())
        .unwrap_or(piece_bytes);
    let (model, created_at) = (request.model.clone(), now().timestamp());
    ModelAnswer {
        model,
        reply,
        input_tokens,
        output_tokens,
        piece_bytes: piece_bytes.max(1),
        answer_number,
        created_at,
    }
}

/// Returns the time for the dates of answers and limits.
#[expect(clippy::disallowed_methods, reason = "a program of its own; nobody gives it a clock")]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}

fn reply(request: &ModelRequest, directive: &Directive) -> ModelReply {
    let steps = directive.number("steps").unwrap_or(1);
    if let Some(name) =
        directive.text("tool").filter(|_| (request.tool_results.len() as u64) < steps)
    {
        let arguments =
            directive.value("args").cloned().unwrap_or_else(|| Value::Object(Default::default()));
        return ModelReply::Call { name, arguments };
    }
    ModelReply::Text(text(request, directive))
}

fn text(request: &ModelRequest, directive: &Directive) -> String {
    if directive.has("empty") {
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
        None => format!("ECHO: {}", Directive::extract_from(&request.text).0),
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

fn usage(directive: &Directive) -> Option<(u64, u64)> {
    let text = directive.text("usage")?;
    let (input, output) = text.split_once(',')?;
    Some((input.parse().ok()?, output.parse().ok()?))
}

fn estimate_tokens(bytes: usize) -> u64 {
    (bytes as u64 / 4).max(1)
}
