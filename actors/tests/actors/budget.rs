//! Budgets of agents, for one execution and for one day, in virtual time.

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::agent::budget::{BudgetMeasure, Charge, parse_zone};
use algonius_actors::model::code::Code;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::testing::{DEFAULT_AGENT, ScriptedAttempt, TestTree};

fn daily_limit_setter(measure: BudgetMeasure, limit: u64) -> impl FnOnce(&mut AgentSpec) {
    move |spec| _ = spec.budget.daily_limits.insert(measure, limit)
}

fn execution_limit_setter(measure: BudgetMeasure, limit: u64) -> impl FnOnce(&mut AgentSpec) {
    move |spec| _ = spec.budget.execution_limits.insert(measure, limit)
}

async fn spent_today(tree: &TestTree) -> Charge {
    tree.agent_status(DEFAULT_AGENT).await.budget.unwrap().spent
}

async fn failure_message(tree: &TestTree, id: ExecutionId) -> String {
    tree.record(id).await.unwrap().failure.unwrap().message
}

#[tokio::test(start_paused = true)]
async fn a_run_that_exceeds_its_budget_is_stopped() {
    let tree = TestTree::with_tuned_agent(execution_limit_setter(BudgetMeasure::Tokens, 100)).await;
    tree.script("a", [ScriptedAttempt::ok(60).with_usage([(50, 50, false), (7, 3, false)])]);
    let id = tree.submit("a").await.unwrap();
    assert_eq!(tree.wait_for_end(id).await, "failed: budget-exceeded");
    assert_eq!(
        failure_message(&tree, id).await,
        "its budget of 100 tokens is exceeded by 10 tokens"
    );
    assert_eq!(tree.elapsed_seconds(), 0);
    tree.script("b", [ScriptedAttempt::ok(60).with_usage([(50, 50, false)])]);
    assert_eq!(tree.submit_and_describe_end("b").await, "completed at 60");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn attempts_add_up_and_cumulative_usage_counts_once() {
    let tree = TestTree::with_tuned_agent(execution_limit_setter(BudgetMeasure::Tokens, 100)).await;
    let failing_attempt =
        ScriptedAttempt::fail(1, Code::TransientFailure).with_usage([(60, 0, false)]);
    tree.script("a", [failing_attempt, ScriptedAttempt::ok(1).with_usage([(41, 0, false)])]);
    assert_eq!(tree.submit_and_describe_end("a").await, "failed: budget-exceeded at 2");
    let cumulative = [(30, 5, true), (60, 10, true), (80, 20, true)];
    tree.script("b", [ScriptedAttempt::ok(1).with_usage(cumulative)]);
    assert_eq!(tree.submit_and_describe_end("b").await, "completed at 3");
    assert_eq!(spent_today(&tree).await.tokens(), 101 + 100);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deferred_run_resumes_with_its_remaining_budget() {
    let mut tree =
        TestTree::with_tuned_agent(execution_limit_setter(BudgetMeasure::Tokens, 100)).await;
    let quota_failure = ScriptedAttempt::fail(1, Code::QuotaExceeded)
        .with_retry_after(600)
        .with_usage([(60, 0, false)]);
    tree.script("a", [quota_failure, ScriptedAttempt::ok(1).with_usage([(41, 0, false)])]);
    let id = tree.submit("a").await.unwrap();
    tree.advance_to(10).await;
    tree.restart().await;
    assert_eq!(tree.wait_for_end(id).await, "failed: budget-exceeded");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn run_time_of_all_attempts_counts_towards_the_budget() {
    let tree =
        TestTree::with_tuned_agent(execution_limit_setter(BudgetMeasure::WallTime, 50_000)).await;
    tree.script("a", [ScriptedAttempt::fail(30, Code::TransientFailure), ScriptedAttempt::ok(100)]);
    let id = tree.submit("a").await.unwrap();
    assert_eq!(tree.wait_for_end(id).await, "failed: budget-exceeded");
    assert_eq!(tree.elapsed_seconds(), 30 + 1 + 20);
    assert_eq!(spent_today(&tree).await.wall_ms, 50_000);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_spent_day_refuses_requests_until_the_next_day() {
    // The virtual time begins at 08:00 UTC, which is 21:00 in Auckland.
    let tree = TestTree::with_tuned_agent(|spec| {
        daily_limit_setter(BudgetMeasure::Tokens, 100)(spec);
        spec.budget.zone = parse_zone("Pacific/Auckland").unwrap();
    })
    .await;
    tree.script("a", [ScriptedAttempt::ok(1).with_usage([(100, 0, false)])]);
    assert_eq!(tree.submit_and_describe_end("a").await, "completed at 1");
    assert_eq!(tree.submit("b").await, Err(Code::BudgetExceeded));
    let budget = tree.agent_status(DEFAULT_AGENT).await.budget.unwrap();
    assert_eq!((budget.bounds[0].remaining, budget.day.to_string().as_str()), (0, "2027-01-15"));
    assert_eq!(budget.renews.to_rfc3339(), "2027-01-15T11:00:00+00:00");
    tree.advance_to(3 * 3600 - 1).await;
    assert_eq!(tree.submit("b").await, Err(Code::BudgetExceeded));
    tree.advance_to(3 * 3600).await;
    assert_eq!(tree.submit_and_describe_end("b").await, "completed at 10800");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_budget_alert_lasts_until_midnight_and_over_a_restart() {
    let alert_lines = async |tree: &TestTree| {
        let alerts = tree.status().await.alerts.into_iter();
        let lines = alerts.map(|alert| format!("{} {}", alert.cause.as_str(), alert.value));
        lines.collect::<Vec<_>>()
    };
    let mut tree = TestTree::with_tuned_agent(daily_limit_setter(BudgetMeasure::Tokens, 100)).await;
    tree.script("a", [ScriptedAttempt::ok(1).with_usage([(79, 0, false)])]);
    tree.script("b", [ScriptedAttempt::ok(10).with_usage([(2, 0, false)])]);
    assert_eq!(tree.submit_and_describe_end("a").await, "completed at 1");
    assert_eq!(alert_lines(&tree).await, [""; 0]);
    tree.submit("b").await.unwrap();
    tree.advance_to(5).await;
    assert_eq!(alert_lines(&tree).await, ["budget-nearly-spent 81"]);
    tree.restart().await;
    assert_eq!(alert_lines(&tree).await, ["budget-nearly-spent 81"]);
    tree.advance_to(16 * 3600 - 1).await;
    assert_eq!(alert_lines(&tree).await, ["budget-nearly-spent 81"]);
    tree.advance_to(16 * 3600 + 10).await;
    assert_eq!(alert_lines(&tree).await, [""; 0]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn queued_requests_fail_when_the_daily_budget_is_spent() {
    let tree = TestTree::with_tuned_agent(daily_limit_setter(BudgetMeasure::Tokens, 100)).await;
    tree.script("a", [ScriptedAttempt::ok(5).with_usage([(100, 0, false)])]);
    let first = tree.submit("a").await.unwrap();
    tree.advance_to(1).await;
    assert_eq!(tree.submit("b").await, Err(Code::BudgetExceeded));
    assert_eq!(tree.wait_for_end(first).await, "completed");
    let tree = {
        tree.end().await;
        TestTree::with_tuned_agent(daily_limit_setter(BudgetMeasure::Tokens, 100)).await
    };
    tree.script("a", [ScriptedAttempt::ok(5).with_start_delay(2).with_usage([(100, 0, false)])]);
    let first = tree.submit("a").await.unwrap();
    let waiting = tree.submit("b").await.unwrap();
    assert_eq!(tree.wait_for_end(first).await, "completed");
    assert_eq!(tree.wait_for_end(waiting).await, "failed: budget-exceeded");
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn spent_budget_survives_a_restart_and_a_crash() {
    let mut tree =
        TestTree::with_tuned_agent(daily_limit_setter(BudgetMeasure::WallTime, 100_000)).await;
    tree.script("a", [ScriptedAttempt::ok(60).with_usage([(70, 7, false)])]);
    assert_eq!(tree.submit_and_describe_end("a").await, "completed at 60");
    tree.restart().await;
    let expected =
        Charge { input_tokens: 70, output_tokens: 7, wall_ms: 60_000, ..Charge::default() };
    assert_eq!(spent_today(&tree).await, expected);
    tree.crash_agent(DEFAULT_AGENT).await;
    tree.advance_to(70).await;
    assert_eq!(spent_today(&tree).await, expected);
    tree.script("b", [ScriptedAttempt::ok(40)]);
    assert_eq!(tree.submit_and_describe_end("b").await, "completed at 110");
    assert_eq!(tree.submit("c").await, Err(Code::BudgetExceeded));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn resumed_work_is_not_charged_twice() {
    let mut tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(60).with_usage([(70, 7, false), (3, 3, false)])]);
    let id = tree.submit("a").await.unwrap();
    tree.advance_to(5).await;
    tree.driver.preserve_over_restart(id);
    tree.restart().await;
    assert_eq!(tree.wait_for_end(id).await, "completed");
    assert_eq!(spent_today(&tree).await.tokens(), 83);
    tree.end().await;
}
