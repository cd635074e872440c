//! Schedules: each occurrence starts once, over crashes, restarts, faults and changes of the clock.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::schedule::occurrence::OccurrenceStatus;
use algonius_actors::model::schedule::{
    ConfiguredSchedule, MissedPolicy, ScheduleSpec, ScheduleState,
};
use algonius_actors::testing::{LedgerCallKind, ScriptedAttempt, TestTree, cron_schedule};

/// A tree in which whoever asks has a token, and one schedule.
async fn tree_with_schedule(spec: ScheduleSpec) -> TestTree {
    let tree = TestTree::new().await;
    tree.add_caller_token().await;
    assert!(tree.create_schedule(spec).await.is_ok());
    tree
}

#[tokio::test(start_paused = true)]
async fn each_occurrence_is_requested_once_with_its_outcome() {
    let tree = tree_with_schedule(cron_schedule("tick", "* * * * *")).await;
    tree.script("tick", [ScriptedAttempt::ok(5)]);
    tree.advance_to(150).await;
    // Each occurrence of a schedule is requested once, and its outcome is recorded
    assert_eq!(
        tree.occurrence_lines("tick").await,
        ["08:01 fired completed", "08:02 fired completed"]
    );
    assert_eq!(tree.driver.recorded_work().starts, ["tick#1@60", "tick#1@120"]);
    for occurrence in tree.schedule_store.all_occurrences().await {
        let deviation = occurrence.delay().unwrap().num_milliseconds();
        assert!((0..50).contains(&deviation), "{deviation}");
    }
    let view = tree
        .api()
        .schedules
        .schedule(&tree.caller(), &cron_schedule("tick", "* * * * *").id)
        .await
        .unwrap();
    assert_eq!((view.state, view.waiting_occurrence_count), (ScheduleState::Active, 0));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn missed_times_of_a_downtime_are_made_up_for_once() {
    let mut tree = tree_with_schedule(cron_schedule("tick", "* * * * *")).await;
    tree.script("tick", [ScriptedAttempt::ok(1)]);
    tree.advance_to(90).await;
    tree.kill().await;
    tree.advance_to(90 + 300).await;
    tree.start().await;
    tree.advance_to(430).await;
    let lines = tree.occurrence_lines("tick").await;
    assert_eq!(
        lines,
        [
            "08:01 fired completed",
            "08:02 coalesced x4",
            "08:06 fired completed",
            "08:07 fired completed",
        ]
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_during_a_request_repeats_no_occurrence() {
    for (call, seconds) in [
        (LedgerCallKind::Schedule, 2),
        (LedgerCallKind::Accept, 2),
        (LedgerCallKind::Read, 2),
        (LedgerCallKind::Settle, 2),
    ] {
        for kill_second in [59, 60, 61, 62, 63, 64, 65, 66, 67] {
            let mut tree = tree_with_schedule(cron_schedule("tick", "* * * * *")).await;
            tree.script("tick", [ScriptedAttempt::ok(1)]);
            tree.faults.delay_all(call, seconds);
            tree.advance_to(kill_second).await;
            tree.kill().await;
            tree.faults.clear_faults();
            tree.start().await;
            tree.advance_to(80).await;
            let lines = tree.occurrence_lines("tick").await;
            let [line] = lines.as_slice() else { panic!("{call:?} at {kill_second}: {lines:?}") };
            // An attempt that the kill interrupted is known as such; it is not asked for again.
            assert!(line.starts_with("08:01 fired"), "{call:?} at {kill_second}: {line}");
            let start_count = tree.driver.recorded_work().starts.len();
            // Each occurrence of a schedule is requested once, wherever the service dies
            // during the request
            assert!(start_count <= 1, "{call:?} at {kill_second}: begun {start_count} times");
            if kill_second <= 60 {
                assert_eq!((line.as_str(), start_count), ("08:01 fired completed", 1), "{call:?}");
            }
            tree.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_temporary_ledger_failure_loses_no_occurrence() {
    let tree = tree_with_schedule(cron_schedule("tick", "2 8 * * *")).await;
    tree.script("tick", [ScriptedAttempt::ok(1)]);
    tree.advance_to(110).await;
    for call in [LedgerCallKind::Schedule, LedgerCallKind::Accept, LedgerCallKind::Read] {
        tree.faults.fail_next(call, 3);
    }
    tree.advance_to(200).await;
    // A temporary failure of the ledger loses no occurrence
    assert_eq!(tree.occurrence_lines("tick").await, ["08:02 fired completed"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_busy_agent_is_tried_again_until_the_window_ends() {
    for (window, expected) in [(600, "08:01 fired completed"), (45, "08:01 refused")] {
        let tree = TestTree::with_tuned_agent(|spec| spec.limits.capacity.max_waiting = 0).await;
        tree.add_caller_token().await;
        let missed = MissedPolicy::Once { window: Duration::from_secs(window) };
        tree.create_schedule(ScheduleSpec { missed, ..cron_schedule("tick", "1 8 * * *") })
            .await
            .unwrap();
        tree.script("other", [ScriptedAttempt::ok(200)]);
        tree.submit("other").await.unwrap();
        tree.advance_to(300).await;
        assert_eq!(tree.occurrence_lines("tick").await, [expected]);
        tree.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn scheduled_work_is_cancelled_at_its_deadline() {
    let deadline = Some(Duration::from_secs(20));
    let tree =
        tree_with_schedule(ScheduleSpec { deadline, ..cron_schedule("tick", "1 8 * * *") }).await;
    tree.script("tick", [ScriptedAttempt::ok(200)]);
    tree.advance_to(120).await;
    assert_eq!(tree.occurrence_lines("tick").await, ["08:01 fired cancelled"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_schedule_can_be_paused_changed_triggered_and_removed() {
    let tree = tree_with_schedule(cron_schedule("tick", "* * * * *")).await;
    tree.script("tick", [ScriptedAttempt::ok(1)]);
    let (api, caller, id) = (tree.api(), tree.caller(), cron_schedule("tick", "* * * * *").id);
    api.schedules.set_schedule_paused(&caller, &id, true).await.unwrap();
    tree.advance_to(200).await;
    assert_eq!(tree.occurrence_lines("tick").await, [""; 0]);
    assert_eq!(api.schedules.schedule(&caller, &id).await.unwrap().state, ScheduleState::Paused);
    api.schedules.trigger_schedule(&caller, &id).await.unwrap();
    tree.advance_to(210).await;
    assert_eq!(tree.occurrence_lines("tick").await, ["08:03 fired completed"]);
    api.schedules.set_schedule_paused(&caller, &id, false).await.unwrap();
    tree.advance_to(250).await;
    assert_eq!(
        tree.occurrence_lines("tick").await,
        ["08:03 fired completed", "08:04 fired completed"]
    );
    api.schedules.put_schedule(&caller, cron_schedule("tick", "30 8 * * *"), false).await.unwrap();
    tree.advance_to(400).await;
    assert_eq!(tree.occurrence_lines("tick").await.len(), 2);
    api.schedules.remove_schedule(&caller, &id).await.unwrap();
    assert_eq!(api.schedules.schedule(&caller, &id).await.unwrap_err().code, Code::ScheduleUnknown);
    tree.advance_to(3600).await;
    assert_eq!(tree.occurrence_lines("tick").await.len(), 2, "what happened stays known");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn schedule_names_are_unique_and_the_configuration_wins() {
    let mut tree = TestTree::new().await;
    tree.configure_schedules([cron_schedule("fixed", "* * * * *")]).await;
    tree.restart().await;
    let (api, caller) = (tree.api().clone(), tree.caller());
    let fixed = cron_schedule("fixed", "0 0 * * *");
    assert_eq!(tree.create_schedule(fixed.clone()).await, Err(Code::ScheduleExists));
    let spec_with_same_name =
        ScheduleSpec { name: "fixed".to_owned(), ..cron_schedule("other", "0 0 * * *") };
    assert_eq!(tree.create_schedule(spec_with_same_name).await, Err(Code::ScheduleExists));
    let changed = api.schedules.put_schedule(&caller, fixed.clone(), false).await;
    assert_eq!(changed.unwrap_err().code, Code::ScheduleFixed);
    assert_eq!(
        api.schedules.remove_schedule(&caller, &fixed.id).await.unwrap_err().code,
        Code::ScheduleFixed
    );
    api.schedules.set_schedule_paused(&caller, &fixed.id, true).await.unwrap();
    tree.restart().await;
    let api = tree.api().clone();
    assert_eq!(
        api.schedules.schedule(&caller, &fixed.id).await.unwrap().state,
        ScheduleState::Paused
    );
    api.schedules.configure_schedules(Vec::new()).await.unwrap();
    assert_eq!(
        api.schedules.schedule(&caller, &fixed.id).await.unwrap_err().code,
        Code::ScheduleUnknown
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_change_neither_loses_nor_repeats_an_occurrence() {
    for seconds in [7_200, -7_200, 34_560_000, -34_560_000] {
        let tree = tree_with_schedule(cron_schedule("tick", "* * * * *")).await;
        tree.script("tick", [ScriptedAttempt::ok(1)]);
        tree.advance_to(90).await;
        tree.clock.shift_wall_clock(seconds);
        tree.advance_to(90 + 200).await;
        let started = tree.driver.recorded_work().starts;
        let start_seconds: Vec<_> =
            started.iter().map(|it| it.split('@').nth(1).unwrap()).collect();
        // One before, at most one made up for, then one each minute.
        // A clock change of hours or of a year neither loses nor repeats an occurrence of a
        // schedule
        assert!((4..=5).contains(&start_seconds.len()), "{seconds}: {started:?}");
        let all = tree.schedule_store.all_occurrences().await;
        let fired_count = all.iter().filter(|it| it.execution.is_some()).count();
        assert_eq!(
            fired_count,
            start_seconds.len(),
            "{seconds} {started:?} {:?}",
            tree.occurrence_lines("tick").await
        );
        tree.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_restarted_scheduler_continues() {
    let tree = tree_with_schedule(cron_schedule("tick", "* * * * *")).await;
    tree.script("tick", [ScriptedAttempt::ok(1)]);
    for minute in 1..=8_u64 {
        tree.advance_to(minute * 60 - 5).await;
        tree.clock.panic_at_reading(1); // At this time only the scheduler reads the clock.
        tree.advance_to(minute * 60 + 30).await;
    }
    tree.advance_to(700).await;
    let lines = tree.occurrence_lines("tick").await;
    assert!(
        lines.iter().all(|line| line.contains("fired completed") || line.contains("coalesced"))
    );
    let status = tree.status().await.scheduler.unwrap();
    assert!(status.actor.restarts > 0, "{status:?}");
    let counts = status.counts.unwrap();
    assert_eq!((counts.schedules, counts.active), (1, 1));
    let start_count = tree.driver.recorded_work().starts.len();
    let fired_count = lines.iter().filter(|line| line.contains("fired")).count();
    // A failed scheduler restarts and continues where it stopped
    assert_eq!(start_count, fired_count, "{lines:?}");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_restarted_scheduler_keeps_the_latest_configuration() {
    let mut tree = TestTree::new().await;
    tree.configure_schedules([cron_schedule("old", "* * * * *")]).await;
    tree.restart().await;
    let owner = tree.caller().name;
    let spec = cron_schedule("new", "* * * * *");
    let configured = vec![ConfiguredSchedule { spec, owner }];
    tree.api().schedules.configure_schedules(configured).await.unwrap();
    tree.advance_to(55).await;
    tree.clock.panic_at_reading(1); // Only the scheduler reads the clock next.
    tree.advance_to(90).await;
    assert!(tree.status().await.scheduler.unwrap().actor.restarts > 0);
    let all = tree.api().schedules.schedules(&tree.caller(), None, 10).await.unwrap();
    let ids: Vec<_> = all.iter().map(|view| view.schedule.spec.id.as_str()).collect();
    assert_eq!(ids, ["new"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_schedule_of_an_unauthorized_owner_is_refused() {
    let tree = TestTree::new().await;
    tree.create_schedule(cron_schedule("tick", "* * * * *")).await.unwrap();
    tree.advance_to(70).await;
    assert_eq!(tree.occurrence_lines("tick").await, ["08:01 refused"]);
    let reason = tree.schedule_store.all_occurrences().await[0].reason.clone().unwrap();
    assert!(reason.starts_with("forbidden: "), "{reason}");
    tree.end().await;
}

/// Sixty schedules of this owner that are due at the same times; how often the ledger was written and the
/// tokens were read at the first of these, and what became of it.
async fn run_coinciding_schedules(
    tree: &TestTree,
    owner: &str,
) -> (u32, u32, Vec<OccurrenceStatus>) {
    let configured_schedule = |number: u32| {
        let spec = ScheduleSpec {
            input: "tick".to_owned(),
            ..cron_schedule(&format!("tick-{number}"), "* * * * *")
        };
        ConfiguredSchedule { spec, owner: owner.to_owned() }
    };
    tree.script("tick", [ScriptedAttempt::ok(30)]);
    _ = tree.api().schedules.configure_schedules((0..60).map(configured_schedule).collect()).await;
    tree.advance_to(59).await;
    tree.faults.clear_faults();
    tree.advance_to(70).await;
    let statuses = tree.schedule_store.all_occurrences().await.iter().map(|it| it.status).collect();
    (
        tree.faults.call_count(LedgerCallKind::Schedule),
        tree.faults.call_count(LedgerCallKind::Read),
        statuses,
    )
}

#[tokio::test(start_paused = true)]
async fn unauthorized_occurrences_are_refused_in_one_write() {
    let tree = TestTree::new().await;
    let writes_reads_statuses = run_coinciding_schedules(&tree, "nobody").await;
    assert_eq!(writes_reads_statuses, (1, 1, vec![OccurrenceStatus::Refused; 60]));
    assert_eq!(tree.driver.recorded_work().starts.len(), 0);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn occurrences_due_together_are_written_in_batches() {
    let tree = TestTree::with_tuned_agent(|spec| spec.limits.capacity.max_waiting = 100).await;
    tree.add_caller_token().await;
    let (write_count, _, statuses) = run_coinciding_schedules(&tree, &tree.caller().name).await;
    assert_eq!(statuses, vec![OccurrenceStatus::Fired; 60]);
    assert!(write_count <= 3, "written {write_count} times");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn occurrences_due_within_20_ms_are_decided_together() {
    let tree = TestTree::new().await;
    let configured_schedule = |number: u32| {
        let jitter = Duration::from_millis(160);
        let spec = ScheduleSpec { jitter, ..cron_schedule(&format!("tick-{number}"), "* * * * *") };
        ConfiguredSchedule { spec, owner: "nobody".to_owned() }
    };
    tree.api()
        .schedules
        .configure_schedules((0..60).map(configured_schedule).collect())
        .await
        .unwrap();
    tree.advance_to(59).await;
    tree.faults.clear_faults();
    tree.advance_to(70).await;
    let all = tree.schedule_store.all_occurrences().await;
    let delays_ms = all.iter().map(|it| (it.decided_at - it.due_at).num_milliseconds());
    let (first, last) = (delays_ms.clone().min(), delays_ms.max());
    assert!(first >= Some(0) && last <= Some(20), "{first:?} to {last:?} ms late");
    let write_count = tree.faults.call_count(LedgerCallKind::Schedule);
    assert!(
        (5..=11).contains(&write_count),
        "written {write_count} times for {} of them",
        all.len()
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_during_a_refusal_repeats_no_occurrence() {
    for call in [LedgerCallKind::Schedule, LedgerCallKind::Read] {
        for kill_second in [59, 60, 61, 62, 63, 64] {
            let mut tree = TestTree::new().await;
            tree.create_schedule(cron_schedule("tick", "* * * * *")).await.unwrap();
            tree.faults.delay_all(call, 2);
            tree.advance_to(kill_second).await;
            tree.kill().await;
            tree.faults.clear_faults();
            tree.start().await;
            tree.advance_to(80).await;
            assert_eq!(
                tree.occurrence_lines("tick").await,
                ["08:01 refused"],
                "{call:?} at {kill_second}"
            );
            tree.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_resets_the_failure_streak() {
    let tree = tree_with_schedule(cron_schedule("tick", "* * * * *")).await;
    tree.script("tick", [ScriptedAttempt::fail(1, Code::Exit)]);
    tree.advance_to(190).await;
    let id = cron_schedule("tick", "* * * * *").id;
    assert_eq!(tree.api().schedules.schedule(&tree.caller(), &id).await.unwrap().failure_streak, 3);
    let alerts = tree.status().await.alerts;
    let alert = (alerts[0].cause.as_str(), alerts[0].subject.as_str(), alerts[0].value);
    assert_eq!(alert, ("schedule-failing", "tick", 3));
    tree.script("tick", [ScriptedAttempt::ok(1)]);
    tree.advance_to(250).await;
    assert_eq!(tree.api().schedules.schedule(&tree.caller(), &id).await.unwrap().failure_streak, 0);
    assert_eq!(tree.status().await.alerts, []);
    let statistics = tree.api().schedules.statistics(&tree.caller(), &id).await.unwrap();
    assert_eq!(
        (statistics.ended, statistics.succeeded, statistics.punctual_permille),
        (4, 1, Some(1000))
    );
    tree.end().await;
}
