//! `algonius tasks`: what was asked, and what became of it.

use algonius_actors::model::event::Event;
use serde_json::json;

use super::client::Client;
use super::fault::CliError;
use super::filters::Filters;
use super::out::Out;
use crate::wire::api::history::{AttemptEntry, ExecutionDetail};
use crate::wire::api::{ExecutionEntry, ExecutionList};

/// Lists tasks.
pub(super) async fn list(
    client: &Client,
    filters: &Filters,
    (limit, cursor): (u32, Option<String>),
    out: &Out,
) -> Result<(), CliError> {
    let limit = Some(("limit", limit.to_string()));
    let further: Vec<_> = limit.into_iter().chain(cursor.map(|place| ("cursor", place))).collect();
    let list: ExecutionList =
        client.get(&format!("/api/v1/executions?{}", filters.query(&further))).await?;
    if out.is_json() {
        out.shape(&list);
        return Ok(());
    }
    let rows = list.executions.iter().map(row).collect();
    out.table(["TASK", "AGENT", "STATE", "ATTEMPT", "ACCEPTED", "TOOK", "WHY"], rows, "no tasks");
    if let Some(next) = &list.next {
        out.note(&format!("there are more: --cursor {next}"));
    }
    Ok(())
}

fn row(entry: &ExecutionEntry) -> [String; 7] {
    [
        entry.id.clone(),
        entry.agent.clone(),
        entry.state.to_string(),
        entry.stamp.attempt.to_string(),
        entry.accepted_at.format("%Y-%m-%d %H:%M:%SZ").to_string(),
        entry.duration_us.map_or("-".to_owned(), took),
        why(entry),
    ]
}

/// Why it waits, or why it did not work. Who is parked has failed once, and that is not its end.
fn why(entry: &ExecutionEntry) -> String {
    let waits = entry.queue.as_ref().map(|queue| queue.queued.reason.as_str().to_owned());
    waits.or_else(|| entry.error.as_ref().map(|error| error.code.clone())).unwrap_or_default()
}

pub(super) fn took(microseconds: i64) -> String {
    let took = std::time::Duration::from_micros(microseconds.unsigned_abs());
    match took.as_secs() {
        0 => format!("{microseconds} µs"),
        1..60 => format!("{:.1} s", took.as_secs_f64()),
        seconds => format!("{} min", seconds / 60),
    }
}

/// Shows one task.
pub(super) async fn show(client: &Client, id: &str, out: &Out) -> Result<(), CliError> {
    let detail: ExecutionDetail = client.get(&format!("/api/v1/executions/{id}")).await?;
    if out.is_json() {
        out.shape(&detail);
        return Ok(());
    }
    let entry = &detail.entry;
    out.line(&format!("task     {}", entry.id));
    out.line(&format!("agent    {}", entry.agent));
    out.line(&format!("state    {} (attempt {})", entry.state, entry.stamp.attempt));
    out.line(&format!("asked    {} by {}", entry.accepted_at.to_rfc3339(), asker(&detail)));
    if let Some(queue) = &entry.queue {
        out.line(&format!("queue    {}", queue.message));
    }
    if let Some(error) = &entry.error {
        out.line(&format!("why      {} ({})", error.message, error.code));
        out.line(&format!("hint     {}", error.hint));
    }
    for attempt in &detail.attempts {
        out.line(&attempt_line(attempt));
    }
    for event in &detail.events {
        out.line(&event_line(event));
    }
    for (name, text) in [
        ("input", Some(&detail.input)),
        ("output", detail.output.as_ref()),
        ("stderr", Some(&detail.stderr)),
    ] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            out.line(&format!("── {name} ──"));
            out.line(text.trim_end_matches('\n'));
        }
    }
    for name in &detail.cut {
        out.note(&format!("{name} is longer than shown; `tasks export --text` has all of it"));
    }
    Ok(())
}

fn asker(detail: &ExecutionDetail) -> &str {
    detail.caller.as_deref().unwrap_or(&detail.owner)
}

fn attempt_line(attempt: &AttemptEntry) -> String {
    let AttemptEntry { stamp, started_at, ended_at, .. } = attempt;
    let took = ended_at.and_then(|ended| (ended - *started_at).num_microseconds()).map(took);
    let told = [
        attempt.ended_in.map(|state| state.to_string()),
        took.map(|took| format!("after {took}")),
        attempt.pid.map(|pid| format!("pid {pid}")),
        attempt.exit_code.map(|code| format!("exit code {code}")),
        attempt.error.as_ref().map(|error| error.code.clone()),
        attempt.spent.map(|spent| format!("{} ms of processor", spent.cpu_ms)),
    ];
    let told: Vec<_> = told.into_iter().flatten().collect();
    format!("try      {}.{} {}", stamp.turn, stamp.attempt, told.join(", "))
}

/// An event for people.
pub(super) fn event_line(event: &Event) -> String {
    let mut fact = serde_json::to_value(&event.fact).unwrap_or_default();
    let kind = fact.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default().to_owned();
    if let Some(fields) = fact.as_object_mut() {
        for name in ["kind", "at", "stamp"] {
            fields.remove(name);
        }
    }
    let at = event.at.format("%H:%M:%S%.6f");
    format!("{:>7}  {at} {kind} {fact}", event.number)
}

/// Calls a task off.
pub(super) async fn cancel(client: &Client, id: &str, out: &Out) -> Result<(), CliError> {
    let path = format!("/api/v1/executions/{id}/cancel");
    let entry: ExecutionEntry = client.post(&path, json!({})).await?;
    if out.is_json() {
        out.shape(&entry);
    } else {
        out.line(&format!("task {} is {}", entry.id, entry.state));
    }
    Ok(())
}

/// Asks once more what a task was asked.
pub(super) async fn retry(client: &Client, id: &str, out: &Out) -> Result<(), CliError> {
    let path = format!("/api/v1/executions/{id}/retry");
    let detail: ExecutionDetail = client.post(&path, json!({})).await?;
    if out.is_json() {
        out.shape(&detail);
    } else {
        out.line(&detail.entry.id);
    }
    Ok(())
}

/// Removes a task.
pub(super) async fn delete(client: &Client, id: &str, out: &Out) -> Result<(), CliError> {
    client.remove(&format!("/api/v1/executions/{id}")).await?;
    if out.is_json() {
        out.shape(&json!({"removed": id}));
    } else {
        out.line(&format!("task {id} is removed"));
    }
    Ok(())
}

/// Writes tasks to standard output as they come.
pub(super) async fn export(
    client: &Client,
    filters: &Filters,
    (text, limit): (bool, Option<u32>),
) -> Result<(), CliError> {
    let limit = limit.map(|limit| ("limit", limit.to_string()));
    let further: Vec<_> = limit.into_iter().chain([("text", text.to_string())]).collect();
    let path = format!("/api/v1/executions/export?{}", filters.query(&further));
    client.copy(&path, &mut std::io::stdout()).await
}
