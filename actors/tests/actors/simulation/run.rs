//! Runs a plan in a tree of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::event::{Event, EventKind, MessageRole};
use algonius_actors::model::execution::record::{ExecutionFilter, ExecutionRecord};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::testing::{CallerResult, TestTree, WorkLifetime};
use algonius_redact::Redactor;
use tokio::task::JoinSet;

use super::plan::{SimulationPlan, SimulationStep};
use super::seeded_random::SeededRandom;

/// State at the end of a simulation.
pub(crate) struct SimulationResult {
    /// Results of the callers, with the agent and the message that each had named.
    pub(crate) caller_results: Vec<((usize, u64), CallerResult)>,
    /// All executions with their events, oldest first.
    pub(crate) histories: BTreeMap<ExecutionId, ExecutionHistory>,
    /// Lifetimes of all work.
    pub(crate) lifetimes: Vec<WorkLifetime>,
}

/// History of one execution in the ledger.
pub(crate) struct ExecutionHistory {
    pub(crate) record: ExecutionRecord,
    pub(crate) events: Vec<Event>,
    /// Text of the request.
    pub(crate) text: String,
}

/// Performs the steps of a plan, and waits until all executions have ended.
pub(crate) async fn run_simulation(
    plan: &SimulationPlan,
    random: &mut SeededRandom,
    redactor: &Arc<Redactor>,
) -> SimulationResult {
    let specs = plan.agents.iter().map(|simulated_agent| simulated_agent.spec.clone());
    let mut tree = TestTree::with_redactor(specs, Arc::clone(redactor)).await;
    for simulated_agent in &plan.agents {
        simulated_agent
            .folder
            .iter()
            .for_each(|folder| tree.driver.set_workspace(simulated_agent.spec.id.as_str(), folder));
    }
    for (number, attempt_plans) in plan.scripts.iter().enumerate() {
        tree.script(
            &format!("t{number}"),
            attempt_plans.iter().map(|attempt_plan| attempt_plan.scripted_attempt()),
        );
    }
    let (mut callers, mut caller_results) = (JoinSet::new(), Vec::new());
    for (pause, step) in &plan.steps {
        // In paused time. The plan gives the time of each step.
        tokio::time::sleep(Duration::from_secs(*pause)).await;
        match step {
            SimulationStep::Submit {
                agent_index: agent,
                message_number: message,
                text_number: text,
            } => {
                let id = plan.agents[*agent].spec.id.as_str();
                let submission =
                    tree.submit_and_wait(id, &format!("m{message}"), &format!("t{text}"));
                let request_key = (*agent, *message);
                callers.spawn(async move { (request_key, submission.await) });
            }
            SimulationStep::Restart { downtime, preserved_percent } => {
                // Who calls a service that is killed is cut off.
                caller_results.extend(join_finished(&mut callers));
                callers.shutdown().await;
                restart(&mut tree, random, (*downtime, *preserved_percent)).await;
            }
            SimulationStep::Panic { readings_until_panic: readings, preserved_percent } => {
                preserve_random_work(&tree, random, *preserved_percent);
                tree.clock.panic_at_reading(*readings);
            }
            step => apply_cancel_or_fault(&tree, step).await,
        }
    }
    while let Some(caller_result) = callers.join_next().await {
        caller_results.push(caller_result.unwrap());
    }
    await_ends_and_collect(tree, caller_results).await
}

fn join_finished<T: 'static>(callers: &mut JoinSet<T>) -> Vec<T> {
    std::iter::from_fn(|| callers.try_join_next()).map(Result::unwrap).collect()
}

async fn apply_cancel_or_fault(tree: &TestTree, step: &SimulationStep) {
    match step {
        SimulationStep::Cancel(number) => {
            let records = tree.ledger.executions(ExecutionFilter::default()).await.unwrap();
            let selected = records.iter().rev().nth(usize::try_from(*number).unwrap());
            if let Some(record) = selected {
                _ = tree.cancel(record.id).await; // It may have ended.
            }
        }
        SimulationStep::FailLedgerCalls(call, times) => tree.faults.fail_next(*call, *times),
        SimulationStep::DelayLedgerCalls(call, seconds) => {
            tree.faults.delay_next(*call, seconds.clone());
        }
        SimulationStep::Submit { .. }
        | SimulationStep::Restart { .. }
        | SimulationStep::Panic { .. } => {}
    }
}

/// Lets some of what lives be held.
fn preserve_random_work(tree: &TestTree, random: &mut SeededRandom, percent: u64) {
    for lifetime in tree.driver.recorded_work().lifetimes {
        if lifetime.end_position.is_none() && random.random_bool(percent) {
            tree.driver.preserve_over_restart(lifetime.execution);
        }
    }
}

async fn restart(
    tree: &mut TestTree,
    random: &mut SeededRandom,
    (downtime, preserved_percent): (u64, u64),
) {
    preserve_random_work(tree, random, preserved_percent);
    tree.clock.panic_at_reading(0);
    tree.kill().await;
    tree.faults.clear_faults(); // A service whose ledger cannot be read does not start.
    // Paused time, in which nobody is there.
    tokio::time::sleep(Duration::from_secs(downtime)).await;
    tree.start().await;
}

/// Lets everything end, and looks at it.
async fn await_ends_and_collect(
    tree: TestTree,
    caller_results: Vec<((usize, u64), CallerResult)>,
) -> SimulationResult {
    tree.clock.panic_at_reading(0);
    let unfinished_filter = ExecutionFilter { unfinished_only: true, ..ExecutionFilter::default() };
    for _ in 0..300 {
        if tree.ledger.executions(unfinished_filter.clone()).await.unwrap().is_empty() {
            break;
        }
        // Paused time: a minute costs as much as there is to do in it.
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    // Paused time, in which what has ended is cleaned.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let probe = tree.driver.recorded_work();
    assert_eq!(
        (probe.alive_count, probe.lease_count),
        (0, 0),
        "work is alive and leases are held at the end"
    );
    let mut histories = BTreeMap::new();
    for record in tree.ledger.executions(ExecutionFilter::default()).await.unwrap() {
        let history = read_history(&tree, record).await;
        histories.insert(history.record.id, history);
    }
    tree.end().await;
    SimulationResult { caller_results, histories, lifetimes: probe.lifetimes }
}

async fn read_history(tree: &TestTree, record: ExecutionRecord) -> ExecutionHistory {
    let events = tree.ledger.events(record.id, 0).await.unwrap();
    let first_part = events.iter().find_map(|event| match &event.data {
        EventKind::Message { speaker: MessageRole::User, pieces, .. } => pieces.first(),
        _ => None,
    });
    let text = tree.ledger.text(record.id, first_part.unwrap().text).await.unwrap();
    ExecutionHistory { record, events, text }
}
