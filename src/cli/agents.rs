//! `algonius agents`: lists, shows, enables, disables, adds and tests agents.

mod add;
mod config_draft;
mod presets;
mod probe;

use algonius_actors::model::host::sandbox::Confinement;
use algonius_actors::model::observation::status::AgentStatus;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::args::agents::AgentsCommand;
use super::client::ServiceClient;
use super::client::percent_encoding::percent_encode;
use super::error::CliError;
use super::output::CliOutput;
use super::output::time_text::format_interval;
use super::status::health_text;
use crate::wire::admin::SwitchedAgent;
use crate::wire::api::agent::{AgentDetail, AgentLimits};
use crate::wire::api::{AgentEntry, AgentList, ServiceStatus};

/// Runs the command. Commands that need no service run without a client.
pub(super) async fn run(
    client: Result<ServiceClient, CliError>,
    command: AgentsCommand,
    out: &CliOutput,
) -> Result<(), CliError> {
    match command {
        AgentsCommand::List => list(&client?, out).await,
        AgentsCommand::Show { id } => {
            let client = client?;
            add_agent_suggestion(&client, &id, show(&client, &id, out).await).await
        }
        AgentsCommand::Enable { id } => {
            let client = client?;
            add_agent_suggestion(&client, &id, switch(&client, &id, "enable", out).await).await
        }
        AgentsCommand::Disable { id } => {
            let client = client?;
            add_agent_suggestion(&client, &id, switch(&client, &id, "disable", out).await).await
        }
        AgentsCommand::Add(args) => add::run(client, args, out).await,
        AgentsCommand::Presets { config } => presets::run(config.as_deref(), out).await,
        AgentsCommand::Test { id, input } => {
            let client = client?;
            add_agent_suggestion(&client, &id, probe::run(&client, &id, input, out).await).await
        }
    }
}

/// Adds a suggestion to the error of an unknown agent.
async fn add_agent_suggestion(
    client: &ServiceClient,
    id: &str,
    result: Result<(), CliError>,
) -> Result<(), CliError> {
    match result {
        Err(error) => Err(client.add_similar_agent_hint(error, id).await),
        result => result,
    }
}

async fn list(client: &ServiceClient, out: &CliOutput) -> Result<(), CliError> {
    let list: AgentList = client.get("/api/v1/agents").await?;
    let tree = client.get::<ServiceStatus>("/status").await?.tree;
    let status_of =
        |entry: &AgentEntry| tree.agents.iter().find(|agent| agent.id.as_str() == entry.id);
    if out.is_json() {
        let agents = list.agents.iter().map(|entry| {
            let mut document = serde_json::to_value(entry).unwrap_or_default();
            if let (Value::Object(document), Some(status)) = (&mut document, status_of(entry)) {
                document.insert("status".to_owned(), json!(status));
            }
            document
        });
        out.print_json(&json!({"agents": agents.collect::<Vec<_>>()}));
        return Ok(());
    }
    let rows =
        list.agents.iter().map(|entry| agent_row(entry, status_of(entry), tree.at)).collect();
    out.print_table(
        ["AGENT", "STATE", "RUNNING", "QUEUE", "ACCESS", "LAST", "WHAT"],
        rows,
        "no agents",
    );
    Ok(())
}

fn agent_row(entry: &AgentEntry, status: Option<&AgentStatus>, now: DateTime<Utc>) -> [String; 7] {
    let last = status.and_then(|status| status.work.last_execution.as_ref());
    [
        entry.id.clone(),
        state_text(entry, status, now),
        status.map_or("-".to_owned(), running_text),
        status.map_or("-".to_owned(), queue_text),
        entry.access.clone(),
        last.map_or("-".to_owned(), |last| {
            format!("{} {} ago", last.outcome, format_interval(now, last.at))
        }),
        entry.description.clone(),
    ]
}

/// Returns whether the agent accepts work, by which setting, and the health of its actor if that is unusual.
fn state_text(entry: &AgentEntry, status: Option<&AgentStatus>, now: DateTime<Utc>) -> String {
    let enabled_text = if entry.enabled { "enabled" } else { "disabled" };
    let switch_note = if entry.switched { " (switched)" } else { "" };
    let health = status.map_or(String::new(), |status| {
        health_text(status.health, status.actor_starts.since, status.actor_starts.restarts, now)
    });
    format!("{enabled_text}{switch_note}{health}")
}

fn running_text(status: &AgentStatus) -> String {
    let limit = status.work.capacity.map_or("∞".to_owned(), |capacity| capacity.to_string());
    format!("{}/{limit}", status.work.running.len())
}

