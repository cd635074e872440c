//! `algonius tasks`: lists, shows, cancels, retries, removes and exports tasks.

pub(super) mod approvals;
mod event_text;
pub(super) mod lookup;
pub(super) mod send;
pub(super) mod steps;
pub(super) mod tree;
pub(super) mod watch;

use algonius_actors::model::agent::queue::Queued;
use algonius_actors::model::execution::ExecutionState;
use algonius_actors::model::execution::event::{Event, EventKind, TextChannel};
use serde_json::json;

use super::args::filters::Filters;
use super::client::ServiceClient;
use super::client::stderr_tail::fetch_stderr_tail;
use super::error::CliError;
use super::output::CliOutput;
use super::output::screen::truncate_line;
use super::output::time_text::{self, format_duration};
use super::output::usage_text;
use crate::wire::api::history::{AttemptEntry, ExecutionDetail};
use crate::wire::api::{ExecutionEntry, ExecutionList};

/// Lists tasks.
pub(super) async fn list(
    client: &ServiceClient,
    filters: &Filters,
    (limit, cursor): (u32, Option<String>),
    out: &CliOutput,
) -> Result<(), CliError> {
    let base_filters = [("limit", limit.to_string()), ("summary", "true".to_owned())];
    let extra_pairs: Vec<_> =
        base_filters.into_iter().chain(cursor.map(|cursor| ("cursor", cursor))).collect();
    let list: ExecutionList =
        client.get(&format!("/api/v1/executions?{}", filters.query(&extra_pairs))).await?;
    if out.is_json() {
        out.print_json(&list);
        return Ok(());
    }
    let rows = list.executions.iter().map(task_row).collect();
    let headings =
        ["TASK", "AGENT", "STATE", "ATTEMPT", "ACCEPTED", "TOOK", "CALLER", "REQUEST", "WHY"];
    out.print_table(headings, rows, "no tasks");
    if list.executions.is_empty() {
        lookup::similar_name_hint(client, filters)
            .await
            .into_iter()
            .for_each(|remark| out.print_note(&remark));
    }
    if let Some(next) = &list.next {
        out.print_note(&format!("there are more: --cursor {next}"));
    }
    Ok(())
}

/// Maximum number of characters of a request in a table.
const MAX_REQUEST_CHARS: usize = 40;
/// Maximum number of last lines of standard error that are shown.
const MAX_STDERR_LINES: usize = 40;

fn task_row(entry: &ExecutionEntry) -> [String; 9] {
    let summary = entry.summary.as_ref();
    let caller = summary.and_then(|summary| summary.caller.clone());
    let request = summary.map(|summary| truncate_line(&summary.request, MAX_REQUEST_CHARS));
    [
        entry.id.clone(),
        entry.agent.clone(),
        entry.state.to_string(),
        entry.attempt_id.attempt.to_string(),
        entry.accepted_at.format("%Y-%m-%d %H:%M:%SZ").to_string(),
        entry.duration_us.map_or("-".to_owned(), format_duration),
        caller.unwrap_or_else(|| "-".to_owned()),
        request.unwrap_or_default(),
        reason_text(entry),
    ]
}

/// Returns the reason of the wait, and its end if that is known.
fn wait_text(queued: &Queued) -> String {
    let until = queued.until.map(|until| format!(" until {}", until.format("%Y-%m-%d %H:%M:%SZ")));
    format!("{}{}", queued.reason.as_str(), until.unwrap_or_default())
}

/// Returns the reason for which a task waits or failed. A deferred task has failed once and has not ended.
fn reason_text(entry: &ExecutionEntry) -> String {
    let reason = entry.queue.as_ref().map(|queue| wait_text(&queue.queued));
    let reason = reason.or_else(|| entry.interruption.map(|reason| reason.as_str().to_owned()));
    reason.or_else(|| entry.error.as_ref().map(|error| error.code.clone())).unwrap_or_default()
}

