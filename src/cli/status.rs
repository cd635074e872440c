//! `algonius status`: the tree, as a person reads it.

use algonius_actors::model::pressure::Pressure;
use algonius_actors::model::sandbox::Isolation;
use algonius_actors::model::status::{
    AgentStatus, ExecutionStatus, Health, ProgramStatus, QueuedStatus,
};
use algonius_actors::model::stock::Stock;
use chrono::{DateTime, Utc};

use super::client::Client;
use super::fault::CliError;
use super::out::Out;
use crate::wire::admin::ConfigurationStatus;
use crate::wire::api::{MachineStatus, ServiceStatus};

/// Asks and prints.
pub(super) async fn run(client: &Client, out: &Out) -> Result<(), CliError> {
    let status: ServiceStatus = client.get("/status").await?;
    if out.is_json() {
        out.shape(&status);
        return Ok(());
    }
    let tree = &status.tree;
    let restarts = tree.gateway.restarts;
    out.line(&format!("algonius {}", status.version));
    out.line(&machine(&status.machine));
    configuration(&status.configuration, tree.at, out);
    if let Some(ledger) = &status.ledger {
        out.line(&kept(ledger, tree.at));
    }
    out.line(&format!("root{}", life(tree.root.health, tree.root.since, 0, tree.at)));
    if let Some(monitor) = &tree.monitor {
        let life = life(monitor.health, monitor.since, monitor.restarts, tree.at);
        out.line(&format!("├─ monitor{life}{}", shortage(tree.pressure.as_ref())));
    }
    for agent in &tree.agents {
        print_agent(agent, tree.at, out);
    }
    let gateway = life(tree.gateway.health, tree.gateway.since, restarts, tree.at);
    out.line(&format!("└─ gateway{gateway}"));
    Ok(())
}

/// Which configuration is in force, and whether another one lies there.
fn configuration(shown: &ConfigurationStatus, at: DateTime<Utc>, out: &Out) {
    let (generation, since) = (shown.generation, ago(at, shown.since));
    out.line(&format!("configuration {generation}, in force for {since}"));
    for key in &shown.pending {
        out.line(&format!("  pending  {key}: needs a restart of the service"));
    }
    for wrong in &shown.rejected {
        out.line(&format!("  rejected  {wrong}"));
    }
}

/// Whether the machine can take more work, and why not.
fn shortage(pressure: Option<&Pressure>) -> String {
    let Some(pressure) = pressure.filter(|pressure| pressure.is_high()) else {
        return String::new();
    };
    let short: Vec<_> = pressure.short.iter().map(|short| short.as_words()).collect();
    let since = ago(pressure.at, pressure.since);
    format!(", short of {} for {since}: new work is refused", short.join(" and "))
}

/// What programs are held by.
fn machine(machine: &MachineStatus) -> String {
    let wardens: Vec<_> = machine.wardens.iter().map(ToString::to_string).collect();
    let landlock = machine.rungs.landlock;
    let landlock = landlock.map_or("no Landlock".to_owned(), |v| format!("Landlock {v}"));
    let wrap = if machine.rungs.means().bubblewrap { ", bubblewrap" } else { "" };
    let (kernel, root) = (&machine.rungs.kernel, if machine.rungs.root { ", as root" } else { "" });
    format!("on Linux {kernel}, {landlock}{wrap}, held by warden {}{root}", wardens.join(", "))
}

/// How much is kept.
fn kept(ledger: &Stock, at: DateTime<Utc>) -> String {
    let mega = |bytes: u64| format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10);
    let oldest = ledger
        .oldest
        .map_or(String::new(), |oldest| format!(", the oldest {} ago", ago(at, oldest)));
    let (count, bytes) = (ledger.executions, mega(ledger.bytes + ledger.log_bytes));
    format!("ledger {count} executions in {bytes}{oldest}")
}

fn print_agent(agent: &AgentStatus, at: DateTime<Utc>, out: &Out) {
    let capacity = agent.capacity.map_or("∞".to_owned(), |capacity| capacity.to_string());
    let life = life(agent.health, agent.since, agent.restarts, at);
    let off = if agent.enabled { "" } else { ", disabled" };
    let (running, queued, depth) = (agent.running.len(), agent.queued.len(), agent.queue_depth);
    let last = agent
        .last
        .as_ref()
        .map_or(String::new(), |last| format!(", last {} {} ago", last.outcome, ago(at, last.at)));
    out.line(&format!(
        "├─ {}{life}{off}, running {running}/{capacity}, queue {queued}/{depth}{last}",
        agent.id
    ));
    if agent.enforcement.is_wanting() {
        out.line(&format!(
            "│    what it may not do is not refused: {}",
            agent.enforcement.as_str()
        ));
    }
    if agent.isolation == Some(Isolation::Bubblewrap) {
        out.line("│    wrapped by bubblewrap");
    }
    if !agent.resources.is_empty() {
        out.line(&format!("│    {}", agent.resources));
    }
    if let Some(program) = &agent.program {
        out.line(&format!("│    {}", known(program)));
    }
    if let Some(fault) = &agent.last_fault {
        out.line(&format!("│    fault: {fault}"));
    }
    for execution in &agent.running {
        out.line(&format!("│  ├─ {}", running_line(execution, at)));
    }
    for queued in &agent.queued {
        out.line(&format!("│  ├─ {}", queued_line(queued, at)));
    }
}

/// What is known of an agent's program.
fn known(program: &ProgramStatus) -> String {
    let preset = program.preset.as_ref().map(|preset| match program.verified {
        Some(false) => format!("{preset} preset, which was never run"),
        _ => format!("{preset} preset"),
    });
    let version = program.version.as_ref().map(|version| format!("version {version}"));
    // It names the version too.
    let version = program.warning.clone().or(version);
    preset.into_iter().chain(version).collect::<Vec<_>>().join(", ")
}

fn running_line(execution: &ExecutionStatus, at: DateTime<Utc>) -> String {
    let state = execution.state.map_or("silent".to_owned(), |state| state.to_string());
    let since = execution.since.map_or(String::new(), |since| format!(" for {}", ago(at, since)));
    let stamp = execution
        .stamp
        .map_or(String::new(), |stamp| format!(", turn {}, attempt {}", stamp.turn, stamp.attempt));
    let pid = execution.pid.map_or(String::new(), |pid| format!(", pid {pid}"));
    let left = execution.deadline.map_or(String::new(), |by| format!(", {} left", ago(by, at)));
    let queued = execution.queued.map_or(String::new(), |queued| format!(", {queued}"));
    format!("{} {state}{since}{stamp}{pid}{left}{queued}", execution.id)
}

fn queued_line(queued: &QueuedStatus, at: DateTime<Utc>) -> String {
    let (waited, left) = (ago(at, queued.since), ago(queued.deadline, at));
    format!("{} queued at place {} for {waited}, {left} left", queued.id, queued.position)
}

fn life(health: Health, since: Option<DateTime<Utc>>, restarts: u32, at: DateTime<Utc>) -> String {
    let word = match health {
        Health::Alive => "",
        Health::Silent => " silent",
        Health::Quarantined => " quarantined",
        Health::Draining => " draining",
    };
    let age = since.map_or(String::new(), |since| format!(" up {}", ago(at, since)));
    let again = if restarts == 0 { String::new() } else { format!(", restarts {restarts}") };
    format!("{word}{age}{again}")
}

/// The time from one moment to a later one, in its largest unit.
pub(super) fn ago(later: DateTime<Utc>, earlier: DateTime<Utc>) -> String {
    let seconds = (later - earlier).num_seconds().max(0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}
