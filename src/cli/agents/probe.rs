//! `algonius agents test`: sends a short request to an agent and reports the result.

use algonius_a2a::problem::ERROR_PAGES_PATH;
use algonius_actors::model::execution::event::{Event, EventKind};
use algonius_actors::model::execution::{ExecutionState, Interruption, Outcome};
use serde_json::{Value, json};

use crate::cli::client::ServiceClient;
use crate::cli::client::execution_feed::ExecutionFeed;
use crate::cli::client::feed_item::FeedItem;
use crate::cli::client::stderr_tail::fetch_stderr_tail;
use crate::cli::error::CliError;
use crate::cli::output::progress::ProgressLine;
use crate::cli::output::time_text::format_duration;
use crate::cli::output::{CliOutput, failure_details};
use crate::wire::api::ErrorBody;
use crate::wire::api::history::ExecutionDetail;

/// Default request.
const DEFAULT_PROMPT: &str =
    "This is a test whether you can be reached. Answer with one short sentence.";

/// Sends the request, follows the execution and reports.
pub(super) async fn run(
    client: &ServiceClient,
    agent: &str,
    input: Option<String>,
    out: &CliOutput,
) -> Result<(), CliError> {
    let probe_result = run_probe(client, agent, input, out).await?;
    if out.is_json() {
        out.print_json(&probe_result.to_json());
    }
    probe_result.report_or_fail(out)
}

/// Result of a test request.
pub(super) struct ProbeResult {
    detail: ExecutionDetail,
    /// End of the standard error.
    stderr: String,
    /// True if the agent requested input, because of which the execution was canceled.
    is_input_required: bool,
}

/// Sends the request, and shows the progress to a person. The trigger of the execution is `probe`, and its owner is
/// the caller.
pub(super) async fn run_probe(
    client: &ServiceClient,
    agent: &str,
    input: Option<String>,
    out: &CliOutput,
) -> Result<ProbeResult, CliError> {
    let text = input.unwrap_or_else(|| DEFAULT_PROMPT.to_owned());
    let request_body = json!({"agent": agent, "text": text, "probe": true});
    let started: ExecutionDetail = client.post("/api/v1/executions", request_body).await?;
    let (id, owner) = (started.entry.id, started.caller.unwrap_or(started.owner));
    if !out.is_json() {
        out.print_line(&format!("asked     task {id}, a probe of {owner}"));
    }
    let is_input_required = tokio::select! {
        followed = follow_until_end_or_input(client, &id, out) => followed?,
        _ = tokio::signal::ctrl_c() => {
            out.print_note("called off");
            cancel(client, &id).await;
            false
        }
    };
    if is_input_required {
        cancel(client, &id).await; // Nobody will answer it.
    }
    let detail = client.get(&format!("/api/v1/executions/{id}")).await?;
    let (stderr, _lacks_start) = fetch_stderr_tail(client, &detail).await;
    Ok(ProbeResult { detail, stderr, is_input_required })
}

/// Shows the events up to the end or to a request for input; returns true for the latter.
async fn follow_until_end_or_input(
    client: &ServiceClient,
    id: &str,
    out: &CliOutput,
) -> Result<bool, CliError> {
    let mut feed = ExecutionFeed::without_output(id.to_owned());
    let mut progress = ProgressLine::start(!out.is_json());
    loop {
        let item = tokio::select! {
            item = feed.next(client) => item?,
            () = progress.tick() => continue,
        };
        let event = match item {
            Some(FeedItem::Event(event)) => event,
            Some(FeedItem::Text(..)) => continue,
            None => return Ok(false),
        };
        let Some(text) = progress_text(&event) else { continue };
        progress.clear();
        if !out.is_json() {
            out.print_line(&format!("          {text}"));
        }
        progress.set_text(&text);
        if matches!(&event.data, EventKind::StateChanged(change) if change.to == ExecutionState::Waiting)
        {
            return Ok(true);
        }
    }
}

