//! `algonius send`: a message to an agent, its answer to standard output.

use std::io::Read;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::args::Send;
use super::client::Client;
use super::fault::CliError;
use super::out::Out;
use crate::wire::a2a::{OVERRIDES, PARAMETERS};
use crate::wire::api::Trouble;

/// Sends, waits unless told otherwise, prints.
pub(super) async fn run(client: &Client, send: Send, out: &Out) -> Result<(), CliError> {
    let (agent, wait) = (send.agent.clone(), !send.no_wait);
    let task = client.ask(&agent, "message/send", params(send)?).await?;
    if out.is_json() {
        out.shape(&task);
    }
    let state = task.pointer("/status/state").and_then(Value::as_str).unwrap_or_default();
    match state {
        "completed" if out.is_json() => Ok(()),
        "completed" => {
            out.text(&answer(&task));
            Ok(())
        }
        "submitted" | "working" if !wait || out.is_json() => {
            if !out.is_json() {
                out.line(task.get("id").and_then(Value::as_str).unwrap_or_default());
            }
            Ok(())
        }
        _ => Err(CliError::NotDone { message: sentence(&task, state), trouble: trouble(&task) }),
    }
}

fn params(send: Send) -> Result<Value, CliError> {
    let text = match send.text.as_deref() {
        None | Some("-") => standard_input()?,
        Some(text) => text.to_owned(),
    };
    let mut message = json!({
        "kind": "message",
        "role": "user",
        "messageId": send.message_id.unwrap_or_else(|| Uuid::new_v4().to_string()),
        "parts": [{"kind": "text", "text": text}],
    });
    if let Value::Object(message) = &mut message {
        if let Some(context) = send.context {
            message.insert("contextId".to_owned(), json!(context));
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

fn standard_input() -> Result<String, CliError> {
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
    let text = |pointer: &str| task.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (id, why) = (text("/id"), text("/status/message/parts/0/text"));
    let (code, hint) =
        (text("/status/message/metadata/code"), text("/status/message/metadata/hint"));
    if why.is_empty() {
        return format!("task {id} is {state}");
    }
    format!("task {id} is {state}: {why}\n  hint: {hint} ({code})")
}
