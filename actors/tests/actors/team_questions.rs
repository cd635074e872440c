//! Questions of members of teams, which callers of a run see and answer, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::team::{TeamPlan, TeamStep};
use algonius_actors::model::agent::{AgentSpec, WorkerSpec};
use algonius_actors::model::execution::record::PublicState;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::interaction::{AnswerValue, InteractionFilter, InteractionId};
use algonius_actors::ports::interaction_store::InteractionStore;
use algonius_actors::testing::{ScriptedAttempt, TestTree, agent_spec, answer_question};

const TEAM: &str = "crew";
/// Time of a run.
const RUN_TIMEOUT_SECONDS: u64 = 25;

/// Returns a team of two members. The first one opens a question when it starts, and works for two seconds.
async fn tree_with_questioning_team() -> TestTree {
    let step = |member: &str| TeamStep { id: member.to_owned(), agent: agent_spec(member).id };
    let plan = TeamPlan { steps: ["one", "two"].map(step).into() };
    let mut team = AgentSpec { worker: WorkerSpec::Team(Arc::new(plan)), ..agent_spec(TEAM) };
    team.limits.timeouts.run = Duration::from_secs(RUN_TIMEOUT_SECONDS);
    let tree = TestTree::with_agents([agent_spec("one"), agent_spec("two"), team]).await;
    tree.script("a", [ScriptedAttempt::ok(2).with_question("0", "touch a").with_answer("b")]);
    tree
}

/// Waits until a run has this public state.
async fn wait_for_state(tree: &TestTree, run: ExecutionId, state: PublicState) {
    while tree.record(run).await.unwrap().public_state() != state {
        // In virtual time: a poll of the ledger, which notifies nobody, lets the actors run.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits for the open question of a run, and returns it.
async fn wait_for_question(tree: &TestTree, run: ExecutionId) -> InteractionId {
    wait_for_state(tree, run, PublicState::InputRequired).await;
    let filter = InteractionFilter { execution: Some(run), ..InteractionFilter::default() };
    let [question] = tree.ledger.interactions(filter).await.unwrap().try_into().unwrap();
    let path: Vec<_> = question.origin.agent_path().map(ToString::to_string).collect();
    assert_eq!(path, [TEAM, "one"]);
    question.id
}

#[tokio::test(start_paused = true)]
async fn a_run_continues_with_the_answer_to_its_member() {
    let tree = tree_with_questioning_team().await;
    tree.script("b", [ScriptedAttempt::ok(2).with_answer("c")]);
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    let question = wait_for_question(&tree, run).await;
    answer_question(&tree, question, AnswerValue::Allow).await.unwrap();
    assert_eq!(tree.record(run).await.unwrap().public_state(), PublicState::Working);
    assert_eq!(tree.wait_for_end(run).await, "completed");
    assert_eq!(tree.record(run).await.unwrap().requested_input.open_interaction_count, 0);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_run_pauses_while_a_member_asks() {
    let tree = tree_with_questioning_team().await;
    tree.script("b", [ScriptedAttempt::ok(100)]);
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    let question = wait_for_question(&tree, run).await;
    // Longer than the time of the run, shorter than that of the question.
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(tree.record(run).await.unwrap().outcome, None);
    answer_question(&tree, question, AnswerValue::Allow).await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "timeout: execution-timeout");
    assert_eq!(tree.elapsed_seconds(), 200 + RUN_TIMEOUT_SECONDS);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_shows_the_question_again_after_a_crash_of_its_actor() {
    let tree = tree_with_questioning_team().await;
    tree.script("b", [ScriptedAttempt::ok(2).with_answer("c")]);
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    let question = wait_for_question(&tree, run).await;
    tree.crash_agent(TEAM).await;
    wait_for_state(&tree, run, PublicState::InputRequired).await;
    // A caller that waits for the run receives the question.
    tree.wait_for_end(run).await;
    assert_eq!(tree.record(run).await.unwrap().outcome, None);
    answer_question(&tree, question, AnswerValue::Allow).await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "completed");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_cancels_a_run_whose_member_gets_no_answer() {
    let mut tree = tree_with_questioning_team().await;
    let run = tree.submit_to(TEAM, "a").await.unwrap();
    wait_for_question(&tree, run).await;
    // Longer than the time of the run, which pauses.
    tree.stop(40).await;
    assert_eq!(tree.describe_end(run).await, "cancelled: execution-cancelled");
    assert_eq!(tree.elapsed_seconds(), 40);
    tree.start().await;
    tree.end().await;
}
