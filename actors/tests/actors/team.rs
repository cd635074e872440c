//! Runs of teams, and their calls to members, with ends, kills and cancellations.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::team::{TeamPlan, TeamStep};
use algonius_actors::model::agent::{AgentSpec, RetrySpec, WorkerSpec};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::ExecutionState;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::record::{ExecutionFilter, ExecutionRecord, TriggerFilter};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::testing::{LedgerCallKind, ScriptedAttempt, TestTree, agent_spec};

const TEAM: &str = "crew";
const MEMBERS: [&str; 3] = ["one", "two", "three"];

pub(crate) fn team_spec(id: &str, members: &[&str]) -> AgentSpec {
    let step = |member: &&str| TeamStep { id: (*member).to_owned(), agent: agent_spec(member).id };
    let plan = TeamPlan { steps: members.iter().map(step).collect() };
    AgentSpec {
        worker: WorkerSpec::Team(Arc::new(plan)),
        retry: RetrySpec { max_retries: 0, ..RetrySpec::default() },
        ..agent_spec(id)
    }
}

/// Returns a team of three members. Each step takes ten seconds and adds a letter.
async fn tree_with_team() -> TestTree {
    let members = MEMBERS.iter().map(|member| agent_spec(member));
    let tree = TestTree::with_agents(members.chain([team_spec(TEAM, &MEMBERS)])).await;
    for (input, answer) in [("a", "ab"), ("ab", "abc"), ("abc", "abcd")] {
        tree.script(input, [ScriptedAttempt::ok(10).with_answer(answer)]);
    }
    tree
}

pub(crate) async fn hops(tree: &TestTree, run: ExecutionId) -> Vec<ExecutionRecord> {
    let filter =
        ExecutionFilter { trigger: Some(TriggerFilter::HopsOf(run)), ..ExecutionFilter::default() };
    let mut hops = tree.ledger.executions(filter).await.unwrap_or_default();
    hops.reverse();
    hops
}

async fn hop_ends(tree: &TestTree, run: ExecutionId) -> Vec<String> {
    let mut ends = Vec::new();
    for hop in hops(tree, run).await {
        ends.push(format!("{} {}", hop.agent, tree.describe_end(hop.id).await));
    }
    ends
}

/// Returns the artifacts of an execution, as `id: text`.
async fn artifact_lines(tree: &TestTree, id: ExecutionId) -> Vec<String> {
    let mut artifacts = Vec::new();
    for event in tree.ledger.events(id, 0).await.unwrap_or_default() {
        let EventKind::Artifact { id: name, pieces, .. } = event.data else { continue };
        let mut text = String::new();
        for piece in pieces {
            text += &tree.ledger.text(id, piece.text).await.unwrap_or_default();
        }
        artifacts.push(format!("{name}: {text}"));
    }
    artifacts
}

/// Holds the work of the open hops, as the process holder does when the service is killed.
pub(crate) async fn preserve_hops(tree: &TestTree, run: ExecutionId) {
    for hop in hops(tree, run).await.iter().filter(|hop| hop.outcome.is_none()) {
        tree.driver.preserve_over_restart(hop.id);
    }
}

