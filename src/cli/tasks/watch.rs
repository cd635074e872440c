//! `algonius tasks watch` and `algonius logs`: show tasks while they run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use algonius_actors::model::execution::Outcome;
use algonius_actors::model::execution::event::TextChannel;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use super::{event_text, lookup};
use crate::cli::args::filters::Filters;
use crate::cli::client::ServiceClient;
use crate::cli::client::execution_feed::ExecutionFeed;
use crate::cli::client::feed_item::{FeedItem, fetch_items};
use crate::cli::client::percent_encoding::percent_encode;
use crate::cli::client::stderr_tail::fetch_stderr_tail;
use crate::cli::error::CliError;
use crate::cli::output::{CliOutput, failure_details};
use crate::wire::api::agent::AgentDetail;
use crate::wire::api::history::ExecutionDetail;
use crate::wire::api::{ExecutionEntry, ExecutionList};

/// Interval between two searches for new executions.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Shows a task up to its end: its answer on standard output, its events on standard error. The exit code reports
/// the outcome.
pub(crate) async fn watch_task(
    client: &ServiceClient,
    id: &str,
    shows_stdout: bool,
    out: &CliOutput,
) -> Result<(), CliError> {
    let entry: ExecutionEntry = client.get(&format!("/api/v1/executions/{id}")).await?;
    let channels =
        PrintedChannels::for_agent(client, &entry.agent, shows_stdout || out.is_json()).await;
    let mut feed = ExecutionFeed::new(id.to_owned(), channels.query_value());
    while let Some(item) = feed.next(client).await? {
        match item {
            _ if out.is_json() => out.print_json_document(&to_json(id, &item)),
            FeedItem::Event(event) => {
                let line = event_text::fetch_event_line(client, id, &event).await;
                line.into_iter().for_each(|line| out.print_note(&line));
            }
            FeedItem::Text(TextChannel::Stderr, text) => out.print_stderr(&text),
            FeedItem::Text(_, text) => out.print_piece(&text),
        }
    }
    out.end_text();
    let detail: ExecutionDetail = client.get(&format!("/api/v1/executions/{id}")).await?;
    check_outcome(client, &detail, out).await
}

async fn check_outcome(
    client: &ServiceClient,
    detail: &ExecutionDetail,
    out: &CliOutput,
) -> Result<(), CliError> {
    let entry = &detail.entry;
    if entry.outcome == Some(Outcome::Completed) {
        return Ok(());
    }
    let reason =
        entry.error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
    let details = if out.is_json() {
        String::new()
    } else {
        failure_details::details_text(detail, &fetch_stderr_tail(client, detail).await.0)
    };
    let message = format!("task {} is {}{reason}{details}", entry.id, entry.state);
    Err(CliError::ExecutionNotSucceeded { message, error_body: entry.error.clone() })
}

/// Texts of an agent's tasks that are shown to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PrintedChannels {
    /// Standard output is the answer, or additional output of the program.
    Stdout,
    /// Standard output contains events of a protocol, so the answer derived from them is shown.
    Answer,
}

impl PrintedChannels {
    /// Returns the channels of an agent. With `shows_stdout`, always its standard output.
    async fn for_agent(client: &ServiceClient, agent: &str, shows_stdout: bool) -> Self {
        if shows_stdout {
            return Self::Stdout;
        }
        // The standard output is shown for an agent that was removed or that the token may not see.
        let path = format!("/api/v1/agents/{}", percent_encode(agent));
        let detail: Option<AgentDetail> = client.get(&path).await.ok();
        let program = detail.and_then(|detail| detail.status.program);
        match program.is_some_and(|program| program.prints_events) {
            true => Self::Answer,
            false => Self::Stdout,
        }
    }

    const fn query_value(self) -> &'static str {
        match self {
            Self::Stdout => "stdout,stderr",
            Self::Answer => "answer,stderr",
        }
    }

    const fn text_channels(self) -> [TextChannel; 2] {
        match self {
            Self::Stdout => [TextChannel::Stdout, TextChannel::Stderr],
            Self::Answer => [TextChannel::Answer, TextChannel::Stderr],
        }
    }
}

/// Channels by agent, so that each agent is requested only once.
#[derive(Default)]
struct AgentChannels(BTreeMap<String, PrintedChannels>);

impl AgentChannels {
    async fn find_or_fetch(
        &mut self,
        client: &ServiceClient,
        agent: &str,
        shows_stdout: bool,
    ) -> PrintedChannels {
        if let Some(channels) = self.0.get(agent) {
            return *channels;
        }
        let channels = PrintedChannels::for_agent(client, agent, shows_stdout).await;
        self.0.insert(agent.to_owned(), channels);
        channels
    }
}

/// Shows the latest tasks, each line with its agent and its task; with `follow`, also all new ones.
pub(crate) async fn print_logs(
    client: &ServiceClient,
    agent: Option<String>,
    (max_tasks, follow, shows_stdout): (u32, bool, bool),
    out: &CliOutput,
) -> Result<(), CliError> {
    let shows_stdout = shows_stdout || out.is_json();
    let filters = Filters { agent, ..Filters::default() };
    let path = format!("/api/v1/executions?{}", filters.query(&[("limit", max_tasks.to_string())]));
    if follow {
        return follow_executions(client, &path, shows_stdout, out).await;
    }
    let list: ExecutionList = client.get(&path).await?;
    if list.executions.is_empty() {
        lookup::similar_name_hint(client, &filters)
            .await
            .into_iter()
            .for_each(|remark| out.print_note(&remark));
    }
    let mut agent_channels = AgentChannels::default();
    for entry in list.executions.iter().rev() {
        let mut printer = ExecutionPrinter::new(entry);
        let channels = agent_channels.find_or_fetch(client, &entry.agent, shows_stdout).await;
        for item in fetch_items(client, &entry.id, channels.text_channels()).await? {
            printer.print_item(client, item, out).await;
        }
        printer.flush_open_lines(out);
    }
    Ok(())
}

