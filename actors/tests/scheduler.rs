//! Work at set times: once per time, over crashes, restarts, faults and clocks that are set.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::schedule::occurrence::OccurrenceStatus;
use algonius_actors::model::schedule::{Configured, Missed, ScheduleSpec, ScheduleState};
use algonius_actors::testing::{Act, GatedCall, World, every};

/// A world in which whoever asks has a token, and one schedule.
async fn world_with(spec: ScheduleSpec) -> World {
    let world = World::new().await;
    world.admit().await;
    assert!(world.schedule(spec).await.is_ok());
    world
}

#[tokio::test(start_paused = true)]
async fn each_occurrence_is_requested_once_with_its_outcome() {
    let world = world_with(every("tick", "* * * * *")).await;
    world.script("tick", [Act::ok(5)]);
    world.at(150).await;
    // Each occurrence of a schedule is requested once, and its outcome is recorded
    assert_eq!(world.times("tick").await, ["08:01 fired completed", "08:02 fired completed"]);
    assert_eq!(world.driver.stage().begun, ["tick#1@60", "tick#1@120"]);
    for occurrence in world.schedule_store.all().await {
        let deviation = occurrence.deviation().unwrap().num_milliseconds();
        assert!((0..50).contains(&deviation), "{deviation}");
    }
    let view = world
        .api()
        .schedules
        .schedule(&world.caller(), &every("tick", "* * * * *").id)
        .await
        .unwrap();
    assert_eq!((view.standing, view.waiting), (ScheduleState::Active, 0));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn missed_times_of_a_downtime_are_made_up_for_once() {
    let mut world = world_with(every("tick", "* * * * *")).await;
    world.script("tick", [Act::ok(1)]);
    world.at(90).await;
    world.kill().await;
    world.at(90 + 300).await;
    world.start().await;
    world.at(430).await;
    let times = world.times("tick").await;
    assert_eq!(
        times,
        [
            "08:01 fired completed",
            "08:02 coalesced x4",
            "08:06 fired completed",
            "08:07 fired completed",
        ]
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_during_a_request_repeats_no_occurrence() {
    for (call, seconds) in
        [(GatedCall::Book, 2), (GatedCall::Accept, 2), (GatedCall::Read, 2), (GatedCall::Settle, 2)]
    {
        for moment in [59, 60, 61, 62, 63, 64, 65, 66, 67] {
            let mut world = world_with(every("tick", "* * * * *")).await;
            world.script("tick", [Act::ok(1)]);
            world.faults.slow_all(call, seconds);
            world.at(moment).await;
            world.kill().await;
            world.faults.heal();
            world.start().await;
            world.at(80).await;
            let times = world.times("tick").await;
            let [time] = times.as_slice() else { panic!("{call:?} at {moment}: {times:?}") };
            // An attempt that the kill interrupted is known as such; it is not asked for again.
            assert!(time.starts_with("08:01 fired"), "{call:?} at {moment}: {time}");
            let begun = world.driver.stage().begun.len();
            // Each occurrence of a schedule is requested once, wherever the service dies
            // during the request
            assert!(begun <= 1, "{call:?} at {moment}: begun {begun} times");
            if moment <= 60 {
                assert_eq!((time.as_str(), begun), ("08:01 fired completed", 1), "{call:?}");
            }
            world.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_temporary_ledger_failure_loses_no_occurrence() {
    let world = world_with(every("tick", "2 8 * * *")).await;
    world.script("tick", [Act::ok(1)]);
    world.at(110).await;
    for call in [GatedCall::Book, GatedCall::Accept, GatedCall::Read] {
        world.faults.fail(call, 3);
    }
    world.at(200).await;
    // A temporary failure of the ledger loses no occurrence
    assert_eq!(world.times("tick").await, ["08:02 fired completed"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_busy_agent_is_tried_again_until_the_window_ends() {
    for (window, expected) in [(600, "08:01 fired completed"), (45, "08:01 refused")] {
        let world = World::tuned(|spec| spec.limits.capacity.waiting = 0).await;
        world.admit().await;
        let missed = Missed::Once { window: Duration::from_secs(window) };
        world.schedule(ScheduleSpec { missed, ..every("tick", "1 8 * * *") }).await.unwrap();
        world.script("other", [Act::ok(200)]);
        world.submit("other").await.unwrap();
        world.at(300).await;
        assert_eq!(world.times("tick").await, [expected]);
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn scheduled_work_is_cancelled_at_its_deadline() {
    let deadline = Some(Duration::from_secs(20));
    let world = world_with(ScheduleSpec { deadline, ..every("tick", "1 8 * * *") }).await;
    world.script("tick", [Act::ok(200)]);
    world.at(120).await;
    assert_eq!(world.times("tick").await, ["08:01 fired cancelled"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_schedule_can_be_paused_changed_triggered_and_removed() {
    let world = world_with(every("tick", "* * * * *")).await;
    world.script("tick", [Act::ok(1)]);
    let (api, me, id) = (world.api(), world.caller(), every("tick", "* * * * *").id);
    api.schedules.pause_schedule(&me, &id, true).await.unwrap();
    world.at(200).await;
    assert_eq!(world.times("tick").await, [""; 0]);
    assert_eq!(api.schedules.schedule(&me, &id).await.unwrap().standing, ScheduleState::Paused);
    api.schedules.run_schedule(&me, &id).await.unwrap();
    world.at(210).await;
    assert_eq!(world.times("tick").await, ["08:03 fired completed"]);
    api.schedules.pause_schedule(&me, &id, false).await.unwrap();
    world.at(250).await;
    assert_eq!(world.times("tick").await, ["08:03 fired completed", "08:04 fired completed"]);
    api.schedules.put_schedule(&me, every("tick", "30 8 * * *"), false).await.unwrap();
    world.at(400).await;
    assert_eq!(world.times("tick").await.len(), 2);
    api.schedules.remove_schedule(&me, &id).await.unwrap();
    assert_eq!(api.schedules.schedule(&me, &id).await.unwrap_err().code, Code::ScheduleUnknown);
    world.at(3600).await;
    assert_eq!(world.times("tick").await.len(), 2, "what happened stays known");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn schedule_names_are_unique_and_the_configuration_wins() {
    let mut world = World::new().await;
    world.configure([every("fixed", "* * * * *")]).await;
    world.restart().await;
    let (api, me) = (world.api().clone(), world.caller());
    let fixed = every("fixed", "0 0 * * *");
    assert_eq!(world.schedule(fixed.clone()).await, Err(Code::ScheduleExists));
    let named = ScheduleSpec { name: "fixed".to_owned(), ..every("other", "0 0 * * *") };
    assert_eq!(world.schedule(named).await, Err(Code::ScheduleExists));
    let changed = api.schedules.put_schedule(&me, fixed.clone(), false).await;
    assert_eq!(changed.unwrap_err().code, Code::ScheduleFixed);
    assert_eq!(
        api.schedules.remove_schedule(&me, &fixed.id).await.unwrap_err().code,
        Code::ScheduleFixed
    );
    api.schedules.pause_schedule(&me, &fixed.id, true).await.unwrap();
    world.restart().await;
    let api = world.api().clone();
    assert_eq!(
        api.schedules.schedule(&me, &fixed.id).await.unwrap().standing,
        ScheduleState::Paused
    );
    api.schedules.configure_schedules(Vec::new()).await.unwrap();
    assert_eq!(
        api.schedules.schedule(&me, &fixed.id).await.unwrap_err().code,
        Code::ScheduleUnknown
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_change_neither_loses_nor_repeats_an_occurrence() {
    for seconds in [7_200, -7_200, 34_560_000, -34_560_000] {
        let world = world_with(every("tick", "* * * * *")).await;
        world.script("tick", [Act::ok(1)]);
        world.at(90).await;
        world.clock.jump(seconds);
        world.at(90 + 200).await;
        let begun = world.driver.stage().begun;
        let texts: Vec<_> = begun.iter().map(|it| it.split('@').nth(1).unwrap()).collect();
        // One before, at most one made up for, then one each minute.
        // A clock change of hours or of a year neither loses nor repeats an occurrence of a
        // schedule
        assert!((4..=5).contains(&texts.len()), "{seconds}: {begun:?}");
        let all = world.schedule_store.all().await;
        let fired = all.iter().filter(|it| it.execution.is_some()).count();
        assert_eq!(fired, texts.len(), "{seconds} {begun:?} {:?}", world.times("tick").await);
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_restarted_scheduler_continues() {
    let world = world_with(every("tick", "* * * * *")).await;
    world.script("tick", [Act::ok(1)]);
    for minute in 1..=8_u64 {
        world.at(minute * 60 - 5).await;
        world.clock.arm(1); // Whoever reads the clock next fails; at this time only the scheduler does.
        world.at(minute * 60 + 30).await;
    }
    world.at(700).await;
    let times = world.times("tick").await;
    assert!(
        times.iter().all(|time| time.contains("fired completed") || time.contains("coalesced"))
    );
    let status = world.status().await.scheduler.unwrap();
    assert!(status.actor.restarts > 0, "{status:?}");
    assert_eq!((status.schedules, status.active), (1, 1));
    let started = world.driver.stage().begun.len();
    let fired = times.iter().filter(|time| time.contains("fired")).count();
    // A failed scheduler restarts and continues where it stopped
    assert_eq!(started, fired, "{times:?}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_restarted_scheduler_keeps_the_latest_configuration() {
    let mut world = World::new().await;
    world.configure([every("old", "* * * * *")]).await;
    world.restart().await;
    let owner = world.caller().name;
    let spec = every("new", "* * * * *");
    let configured = vec![Configured { spec, owner }];
    world.api().schedules.configure_schedules(configured).await.unwrap();
    world.at(55).await;
    world.clock.arm(1); // Only the scheduler reads the clock next.
    world.at(90).await;
    assert!(world.status().await.scheduler.unwrap().actor.restarts > 0);
    let all = world.api().schedules.schedules(&world.caller(), None, 10).await.unwrap();
    let ids: Vec<_> = all.iter().map(|view| view.schedule.spec.id.as_str()).collect();
    assert_eq!(ids, ["new"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_schedule_of_an_unauthorized_owner_is_refused() {
    let world = World::new().await;
    world.schedule(every("tick", "* * * * *")).await.unwrap();
    world.at(70).await;
    assert_eq!(world.times("tick").await, ["08:01 refused"]);
    let reason = world.schedule_store.all().await[0].reason.clone().unwrap();
    assert!(reason.starts_with("forbidden: "), "{reason}");
    world.end().await;
}

/// Sixty schedules of this owner that are due at the same times; how often the ledger was written and the
/// tokens were read at the first of these, and what became of it.
async fn together(world: &World, owner: &str) -> (u32, u32, Vec<OccurrenceStatus>) {
    let one = |number: u32| {
        let spec = ScheduleSpec {
            input: "tick".to_owned(),
            ..every(&format!("tick-{number}"), "* * * * *")
        };
        Configured { spec, owner: owner.to_owned() }
    };
    world.script("tick", [Act::ok(30)]);
    _ = world.api().schedules.configure_schedules((0..60).map(one).collect()).await;
    world.at(59).await;
    world.faults.heal();
    world.at(70).await;
    let verdicts = world.schedule_store.all().await.iter().map(|it| it.verdict).collect();
    (world.faults.calls(GatedCall::Book), world.faults.calls(GatedCall::Read), verdicts)
}

#[tokio::test(start_paused = true)]
async fn unauthorized_occurrences_are_refused_in_one_write() {
    let world = World::new().await;
    assert_eq!(together(&world, "nobody").await, (1, 1, vec![OccurrenceStatus::Refused; 60]));
    assert_eq!(world.driver.stage().begun.len(), 0);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn occurrences_due_together_are_written_in_batches() {
    let world = World::tuned(|spec| spec.limits.capacity.waiting = 100).await;
    world.admit().await;
    let (written, _, verdicts) = together(&world, &world.caller().name).await;
    assert_eq!(verdicts, vec![OccurrenceStatus::Fired; 60]);
    assert!(written <= 3, "written {written} times");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn occurrences_due_within_20_ms_are_decided_together() {
    let world = World::new().await;
    let one = |number: u32| {
        let jitter = Duration::from_millis(160);
        let spec = ScheduleSpec { jitter, ..every(&format!("tick-{number}"), "* * * * *") };
        Configured { spec, owner: "nobody".to_owned() }
    };
    world.api().schedules.configure_schedules((0..60).map(one).collect()).await.unwrap();
    world.at(59).await;
    world.faults.heal();
    world.at(70).await;
    let all = world.schedule_store.all().await;
    let late = all.iter().map(|it| (it.decided_at - it.due).num_milliseconds());
    let (first, last) = (late.clone().min(), late.max());
    assert!(first >= Some(0) && last <= Some(20), "{first:?} to {last:?} ms late");
    let written = world.faults.calls(GatedCall::Book);
    assert!((5..=11).contains(&written), "written {written} times for {} of them", all.len());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_during_a_refusal_repeats_no_occurrence() {
    for call in [GatedCall::Book, GatedCall::Read] {
        for moment in [59, 60, 61, 62, 63, 64] {
            let mut world = World::new().await;
            world.schedule(every("tick", "* * * * *")).await.unwrap();
            world.faults.slow_all(call, 2);
            world.at(moment).await;
            world.kill().await;
            world.faults.heal();
            world.start().await;
            world.at(80).await;
            assert_eq!(world.times("tick").await, ["08:01 refused"], "{call:?} at {moment}");
            world.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_resets_the_failure_streak() {
    let world = world_with(every("tick", "* * * * *")).await;
    world.script("tick", [Act::fail(1, Code::Exit)]);
    world.at(190).await;
    let id = every("tick", "* * * * *").id;
    assert_eq!(world.api().schedules.schedule(&world.caller(), &id).await.unwrap().streak, 3);
    let alerts = world.status().await.alerts;
    let told = (alerts[0].cause.as_str(), alerts[0].subject.as_str(), alerts[0].value);
    assert_eq!(told, ("schedule-failing", "tick", 3));
    world.script("tick", [Act::ok(1)]);
    world.at(250).await;
    assert_eq!(world.api().schedules.schedule(&world.caller(), &id).await.unwrap().streak, 0);
    assert_eq!(world.status().await.alerts, []);
    let told = world.api().schedules.statistics(&world.caller(), &id).await.unwrap();
    assert_eq!((told.ended, told.succeeded, told.punctual_permille), (4, 1, Some(1000)));
    world.end().await;
}
