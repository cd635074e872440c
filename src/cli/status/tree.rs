//! The tree as lines that a person reads.

use algonius_actors::model::budget::{BoundStatus, BudgetStatus};
use algonius_actors::model::pressure::Pressure;
use algonius_actors::model::sandbox::Isolation;
use algonius_actors::model::status::{
    AgentStatus, ExecutionStatus, Health, ProgramStatus, QueuedStatus, RetentionStatus,
    SchedulerStatus,
};
use algonius_actors::model::stock::Stock;
use chrono::{DateTime, Utc};

use crate::wire::admin::ConfigurationStatus;
use crate::wire::api::{MachineStatus, ServiceStatus};

/// All of it, from the release down to the door.
pub(super) fn lines(status: &ServiceStatus) -> Vec<String> {
    let (tree, mut lines) = (&status.tree, Vec::new());
    lines.push(format!("algonius {}", status.version));
    lines.push(machine(&status.machine));
    lines.extend(configuration(&status.configuration, tree.at));
    lines.extend(status.ledger.as_ref().map(|ledger| kept(ledger, tree.at)));
    lines.push(format!("root{}", life(tree.root.health, tree.root.since, 0, tree.at)));
    if let Some(monitor) = &tree.monitor {
        let life = life(monitor.health, monitor.since, monitor.restarts, tree.at);
        lines.push(format!("├─ monitor{life}{}", shortage(tree.pressure.as_ref())));
    }
    lines.extend(tree.scheduler.as_ref().map(|scheduler| scheduling(scheduler, tree.at)));
    lines.extend(tree.retention.as_ref().map(|retention| keeping(retention, tree.at)));
    lines.extend(tree.agents.iter().flat_map(|agent| of_agent(agent, tree.at)));
    let gateway = &tree.gateway;
    let life = life(gateway.health, gateway.since, gateway.restarts, tree.at);
    lines.push(format!("└─ gateway{life}"));
    lines
}

/// Who asks at set times, and what is due next.
fn scheduling(scheduler: &SchedulerStatus, at: DateTime<Utc>) -> String {
    let SchedulerStatus { actor, schedules, active, due } = scheduler;
    let life = life(actor.health, actor.since, actor.restarts, at);
    let next = due.iter().min_by_key(|due| due.at).map_or(String::new(), |due| {
        let (when, clock) = (ago(due.at, at), due.at.format("%Y-%m-%d %H:%M:%SZ"));
        format!(", next {} asks {} in {when} ({clock})", due.schedule, due.agent)
    });
    format!("├─ scheduler{life}, {active} of {schedules} schedules active{next}")
}

/// Who keeps the history within bounds, and what it did last.
fn keeping(retention: &RetentionStatus, at: DateTime<Utc>) -> String {
    let RetentionStatus { actor, last_pass } = retention;
    let life = life(actor.health, actor.since, actor.restarts, at);
    let last = last_pass.as_ref().map_or(String::new(), |pass| {
        let freed = mega(pass.freed_bytes);
        format!(", last pass {} ago: {} removed, {freed} freed", ago(at, pass.at), pass.removed)
    });
    format!("├─ retention{life}{last}")
}

/// Which configuration is in force, and whether another one lies there.
fn configuration(shown: &ConfigurationStatus, at: DateTime<Utc>) -> Vec<String> {
    let (generation, since) = (shown.generation, ago(at, shown.since));
    let mut lines = vec![format!("configuration {generation}, in force for {since}")];
    let pending = shown.pending.iter();
    lines.extend(pending.map(|key| format!("  pending  {key}: needs a restart of the service")));
    lines.extend(shown.rejected.iter().map(|wrong| format!("  rejected  {wrong}")));
    lines.extend(shown.switched.iter().map(|id| format!("  switched  {id}, by `algonius agents`")));
    lines
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
    let oldest = ledger
        .oldest
        .map_or(String::new(), |oldest| format!(", the oldest {} ago", ago(at, oldest)));
    let (count, bytes) = (ledger.executions, mega(ledger.bytes + ledger.log_bytes));
    format!("ledger {count} executions in {bytes}{oldest}")
}

fn mega(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10)
}

fn of_agent(agent: &AgentStatus, at: DateTime<Utc>) -> Vec<String> {
    let capacity = agent.capacity.map_or("∞".to_owned(), |capacity| capacity.to_string());
    let life = life(agent.health, agent.since, agent.restarts, at);
    let off = if agent.enabled { "" } else { ", disabled" };
    let (running, queued, depth) = (agent.running.len(), agent.queued.len(), agent.queue_depth);
    let last = agent
        .last
        .as_ref()
        .map_or(String::new(), |last| format!(", last {} {} ago", last.outcome, ago(at, last.at)));
    let mut lines = vec![format!(
        "├─ {}{life}{off}, running {running}/{capacity}, queue {queued}/{depth}{last}",
        agent.id
    )];
    lines.extend(remarks(agent).into_iter().map(|remark| format!("│    {remark}")));
    lines.extend(agent.running.iter().map(|it| format!("│  ├─ {}", running_line(it, at))));
    lines.extend(agent.queued.iter().map(|it| format!("│  ├─ {}", queued_line(it, at))));
    lines
}

/// What else is to be known of an agent.
fn remarks(agent: &AgentStatus) -> Vec<String> {
    let lacks = agent.enforcement.is_wanting();
    let holding = Some(&agent.resources).filter(|holding| !holding.is_empty());
    let wrapped = agent.isolation == Some(Isolation::Bubblewrap);
    let remarks = [
        lacks.then(|| format!("what it may not do is not refused: {}", agent.enforcement.as_str())),
        wrapped.then(|| "wrapped by bubblewrap".to_owned()),
        holding.map(ToString::to_string),
        agent.program.as_ref().map(known),
        agent.last_fault.as_ref().map(|fault| format!("fault: {fault}")),
    ];
    remarks.into_iter().flatten().chain(agent.budget.iter().flat_map(spending)).collect()
}

/// What is known of an agent's program.
pub(in crate::cli) fn known(program: &ProgramStatus) -> String {
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

/// What is used up and left of each bound of the day.
fn spending(budget: &BudgetStatus) -> Vec<String> {
    let line = |bound: &BoundStatus| {
        let (spent, limit) = (bound.of.told(bound.of.of(budget.spent)), bound.of.told(bound.limit));
        format!("today {spent} of {limit}, anew at {}", budget.renews.format("%Y-%m-%d %H:%MZ"))
    };
    budget.bounds.iter().map(line).collect()
}

fn queued_line(queued: &QueuedStatus, at: DateTime<Utc>) -> String {
    if let Some(until) = queued.until {
        let (id, reason, until) =
            (queued.id, queued.reason.as_str(), until.format("%Y-%m-%d %H:%M:%SZ"));
        return format!("{id} waits at place {}, {reason} until {until}", queued.position);
    }
    let (waited, left) = (ago(at, queued.since), ago(queued.deadline, at));
    format!("{} queued at place {} for {waited}, {left} left", queued.id, queued.position)
}

pub(in crate::cli) fn life(
    health: Health,
    since: Option<DateTime<Utc>>,
    restarts: u32,
    at: DateTime<Utc>,
) -> String {
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
pub(in crate::cli) fn ago(later: DateTime<Utc>, earlier: DateTime<Utc>) -> String {
    let seconds = (later - earlier).num_seconds().max(0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}
