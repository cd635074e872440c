//! `algonius agents`: who can be asked, how each is, on or off, and whether it works.

mod add;
mod draft;
pub(super) mod fault;
pub(super) mod look;
mod presets;
mod probe;

use algonius_actors::model::status::AgentStatus;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::args::agents::AgentsCommand;
use super::client::Client;
use super::fault::CliError;
use super::out::Out;
use super::status::{ago, life};
use crate::wire::admin::Switched;
use crate::wire::api::agent::{AgentDetail, AgentLimits};
use crate::wire::api::{AgentEntry, AgentList, ServiceStatus};

/// Does what was asked. What needs no service does without a client.
pub(super) async fn run(
    client: Result<Client, CliError>,
    command: AgentsCommand,
    out: &Out,
) -> Result<(), CliError> {
    match command {
        AgentsCommand::List => list(&client?, out).await,
        AgentsCommand::Show { id } => show(&client?, &id, out).await,
        AgentsCommand::Enable { id } => switch(&client?, &id, "enable", out).await,
        AgentsCommand::Disable { id } => switch(&client?, &id, "disable", out).await,
        AgentsCommand::Add(wanted) => add::run(client, wanted, out).await,
        AgentsCommand::Presets { config } => presets::run(config.as_deref(), out).await,
        AgentsCommand::Test { id, input } => probe::run(&client?, &id, input, out).await,
    }
}

async fn list(client: &Client, out: &Out) -> Result<(), CliError> {
    let list: AgentList = client.get("/api/v1/agents").await?;
    let tree = client.get::<ServiceStatus>("/status").await?.tree;
    let of = |entry: &AgentEntry| tree.agents.iter().find(|agent| agent.id.as_str() == entry.id);
    if out.is_json() {
        let agents = list.agents.iter().map(|entry| {
            let mut shown = serde_json::to_value(entry).unwrap_or_default();
            if let (Value::Object(shown), Some(status)) = (&mut shown, of(entry)) {
                shown.insert("status".to_owned(), json!(status));
            }
            shown
        });
        out.shape(&json!({"agents": agents.collect::<Vec<_>>()}));
        return Ok(());
    }
    let rows = list.agents.iter().map(|entry| row(entry, of(entry), tree.at)).collect();
    out.table(["AGENT", "STATE", "RUNNING", "QUEUE", "ACCESS", "LAST", "WHAT"], rows, "no agents");
    Ok(())
}

fn row(entry: &AgentEntry, status: Option<&AgentStatus>, at: DateTime<Utc>) -> [String; 7] {
    let last = status.and_then(|status| status.last.as_ref());
    [
        entry.id.clone(),
        state(entry, status, at),
        status.map_or("-".to_owned(), running),
        status.map_or("-".to_owned(), queue),
        entry.access.clone(),
        last.map_or("-".to_owned(), |last| format!("{} {} ago", last.outcome, ago(at, last.at))),
        entry.description.clone(),
    ]
}

/// Whether it takes work, who said so, and what its actor does where that is not the usual.
fn state(entry: &AgentEntry, status: Option<&AgentStatus>, at: DateTime<Utc>) -> String {
    let word = if entry.enabled { "enabled" } else { "disabled" };
    let by = if entry.switched { " (switched)" } else { "" };
    let health = status
        .map_or(String::new(), |status| life(status.health, status.since, status.restarts, at));
    format!("{word}{by}{health}")
}

fn running(status: &AgentStatus) -> String {
    let most = status.capacity.map_or("∞".to_owned(), |capacity| capacity.to_string());
    format!("{}/{most}", status.running.len())
}

fn queue(status: &AgentStatus) -> String {
    format!("{}/{}", status.queued.len(), status.queue_depth)
}

async fn show(client: &Client, id: &str, out: &Out) -> Result<(), CliError> {
    let detail: AgentDetail = client.get(&format!("/api/v1/agents/{id}")).await?;
    if out.is_json() {
        out.shape(&detail);
        return Ok(());
    }
    let AgentDetail { entry, skills, limits, pool, status, .. } = &detail;
    let skills: Vec<_> = skills.iter().map(|skill| skill.id.as_str()).collect();
    let at = client.get::<ServiceStatus>("/status").await?.tree.at;
    let mut rows = vec![
        ("agent", format!("{} ({} {})", entry.id, entry.name, entry.version)),
        ("what", entry.description.clone()),
        ("skills", skills.join(", ")),
        ("state", state(entry, Some(status), at)),
        ("running", format!("{}, at most {} so far", running(status), pool.peak)),
        ("queue", queue(status)),
        ("begun", format!("{}, after {} ms on average", pool.begun, pool.mean_wait_ms)),
        ("refused", pool.refused.to_string()),
    ];
    rows.extend(bounds(limits));
    let means = entry.isolation.map_or(String::new(), |it| format!(" by {}", it.as_str()));
    rows.push(("access", entry.access.clone()));
    rows.push(("sandbox", format!("{}{means}", entry.enforcement.as_str())));
    if !status.resources.is_empty() {
        rows.push(("resources", status.resources.to_string()));
    }
    rows.extend(status.last_fault.clone().map(|fault| ("fault", fault)));
    rows.push(("door", entry.url.clone()));
    rows.push(("card", entry.card.clone()));
    rows.iter().for_each(|(name, value)| out.line(&format!("{name:<13} {value}")));
    Ok(())
}

/// What an agent's requests are bound by.
fn bounds(limits: &AgentLimits) -> Vec<(&'static str, String)> {
    let idle = limits.idle_timeout.map_or("none".to_owned(), |idle| format!("{idle} s"));
    let dedup = limits.dedup_window.map_or("none".to_owned(), |window| format!("{window} s"));
    vec![
        ("queue timeout", format!("{} s", limits.queue_timeout)),
        ("timeout", format!("{} s", limits.timeout)),
        ("idle timeout", idle),
        ("retries", limits.retries.to_string()),
        ("input", format!("at most {} bytes", limits.max_input_bytes)),
        ("output", format!("at most {} bytes", limits.max_output_bytes)),
        ("dedup window", dedup),
    ]
}

async fn switch(client: &Client, id: &str, how: &str, out: &Out) -> Result<(), CliError> {
    let path = format!("/api/v1/agents/{id}/{how}");
    let switched: Switched = client.post(&path, json!({})).await?;
    if out.is_json() {
        out.shape(&switched);
        return Ok(());
    }
    let Switched { id, enabled, configured } = &switched;
    let word = |is_on: bool| if is_on { "enabled" } else { "disabled" };
    let until = match enabled == configured {
        true => "as configured".to_owned(),
        false => format!("until it is switched back; configured: {}", word(*configured)),
    };
    out.line(&format!("agent {id} is {}, {until}", word(*enabled)));
    Ok(())
}