/// Shows one task.
pub(super) async fn show(
    client: &ServiceClient,
    id: &str,
    shows_all_events: bool,
    out: &CliOutput,
) -> Result<(), CliError> {
    let detail: ExecutionDetail = client.get(&format!("/api/v1/executions/{id}")).await?;
    if out.is_json() {
        out.print_json(&detail);
        return Ok(());
    }
    print_details(&detail, out);
    out.print_line("── what happened ──");
    if shows_all_events {
        detail.events.iter().for_each(|event| out.print_line(&raw_event_line(event)));
    } else {
        // Events of the program are recorded with the events that follow them, so their numbers are not in the order
        // of time.
        let mut events: Vec<_> = detail.events.iter().collect();
        events.sort_by_key(|event| event.at);
        for event in events {
            event_text::fetch_event_line(client, id, event)
                .await
                .into_iter()
                .for_each(|line| out.print_line(&line));
        }
    }
    for (name, text) in [("input", Some(&detail.input)), ("output", detail.output.as_ref())] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            out.print_line(&format!("── {name} ──"));
            out.print_line(text.trim_end_matches('\n'));
        }
    }
    let (stderr, lacks_stderr_start) = fetch_stderr_tail(client, &detail).await;
    print_stderr_tail(&detail, (&stderr, lacks_stderr_start), out);
    if detail.events_after.is_some() {
        out.print_note("there are more events than shown; `tasks export` has all of them");
    }
    let is_stderr_tail = |name: &String| lacks_stderr_start && name == TextChannel::Stderr.as_str();
    for name in detail.cut.iter().filter(|name| !is_stderr_tail(name)) {
        out.print_note(&format!(
            "{name} is longer than shown; `tasks export --text` has all of it"
        ));
    }
    Ok(())
}

/// Prints the facts about a task, one per line.
fn print_details(detail: &ExecutionDetail, out: &CliOutput) {
    let entry = &detail.entry;
    out.print_line(&format!("task     {}", entry.id));
    out.print_line(&format!("agent    {}", entry.agent));
    out.print_line(&format!("state    {} (attempt {})", entry.state, entry.attempt_id.attempt));
    out.print_line(&format!(
        "asked    {} by {}",
        time_text::format_time(entry.accepted_at),
        requester(detail)
    ));
    if let Some(queue) = &entry.queue {
        out.print_line(&format!("queue    {}", queue.message));
    }
    if let Some(amounts) = usage_text::usage_line(entry.usage) {
        out.print_line(&format!("used     {amounts}"));
    }
    if let Some(message) = session_lost_message(&detail.events) {
        out.print_line(&format!("context  lost: {message}"));
    }
    if let Some(interruption) = entry.interruption {
        let request = detail.request.as_deref().unwrap_or_default().trim_end();
        let request = request.replace('\n', "\n         ");
        let (agent, id, name) = (&entry.agent, &entry.id, interruption.as_str());
        // An execution that runs has open interactions, which have the text of the request.
        let (request, hint) = match entry.phase {
            ExecutionState::Running => {
                (name.to_owned(), format!("`algonius approvals --task {id}` shows the questions"))
            }
            _ => {
                let hint = format!("answer by `algonius send {agent} --task {id} TEXT`");
                (format!("{name}: {request}"), hint)
            }
        };
        out.print_line(&format!("request  {request}"));
        out.print_line(&format!("hint     {hint}"));
    }
    if let Some(error) = &entry.error {
        out.print_line(&format!("why      {} ({})", error.message, error.code));
        out.print_line(&format!("hint     {}", error.hint));
    }
    for attempt in &detail.attempts {
        out.print_line(&attempt_line(attempt));
    }
}

/// Returns the reason why the agent lost the context of its conversation in this task, if it did.
fn session_lost_message(events: &[Event]) -> Option<&str> {
    events.iter().rev().find_map(|event| match &event.data {
        EventKind::SessionLost { message } => Some(message.as_str()),
        _ => None,
    })
}

