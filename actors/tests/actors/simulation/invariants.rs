//! What must be true after any simulation.

use std::collections::{BTreeMap, BTreeSet};

use algonius_actors::model::agent::{Access, AgentSpec};
use algonius_actors::model::code::{Category, Code};
use algonius_actors::model::execution::event::{Event, EventKind};
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::execution::{AttemptId, ExecutionState, Outcome, StateChange};
use algonius_actors::testing::{CallerResult, WorkLifetime};

use super::plan::{PlannedBehavior, SimulationPlan, SimulationStep};
use super::run::{ExecutionHistory, SimulationResult};

/// Checks all of it.
pub(crate) fn assert_invariants(plan: &SimulationPlan, result: &SimulationResult) {
    for ((agent, message), caller_result) in &result.caller_results {
        check_caller_result(plan, (*agent, *message), caller_result);
    }
    check_dedup(result);
    for history in result.histories.values() {
        let ExecutionHistory { record, events, .. } = history;
        let spec = plan.agents.iter().map(|simulated_agent| &simulated_agent.spec);
        let spec = spec.into_iter().find(|spec| spec.id == record.agent).unwrap();
        check_end(record, events);
        check_attempts(spec, record, events);
        check_lifetimes(plan, result, history);
    }
    for simulated_agent in &plan.agents {
        check_start_order(&simulated_agent.spec, &result.lifetimes);
        check_slots(&simulated_agent.spec, &result.lifetimes);
    }
    check_workspaces(&result.lifetimes);
}

/// A refusal has its cause in the plan.
fn check_caller_result(
    plan: &SimulationPlan,
    request_key: (usize, u64),
    caller_result: &CallerResult,
) {
    let text_numbers = plan.steps.iter().filter_map(|(_, step)| match step {
        SimulationStep::Submit {
            agent_index: agent,
            message_number: message,
            text_number: text,
        } if (*agent, *message) == request_key => Some(*text),
        _ => None,
    });
    let text_numbers: BTreeSet<_> = text_numbers.collect();
    let has_ledger_failures =
        plan.has_step(|step| matches!(step, SimulationStep::FailLedgerCalls(..)));
    let has_ledger_delays =
        plan.has_step(|step| matches!(step, SimulationStep::DelayLedgerCalls(..)));
    let has_clock_panics = plan.has_step(|step| matches!(step, SimulationStep::Panic { .. }));
    let has_panics = plan.has_behavior(PlannedBehavior::PanicOnStart) || has_clock_panics;
    let is_expected = match caller_result {
        CallerResult::Ended(_) => true,
        CallerResult::Violation(..) => false,
        CallerResult::Refused(Code::QueueFull) => {
            plan.agents[request_key.0].spec.limits.capacity.max_waiting < 40
        }
        CallerResult::Refused(Code::MessageReused) => text_numbers.len() > 1,
        CallerResult::Refused(Code::LedgerUnavailable) => has_ledger_failures,
        CallerResult::Refused(Code::Internal) => has_panics || has_ledger_delays,
        CallerResult::Refused(Code::AgentQuarantined) => has_panics,
        CallerResult::Refused(_) => false,
    };
    assert!(is_expected, "{request_key:?} got {caller_result:?}");
}

/// A message is one execution, whoever asks again.
fn check_dedup(result: &SimulationResult) {
    let mut execution_ids = BTreeMap::new();
    for ExecutionHistory { record, .. } in result.histories.values() {
        let earlier =
            execution_ids.insert((record.agent.clone(), record.message_id.0.clone()), record.id);
        assert_eq!(earlier, None, "{:?} of {} was run twice", record.message_id, record.agent);
    }
    let mut executions = BTreeMap::new();
    for (request_key, caller_result) in &result.caller_results {
        if let CallerResult::Ended(execution) = caller_result {
            let first = executions.entry(*request_key).or_insert(*execution);
            assert_eq!(first, execution, "{request_key:?} was told of two executions");
        }
    }
}

fn state_changes(events: &[Event]) -> Vec<&StateChange> {
    let changes = events.iter().map(|event| match &event.data {
        EventKind::StateChanged(change) => Some(change),
        _ => None,
    });
    changes.flatten().collect()
}

/// One outcome, which is the last state before the clean-up, and events without gaps.
fn check_end(record: &ExecutionRecord, events: &[Event]) {
    let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>(), "{}", record.id);
    let changes = state_changes(events);
    let ends = changes.iter().filter(|change| change.to == ExecutionState::Cleanup);
    let ends: Vec<_> = ends.map(|change| change.from).collect();
    let outcome = record.outcome.map(Outcome::state);
    assert_eq!(ends, outcome.into_iter().collect::<Vec<_>>(), "{}: one end", record.id);
    assert_eq!(ends.len(), 1, "{} has no outcome: {changes:?}", record.id);
    let is_completed = record.outcome == Some(Outcome::Completed);
    assert_eq!(is_completed, record.failure.is_none(), "{}: {:?}", record.id, record.failure);
}

