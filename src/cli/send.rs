//! `algonius send`: a message to an agent, its answer to standard output.

mod dialogue;
mod stream;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::args::send::Send;
use super::client::Client;
use super::fault::CliError;
use super::out::Out;
use crate::wire::a2a::{OVERRIDES, PARAMETERS};
use crate::wire::api::Trouble;
use dialogue::Dialogue;

/// Sends and prints: the answer as it comes, or as a whole, or the id of the task alone.
pub(super) async fn run(client: &Client, send: Send, out: &Out) -> Result<(), CliError> {
    let (agent, waits, streams) = (send.agent.clone(), !send.no_wait, !send.no_stream);
    let params = params(send, out)?;
    if waits && streams {
        return Dialogue::new(client, &agent, out)?.hold(params).await;
    }
    let task = client.ask(&agent, "message/send", params).await?;
    if out.is_json() {
        out.shape(&task);
    }
    let state = text(&task, "/status/state");
    if matches!(state, "submitted" | "working") && (!waits || out.is_json()) {
        if !out.is_json() {
            out.line(text(&task, "/id"));
        }
        return Ok(());
    }
    let print = |answer: &str| {
        if !out.is_json() {
            out.text(answer);
        }
    };
    finish(&agent, &task, print, out)
}

/// Tells how a task ended: its answer by `print`, or why there is none.
fn finish(agent: &str, task: &Value, print: impl FnOnce(&str), out: &Out) -> Result<(), CliError> {
    let state = text(task, "/status/state");
    if state == "completed" {
        print(&answer(task));
        return Ok(());
    }
    let trouble = trouble(task);
    // Whoever waits for the whole answer is refused then, with the same code.
    if let Some(refusal) = trouble.as_ref().filter(|trouble| trouble.code == "queue-timeout") {
        return Err(CliError::Refused(refusal.clone()));
    }
    let mut message = sentence(task, state);
    if state == "input-required" && !out.is_json() {
        let id = text(task, "/id");
        message = format!("{message}\n  hint: answer by `algonius send {agent} --task {id} TEXT`");
    }
    Err(CliError::NotDone { message, trouble })
}

/// A text in a document, or none.
fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn params(send: Send, out: &Out) -> Result<Value, CliError> {
    let text = match send.text.as_deref() {
        None | Some("-") => standard_input(out)?,
        Some(text) => text.to_owned(),
    };
    let mut message = json!({
        "kind": "message",
        "role": "user",
        "messageId": send.message_id.unwrap_or_else(|| Uuid::new_v4().to_string()),
        "parts": [{"kind": "text", "text": text}],
    });
    if let Value::Object(message) = &mut message {
        for (name, id) in [("contextId", send.context), ("taskId", send.task)] {
            message.extend(id.map(|id| (name.to_owned(), json!(id))));
        }
        let metadata = metadata(send.params, send.working_dir, send.env);
        if !metadata.is_empty() {
            message.insert("metadata".to_owned(), Value::Object(metadata));
        }
    }
    Ok(json!({"message": message, "configuration": {"blocking": !send.no_wait}}))
}

fn metadata(
    params: Vec<(String, String)>,
    working_dir: Option<PathBuf>,
    env: Vec<(String, String)>,
) -> Map<String, Value> {
    let object = |pairs: Vec<(String, String)>| -> Map<_, _> {
        pairs.into_iter().map(|(name, value)| (name, json!(value))).collect()
    };
    let (mut metadata, mut overrides) = (Map::new(), Map::new());
    if let Some(folder) = working_dir {
        // A path as people write it is one of this machine; what is not here may be on the other.
        let folder = folder.canonicalize().unwrap_or(folder);
        overrides.insert("workingDirectory".to_owned(), json!(folder));
    }
    if !env.is_empty() {
        overrides.insert("environment".to_owned(), Value::Object(object(env)));
    }
    for (name, given) in [(PARAMETERS, object(params)), (OVERRIDES, overrides)] {
        if !given.is_empty() {
            metadata.insert(name.to_owned(), Value::Object(given));
        }
    }
    metadata
}

fn standard_input(out: &Out) -> Result<String, CliError> {
    if std::io::stdin().is_terminal() && !out.is_json() {
        out.note("the message is read from this terminal, up to Ctrl-D");
    }
    let mut text = String::new();
    match std::io::stdin().read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(source) => Err(CliError::Input { source }),
    }
}

/// The text of all artifacts.
fn answer(task: &Value) -> String {
    let list = |value: &Value, name: &str| {
        value.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let parts = list(task, "artifacts").into_iter().flat_map(|artifact| list(&artifact, "parts"));
    parts.filter_map(|part| part.get("text").and_then(Value::as_str).map(str::to_owned)).collect()
}

/// Why a task did not succeed, where it says so.
fn trouble(task: &Value) -> Option<Trouble> {
    let told = |name: &str| {
        task.pointer(&format!("/status/message/metadata/{name}"))?.as_str().map(str::to_owned)
    };
    let message = task.pointer("/status/message/parts/0/text")?.as_str()?.to_owned();
    Some(Trouble { code: told("code")?, category: told("category")?, message, hint: told("hint")? })
}

fn sentence(task: &Value, state: &str) -> String {
    let (id, why) = (text(task, "/id"), text(task, "/status/message/parts/0/text"));
    let (code, hint) =
        (text(task, "/status/message/metadata/code"), text(task, "/status/message/metadata/hint"));
    match (why.is_empty(), code.is_empty()) {
        (true, _) => format!("task {id} is {state}"),
        (false, true) => format!("task {id} is {state}: {why}"),
        (false, false) => format!("task {id} is {state}: {why}\n  hint: {hint} ({code})"),
    }
}
