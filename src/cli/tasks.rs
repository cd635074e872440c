//! `algonius tasks`: what was asked, and what became of it.

use serde_json::json;

use super::client::Client;
use super::fault::CliError;
use super::out::Out;
use crate::wire::api::{ExecutionDetail, ExecutionEntry, ExecutionList};

/// Lists tasks.
pub(super) async fn list(
    client: &Client,
    agent: Option<String>,
    unfinished: bool,
    limit: u32,
    out: &Out,
) -> Result<(), CliError> {
    let agent = agent.map_or(String::new(), |agent| format!("&agent={agent}"));
    let path = format!("/api/v1/executions?limit={limit}&unfinished={unfinished}{agent}");
    let list: ExecutionList = client.get(&path).await?;
    if out.is_json() {
        out.shape(&list);
        return Ok(());
    }
    let rows = list.executions.iter().map(row).collect();
    out.table(["TASK", "AGENT", "STATE", "ATTEMPT", "ACCEPTED", "TOOK", "WHY"], rows, "no tasks");
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

/// Why it did not work, or why it waits.
fn why(entry: &ExecutionEntry) -> String {
    let waits = entry.queue.as_ref().map(|queue| queue.queued.reason.as_str().to_owned());
    entry.error.as_ref().map(|error| error.code.clone()).or(waits).unwrap_or_default()
}

fn took(microseconds: i64) -> String {
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
    if let Some(queue) = &entry.queue {
        out.line(&format!("queue    {}", queue.message));
    }
    if let Some(error) = &entry.error {
        out.line(&format!("why      {} ({})", error.message, error.code));
        out.line(&format!("hint     {}", error.hint));
    }
    print_events(&detail, out);
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
    Ok(())
}

fn print_events(detail: &ExecutionDetail, out: &Out) {
    for event in &detail.events {
        let mut fact = serde_json::to_value(&event.fact).unwrap_or_default();
        let kind = fact.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default().to_owned();
        if let Some(fields) = fact.as_object_mut() {
            for name in ["kind", "at", "stamp"] {
                fields.remove(name);
            }
        }
        let at = event.at.format("%H:%M:%S%.6f");
        out.line(&format!("{:>7}  {at} {kind} {fact}", event.number));
    }
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
