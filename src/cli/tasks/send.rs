//! `algonius send`: sends a message to an agent and prints the answer.

mod answer_content;
mod answer_printer;
mod pending_question;
mod published_interaction;
mod streamed_send;
mod typed_lines;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use algonius_a2a::interaction::INTERACTIONS_EXTENSION;
use algonius_a2a::{OVERRIDES_EXTENSION, PARAMETERS_EXTENSION};
use serde_json::{Map, Value, json};
use streamed_send::StreamedSend;
use uuid::Uuid;

use self::answer_content::PrintableAnswer;
use crate::cli::args::send::SendArgs;
use crate::cli::client::ServiceClient;
use crate::cli::client::stderr_tail::fetch_stderr_tail;
use crate::cli::error::CliError;
use crate::cli::output::{CliOutput, failure_details, lossy_text};
use crate::wire::api::ErrorBody;
use crate::wire::api::history::ExecutionDetail;

/// Sends the message and prints the answer as it arrives, the whole answer, or only the id of the task.
pub(crate) async fn run(
    client: &ServiceClient,
    args: SendArgs,
    out: &CliOutput,
) -> Result<(), CliError> {
    let (agent, is_blocking, is_streaming) = (args.agent.clone(), !args.no_wait, !args.no_stream);
    let shows_stderr = args.stderr || std::io::stderr().is_terminal();
    let params = read_send_params(args, out)?;
    if is_blocking && is_streaming {
        return StreamedSend::new(client, &agent, (out, shows_stderr))?.run(params).await;
    }
    let task = client.call_rpc(&agent, "message/send", params).await?;
    if out.is_json() {
        out.print_json(&task);
    }
    let task = answer_content::task_from_response(task);
    let state = text_at(&task, "/status/state");
    if matches!(state, "submitted" | "working") && (!is_blocking || out.is_json()) {
        if !out.is_json() {
            out.print_line(text_at(&task, "/id"));
        }
        return check_output_written(text_at(&task, "/id"), out);
    }
    let print = |answer: &str| {
        if !out.is_json() {
            out.print_text(answer);
        }
    };
    report_outcome((client, &agent), &task, print, out).await
}

/// Fails if output about a task was not written.
fn check_output_written(task_id: &str, out: &CliOutput) -> Result<(), CliError> {
    let task_id = task_id.to_owned();
    out.take_write_error().map_err(|source| CliError::ExecutionOutput { task_id, source })
}

/// Reports the end of a task: prints its answer with `print`, or returns the reason why there is none.
async fn report_outcome(
    (client, agent): (&ServiceClient, &str),
    task: &Value,
    print: impl FnOnce(&str),
    out: &CliOutput,
) -> Result<(), CliError> {
    let state = text_at(task, "/status/state");
    if !out.is_json() {
        let warnings = task.pointer("/metadata/warnings").and_then(Value::as_array);
        let warnings = warnings.into_iter().flatten().filter_map(Value::as_str);
        // The reason of a failure is printed with the failure.
        let reason = text_at(task, "/status/message/parts/0/text");
        let warnings = warnings.filter(|warning| *warning != reason);
        warnings.for_each(|warning| out.print_note(&format!("warning: {warning}")));
        if text_at(task, "/metadata/continuity") == "lost" {
            out.print_note(
                "warning: the agent has lost the context: it answers without the messages before",
            );
        }
    }
    if state == "completed" {
        let PrintableAnswer { text, notes } = PrintableAnswer::from_task(task);
        print(&text);
        if !out.is_json() {
            notes.iter().for_each(|note| out.print_note(&format!("note: {note}")));
        }
        return check_output_written(text_at(task, "/id"), out);
    }
    let error_body = error_body(task);
    // A caller that waits for the whole answer receives the same refusal with the same code.
    if let Some(refusal) =
        error_body.as_ref().filter(|error_body| error_body.code == "queue-timeout")
    {
        return Err(CliError::RequestRefused(refusal.clone()));
    }
    let mut message = state_sentence(task, state);
    let hint_prefix = match state {
        "input-required" => Some(""),
        "auth-required" => Some("once you have authenticated, "),
        _ => None,
    };
    if let Some(hint_prefix) = hint_prefix.filter(|_| !out.is_json()) {
        let id = text_at(task, "/id");
        let interactions =
            task.pointer("/status/message/metadata").and_then(|it| it.get(INTERACTIONS_EXTENSION));
        let command = match interactions {
            Some(_) => {
                "algonius approve ID` or `algonius deny ID`; list the ids by `algonius approvals"
                    .to_owned()
            }
            None => format!("algonius send {agent} --task {id} TEXT"),
        };
        message = format!("{message}\n  hint: {hint_prefix}answer by `{command}`");
    }
    if state == "failed" && !out.is_json() {
        message.push_str(&failure_report(client, text_at(task, "/id")).await);
    }
    Err(CliError::ExecutionNotSucceeded { message, error_body })
}

