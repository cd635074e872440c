//! Supervision tree as lines for people.

use algonius_actors::model::agent::budget::{BoundStatus, BudgetStatus};
use algonius_actors::model::host::pressure::Pressure;
use algonius_actors::model::host::sandbox::Isolation;
use algonius_actors::model::host::storage_stats::StorageStats;
use algonius_actors::model::observation::status::{
    AgentStatus, ExecutionStatus, Health, ProgramStatus, QueuedStatus, RetentionStatus,
    ScheduleCounts, SchedulerStatus,
};
use chrono::{DateTime, Utc};

use crate::cli::output::time_text::format_interval;
use crate::wire::admin::ConfigurationStatus;
use crate::wire::api::{MachineStatus, ServiceStatus};

/// Returns all lines, from the version down to the listener.
pub(super) fn status_lines(status: &ServiceStatus) -> Vec<String> {
    let (tree, mut lines) = (&status.tree, Vec::new());
    lines.push(format!("algonius {}", status.version));
    lines.push(machine_line(&status.machine));
    lines.extend(configuration_lines(&status.configuration, tree.at));
    lines.extend(status.ledger.as_ref().map(|ledger| ledger_line(ledger, tree.at)));
    lines.push(format!("root{}", health_text(tree.root.health, tree.root.since, 0, tree.at)));
    lines.extend(tree.faults.iter().map(|fault| {
        format!("  fault  {}: {}; new work is refused", fault.as_str(), fault.as_clause())
    }));
    if let Some(monitor) = &tree.monitor {
        let health = health_text(monitor.health, monitor.since, monitor.restarts, tree.at);
        lines.push(format!("├─ monitor{health}{}", shortage_text(tree.pressure.as_ref())));
    }
    lines.extend(tree.scheduler.as_ref().map(|scheduler| scheduler_line(scheduler, tree.at)));
    lines.extend(tree.retention.as_ref().map(|retention| retention_line(retention, tree.at)));
    lines.extend(tree.agents.iter().flat_map(|agent| agent_lines(agent, tree.at)));
    let gateway = &tree.gateway;
    let health = health_text(gateway.health, gateway.since, gateway.restarts, tree.at);
    lines.push(format!("└─ gateway{health}"));
    lines
}

/// Returns the line of the scheduler with its next occurrence.
fn scheduler_line(scheduler: &SchedulerStatus, now: DateTime<Utc>) -> String {
    let SchedulerStatus { actor, counts, due } = scheduler;
    let health = health_text(actor.health, actor.since, actor.restarts, now);
    let next_note = due.iter().min_by_key(|due| due.at).map_or(String::new(), |due| {
        let (delay, time) = (format_interval(due.at, now), due.at.format("%Y-%m-%d %H:%M:%SZ"));
        format!(", next {} asks {} in {delay} ({time})", due.schedule, due.agent)
    });
    let counts_note = counts.map(counts_note).unwrap_or_default();
    format!("├─ scheduler{health}{counts_note}{next_note}")
}

fn counts_note(ScheduleCounts { schedules, active, locked }: ScheduleCounts) -> String {
    let locked_note = match locked {
        0 => String::new(),
        locked => format!(", {locked} refused: the key of their sealed input is gone"),
    };
    format!(", {active} of {schedules} schedules active{locked_note}")
}

/// Returns the line of the retention with its last pass.
fn retention_line(retention: &RetentionStatus, now: DateTime<Utc>) -> String {
    let RetentionStatus { actor, last_pass } = retention;
    let health = health_text(actor.health, actor.since, actor.restarts, now);
    let last_pass_note = last_pass.as_ref().map_or(String::new(), |pass| {
        let freed = format_megabytes(pass.freed_bytes);
        format!(
            ", last pass {} ago: {} removed, {freed} freed",
            format_interval(now, pass.at),
            pass.removed
        )
    });
    format!("├─ retention{health}{last_pass_note}")
}