/// Returns the message for a person about an event, if there is one.
fn progress_text(event: &Event) -> Option<String> {
    match &event.data {
        EventKind::StateChanged(change) if change.to == ExecutionState::Starting => {
            Some(format!("attempt {}", change.attempt_id.attempt))
        }
        EventKind::StateChanged(change) if change.to == ExecutionState::Running => {
            Some("running".to_owned())
        }
        EventKind::StateChanged(change)
            if change.interruption == Some(Interruption::AuthRequired) =>
        {
            Some("needs its caller to authenticate".to_owned())
        }
        EventKind::StateChanged(change) if change.to == ExecutionState::Waiting => {
            Some("asks a question".to_owned())
        }
        EventKind::AttemptFailed(failure) => {
            Some(format!("{} ({})", failure.message, failure.code))
        }
        EventKind::DeadlineApproaching { message, .. } | EventKind::Warning { message } => {
            Some(message.clone())
        }
        EventKind::MalformedLine { line, reason, text } => {
            Some(format!("line {line} {reason}: {text}"))
        }
        EventKind::CheckOutput { stdout, stderr } => {
            Some(format!("the check says: {stdout}{stderr}"))
        }
        _ => None,
    }
}

async fn cancel(client: &ServiceClient, id: &str) {
    // The execution may have ended meanwhile; its end is reported in any case.
    _ = client.post::<Value>(&format!("/api/v1/executions/{id}/cancel"), json!({})).await;
}

impl ProbeResult {
    /// Returns the answer of the agent.
    pub(super) fn answer(&self) -> &str {
        self.detail.output.as_deref().unwrap_or_default()
    }

    fn has_succeeded(&self) -> bool {
        self.detail.entry.outcome == Some(Outcome::Completed)
    }

    /// Returns the result as JSON.
    pub(super) fn to_json(&self) -> Value {
        let entry = &self.detail.entry;
        json!({
            "agent": entry.agent,
            "task": entry.id,
            "good": self.has_succeeded(),
            "outcome": entry.outcome,
            "attempts": entry.attempt_id.attempt,
            "durationUs": entry.duration_us,
            "answer": self.answer(),
            "asksAQuestion": self.is_input_required,
            "error": entry.error,
            "pagePath": entry.error.as_ref().map(page_path),
        })
    }

    /// Reports the result to a person; fails if the agent did not answer.
    pub(super) fn report_or_fail(&self, out: &CliOutput) -> Result<(), CliError> {
        let entry = &self.detail.entry;
        let duration = entry.duration_us.map_or("no time".to_owned(), format_duration);
        let mut lines =
            vec![format!("took      {duration}, attempts {}", entry.attempt_id.attempt)];
        if self.has_succeeded() {
            lines.push(format!("answer    {}", self.answer().trim_end()));
            lines.push(format!("good      agent {} works", entry.agent));
        }
        if !out.is_json() {
            lines.iter().for_each(|line| out.print_line(line));
        }
        if self.has_succeeded() {
            return Ok(());
        }
        let message = failure_message(&self.detail, &self.stderr, self.is_input_required);
        Err(CliError::ExecutionNotSucceeded { message, error_body: entry.error.clone() })
    }
}

/// Returns the description of the failure with a hint.
fn failure_message(detail: &ExecutionDetail, stderr: &str, is_input_required: bool) -> String {
    let entry = &detail.entry;
    if is_input_required {
        let question = detail.output.as_deref().map_or("", str::trim_end);
        return format!(
            "agent {} asks a question instead of answering {question}\n  hint: ask it something that \
             it can answer at once, by --input",
            entry.agent
        );
    }
    let Some(error) = &entry.error else {
        return format!(
            "agent {} did not answer: task {} is {}",
            entry.agent, entry.id, entry.state
        );
    };
    let ErrorBody { code, category, message, hint } = error;
    let details = failure_details::details_text(detail, stderr);
    format!(
        "{message}\n  hint: {hint} ({code}, {category})\n  page: `algonius explain {code}`{details}"
    )
}

/// Path of the page about an error, below the address of the service.
fn page_path(error: &ErrorBody) -> String {
    format!("{ERROR_PAGES_PATH}{}", error.code)
}