/// Returns the details of a failed task. A token without the right to read gets none.
async fn failure_report(client: &ServiceClient, id: &str) -> String {
    let detail = client.get::<ExecutionDetail>(&format!("/api/v1/executions/{id}")).await;
    let Ok(detail) = detail else { return String::new() };
    failure_details::details_text(&detail, &fetch_stderr_tail(client, &detail).await.0)
}

/// Returns a text in a document; empty if it is absent.
fn text_at<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn read_send_params(args: SendArgs, out: &CliOutput) -> Result<Value, CliError> {
    let text = match args.text.as_deref() {
        None | Some("-") => read_standard_input(out)?,
        Some(text) => text.to_owned(),
    };
    let mut message = json!({
        "kind": "message",
        "role": "user",
        "messageId": args.message_id.unwrap_or_else(|| Uuid::new_v4().to_string()),
        "parts": [{"kind": "text", "text": text}],
    });
    if let Value::Object(message) = &mut message {
        for (name, id) in [("contextId", args.context), ("taskId", args.task)] {
            message.extend(id.map(|id| (name.to_owned(), json!(id))));
        }
        let metadata = message_metadata(args.params, args.working_dir, args.env)?;
        if !metadata.is_empty() {
            message.insert("metadata".to_owned(), Value::Object(metadata));
        }
    }
    Ok(json!({"message": message, "configuration": {"blocking": !args.no_wait}}))
}

/// Returns the metadata of a message.
///
/// # Errors
/// Fails if the path of the folder is not UTF-8, as JSON is.
fn message_metadata(
    params: Vec<(String, String)>,
    working_dir: Option<PathBuf>,
    env: Vec<(String, String)>,
) -> Result<Map<String, Value>, CliError> {
    let object = |pairs: Vec<(String, String)>| -> Map<_, _> {
        pairs.into_iter().map(|(name, value)| (name, json!(value))).collect()
    };
    let (mut metadata, mut overrides) = (Map::new(), Map::new());
    if let Some(folder) = working_dir {
        // A relative path belongs to this machine; a path that does not exist here may exist on the machine of the
        // service.
        let folder = folder.canonicalize().unwrap_or(folder);
        let path = folder.to_str().ok_or_else(|| CliError::File {
            problem: "cannot send the path of",
            file: folder.clone(),
            source: std::io::Error::other("it is not UTF-8"),
        })?;
        overrides.insert("workingDirectory".to_owned(), json!(path));
    }
    if !env.is_empty() {
        overrides.insert("environment".to_owned(), Value::Object(object(env)));
    }
    for (name, values) in [(PARAMETERS_EXTENSION, object(params)), (OVERRIDES_EXTENSION, overrides)]
    {
        if !values.is_empty() {
            metadata.insert(name.to_owned(), Value::Object(values));
        }
    }
    Ok(metadata)
}

fn read_standard_input(out: &CliOutput) -> Result<String, CliError> {
    if std::io::stdin().is_terminal() && !out.is_json() {
        out.print_note("the message is read from this terminal, up to Ctrl-D");
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).map_err(|source| CliError::Input { source })?;
    Ok(lossy_text::decode_with_note("standard input", bytes, out))
}

/// Returns the error of a task, if its status has one.
fn error_body(task: &Value) -> Option<ErrorBody> {
    let field = |name: &str| {
        task.pointer(&format!("/status/message/metadata/{name}"))?.as_str().map(str::to_owned)
    };
    let message = task.pointer("/status/message/parts/0/text")?.as_str()?.to_owned();
    Some(ErrorBody {
        code: field("code")?,
        category: field("category")?,
        message,
        hint: field("hint")?,
    })
}

/// Returns the texts and addresses of a message, each on its own line.
fn message_text(message: Option<&Value>) -> String {
    let parts = message.and_then(|message| message.get("parts")?.as_array());
    let lines = parts.into_iter().flatten().filter_map(|part| {
        let text = part.get("text").or_else(|| part.pointer("/file/uri"))?;
        text.as_str().map(|text| text.trim_end().to_owned())
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn state_sentence(task: &Value, state: &str) -> String {
    let (id, reason) = (text_at(task, "/id"), message_text(task.pointer("/status/message")));
    let (code, hint) = (
        text_at(task, "/status/message/metadata/code"),
        text_at(task, "/status/message/metadata/hint"),
    );
    match (reason.is_empty(), code.is_empty()) {
        (true, _) => format!("task {id} is {state}"),
        (false, true) => format!("task {id} is {state}: {reason}"),
        (false, false) => format!("task {id} is {state}: {reason}\n  hint: {hint} ({code})"),
    }
}
