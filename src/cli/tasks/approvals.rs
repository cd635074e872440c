//! `algonius approvals`, `approve`, `deny` and `answer`: questions of agents to people.

use algonius_actors::model::id::AgentId;
use algonius_actors::model::interaction::{AnswerSource, InteractionState};
use serde_json::{Value, json};
use uuid::Uuid;

use super::lookup;
use crate::cli::args::approvals::{AnswerArgs, ApprovalsArgs, ApprovalsCommand, DenyArgs};
use crate::cli::client::ServiceClient;
use crate::cli::client::percent_encoding::percent_encode;
use crate::cli::error::CliError;
use crate::cli::output::CliOutput;
use crate::cli::output::screen::truncate_line;
use crate::platform::terminal_text;
use crate::wire::api::ErrorBody;
use crate::wire::api::interactions::{
    ClosedEntry, DecisionEntry, DecisionList, InteractionEntry, InteractionList,
};

/// Greatest length of a page of interactions.
const PAGE_SIZE: u32 = 1000;

/// Longest question in a list, in characters.
const MAX_QUESTION_CHARS: usize = 60;

/// Runs `approvals`.
pub(in crate::cli) async fn run(
    client: &ServiceClient,
    args: ApprovalsArgs,
    out: &CliOutput,
) -> Result<(), CliError> {
    match args.command {
        Some(ApprovalsCommand::Show { id }) => {
            let interaction = find_interaction(client, &id).await?;
            show(&interaction, out);
            Ok(())
        }
        Some(ApprovalsCommand::Decisions { agent }) => print_decisions(client, agent, out).await,
        None => list(client, args.all, args.task, out).await,
    }
}

/// Runs `approve`.
pub(in crate::cli) async fn approve(
    client: &ServiceClient,
    id: &str,
    out: &CliOutput,
) -> Result<(), CliError> {
    let interaction = find_interaction(client, id).await?;
    // The digest binds the verdict to the call that was read here.
    let body = json!({"verdict": "allow", "digest": interaction.question.digest});
    send_answer(client, &interaction, body, out).await
}

/// Runs `deny`.
pub(in crate::cli) async fn deny(
    client: &ServiceClient,
    args: DenyArgs,
    out: &CliOutput,
) -> Result<(), CliError> {
    let interaction = find_interaction(client, &args.id).await?;
    let mut body = json!({"verdict": "deny", "digest": interaction.question.digest});
    if let (Some(reason), Some(fields)) = (args.reason, body.as_object_mut()) {
        fields.insert("reason".to_owned(), reason.into());
    }
    send_answer(client, &interaction, body, out).await
}

/// Runs `answer`.
pub(in crate::cli) async fn answer(
    client: &ServiceClient,
    args: AnswerArgs,
    out: &CliOutput,
) -> Result<(), CliError> {
    let interaction = find_interaction(client, &args.id).await?;
    let digest = &interaction.question.digest;
    let body = match args {
        AnswerArgs { decline: true, .. } => json!({"decline": true, "digest": digest}),
        AnswerArgs { option: Some(option), .. } => json!({"option": option, "digest": digest}),
        AnswerArgs { values: Some(values), .. } => {
            let values: Value = serde_json::from_str(&values).map_err(|error| {
                let hint = "give a JSON object with a member for each field";
                refused_error("answer-invalid", &format!("`--values` is not JSON: {error}"), hint)
            })?;
            json!({"values": values, "digest": digest})
        }
        AnswerArgs { text, .. } => json!({"text": text.unwrap_or_default(), "digest": digest}),
    };
    send_answer(client, &interaction, body, out).await
}

async fn send_answer(
    client: &ServiceClient,
    interaction: &InteractionEntry,
    body: Value,
    out: &CliOutput,
) -> Result<(), CliError> {
    let path = format!("/api/v1/interactions/{}/answer", interaction.id);
    let interaction: InteractionEntry = client.post(&path, body).await?;
    if out.is_json() {
        out.print_json(&interaction);
        return Ok(());
    }
    let end = interaction.closed.as_ref().map(closed_entry_text).unwrap_or_default();
    out.print_line(&format!("{} {end}", interaction.id));
    Ok(())
}