/// Returns the queued executions, and the earliest end of a deferral.
fn queue_text(status: &AgentStatus) -> String {
    let deferred =
        status.work.queued.iter().filter_map(|queued| Some((queued.until?, queued.reason)));
    let deferred = deferred.min_by_key(|(until, _)| *until).map(|(until, reason)| {
        format!(" {} until {}", reason.as_str(), until.format("%Y-%m-%d %H:%M:%SZ"))
    });
    format!(
        "{}/{}{}",
        status.work.queued.len(),
        status.work.queue_depth,
        deferred.unwrap_or_default()
    )
}

async fn show(client: &ServiceClient, id: &str, out: &CliOutput) -> Result<(), CliError> {
    let detail: AgentDetail = client.get(&format!("/api/v1/agents/{}", percent_encode(id))).await?;
    if out.is_json() {
        out.print_json(&detail);
        return Ok(());
    }
    let AgentDetail { entry, skills, limits, pool, status, .. } = &detail;
    let skills: Vec<_> = skills.iter().map(|skill| skill.id.as_str()).collect();
    let now = client.get::<ServiceStatus>("/status").await?.tree.at;
    let mut rows = vec![
        ("agent", format!("{} ({} {})", entry.id, entry.name, entry.version)),
        ("kind", entry.kind.as_str().to_owned()),
        ("description", entry.description.clone()),
        ("skills", skills.join(", ")),
        ("state", state_text(entry, Some(status), now)),
        ("running", format!("{}, at most {} so far", running_text(status), pool.peak)),
        ("queue", queue_text(status)),
        ("started", format!("{}, after {} ms on average", pool.started, pool.mean_wait_ms)),
        ("refused", pool.refused.to_string()),
    ];
    rows.extend(limit_rows(limits));
    rows.push(("access", entry.access.clone()));
    if let Some(Confinement { enforcement, isolation, boundary }) = &entry.confinement {
        let isolation_clause = isolation.map_or(String::new(), |it| format!(" by {}", it.as_str()));
        rows.push(("sandbox", format!("{}{isolation_clause}", enforcement.as_str())));
        rows.push(("boundary", boundary.to_string()));
    }
    let backends = status.isolation.backends.iter();
    rows.extend(backends.map(|backend| ("backend", backend.to_string())));
    if !status.resources.is_empty() {
        rows.push(("resources", status.resources.to_string()));
    }
    rows.extend(status.unavailable.clone().map(|reason| ("unavailable", reason)));
    rows.extend(status.actor_starts.last_fault.clone().map(|fault| ("fault", fault)));
    rows.push(("url", entry.url.clone()));
    rows.push(("card", entry.card.clone()));
    rows.iter().for_each(|(name, value)| out.print_line(&format!("{name:<13} {value}")));
    Ok(())
}

/// Returns the limits of an agent's requests.
fn limit_rows(limits: &AgentLimits) -> Vec<(&'static str, String)> {
    let idle_timeout =
        limits.idle_timeout.map_or("none".to_owned(), |idle_timeout| format!("{idle_timeout} s"));
    let dedup_window =
        limits.dedup_window.map_or("none".to_owned(), |window| format!("{window} s"));
    vec![
        ("queue timeout", format!("{} s", limits.queue_timeout)),
        ("timeout", format!("{} s", limits.timeout)),
        ("idle timeout", idle_timeout),
        ("retries", limits.retries.to_string()),
        ("input", format!("at most {} bytes", limits.max_input_bytes)),
        ("output", format!("at most {} bytes", limits.max_output_bytes)),
        ("dedup window", dedup_window),
    ]
}

async fn switch(
    client: &ServiceClient,
    id: &str,
    action: &str,
    out: &CliOutput,
) -> Result<(), CliError> {
    let path = format!("/api/v1/agents/{}/{action}", percent_encode(id));
    let switched: SwitchedAgent = client.post(&path, json!({})).await?;
    if out.is_json() {
        out.print_json(&switched);
        return Ok(());
    }
    let SwitchedAgent { id, enabled, configured } = &switched;
    let enabled_text = |is_on: bool| if is_on { "enabled" } else { "disabled" };
    let duration_note = match enabled == configured {
        true => "as configured".to_owned(),
        false => format!("until it is switched back; configured: {}", enabled_text(*configured)),
    };
    out.print_line(&format!("agent {id} is {}, {duration_note}", enabled_text(*enabled)));
    Ok(())
}