/// Prints the last lines of standard error, and the command that shows all of it.
fn print_stderr_tail(
    detail: &ExecutionDetail,
    (stderr, lacks_start): (&str, bool),
    out: &CliOutput,
) {
    if stderr.is_empty() {
        return;
    }
    let lines: Vec<_> = stderr.lines().collect();
    let hidden_count = lines.len().saturating_sub(MAX_STDERR_LINES);
    out.print_line("── stderr ──");
    lines.iter().skip(hidden_count).for_each(|line| out.print_line(line));
    let id = &detail.entry.id;
    if lacks_start {
        out.print_note(
            "only the end of standard error is shown; `algonius tasks export --text` has all of it",
        );
    } else if hidden_count > 0 {
        out.print_note(&format!(
            "{hidden_count} earlier lines of standard error are not shown; `algonius tasks show {id} --json` \
             has them"
        ));
    }
}

fn requester(detail: &ExecutionDetail) -> &str {
    detail.caller.as_deref().unwrap_or(&detail.owner)
}

fn attempt_line(attempt: &AttemptEntry) -> String {
    let AttemptEntry { attempt_id, started_at, ended_at, .. } = attempt;
    let duration =
        ended_at.and_then(|ended| (ended - *started_at).num_microseconds()).map(format_duration);
    let parts = [
        attempt.ended_in.map(|state| state.to_string()),
        duration.map(|duration| format!("after {duration}")),
        attempt.exit_code.map(|code| format!("exit code {code}")),
        attempt.error.as_ref().map(|error| error.code.clone()),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    let turn =
        if attempt_id.turn > 1 { format!(" of turn {}", attempt_id.turn) } else { String::new() };
    let summary = if parts.is_empty() { "running".to_owned() } else { parts.join(", ") };
    format!("attempt  {}{turn}: {summary}", attempt_id.attempt)
}

/// Formats an event with its number and all its fields, for the analysis of the service.
fn raw_event_line(event: &Event) -> String {
    let mut data = serde_json::to_value(&event.data).unwrap_or_default();
    let kind = data.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default().to_owned();
    if let Some(fields) = data.as_object_mut() {
        for name in ["kind", "at", "attemptId"] {
            fields.remove(name);
        }
    }
    let at = event.at.format("%H:%M:%S%.6f");
    format!("{:>7}  {at} {kind} {data}", event.number)
}

/// Cancels a task.
pub(super) async fn cancel(
    client: &ServiceClient,
    id: &str,
    out: &CliOutput,
) -> Result<(), CliError> {
    let path = format!("/api/v1/executions/{id}/cancel");
    let entry: ExecutionEntry = client.post(&path, json!({})).await?;
    if out.is_json() {
        out.print_json(&entry);
    } else {
        out.print_line(&format!("task {} is {}", entry.id, entry.state));
    }
    Ok(())
}

/// Retries a task.
pub(super) async fn retry(
    client: &ServiceClient,
    id: &str,
    out: &CliOutput,
) -> Result<(), CliError> {
    let path = format!("/api/v1/executions/{id}/retry");
    let detail: ExecutionDetail = client.post(&path, json!({})).await?;
    if out.is_json() {
        out.print_json(&detail);
    } else {
        out.print_line(&detail.entry.id);
    }
    let written = out.take_write_error();
    written.map_err(|source| CliError::ExecutionOutput { task_id: detail.entry.id, source })
}

/// Removes a task.
pub(super) async fn delete(
    client: &ServiceClient,
    id: &str,
    out: &CliOutput,
) -> Result<(), CliError> {
    client.delete_ignoring_body(&format!("/api/v1/executions/{id}")).await?;
    if out.is_json() {
        out.print_json(&json!({"removed": id}));
    } else {
        out.print_line(&format!("task {id} is removed"));
    }
    Ok(())
}

/// Writes tasks to standard output as they arrive.
pub(super) async fn export(
    client: &ServiceClient,
    filters: &Filters,
    (includes_texts, limit): (bool, Option<u32>),
    out: &CliOutput,
) -> Result<(), CliError> {
    let limit = limit.map(|limit| ("limit", limit.to_string()));
    let extra_pairs: Vec<_> =
        limit.into_iter().chain([("text", includes_texts.to_string())]).collect();
    let path = format!("/api/v1/executions/export?{}", filters.query(&extra_pairs));
    client.download(&path, &mut out.document_writer()).await
}
