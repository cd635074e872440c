//! What the model can be told, by a directive in the prompt or by `POST /_mock/script`.
//!
//! | Setting | Meaning |
//! |---|---|
//! | `text="…"` | says this; else it says `ECHO: ` and the prompt |
//! | `empty` | says nothing at all |
//! | `size=N` | says so many bytes, no line twice |
//! | `tool=NAME args={…}` | calls a tool, then says `TOOL: ` and what it gave |
//! | `steps=N` | calls it so often |
//! | `usage=I,O` | tokens in and out; else a quarter of the bytes |
//! | `delay=S` | waits before it answers |
//! | `together=N` | waits until so many different prompts with this directive are there |
//! | `hang` | never answers |
//! | `stall` | begins a stream and never ends it |
//! | `drop` | closes the connection in the middle of the answer |
//! | `garbage` | 200 with a page of HTML |
//! | `status=N` | refuses with this status |
//! | `times=N` | refuses so often, then answers |
//! | `retry_after=S` | with a `Retry-After` |
//! | `reset=S` | tells in the dialect's own words when the limit is lifted |
//! | `piece=N` | bytes of a piece of a stream, 4096 unless given |
//! | `id=WORD` | counts `times` apart from equal directives |

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::conversation::Conversation;
use crate::dialect::{Answer, Reply};
use crate::directive::Directive;
use crate::schema;

/// How large a piece of a stream is.
const PIECE: usize = 4096;

/// The `number`th answer of this process.
pub(crate) fn answer(asked: &Conversation, told: &Directive, number: u64) -> Answer {
    let reply = reply(asked, told);
    let said = match &reply {
        Reply::Text(text) => text.len(),
        Reply::Call { arguments, .. } => arguments.to_string().len(),
    };
    let (input_tokens, output_tokens) =
        usage(told).unwrap_or_else(|| (tokens(asked.text.len()), tokens(said)));
    // A stream that is to break must break before its text is over.
    let piece = if told.has("drop") || told.has("stall") { said.div_ceil(4) } else { PIECE };
    let piece = told.number("piece").and_then(|piece| usize::try_from(piece).ok()).unwrap_or(piece);
    let (model, now) = (asked.model.clone(), now().timestamp());
    Answer { model, reply, input_tokens, output_tokens, piece: piece.max(1), number, now }
}

/// The time, which answers and limits are dated with.
#[expect(clippy::disallowed_methods, reason = "a program of its own; nobody gives it a clock")]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}

fn reply(asked: &Conversation, told: &Directive) -> Reply {
    let steps = told.number("steps").unwrap_or(1);
    if let Some(name) = told.text("tool").filter(|_| (asked.results.len() as u64) < steps) {
        let arguments =
            told.value("args").cloned().unwrap_or_else(|| Value::Object(Default::default()));
        return Reply::Call { name, arguments };
    }
    Reply::Text(text(asked, told))
}

fn text(asked: &Conversation, told: &Directive) -> String {
    if told.has("empty") {
        return String::new();
    }
    if let Some(text) = told.text("text") {
        return text;
    }
    if let Some(size) = told.number("size") {
        return filler(usize::try_from(size).unwrap_or(usize::MAX));
    }
    if let Some(schema) = &asked.schema {
        return schema::instance(schema).to_string();
    }
    match asked.results.last() {
        Some(result) => format!("TOOL: {result}"),
        None => format!("ECHO: {}", Directive::taken_from(&asked.text).0),
    }
}

/// Text of so many bytes without repeats, which agents take for a model that has gone round in
/// circles.
fn filler(size: usize) -> String {
    let mut text = String::new();
    let mut line = 0_u64;
    while text.len() < size {
        let mixed = line.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) ^ line;
        text.push_str(&format!("line {line:07} {mixed:016x} {:016x}\n", mixed.wrapping_mul(31)));
        line += 1;
    }
    text.truncate(size); // ASCII alone.
    text
}

fn usage(told: &Directive) -> Option<(u64, u64)> {
    let text = told.text("usage")?;
    let (input, output) = text.split_once(',')?;
    Some((input.parse().ok()?, output.parse().ok()?))
}

fn tokens(bytes: usize) -> u64 {
    (bytes as u64 / 4).max(1)
}