/// Attempts follow each other by one, are bounded, and only what may pass by itself, or was not
/// begun, is tried again.
fn check_attempts(spec: &AgentSpec, record: &ExecutionRecord, events: &[Event]) {
    let mut attempts: Vec<AttemptId> = Vec::new();
    let (mut failure_category, mut has_run, mut deferrals) = (None, false, Vec::new());
    for event in events {
        match &event.data {
            EventKind::AttemptFailed(failed) => failure_category = Some(failed.category()),
            EventKind::Deferred(deferral) => deferrals.push(*deferral),
            EventKind::StateChanged(change) if change.to == ExecutionState::Running => {
                has_run = true;
            }
            EventKind::StateChanged(change) if change.to == ExecutionState::Starting => {
                let forbids_retry_after_start =
                    spec.access == Access::ReadWrite && !spec.retry.retries_after_start;
                if !attempts.is_empty() {
                    assert_eq!(failure_category, Some(Category::Transient), "{}", record.id);
                    assert!(
                        !(forbids_retry_after_start && has_run),
                        "{} had its input already",
                        record.id
                    );
                    let until = deferrals.last().map(|deferral| deferral.until);
                    assert!(
                        until.is_none_or(|until| until <= change.at),
                        "{} went on before {until:?}",
                        record.id
                    );
                }
                (failure_category, has_run) = (None, false);
                attempts.push(change.attempt_id);
            }
            _ => {}
        }
    }
    let expected: Vec<_> =
        (1..).map(|attempt| AttemptId { turn: 1, attempt }).take(attempts.len()).collect();
    assert_eq!(attempts, expected, "{}", record.id);
    let max_attempts = 1 + spec.retry.max_retries as usize + deferrals.len();
    assert!(attempts.len() <= max_attempts, "{}: {attempts:?}", record.id);
    let deferral_numbers: Vec<_> = deferrals.iter().map(|deferral| deferral.times).collect();
    assert_eq!(deferral_numbers, (1..).take(deferrals.len()).collect::<Vec<_>>(), "{}", record.id);
    assert!(
        deferral_numbers.len() <= spec.quota.deferral_policy.max_deferrals as usize,
        "{}: {deferral_numbers:?}",
        record.id
    );
}

/// Nothing lives that was not claimed, nothing is begun twice, and what succeeded did succeed.
fn check_lifetimes(plan: &SimulationPlan, result: &SimulationResult, history: &ExecutionHistory) {
    let ExecutionHistory { record, events, .. } = history;
    let claimed_attempts: BTreeSet<_> = state_changes(events)
        .into_iter()
        .filter(|change| change.to == ExecutionState::Starting)
        .map(|change| change.attempt_id.attempt)
        .collect();
    let lifetimes = || result.lifetimes.iter().filter(|lifetime| lifetime.execution == record.id);
    let mut started_attempts = BTreeSet::new();
    for lifetime in lifetimes() {
        let attempt = lifetime.attempt_id.attempt;
        assert!(claimed_attempts.contains(&attempt), "{} lived unclaimed", record.id);
        assert!(
            lifetime.is_resumed || started_attempts.insert(attempt),
            "{} began {attempt} twice",
            record.id
        );
    }
    if record.outcome == Some(Outcome::Completed) {
        let Some(last) = lifetimes().next_back() else {
            return check_coalesced(result, history);
        };
        let script_index: usize = history.text.trim_start_matches('t').parse().unwrap();
        let attempt_plans = &plan.scripts[script_index];
        let index = (last.attempt_id.attempt - 1) as usize;
        let attempt_plan = attempt_plans.get(index).or(attempt_plans.last()).unwrap();
        assert_eq!(
            attempt_plan.behavior,
            PlannedBehavior::Succeed,
            "{} completed all the same",
            record.id
        );
    }
}

/// What completed without work of its own leaned on an equal one that completed.
fn check_coalesced(
    result: &SimulationResult,
    ExecutionHistory { record, text, .. }: &ExecutionHistory,
) {
    let is_coalescing_source =
        |ExecutionHistory { record: other, text: other_text, .. }: &ExecutionHistory| {
            let has_worked = result.lifetimes.iter().any(|lifetime| lifetime.execution == other.id);
            other.agent == record.agent
                && other_text == text
                && other.outcome == record.outcome
                && has_worked
        };
    let mut histories = result.histories.values();
    assert!(histories.any(is_coalescing_source), "{} completed out of nothing", record.id);
}

/// Where one runs at a time, who came first begins first.
fn check_start_order(spec: &AgentSpec, lifetimes: &[WorkLifetime]) {
    if spec.limits.capacity.max_running.is_none_or(|limit| limit.get() > 1)
        || spec.dedup_window.is_some()
    {
        return;
    }
    let is_first_start = |lifetime: &&WorkLifetime| {
        lifetime.agent == spec.id && lifetime.attempt_id == AttemptId::FIRST && !lifetime.is_resumed
    };
    let started_ids: Vec<_> =
        lifetimes.iter().filter(is_first_start).map(|lifetime| lifetime.execution).collect();
    assert!(started_ids.is_sorted(), "{} began out of order: {started_ids:?}", spec.id);
}

fn check_slots(spec: &AgentSpec, lifetimes: &[WorkLifetime]) {
    let Some(limit) = spec.limits.capacity.max_running else { return };
    let agent_lifetimes: Vec<_> =
        lifetimes.iter().filter(|lifetime| lifetime.agent == spec.id).collect();
    for lifetime in &agent_lifetimes {
        let alive_at_start = agent_lifetimes.iter().filter(|other| {
            other.start_position <= lifetime.start_position && other.overlaps(lifetime)
        });
        assert!(
            alive_at_start.count() <= limit.get() as usize,
            "too many of {} live: {lifetime:?}",
            spec.id
        );
    }
}

fn check_workspaces(lifetimes: &[WorkLifetime]) {
    let writers =
        lifetimes.iter().filter_map(|lifetime| Some((lifetime, lifetime.workspace.as_ref()?)));
    let writers: Vec<_> = writers.collect();
    for (index, (one, workspace)) in writers.iter().enumerate() {
        for (other, other_workspace) in &writers[index + 1..] {
            let is_conflict = workspace.overlaps(other_workspace) && one.overlaps(other);
            assert!(!is_conflict, "two work in one folder: {one:?} and {other:?}");
        }
    }
}