async fn list(
    client: &ServiceClient,
    includes_closed: bool,
    task: Option<String>,
    out: &CliOutput,
) -> Result<(), CliError> {
    let mut filters = if includes_closed { String::new() } else { "&state=open".to_owned() };
    if let Some(task) = task {
        let task = lookup::resolve_task_id(client, &task).await?;
        filters.push_str(&format!("&execution={task}"));
    }
    let interactions = fetch_interactions(client, &filters).await?;
    if out.is_json() {
        out.print_json(&InteractionList { interactions, next: None });
        return Ok(());
    }
    let rows = interactions.iter().map(interaction_row).collect();
    out.print_table(
        ["ID", "AGENT", "STATE", "EXPIRES", "TOOL", "QUESTION"],
        rows,
        "no open questions",
    );
    if interactions.iter().any(|interaction| interaction.state == InteractionState::Open) {
        out.print_note(
            "hint: `algonius approvals show ID` shows a question, `algonius approve ID` allows it",
        );
    }
    Ok(())
}

/// Returns all interactions that match the filters of a query.
async fn fetch_interactions(
    client: &ServiceClient,
    filters: &str,
) -> Result<Vec<InteractionEntry>, CliError> {
    let first_page = format!("/api/v1/interactions?limit={PAGE_SIZE}{filters}");
    let (mut interactions, mut path) = (Vec::new(), first_page.clone());
    loop {
        let list: InteractionList = client.get(&path).await?;
        interactions.extend(list.interactions);
        match list.next {
            Some(next) => path = format!("{first_page}&cursor={next}"),
            None => return Ok(interactions),
        }
    }
}

fn interaction_row(interaction: &InteractionEntry) -> [String; 6] {
    let tool = interaction.question.tool.as_ref().map_or("-", |call| &*call.tool);
    let expires = match interaction.state {
        InteractionState::Open => interaction.due_at.format("%Y-%m-%d %H:%M:%SZ").to_string(),
        _ => "-".to_owned(),
    };
    let question = interaction.question.message.lines().collect::<Vec<_>>().join(" ");
    [
        interaction.id.to_string(),
        interaction.agent.to_string(),
        interaction.state.as_str().to_owned(),
        expires,
        tool.to_owned(),
        truncate_line(&question, MAX_QUESTION_CHARS),
    ]
}

fn show(interaction: &InteractionEntry, out: &CliOutput) {
    if out.is_json() {
        return out.print_json(interaction);
    }
    out.print_line(&format!("interaction  {}", interaction.id));
    out.print_line(&format!("task         {}", interaction.execution));
    out.print_line(&format!("agent        {}", agent_path_text(interaction)));
    out.print_line(&format!("state        {}", interaction.state.as_str()));
    out.print_line(&format!("asked        {}", interaction.asked_at.format("%Y-%m-%d %H:%M:%SZ")));
    out.print_line(&format!("expires      {}", interaction.due_at.format("%Y-%m-%d %H:%M:%SZ")));
    // The agent chooses these values.
    let print_value = |name: &str, value: &str| {
        out.print_line(&format!("{name:<13}{}", terminal_text::escape_showing_line_breaks(value)));
    };
    print_value("question", &interaction.question.message);
    if let Some(call) = &interaction.question.tool {
        print_value("tool", &call.tool);
        call.command.iter().for_each(|command| print_value("command", command));
        call.paths.iter().for_each(|path| print_value("path", path));
        call.url.iter().for_each(|url| print_value("url", url));
        if !call.args.is_null() {
            out.print_line(&format!("arguments    {}", call.args));
        }
    }
    for option in &interaction.question.options {
        print_value("option", &format!("{}: {}", option.id, option.name));
    }
    interaction
        .question
        .schema
        .iter()
        .for_each(|schema| out.print_line(&format!("schema       {schema}")));
    interaction
        .closed
        .iter()
        .for_each(|closed| out.print_line(&format!("end          {}", closed_entry_text(closed))));
}

