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

/// Asks, follows, reports.
pub(super) async fn run(
    client: &Client,
    agent: &str,
    input: Option<String>,
    out: &Out,
) -> Result<(), CliError> {
    let probed = ask(client, agent, input, out).await?;
    if out.is_json() {
        out.shape(&probed.shape());
    }
    probed.report(out)
}

/// An agent that was asked something.
pub(super) struct Probed {
    detail: ExecutionDetail,
    /// Whether it asks back, and was called off for it.
    is_asking: bool,
}

/// Asks, and tells a person what happens. The execution is made by a `probe`, and belongs to who asked.
pub(super) async fn ask(
    client: &Client,
    agent: &str,
    input: Option<String>,
    out: &Out,
) -> Result<Probed, CliError> {
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
    let detail = client.get(&format!("/api/v1/executions/{id}")).await?;
    Ok(Probed { detail, is_asking })
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
        Fact::Checked { stdout, stderr } => Some(format!("the check says: {stdout}{stderr}")),
        _ => None,
    }
}

async fn cancel(client: &Client, id: &str) {
    // It may have ended meanwhile; how is told in any case.
    _ = client.post::<Value>(&format!("/api/v1/executions/{id}/cancel"), json!({})).await;
}

impl Probed {
    /// What it answered.
    pub(super) fn answer(&self) -> &str {
        self.detail.output.as_deref().unwrap_or_default()
    }

    fn is_good(&self) -> bool {
        self.detail.entry.outcome == Some(Outcome::Completed)
    }

    /// For programs that read.
    pub(super) fn shape(&self) -> Value {
        let entry = &self.detail.entry;
        json!({
            "agent": entry.agent,
            "task": entry.id,
            "good": self.is_good(),
            "outcome": entry.outcome,
            "attempts": entry.stamp.attempt,
            "durationUs": entry.duration_us,
            "answer": self.answer(),
            "asksAQuestion": self.is_asking,
            "error": entry.error,
            "page": entry.error.as_ref().map(page),
        })
    }

    /// Tells a person how it went; an error where it did not answer.
    pub(super) fn report(&self, out: &Out) -> Result<(), CliError> {
        let entry = &self.detail.entry;
        let took = entry.duration_us.map_or("no time".to_owned(), took);
        let mut lines = vec![format!("took      {took}, attempts {}", entry.stamp.attempt)];
        if self.is_good() {
            lines.push(format!("answer    {}", self.answer().trim_end()));
            lines.push(format!("good      agent {} works", entry.agent));
        }
        if !out.is_json() {
            lines.iter().for_each(|line| out.line(line));
        }
        if self.is_good() {
            return Ok(());
        }
        let message = fault(&self.detail, self.is_asking);
        Err(CliError::NotDone { message, trouble: entry.error.clone() })
    }
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
