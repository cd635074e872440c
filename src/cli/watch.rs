//! `algonius tasks watch` and `algonius logs`: tasks as they go on.

use std::collections::BTreeMap;
use std::time::Duration;

use algonius_actors::model::event::Channel;
use algonius_actors::model::execution::Outcome;
use serde_json::json;

use super::client::Client;
use super::fault::CliError;
use super::filters::Filters;
use super::out::Out;
use super::tail::{Tail, Told};
use super::tasks::event_line;
use crate::wire::api::{ExecutionEntry, ExecutionList};

/// From one look to the next.
const PACE: Duration = Duration::from_millis(300);

/// Tells a task up to its end: output to standard output, events to standard error. How it ended is
/// told by the exit code.
pub(super) async fn task(client: &Client, id: &str, out: &Out) -> Result<(), CliError> {
    let mut tail = Tail::of(id);
    loop {
        for told in tail.next(client).await? {
            match told {
                _ if out.is_json() => out.line(&as_json(id, &told)),
                Told::Event(event) => out.note(&event_line(&event)),
                Told::Text(Channel::Stderr, text) => out.aside(&text),
                Told::Text(_, text) => out.text(&text),
            }
        }
        if tail.is_over {
            break;
        }
        tokio::time::sleep(PACE).await; // The pace of looking; nothing waits for it.
    }
    let entry: ExecutionEntry = client.get(&format!("/api/v1/executions/{id}")).await?;
    judge(entry)
}

fn judge(entry: ExecutionEntry) -> Result<(), CliError> {
    if entry.outcome == Some(Outcome::Completed) {
        return Ok(());
    }
    let why = entry.error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
    let message = format!("task {} is {}{why}", entry.id, entry.state);
    Err(CliError::NotDone { message, trouble: entry.error })
}

/// Tells the latest tasks, each line with its agent and its task; with `follow`, all that comes.
pub(super) async fn logs(
    client: &Client,
    agent: Option<String>,
    (lines, follow): (u32, bool),
    out: &Out,
) -> Result<(), CliError> {
    let path = Filters { agent, ..Filters::default() }.query(&[("limit", lines.to_string())]);
    let path = format!("/api/v1/executions?{path}");
    let mut seen: BTreeMap<String, Lines> = BTreeMap::new();
    loop {
        let list: ExecutionList = client.get(&path).await?;
        for entry in list.executions.iter().rev() {
            let known = seen.entry(entry.id.clone());
            known.or_insert_with(|| Lines::of(entry));
        }
        // Ids sort by the time of acceptance.
        for lines in seen.values_mut().filter(|lines| !lines.tail.is_over) {
            lines.tell(client, out).await?;
        }
        if !follow {
            seen.values_mut().for_each(|lines| lines.finish(out));
            return Ok(());
        }
        tokio::time::sleep(PACE).await; // The pace of looking; nothing waits for it.
    }
}

/// The lines of one task.
struct Lines {
    name: String,
    tail: Tail,
    /// What has no end yet, of each stream.
    rest: BTreeMap<&'static str, String>,
}

impl Lines {
    fn of(entry: &ExecutionEntry) -> Self {
        let name = format!("{} {}", entry.agent, entry.id);
        Self { name, tail: Tail::of(&entry.id), rest: BTreeMap::new() }
    }

    async fn tell(&mut self, client: &Client, out: &Out) -> Result<(), CliError> {
        for told in self.tail.next(client).await? {
            match told {
                _ if out.is_json() => out.line(&as_json(&self.tail.id, &told)),
                Told::Event(event) => out.line(&format!("{} {}", self.name, event_line(&event))),
                Told::Text(channel, text) => self.take(channel.as_str(), &text, out),
            }
        }
        if self.tail.is_over {
            self.finish(out);
        }
        Ok(())
    }

    fn take(&mut self, channel: &'static str, text: &str, out: &Out) {
        let mut rest = self.rest.remove(channel).unwrap_or_default() + text;
        while let Some(end) = rest.find('\n') {
            let next = rest.split_off(end + 1);
            out.line(&format!("{} {channel}: {}", self.name, rest.trim_end()));
            rest = next;
        }
        self.rest.insert(channel, rest);
    }

    /// What had no end has one now.
    fn finish(&mut self, out: &Out) {
        for (channel, rest) in std::mem::take(&mut self.rest) {
            if !rest.is_empty() {
                out.line(&format!("{} {channel}: {rest}", self.name));
            }
        }
    }
}

fn as_json(id: &str, told: &Told) -> String {
    match told {
        Told::Event(event) => json!({"id": id, "event": event}),
        Told::Text(channel, text) => json!({"id": id, "channel": channel, "text": text}),
    }
    .to_string()
}
