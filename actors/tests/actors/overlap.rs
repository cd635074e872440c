//! Overlap policies of schedules: the decision about an occurrence while the previous one has not ended.

use std::num::NonZeroU32;
use std::time::Duration;

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::schedule::{OverlapPolicy, ScheduleSpec};
use algonius_actors::ports::ledger::Ledger as _;
use algonius_actors::testing::{
    DEFAULT_AGENT, LedgerCallKind, ScriptedAttempt, TestTree, agent_spec, cron_schedule,
};

#[tokio::test(start_paused = true)]
async fn a_busy_agent_follows_the_overlap_policy() {
    let cases = [
        (
            OverlapPolicy::Skip,
            vec!["08:01 fired completed", "08:02 skipped", "08:03 fired completed"],
        ),
        (
            OverlapPolicy::Queue,
            vec!["08:01 fired completed", "08:02 fired completed", "08:03 fired completed"],
        ),
        (
            OverlapPolicy::CancelPrevious,
            vec!["08:01 fired cancelled", "08:02 fired cancelled", "08:03 fired completed"],
        ),
        (
            OverlapPolicy::Allow,
            vec!["08:01 fired completed", "08:02 fired completed", "08:03 fired completed"],
        ),
    ];
    for (overlap, expected) in cases {
        let tree = TestTree::with_tuned_agent(|spec| {
            spec.limits.capacity.max_running = NonZeroU32::new(3);
        })
        .await;
        tree.add_caller_token().await;
        tree.create_schedule(ScheduleSpec { overlap, ..cron_schedule("tick", "* * * * *") })
            .await
            .unwrap();
        tree.script("tick", [ScriptedAttempt::ok(90)]);
        tree.advance_to(190).await;
        let id = cron_schedule("tick", "* * * * *").id;
        tree.api().schedules.set_schedule_paused(&tree.caller(), &id, true).await.unwrap();
        tree.advance_to(600).await;
        let mut lines = tree.occurrence_lines("tick").await;
        if overlap == OverlapPolicy::Queue {
            // The occurrence that waited when the schedule was paused is not sent.
            assert_eq!(lines.pop().unwrap(), "08:03 skipped");
            lines.push("08:03 fired completed".to_owned());
        }
        assert_eq!(lines, expected, "{overlap:?}");
        let max_alive = if overlap == OverlapPolicy::Allow { 2 } else { 1 };
        assert_eq!(tree.driver.recorded_work().max_alive_count, max_alive, "{overlap:?}");
        tree.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_occurrence_cancels_no_earlier_run() {
    let tree = TestTree::new().await;
    tree.add_caller_token().await;
    let overlap = OverlapPolicy::CancelPrevious;
    tree.create_schedule(ScheduleSpec { overlap, ..cron_schedule("tick", "* * * * *") })
        .await
        .unwrap();
    tree.script("tick", [ScriptedAttempt::ok(90)]);
    tree.advance_to(90).await;
    // The agent is disabled while it works: it finishes its run and accepts nothing.
    tree.register(AgentSpec { enabled: false, ..agent_spec(DEFAULT_AGENT) }).await;
    tree.advance_to(170).await;
    assert_eq!(tree.occurrence_lines("tick").await, ["08:01 fired completed", "08:02 refused"]);
    let reason = tree.schedule_store.all_occurrences().await[1].reason.clone().unwrap();
    assert!(reason.starts_with("agent-disabled: "), "{reason}");
    // It is switched on again: a later occurrence replaces the run before it as before.
    tree.register(agent_spec(DEFAULT_AGENT)).await;
    tree.advance_to(250).await;
    let lines = tree.occurrence_lines("tick").await;
    assert_eq!(lines[2..], ["08:03 fired cancelled", "08:04 fired"], "{lines:?}");
    tree.end().await;
}

/// While the tokens cannot be read, the scheduler does not know if the agent would accept the later occurrence.
#[tokio::test(start_paused = true)]
async fn an_unanswered_check_postpones_the_replacement() {
    let tree = TestTree::new().await;
    tree.add_caller_token().await;
    let overlap = OverlapPolicy::CancelPrevious;
    tree.create_schedule(ScheduleSpec { overlap, ..cron_schedule("tick", "* * * * *") })
        .await
        .unwrap();
    tree.script("tick", [ScriptedAttempt::ok(90)]);
    tree.advance_to(118).await;
    tree.faults.fail_next(LedgerCallKind::Read, u32::MAX);
    tree.advance_to(125).await;
    assert_eq!(tree.occurrence_lines("tick").await, ["08:01 fired", "08:02 pending"]);
    tree.faults.clear_faults();
    tree.advance_to(140).await;
    let lines = tree.occurrence_lines("tick").await;
    assert_eq!(lines[..1], ["08:01 fired cancelled"], "{lines:?}");
    assert!(lines[1].starts_with("08:02 fired"), "{lines:?}");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_continues_when_its_owner_loses_the_right() {
    let tree = TestTree::new().await;
    tree.add_caller_token().await;
    let overlap = OverlapPolicy::CancelPrevious;
    tree.create_schedule(ScheduleSpec { overlap, ..cron_schedule("tick", "* * * * *") })
        .await
        .unwrap();
    tree.script("tick", [ScriptedAttempt::ok(90)]);
    tree.advance_to(90).await;
    tree.ledger.replace_configured_tokens(Vec::new(), tree.api().reader.now()).await.unwrap();
    tree.advance_to(170).await;
    assert_eq!(tree.occurrence_lines("tick").await, ["08:01 fired completed", "08:02 refused"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn skipped_times_between_failed_runs_do_not_end_their_count() {
    let tree = TestTree::with_tuned_agent(|spec| {
        spec.limits.timeouts.run = Duration::from_secs(7200);
    })
    .await;
    tree.add_caller_token().await;
    let schedule = cron_schedule("tick", "* * * * *");
    tree.create_schedule(schedule.clone()).await.unwrap();
    // Each run takes 70 minutes, and as many times are skipped before the next.
    tree.script("tick", [ScriptedAttempt::fail(70 * 60, Code::Exit)]);
    tree.advance_to(3 * 71 * 60 + 90).await;
    let schedules = &tree.api().schedules;
    assert_eq!(schedules.schedule(&tree.caller(), &schedule.id).await.unwrap().failure_streak, 3);
    assert_eq!(tree.status().await.alerts[0].value, 3);
    tree.end().await;
}