/// Returns the agent that opened the question, after the teams that passed the request on to it.
fn agent_path_text(interaction: &InteractionEntry) -> String {
    let names: Vec<_> = interaction.path.iter().map(AgentId::as_str).collect();
    if names.is_empty() { interaction.agent.to_string() } else { names.join(" > ") }
}

/// Returns the end of an interaction in words.
fn closed_entry_text(closed: &ClosedEntry) -> String {
    let answer = closed.answer.as_ref().map_or("no answer", |answer| answer.kind_name());
    format!("{answer}, {}, {}", source_text(&closed.by), closed.at.format("%Y-%m-%d %H:%M:%SZ"))
}

fn source_text(source: &AnswerSource) -> String {
    match source {
        AnswerSource::Principal { name, channel, .. } => format!("by {name} ({channel})"),
        AnswerSource::Rule { rule } => format!("by the rule {rule}"),
        AnswerSource::Timeout => "because nobody answered in time".to_owned(),
        AnswerSource::Cancel => "because the turn was cancelled".to_owned(),
        AnswerSource::ProcessEnd => "because the process ended".to_owned(),
        AnswerSource::Agent => "by the agent".to_owned(),
    }
}

async fn print_decisions(
    client: &ServiceClient,
    agent: Option<String>,
    out: &CliOutput,
) -> Result<(), CliError> {
    let agent_query =
        agent.map(|agent| format!("&agent={}", percent_encode(&agent))).unwrap_or_default();
    let mut decisions = Vec::new();
    let mut after = 0;
    loop {
        let path = format!("/api/v1/permission-decisions?limit=1000&after={after}{agent_query}");
        let list: DecisionList = client.get(&path).await?;
        decisions.extend(list.decisions);
        match list.next {
            Some(next) => after = next,
            None => break,
        }
    }
    if out.is_json() {
        out.print_json(&DecisionList { decisions, next: None });
        return Ok(());
    }
    let decision_row = |decision: &DecisionEntry| {
        [
            decision.number.to_string(),
            decision.at.format("%Y-%m-%d %H:%M:%SZ").to_string(),
            decision.agent.to_string(),
            decision.tool.clone(),
            decision.verdict.as_str().to_owned(),
            source_text(&decision.by),
        ]
    };
    let rows = decisions.iter().map(decision_row).collect();
    out.print_table(["NUMBER", "TIME", "AGENT", "TOOL", "VERDICT", "SOURCE"], rows, "no decisions");
    Ok(())
}

/// Returns an interaction by its id, or by the start or the end of its id.
async fn find_interaction(
    client: &ServiceClient,
    id_or_part: &str,
) -> Result<InteractionEntry, CliError> {
    if let Ok(id) = Uuid::parse_str(id_or_part) {
        return client.get(&format!("/api/v1/interactions/{id}")).await;
    }
    let part: String =
        id_or_part.to_ascii_lowercase().chars().filter(|char| *char != '-').collect();
    let interactions = fetch_interactions(client, "").await?;
    let is_match = |interaction: &InteractionEntry| {
        let id = interaction.id.0.simple().to_string();
        part.len() >= 4 && (id.starts_with(&part) || id.ends_with(&part))
    };
    let mut matches: Vec<_> = interactions.into_iter().filter(is_match).collect();
    match matches.len() {
        1 => matches.pop().ok_or_else(|| unknown_interaction_error(id_or_part)),
        0 => Err(unknown_interaction_error(id_or_part)),
        _ => {
            let candidates =
                matches.iter().map(|interaction| interaction_row(interaction).join("  ")).collect();
            Err(CliError::AmbiguousId { id: id_or_part.to_owned(), candidates, has_more: false })
        }
    }
}

fn unknown_interaction_error(id_or_part: &str) -> CliError {
    let hint =
        "give an id of `algonius approvals --all`, or 4 digits or more of its start or its end";
    refused_error("interaction-unknown", &format!("there is no interaction `{id_or_part}`"), hint)
}

fn refused_error(code: &str, message: &str, hint: &str) -> CliError {
    CliError::RequestRefused(ErrorBody {
        code: code.to_owned(),
        category: "permanent".to_owned(),
        message: message.to_owned(),
        hint: hint.to_owned(),
    })
}
