//! `algonius usage`: tokens and cost of agents by day, or of single tasks.

use crate::cli::args::filters::Filters;
use crate::cli::args::usage::UsageArgs;
use crate::cli::client::ServiceClient;
use crate::cli::client::percent_encoding::percent_encode;
use crate::cli::error::CliError;
use crate::cli::output::CliOutput;
use crate::cli::output::screen::truncate_line;
use crate::cli::output::usage_text::format_dollars;
use crate::wire::api::usage::{UsageAmounts, UsageReport};
use crate::wire::api::{ExecutionEntry, ExecutionList};

/// Maximum number of characters of a request in the table of tasks.
const MAX_REQUEST_CHARS: usize = 40;

/// Requests the usage and prints it.
pub(crate) async fn run(
    client: &ServiceClient,
    args: UsageArgs,
    out: &CliOutput,
) -> Result<(), CliError> {
    match args.tasks {
        Some(limit) => print_tasks(client, args.agent, limit, out).await,
        None => print_days(client, &args, out).await,
    }
}

async fn print_days(
    client: &ServiceClient,
    args: &UsageArgs,
    out: &CliOutput,
) -> Result<(), CliError> {
    let agent_query =
        args.agent.as_ref().map_or(String::new(), |id| format!("&agent={}", percent_encode(id)));
    let path = format!("/api/v1/usage?days={}{agent_query}", args.days);
    let report: UsageReport = client.get(&path).await?;
    if out.is_json() {
        out.print_json(&report);
        return Ok(());
    }
    let mut rows: Vec<_> = report
        .entries
        .iter()
        .map(|entry| day_row([entry.day.to_string(), entry.agent.clone()], entry.amounts))
        .collect();
    if rows.len() > 1 {
        rows.push(day_row(["all".to_owned(), String::new()], report.total));
    }
    let empty_message = format!(
        "no agent has counted anything from {} to {}; agents that print no tokens are not counted",
        report.since, report.until
    );
    out.print_table(
        ["DAY", "AGENT", "TURNS", "INPUT", "CACHED", "OUTPUT", "COST"],
        rows,
        &empty_message,
    );
    Ok(())
}

async fn print_tasks(
    client: &ServiceClient,
    agent: Option<String>,
    limit: u32,
    out: &CliOutput,
) -> Result<(), CliError> {
    let filters = Filters { agent, ..Filters::default() };
    let query = filters.query(&[("limit", limit.to_string()), ("summary", "true".to_owned())]);
    let list: ExecutionList = client.get(&format!("/api/v1/executions?{query}")).await?;
    if out.is_json() {
        out.print_json(&list);
        return Ok(());
    }
    let rows = list.executions.iter().map(task_row).collect();
    let headings =
        ["TASK", "AGENT", "ACCEPTED", "TURNS", "INPUT", "CACHED", "OUTPUT", "COST", "REQUEST"];
    out.print_table(headings, rows, "no tasks");
    Ok(())
}

fn task_row(entry: &ExecutionEntry) -> [String; 9] {
    let accepted = entry.accepted_at.format("%Y-%m-%d %H:%M:%SZ").to_string();
    let request =
        entry.summary.as_ref().map(|summary| truncate_line(&summary.request, MAX_REQUEST_CHARS));
    let [turns, input, cached, output, cost] = format_amounts(entry.usage);
    let request = request.unwrap_or_default();
    let (id, agent) = (entry.id.clone(), entry.agent.clone());
    [id, agent, accepted, turns, input, cached, output, cost, request]
}

fn day_row([day, agent]: [String; 2], amounts: UsageAmounts) -> [String; 7] {
    let [turns, input, cached, output, cost] = format_amounts(amounts);
    [day, agent, turns, input, cached, output, cost]
}

fn format_amounts(amounts: UsageAmounts) -> [String; 5] {
    let count_text = |number: u64| if number == 0 { "-".to_owned() } else { number.to_string() };
    let UsageAmounts { turns, input_tokens, cached_input_tokens, output_tokens, cost_micros } =
        amounts;
    let cost = if cost_micros == 0 { "-".to_owned() } else { format_dollars(cost_micros) };
    [
        count_text(turns),
        count_text(input_tokens),
        count_text(cached_input_tokens),
        count_text(output_tokens),
        cost,
    ]
}