#[tokio::test(start_paused = true)]
async fn each_step_gets_the_answer_of_the_step_before() {
    let tree = tree_with_team().await;
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    assert_eq!((tree.wait_for_end(run).await.as_str(), tree.elapsed_seconds()), ("completed", 30));
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "ab#1@10", "abc#1@20"]);
    assert_eq!(artifact_lines(&tree, run).await, ["answer: abcd"]);
    let hop_records = hops(&tree, run).await;
    for (hop, (member, number)) in hop_records.iter().zip(MEMBERS.iter().zip(1..)) {
        let position = hop.trigger.hop_position().unwrap();
        assert_eq!((hop.agent.as_str(), position.number), (*member, number));
        assert_eq!((position.parent, position.root), (run, run));
        let record = tree.record(run).await.unwrap();
        assert_eq!((hop.owner, &hop.context), (record.owner, &record.context));
    }
    assert_eq!(hop_records.len(), 3);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_step_ends_the_run_and_keeps_the_answers() {
    let tree = tree_with_team().await;
    tree.script("abc", [ScriptedAttempt::fail(5, Code::Exit).with_answer("half")]);
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "failed: member-failed");
    let failure = tree.record(run).await.unwrap().failure.unwrap();
    assert_eq!(failure.message, "step `three` by agent `three` ended with `agent-exit`");
    assert_eq!(artifact_lines(&tree, run).await, ["hop-1-one: ab", "hop-2-two: abc"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_accepts_nothing_ends_the_run() {
    let disabled = AgentSpec { enabled: false, ..agent_spec("two") };
    let tree = TestTree::with_agents([
        agent_spec("one"),
        disabled,
        team_spec(TEAM, &["one", "two", "three"]),
    ])
    .await;
    tree.script("a", [ScriptedAttempt::ok(1).with_answer("b")]);
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "failed: member-unavailable");
    assert_eq!(artifact_lines(&tree, run).await, ["hop-1-one: b"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_ends_its_hop_before_itself() {
    let tree = tree_with_team().await;
    tree.script("ab", [ScriptedAttempt::ok(100).with_stop_delay(3)]);
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    tree.advance_to(15).await;
    tree.cancel(run).await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "cancelled: execution-cancelled");
    assert_eq!(tree.elapsed_seconds(), 18);
    let ends = hop_ends(&tree, run).await;
    assert_eq!(ends, ["one completed", "two cancelled: execution-cancelled"]);
    let (run, hop) = (tree.record(run).await.unwrap(), hops(&tree, run).await.remove(1));
    // No step of a team outlives its run, which a cancellation or a deadline ends with its open step
    assert!(hop.ended_at.unwrap() <= run.ended_at.unwrap(), "a hop outlived its run");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_run_reaches_its_hop() {
    let members = MEMBERS.iter().map(|member| agent_spec(member));
    let mut crew_spec = team_spec(TEAM, &MEMBERS);
    crew_spec.limits.timeouts.run = Duration::from_secs(25);
    let tree = TestTree::with_agents(members.chain([crew_spec])).await;
    tree.script("a", [ScriptedAttempt::ok(10).with_answer("b")]);
    tree.script("b", [ScriptedAttempt::ok(100)]);
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    assert_eq!(
        (tree.wait_for_end(run).await.as_str(), tree.elapsed_seconds()),
        ("timeout: execution-timeout", 25)
    );
    let ends = hop_ends(&tree, run).await;
    // No step of a team outlives its run, which a cancellation or a deadline ends with its open step
    assert_eq!(ends, ["one completed", "two cancelled: execution-cancelled"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_kill_at_any_second_loses_and_repeats_no_hop() {
    for second in 0..=30 {
        let mut tree = tree_with_team().await;
        let run = tree.submit_to(TEAM, "a").await.unwrap();
        tree.advance_to(second).await;
        preserve_hops(&tree, run).await;
        tree.restart().await;
        assert_eq!(tree.wait_for_end(run).await, "completed", "killed at {second}");
        assert_eq!(artifact_lines(&tree, run).await, ["answer: abcd"], "killed at {second}");
        let starts = tree.driver.recorded_work().starts;
        let starts: Vec<_> = starts.iter().filter(|start| !start.starts_with("again")).collect();
        // A run of a team has one outcome, and no step of it runs twice or is lost, if the service, the process holder or both are killed
        assert_eq!(starts.len(), 3, "killed at {second}: {starts:?}");
        let ends = hop_ends(&tree, run).await;
        assert_eq!(ends, ["one completed", "two completed", "three completed"]);
        tree.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hop_that_a_kill_interrupts_ends_the_run() {
    let mut tree = tree_with_team().await;
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    tree.advance_to(15).await;
    tree.restart().await;
    assert_eq!(tree.wait_for_end(run).await, "failed: member-failed");
    assert_eq!(hop_ends(&tree, run).await, ["one completed", "two failed: interrupted"]);
    assert_eq!(artifact_lines(&tree, run).await, ["hop-1-one: ab"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_of_the_team_or_of_a_member_repeats_no_hop() {
    for crashed in [TEAM, "two"] {
        let tree = tree_with_team().await;
        let run = tree.submit_to(TEAM, "a").await.unwrap();
        tree.advance_to(15).await;
        preserve_hops(&tree, run).await;
        tree.crash_agent(crashed).await;
        assert_eq!(tree.wait_for_end(run).await, "completed", "{crashed}");
        assert_eq!(artifact_lines(&tree, run).await, ["answer: abcd"], "{crashed}");
        assert_eq!(hops(&tree, run).await.len(), 3, "{crashed}");
        tree.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_between_two_hops_suspends_the_run() {
    let mut tree = tree_with_team().await;
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    tree.advance_to(5).await;
    tree.stop(60).await;
    assert_eq!((tree.describe_end(run).await.as_str(), tree.elapsed_seconds()), ("unfinished", 10));
    assert_eq!(hop_ends(&tree, run).await, ["one completed"]);
    assert_eq!(tree.record(run).await.unwrap().state, ExecutionState::Running);
    tree.start().await;
    assert_eq!((tree.wait_for_end(run).await.as_str(), tree.elapsed_seconds()), ("completed", 30));
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "ab#1@10", "abc#1@20"]);
    assert_eq!(tree.states(run).await, "idle starting running completed cleanup idle");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_hop_is_queued_is_suspended() {
    let mut tree = tree_with_team().await;
    tree.script("busy", [ScriptedAttempt::ok(20)]);
    tree.submit_to("one", "busy").await.unwrap();
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    tree.advance_to(5).await;
    tree.stop(60).await;
    assert_eq!((tree.describe_end(run).await.as_str(), tree.elapsed_seconds()), ("unfinished", 20));
    assert_eq!(hop_ends(&tree, run).await, ["one unfinished"]);
    tree.start().await;
    assert_eq!(tree.wait_for_end(run).await, "completed");
    assert_eq!(hops(&tree, run).await.len(), 3);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_team_can_be_a_member_through_stops_and_kills() {
    for is_killed in [false, true] {
        let members = MEMBERS.iter().map(|member| agent_spec(member));
        let teams = [team_spec("inner", &["one", "two"]), team_spec("outer", &["inner", "three"])];
        let mut tree = TestTree::with_agents(members.chain(teams)).await;
        for (input, answer) in [("a", "ab"), ("ab", "abc"), ("abc", "abcd")] {
            tree.script(input, [ScriptedAttempt::ok(10).with_answer(answer)]);
        }
        let run = tree.submit_to("outer", "a").await.unwrap();
        tree.advance_to(5).await;
        let inner = hops(&tree, run).await.remove(0).id;
        if is_killed {
            preserve_hops(&tree, inner).await;
            tree.restart().await;
        } else {
            tree.stop(60).await;
            assert_eq!(tree.elapsed_seconds(), 10, "the stop waits for the hop that runs");
            tree.start().await;
        }
        assert_eq!(tree.wait_for_end(run).await, "completed");
        assert_eq!(artifact_lines(&tree, run).await, ["answer: abcd"]);
        let innermost_position = hops(&tree, inner).await.remove(0).trigger.hop_position().unwrap();
        assert_eq!((innermost_position.parent, innermost_position.root), (inner, run));
        tree.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_reaches_the_members_of_a_member() {
    let teams = [team_spec("inner", &["one"]), team_spec("outer", &["inner"])];
    let tree = TestTree::with_agents([agent_spec("one")].into_iter().chain(teams)).await;
    tree.script("a", [ScriptedAttempt::ok(100)]);
    let run = tree.submit_to("outer", "a").await.unwrap();
    tree.advance_to(5).await;
    tree.cancel(run).await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "cancelled: execution-cancelled");
    let inner = hops(&tree, run).await.remove(0).id;
    assert_eq!(tree.describe_end(inner).await, "cancelled: execution-cancelled");
    assert_eq!(hop_ends(&tree, inner).await, ["one cancelled: execution-cancelled"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_member_ends_the_run() {
    let tree = tree_with_team().await;
    tree.script("ab", [ScriptedAttempt::requesting_input(1)]);
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "failed: member-failed");
    let failure = tree.record(run).await.unwrap().failure.unwrap();
    assert!(failure.message.contains("requested input"), "{}", failure.message);
    let ends = hop_ends(&tree, run).await;
    assert_eq!(ends, ["one completed", "two cancelled: execution-cancelled"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_of_a_member_refuses_no_hop() {
    let mut spec_with_short_queue = agent_spec("one");
    spec_with_short_queue.limits.capacity.max_waiting = 1;
    let tree = TestTree::with_agents([spec_with_short_queue, team_spec(TEAM, &["one"])]).await;
    tree.script("busy", [ScriptedAttempt::ok(10)]);
    for _ in 0..2 {
        tree.submit_to("one", "busy").await.unwrap();
    }
    assert_eq!(tree.submit_to("one", "a").await, Err(Code::QueueFull));
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    assert_eq!((tree.wait_for_end(run).await.as_str(), tree.elapsed_seconds()), ("completed", 20));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn hops_without_their_run_end_at_the_next_start() {
    let mut tree = tree_with_team().await;
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    tree.advance_to(5).await;
    preserve_hops(&tree, run).await;
    tree.restart_with(|specs| specs.retain(|spec| spec.id.as_str() != TEAM)).await;
    assert_eq!(tree.describe_end(run).await, "failed: interrupted");
    // No step of a team outlives its run, which a cancellation or a deadline ends with its open step
    assert_eq!(hop_ends(&tree, run).await, ["one cancelled: execution-cancelled"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_fails_for_a_while_delays_the_run_only() {
    for call in [
        LedgerCallKind::Read,
        LedgerCallKind::List,
        LedgerCallKind::AppendBatch,
        LedgerCallKind::Accept,
    ] {
        for second in [0, 9, 19, 29] {
            let tree = tree_with_team().await;
            let run = tree.submit_to(TEAM, "a").await.unwrap();
            tree.advance_to(second).await;
            tree.faults.fail_next(call, 3);
            assert_eq!(tree.wait_for_end(run).await, "completed", "{call:?} at {second}");
            assert_eq!(artifact_lines(&tree, run).await, ["answer: abcd"], "{call:?} at {second}");
            assert_eq!(tree.driver.recorded_work().starts.len(), 3, "{call:?} at {second}");
            tree.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspended_run_can_be_cancelled() {
    let mut tree = tree_with_team().await;
    tree.script("busy", [ScriptedAttempt::ok(20)]);
    tree.submit_to("one", "busy").await.unwrap();
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    tree.advance_to(5).await;
    let stop = tree.stop_future(60);
    let cancel = async {
        tree.advance_to(10).await;
        tree.cancel(run).await.unwrap();
    };
    tokio::join!(stop, cancel);
    assert_eq!(tree.describe_end(run).await, "cancelled: execution-cancelled");
    assert_eq!(hop_ends(&tree, run).await, ["one cancelled: execution-cancelled"]);
    tree.start().await;
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_suspension_does_not_count_towards_the_deadline() {
    let members = MEMBERS.iter().map(|member| agent_spec(member));
    let mut crew_spec = team_spec(TEAM, &MEMBERS);
    crew_spec.limits.timeouts.run = Duration::from_secs(60);
    let mut tree = TestTree::with_agents(members.chain([crew_spec])).await;
    tree.script("a", [ScriptedAttempt::ok(10).with_answer("b")]);
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    tree.advance_to(5).await;
    tree.stop(60).await;
    tree.advance_to(10_000).await;
    tree.start().await;
    assert_eq!(tree.wait_for_end(run).await, "completed");
    tree.end().await;
}
