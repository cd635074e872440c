//! `algonius agents test`: a short question, and all that is known of how it went.

use std::time::Duration;

use algonius_actors::model::event::{Event, Fact};
use algonius_actors::model::execution::{Outcome, State};
use serde_json::{Value, json};

use crate::cli::client::Client;
use crate::cli::fault::CliError;
use crate::cli::out::Out;
use crate::cli::progress::Progress;
use crate::cli::tail::{Tail, Told};
use crate::cli::tasks::took;
use crate::wire::api::Trouble;
use crate::wire::api::history::ExecutionDetail;

/// What is asked when nobody says.
const QUESTION: &str = "This is a test whether you can be reached. Answer with one short sentence.";

/// From one look to the next.
const PACE: Duration = Duration::from_millis(200);

/// Asks, follows, reports. The execution is made by a `probe`, and belongs to who asked.
pub(super) async fn run(
    client: &Client,
    agent: &str,
    input: Option<String>,
    out: &Out,
) -> Result<(), CliError> {
    let text = input.unwrap_or_else(|| QUESTION.to_owned());
    let order = json!({"agent": agent, "text": text, "probe": true});
    let begun: ExecutionDetail = client.post("/api/v1/executions", order).await?;
    let (id, owner) = (begun.entry.id, begun.caller.unwrap_or(begun.owner));
    if !out.is_json() {
        out.line(&format!("asked     task {id}, a probe of {owner}"));
    }
    let is_asking = tokio::select! {
        followed = follow(client, &id, out) => followed?,
        _ = tokio::signal::ctrl_c() => {
            out.note("called off");
            cancel(client, &id).await;
            false
        }
    };
    if is_asking {
        cancel(client, &id).await; // Nobody will answer it.
    }
    let detail: ExecutionDetail = client.get(&format!("/api/v1/executions/{id}")).await?;
    report(&detail, is_asking, out)
}

/// Tells what happens, to the end or to a question; whether it is that.
async fn follow(client: &Client, id: &str, out: &Out) -> Result<bool, CliError> {
    let (mut tail, mut progress) = (Tail::of(id), Progress::begin(!out.is_json()));
    while !tail.is_over {
        for told in tail.next(client).await? {
            let Told::Event(event) = told else { continue };
            let Some(word) = word(&event) else { continue };
            progress.clear();
            if !out.is_json() {
                out.line(&format!("          {word}"));
            }
            progress.say(&word);
            if matches!(&event.fact, Fact::Moved(moved) if moved.to == State::Waiting) {
                return Ok(true);
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PACE) => {} // The pace of looking; nothing waits for it.
            () = progress.tick() => {}
        }
    }
    Ok(false)
}

/// What a person is told of an event, if anything.
fn word(event: &Event) -> Option<String> {
    match &event.fact {
        Fact::Moved(moved) if moved.to == State::Starting => {
            Some(format!("attempt {}", moved.stamp.attempt))
        }
        Fact::Moved(moved) if moved.to == State::Running => Some("running".to_owned()),
        Fact::Moved(moved) if moved.to == State::Waiting => Some("asks a question".to_owned()),
        Fact::AttemptFailed(failure) => Some(format!("{} ({})", failure.message, failure.code)),
        Fact::Expiring { message, .. } | Fact::Warned { message } => Some(message.clone()),
        _ => None,
    }
}

async fn cancel(client: &Client, id: &str) {
    // It may have ended meanwhile; how is told in any case.
    _ = client.post::<Value>(&format!("/api/v1/executions/{id}/cancel"), json!({})).await;
}

fn report(detail: &ExecutionDetail, is_asking: bool, out: &Out) -> Result<(), CliError> {
    let entry = &detail.entry;
    let attempts = entry.stamp.attempt;
    let answer = detail.output.as_deref().unwrap_or_default();
    let took = entry.duration_us.map_or("no time".to_owned(), took);
    let is_good = entry.outcome == Some(Outcome::Completed);
    if out.is_json() {
        out.shape(&json!({
            "agent": entry.agent,
            "task": entry.id,
            "good": is_good,
            "outcome": entry.outcome,
            "attempts": attempts,
            "durationUs": entry.duration_us,
            "answer": answer,
            "asksAQuestion": is_asking,
            "error": entry.error,
            "page": entry.error.as_ref().map(page),
        }));
    } else {
        out.line(&format!("took      {took}, attempts {attempts}"));
    }
    if is_good {
        if !out.is_json() {
            out.line(&format!("answer    {}", answer.trim_end()));
            out.line(&format!("good      agent {} works", entry.agent));
        }
        return Ok(());
    }
    Err(CliError::NotDone { message: fault(detail, is_asking), trouble: entry.error.clone() })
}

/// What exactly went wrong, and what can be done.
fn fault(detail: &ExecutionDetail, is_asking: bool) -> String {
    let entry = &detail.entry;
    if is_asking {
        let asked = detail.output.as_deref().map_or("", str::trim_end);
        return format!(
            "agent {} asks a question instead of answering {asked}\n  hint: ask it something that \
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
    let stderr: Vec<_> = detail.stderr.lines().rev().take(5).collect();
    let said: String =
        stderr.iter().rev().map(|line| format!("\n  standard error: {line}")).collect();
    let Trouble { code, category, message, hint } = error;
    let page = page(error);
    format!("{message}\n  hint: {hint} ({code}, {category})\n  page: {page}{said}")
}

/// Where an error is told about at length.
fn page(error: &Trouble) -> String {
    format!("docs/errors/{}.md", error.code)
}