/// Returns the lines of the configuration in force, and of changes that are not in force.
fn configuration_lines(status: &ConfigurationStatus, now: DateTime<Utc>) -> Vec<String> {
    let (generation, since) = (status.generation, format_interval(now, status.since));
    let mut lines = vec![format!("configuration {generation}, in force for {since}")];
    let pending = status.pending.iter();
    lines.extend(pending.map(|key| format!("  pending  {key}: needs a restart of the service")));
    lines.extend(status.rejected.iter().map(|fault| format!("  rejected  {fault}")));
    lines
        .extend(status.switched.iter().map(|id| format!("  switched  {id}, by `algonius agents`")));
    lines
}

/// Returns the resources that the machine lacks, if it refuses new work.
fn shortage_text(pressure: Option<&Pressure>) -> String {
    let Some(pressure) = pressure.filter(|pressure| pressure.is_high()) else {
        return String::new();
    };
    let short: Vec<_> = pressure.short.iter().map(|short| short.as_words()).collect();
    let since = format_interval(pressure.at, pressure.since);
    format!(", short of {} for {since}: new work is refused", short.join(" and "))
}

/// Returns the confinement of programs on this machine.
fn machine_line(machine: &MachineStatus) -> String {
    let wardens: Vec<_> = machine.wardens.iter().map(ToString::to_string).collect();
    let landlock = machine.capabilities.landlock;
    let landlock = landlock.map_or("no Landlock".to_owned(), |v| format!("Landlock {v}"));
    let bubblewrap_note =
        if machine.capabilities.sandbox_capabilities().bubblewrap { ", bubblewrap" } else { "" };
    let (kernel, root) =
        (&machine.capabilities.kernel, if machine.capabilities.root { ", as root" } else { "" });
    let wardens_note = match wardens.is_empty() {
        true => String::new(),
        false => format!(", held by warden {}", wardens.join(", ")),
    };
    format!("on Linux {kernel}, {landlock}{bubblewrap_note}{wardens_note}{root}")
}

/// Returns the size of the ledger.
fn ledger_line(ledger: &StorageStats, now: DateTime<Utc>) -> String {
    let oldest_note = ledger.oldest.map_or(String::new(), |oldest| {
        format!(", the oldest {} ago", format_interval(now, oldest))
    });
    let (count, bytes) = (ledger.executions, format_megabytes(ledger.bytes + ledger.log_bytes));
    format!("ledger {count} executions in {bytes}{oldest_note}")
}

fn format_megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10)
}

fn agent_lines(agent: &AgentStatus, now: DateTime<Utc>) -> Vec<String> {
    let work = &agent.work;
    let capacity = work.capacity.map_or("∞".to_owned(), |capacity| capacity.to_string());
    let health =
        health_text(agent.health, agent.actor_starts.since, agent.actor_starts.restarts, now);
    let disabled_note = if agent.enabled { "" } else { ", disabled" };
    let (running, queued, depth) = (work.running.len(), work.queued.len(), work.queue_depth);
    let last_note = work.last_execution.as_ref().map_or(String::new(), |last| {
        format!(", last {} {} ago", last.outcome, format_interval(now, last.at))
    });
    let mut lines = vec![format!(
        "├─ {}{health}{disabled_note}, running {running}/{capacity}, queue {queued}/{depth}{last_note}",
        agent.id
    )];
    lines.extend(remarks(agent).into_iter().map(|remark| format!("│    {remark}")));
    lines.extend(work.running.iter().map(|it| format!("│  ├─ {}", running_line(it, now))));
    lines.extend(work.queued.iter().map(|it| format!("│  ├─ {}", queued_line(it, now))));
    lines
}