/// Shows all items of the executions of a list, and of new executions. Never ends without a signal.
async fn follow_executions(
    client: &ServiceClient,
    path: &str,
    shows_stdout: bool,
    out: &CliOutput,
) -> Result<(), CliError> {
    let (mut known_ids, mut agent_channels) = (None, AgentChannels::default());
    let mut feeds = FuturesUnordered::new();
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            Some(next) = feeds.next(), if !feeds.is_empty() => {
                let (feed, mut printer, item): (ExecutionFeed, ExecutionPrinter, Option<FeedItem>) = next?;
                match item {
                    Some(item) => {
                        printer.print_item(client, item, out).await;
                        feeds.push(next_item(client, feed, printer));
                    }
                    None => printer.flush_open_lines(out),
                }
            }
            _ = ticks.tick() => {
                for entry in fetch_new_executions(client, path, &mut known_ids).await? {
                    let channels = agent_channels.find_or_fetch(client, &entry.agent, shows_stdout).await;
                    let printer = ExecutionPrinter::new(&entry);
                    let feed = ExecutionFeed::new(entry.id, channels.query_value());
                    feeds.push(next_item(client, feed, printer));
                }
            }
        }
    }
}

/// Returns the executions of a list that are not known yet, oldest first, and adds them to the known ones. The first
/// time it reads one page, later all pages with new executions.
async fn fetch_new_executions(
    client: &ServiceClient,
    path: &str,
    known_ids: &mut Option<BTreeSet<String>>,
) -> Result<Vec<ExecutionEntry>, CliError> {
    let (is_first, known_ids) = (known_ids.is_none(), known_ids.get_or_insert_default());
    let (mut new_entries, mut page_path) = (Vec::new(), path.to_owned());
    loop {
        let list: ExecutionList = client.get(&page_path).await?;
        let page_length = list.executions.len();
        let new = list.executions.into_iter().filter(|entry| !known_ids.contains(&entry.id));
        let length_before = new_entries.len();
        new_entries.extend(new);
        let is_all_new = new_entries.len() - length_before == page_length;
        match list.next {
            Some(next) if is_all_new && !is_first => page_path = format!("{path}&cursor={next}"),
            _ => break,
        }
    }
    known_ids.extend(new_entries.iter().map(|entry| entry.id.clone()));
    // Ids sort by the time of acceptance.
    new_entries.reverse();
    Ok(new_entries)
}

/// Returns the next item of an execution, with the state to continue.
async fn next_item(
    client: &ServiceClient,
    mut feed: ExecutionFeed,
    printer: ExecutionPrinter,
) -> Result<(ExecutionFeed, ExecutionPrinter, Option<FeedItem>), CliError> {
    let item = feed.next(client).await?;
    Ok((feed, printer, item))
}

/// Printer of the lines of one task.
struct ExecutionPrinter {
    id: String,
    prefix: String,
    /// Text without a line end yet, by channel.
    open_lines: BTreeMap<&'static str, String>,
}

impl ExecutionPrinter {
    fn new(entry: &ExecutionEntry) -> Self {
        let prefix = format!("{} {}", entry.agent, entry.id);
        Self { id: entry.id.clone(), prefix, open_lines: BTreeMap::new() }
    }

    async fn print_item(&mut self, client: &ServiceClient, item: FeedItem, out: &CliOutput) {
        match item {
            _ if out.is_json() => out.print_json_document(&to_json(&self.id, &item)),
            FeedItem::Event(event) => {
                let line = event_text::fetch_event_line(client, &self.id, &event).await;
                line.into_iter()
                    .for_each(|line| out.print_line(&format!("{} {line}", self.prefix)));
            }
            FeedItem::Text(channel, text) => {
                self.print_complete_lines(channel.as_str(), &text, out);
            }
        }
    }

    fn print_complete_lines(&mut self, channel: &'static str, text: &str, out: &CliOutput) {
        let mut pending = self.open_lines.remove(channel).unwrap_or_default() + text;
        while let Some(end) = pending.find('\n') {
            let after_line = pending.split_off(end + 1);
            out.print_line(&format!("{} {channel}: {}", self.prefix, pending.trim_end()));
            pending = after_line;
        }
        self.open_lines.insert(channel, pending);
    }

    /// Prints the text that had no line end.
    fn flush_open_lines(&mut self, out: &CliOutput) {
        for (channel, rest) in std::mem::take(&mut self.open_lines) {
            if !rest.is_empty() {
                out.print_line(&format!("{} {channel}: {rest}", self.prefix));
            }
        }
    }
}

fn to_json(id: &str, item: &FeedItem) -> String {
    match item {
        FeedItem::Event(event) => json!({"id": id, "event": event}),
        FeedItem::Text(channel, text) => json!({"id": id, "channel": channel, "text": text}),
    }
    .to_string()
}
