//! What agents may use up, in one execution and in one day, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::agent::budget::{BudgetMeasure, Charge, zone};
use algonius_actors::model::code::Code;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::testing::{Act, WORKER, World};

fn daily(of: BudgetMeasure, limit: u64) -> impl FnOnce(&mut AgentSpec) {
    move |spec| _ = spec.budget.day.insert(of, limit)
}

fn each_run(of: BudgetMeasure, limit: u64) -> impl FnOnce(&mut AgentSpec) {
    move |spec| _ = spec.budget.run.insert(of, limit)
}

async fn spent(world: &World) -> Charge {
    world.agent(WORKER).await.budget.unwrap().spent
}

async fn sentence(world: &World, id: ExecutionId) -> String {
    world.record(id).await.unwrap().failure.unwrap().message
}

#[tokio::test(start_paused = true)]
async fn a_run_that_exceeds_its_budget_is_stopped() {
    let world = World::tuned(each_run(BudgetMeasure::Tokens, 100)).await;
    world.script("a", [Act::ok(60).using([(50, 50, false), (7, 3, false)])]);
    let id = world.submit("a").await.unwrap();
    assert_eq!(world.wait(id).await, "failed: budget-exceeded");
    assert_eq!(sentence(&world, id).await, "its budget of 100 tokens is exceeded by 10 tokens");
    assert_eq!(world.second(), 0);
    world.script("b", [Act::ok(60).using([(50, 50, false)])]);
    assert_eq!(world.run("b").await, "completed at 60");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn attempts_add_up_and_cumulative_usage_counts_once() {
    let world = World::tuned(each_run(BudgetMeasure::Tokens, 100)).await;
    let fails = Act::fail(1, Code::TransientFailure).using([(60, 0, false)]);
    world.script("a", [fails, Act::ok(1).using([(41, 0, false)])]);
    assert_eq!(world.run("a").await, "failed: budget-exceeded at 2");
    let whole = [(30, 5, true), (60, 10, true), (80, 20, true)];
    world.script("b", [Act::ok(1).using(whole)]);
    assert_eq!(world.run("b").await, "completed at 3");
    assert_eq!(spent(&world).await.tokens(), 101 + 100);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deferred_run_resumes_with_its_remaining_budget() {
    let mut world = World::tuned(each_run(BudgetMeasure::Tokens, 100)).await;
    let parks = Act::fail(1, Code::QuotaExceeded).lasting(600).using([(60, 0, false)]);
    world.script("a", [parks, Act::ok(1).using([(41, 0, false)])]);
    let id = world.submit("a").await.unwrap();
    world.at(10).await;
    world.restart().await;
    assert_eq!(world.wait(id).await, "failed: budget-exceeded");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn run_time_of_all_attempts_counts_towards_the_budget() {
    let world = World::tuned(each_run(BudgetMeasure::WallTime, 50_000)).await;
    world.script("a", [Act::fail(30, Code::TransientFailure), Act::ok(100)]);
    let id = world.submit("a").await.unwrap();
    assert_eq!(world.wait(id).await, "failed: budget-exceeded");
    assert_eq!(world.second(), 30 + 1 + 20);
    assert_eq!(spent(&world).await.wall_ms, 50_000);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_spent_day_refuses_requests_until_the_next_day() {
    // The world begins at 08:00 UTC, which is 21:00 in Auckland.
    let world = World::tuned(|spec| {
        daily(BudgetMeasure::Tokens, 100)(spec);
        spec.budget.zone = zone("Pacific/Auckland").unwrap();
    })
    .await;
    world.script("a", [Act::ok(1).using([(100, 0, false)])]);
    assert_eq!(world.run("a").await, "completed at 1");
    assert_eq!(world.submit("b").await, Err(Code::BudgetExceeded));
    let shown = world.agent(WORKER).await.budget.unwrap();
    assert_eq!((shown.bounds[0].remaining, shown.day.to_string().as_str()), (0, "2027-01-15"));
    assert_eq!(shown.renews.to_rfc3339(), "2027-01-15T11:00:00+00:00");
    world.at(3 * 3600 - 1).await;
    assert_eq!(world.submit("b").await, Err(Code::BudgetExceeded));
    world.at(3 * 3600).await;
    assert_eq!(world.run("b").await, "completed at 10800");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_budget_alert_lasts_until_midnight_and_over_a_restart() {
    let alerts = async |world: &World| {
        let alerts = world.status().await.alerts.into_iter();
        let told = alerts.map(|alert| format!("{} {}", alert.cause.as_str(), alert.value));
        told.collect::<Vec<_>>()
    };
    let mut world = World::tuned(daily(BudgetMeasure::Tokens, 100)).await;
    world.script("a", [Act::ok(1).using([(79, 0, false)])]);
    world.script("b", [Act::ok(10).using([(2, 0, false)])]);
    assert_eq!(world.run("a").await, "completed at 1");
    assert_eq!(alerts(&world).await, [""; 0]);
    world.submit("b").await.unwrap();
    world.at(5).await;
    assert_eq!(alerts(&world).await, ["budget-nearly-spent 81"]);
    world.restart().await;
    assert_eq!(alerts(&world).await, ["budget-nearly-spent 81"]);
    world.at(16 * 3600 - 1).await;
    assert_eq!(alerts(&world).await, ["budget-nearly-spent 81"]);
    world.at(16 * 3600 + 10).await;
    assert_eq!(alerts(&world).await, [""; 0]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn queued_requests_fail_when_the_daily_budget_is_spent() {
    let world = World::tuned(daily(BudgetMeasure::Tokens, 100)).await;
    world.script("a", [Act::ok(5).using([(100, 0, false)])]);
    let first = world.submit("a").await.unwrap();
    world.at(1).await;
    assert_eq!(world.submit("b").await, Err(Code::BudgetExceeded));
    assert_eq!(world.wait(first).await, "completed");
    let world = {
        world.end().await;
        World::tuned(daily(BudgetMeasure::Tokens, 100)).await
    };
    world.script("a", [Act::ok(5).starting_for(2).using([(100, 0, false)])]);
    let first = world.submit("a").await.unwrap();
    let waits = world.submit("b").await.unwrap();
    assert_eq!(world.wait(first).await, "completed");
    assert_eq!(world.wait(waits).await, "failed: budget-exceeded");
    assert_eq!(world.driver.stage().begun, ["a#1@0"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn spent_budget_survives_a_restart_and_a_crash() {
    let mut world = World::tuned(daily(BudgetMeasure::WallTime, 100_000)).await;
    world.script("a", [Act::ok(60).using([(70, 7, false)])]);
    assert_eq!(world.run("a").await, "completed at 60");
    world.restart().await;
    let expected =
        Charge { input_tokens: 70, output_tokens: 7, wall_ms: 60_000, ..Charge::default() };
    assert_eq!(spent(&world).await, expected);
    world.crash_agent(WORKER).await;
    world.at(70).await;
    assert_eq!(spent(&world).await, expected);
    world.script("b", [Act::ok(40)]);
    assert_eq!(world.run("b").await, "completed at 110");
    assert_eq!(world.submit("c").await, Err(Code::BudgetExceeded));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn resumed_work_is_not_charged_twice() {
    let mut world = World::new().await;
    world.script("a", [Act::ok(60).using([(70, 7, false), (3, 3, false)])]);
    let id = world.submit("a").await.unwrap();
    world.at(5).await;
    world.driver.hold(id);
    world.restart().await;
    assert_eq!(world.wait(id).await, "completed");
    assert_eq!(spent(&world).await.tokens(), 83);
    world.end().await;
}