/// Returns further remarks about an agent.
fn remarks(agent: &AgentStatus) -> Vec<String> {
    let resources = Some(&agent.resources).filter(|resources| !resources.is_empty());
    let confinement = agent.isolation.confinement.as_ref();
    let incomplete_enforcement =
        confinement.map(|it| it.enforcement).filter(|it| it.is_incomplete());
    let wrapped = confinement.filter(|it| it.isolation == Some(Isolation::Bubblewrap));
    let boundary = confinement.map(|it| format!("boundary {}", it.boundary));
    let remarks = [
        agent.unavailable.clone(),
        incomplete_enforcement
            .map(|it| format!("what it may not do is not refused: {}", it.as_str())),
        wrapped.map(|_| "wrapped by bubblewrap".to_owned()),
        boundary.or_else(|| Some(format!("kind {}", agent.kind.as_str()))),
        resources.map(ToString::to_string),
        // Nothing is known of a program without a preset and without a version.
        agent.program.as_ref().map(program_text).filter(|text| !text.is_empty()),
        agent.actor_starts.last_fault.as_ref().map(|fault| format!("fault: {fault}")),
    ];
    let backend_remarks = agent.isolation.backends.iter().map(ToString::to_string);
    let remarks = remarks.into_iter().flatten().chain(backend_remarks);
    remarks.chain(agent.budget.iter().flat_map(budget_lines)).collect()
}

/// Returns the known facts about an agent's program.
pub(in crate::cli) fn program_text(program: &ProgramStatus) -> String {
    let preset = program.preset.as_ref().map(|preset| match program.verified {
        Some(false) => format!("{preset} preset, which was never run"),
        _ => format!("{preset} preset"),
    });
    let version = program.version.as_ref().map(|version| format!("version {version}"));
    // The warning also names the version.
    let version = program.warning.clone().or(version);
    preset.into_iter().chain(version).collect::<Vec<_>>().join(", ")
}

fn running_line(execution: &ExecutionStatus, now: DateTime<Utc>) -> String {
    let state = execution.state.map_or("silent".to_owned(), |state| state.to_string());
    let since = execution
        .since
        .map_or(String::new(), |since| format!(" for {}", format_interval(now, since)));
    let attempt = execution.attempt_id.map_or(String::new(), |attempt_id| {
        format!(", turn {}, attempt {}", attempt_id.turn, attempt_id.attempt)
    });
    let pid = execution.pid.map_or(String::new(), |pid| format!(", pid {pid}"));
    let time_left = execution
        .deadline
        .map_or(String::new(), |deadline| format!(", {} left", format_interval(deadline, now)));
    let queue_note = execution.queued.map_or(String::new(), |queued| format!(", {queued}"));
    format!("{} {state}{since}{attempt}{pid}{time_left}{queue_note}", execution.id)
}

/// Returns the used and the available amount of each daily limit.
fn budget_lines(budget: &BudgetStatus) -> Vec<String> {
    let line = |bound: &BoundStatus| {
        let (spent, limit) = (
            bound.measure.format_amount(bound.measure.amount_in(budget.spent)),
            bound.measure.format_amount(bound.limit),
        );
        format!("today {spent} of {limit}, anew at {}", budget.renews.format("%Y-%m-%d %H:%MZ"))
    };
    budget.bounds.iter().map(line).collect()
}

fn queued_line(queued: &QueuedStatus, now: DateTime<Utc>) -> String {
    if let Some(until) = queued.until {
        let (id, reason, until) =
            (queued.id, queued.reason.as_str(), until.format("%Y-%m-%d %H:%M:%SZ"));
        return format!("{id} waits at place {}, {reason} until {until}", queued.position);
    }
    let (waited, time_left) =
        (format_interval(now, queued.since), format_interval(queued.deadline, now));
    format!("{} queued at place {} for {waited}, {time_left} left", queued.id, queued.position)
}

pub(in crate::cli) fn health_text(
    health: Health,
    since: Option<DateTime<Utc>>,
    restarts: u32,
    now: DateTime<Utc>,
) -> String {
    let word = match health {
        Health::Alive => "",
        Health::Silent => " silent",
        Health::Restarting => " restarting",
        Health::Quarantined => " quarantined",
        Health::Draining => " draining",
        Health::Unavailable => " unavailable",
    };
    let age = since.map_or(String::new(), |since| format!(" up {}", format_interval(now, since)));
    let restarts_text =
        if restarts == 0 { String::new() } else { format!(", restarts {restarts}") };
    format!("{word}{age}{restarts_text}")
}
