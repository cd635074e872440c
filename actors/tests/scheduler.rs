//! Work at set times: once per time, over crashes, restarts, faults and clocks that are set.

use std::num::NonZeroU32;
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::occurrence::Verdict;
use algonius_actors::model::schedule::{Configured, Missed, Overlap, ScheduleSpec, Standing};
use algonius_actors::testing::{Act, Call, World, every};

/// A world in which whoever asks has a token, and one schedule.
async fn world_with(spec: ScheduleSpec) -> World {
    let world = World::new().await;
    world.admit().await;
    assert!(world.schedule(spec).await.is_ok());
    world
}

#[tokio::test(start_paused = true)]
async fn each_time_is_asked_for_once_and_its_end_is_known() {
    let world = world_with(every("tick", "* * * * *")).await;
    world.script("tick", [Act::ok(5)]);
    world.at(150).await;
    assert_eq!(world.times("tick").await, ["08:01 fired completed", "08:02 fired completed"]);
    assert_eq!(world.driver.stage().begun, ["tick#1@60", "tick#1@120"]);
    for occurrence in world.timebook.all().await {
        let deviation = occurrence.deviation().unwrap().num_milliseconds();
        assert!((0..50).contains(&deviation), "{deviation}");
    }
    let view =
        world.door().schedule(&world.caller(), &every("tick", "* * * * *").id).await.unwrap();
    assert_eq!((view.standing, view.waiting), (Standing::Active, 0));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_passed_while_the_service_was_down_is_made_up_for_once() {
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
async fn one_that_is_busy_is_overlapped_as_its_policy_says() {
    let cases = [
        (Overlap::Skip, vec!["08:01 fired completed", "08:02 skipped", "08:03 fired completed"]),
        (
            Overlap::Queue,
            vec!["08:01 fired completed", "08:02 fired completed", "08:03 fired completed"],
        ),
        (
            Overlap::CancelPrevious,
            vec!["08:01 fired cancelled", "08:02 fired cancelled", "08:03 fired completed"],
        ),
        (
            Overlap::Allow,
            vec!["08:01 fired completed", "08:02 fired completed", "08:03 fired completed"],
        ),
    ];
    for (overlap, expected) in cases {
        let world = World::tuned(|spec| spec.capacity.running = NonZeroU32::new(3)).await;
        world.admit().await;
        world.schedule(ScheduleSpec { overlap, ..every("tick", "* * * * *") }).await.unwrap();
        world.script("tick", [Act::ok(90)]);
        world.at(190).await;
        let id = every("tick", "* * * * *").id;
        world.door().pause_schedule(&world.caller(), &id, true).await.unwrap();
        world.at(600).await;
        let mut times = world.times("tick").await;
        if overlap == Overlap::Queue {
            // What waited when it was held back is not asked for.
            assert_eq!(times.pop().unwrap(), "08:03 skipped");
            times.push("08:03 fired completed".to_owned());
        }
        assert_eq!(times, expected, "{overlap:?}");
        let most = if overlap == Overlap::Allow { 2 } else { 1 };
        assert_eq!(world.driver.stage().most_alive, most, "{overlap:?}");
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_dies_while_it_asks_has_asked_once() {
    for (call, seconds) in [(Call::Book, 2), (Call::Accept, 2), (Call::Read, 2), (Call::Settle, 2)]
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
            assert!(begun <= 1, "{call:?} at {moment}: begun {begun} times");
            if moment <= 60 {
                assert_eq!((time.as_str(), begun), ("08:01 fired completed", 1), "{call:?}");
            }
            world.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_fails_for_a_while_loses_no_time() {
    let world = world_with(every("tick", "2 8 * * *")).await;
    world.script("tick", [Act::ok(1)]);
    world.at(110).await;
    for call in [Call::Book, Call::Accept, Call::Read] {
        world.faults.fail(call, 3);
    }
    world.at(200).await;
    assert_eq!(world.times("tick").await, ["08:02 fired completed"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_free_place_is_asked_again_until_the_window_is_over() {
    for (window, expected) in [(600, "08:01 fired completed"), (45, "08:01 refused")] {
        let world = World::tuned(|spec| spec.capacity.waiting = 0).await;
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
async fn work_that_takes_too_long_is_called_off_at_its_deadline() {
    let deadline = Some(Duration::from_secs(20));
    let world = world_with(ScheduleSpec { deadline, ..every("tick", "1 8 * * *") }).await;
    world.script("tick", [Act::ok(200)]);
    world.at(120).await;
    assert_eq!(world.times("tick").await, ["08:01 fired cancelled"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_schedule_can_be_held_back_changed_run_now_and_removed() {
    let world = world_with(every("tick", "* * * * *")).await;
    world.script("tick", [Act::ok(1)]);
    let (door, me, id) = (world.door(), world.caller(), every("tick", "* * * * *").id);
    door.pause_schedule(&me, &id, true).await.unwrap();
    world.at(200).await;
    assert_eq!(world.times("tick").await, [""; 0]);
    assert_eq!(door.schedule(&me, &id).await.unwrap().standing, Standing::Paused);
    door.run_schedule(&me, &id).await.unwrap();
    world.at(210).await;
    assert_eq!(world.times("tick").await, ["08:03 fired completed"]);
    door.pause_schedule(&me, &id, false).await.unwrap();
    world.at(250).await;
    assert_eq!(world.times("tick").await, ["08:03 fired completed", "08:04 fired completed"]);
    door.put_schedule(&me, every("tick", "30 8 * * *"), false).await.unwrap();
    world.at(400).await;
    assert_eq!(world.times("tick").await.len(), 2);
    door.remove_schedule(&me, &id).await.unwrap();
    assert_eq!(door.schedule(&me, &id).await.unwrap_err().code, Code::ScheduleUnknown);
    world.at(3600).await;
    assert_eq!(world.times("tick").await.len(), 2, "what happened stays known");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn ids_and_names_are_unique_and_the_configuration_has_the_last_word() {
    let mut world = World::new().await;
    world.configure([every("fixed", "* * * * *")]).await;
    world.restart().await;
    let (door, me) = (world.door().clone(), world.caller());
    let fixed = every("fixed", "0 0 * * *");
    assert_eq!(world.schedule(fixed.clone()).await, Err(Code::ScheduleExists));
    let named = ScheduleSpec { name: "fixed".to_owned(), ..every("other", "0 0 * * *") };
    assert_eq!(world.schedule(named).await, Err(Code::ScheduleExists));
    let changed = door.put_schedule(&me, fixed.clone(), false).await;
    assert_eq!(changed.unwrap_err().code, Code::ScheduleFixed);
    assert_eq!(door.remove_schedule(&me, &fixed.id).await.unwrap_err().code, Code::ScheduleFixed);
    door.pause_schedule(&me, &fixed.id, true).await.unwrap();
    world.restart().await;
    let door = world.door().clone();
    assert_eq!(door.schedule(&me, &fixed.id).await.unwrap().standing, Standing::Paused);
    door.configure_schedules(Vec::new()).await.unwrap();
    assert_eq!(door.schedule(&me, &fixed.id).await.unwrap_err().code, Code::ScheduleUnknown);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_neither_loses_nor_doubles_a_time() {
    for seconds in [7_200, -7_200, 34_560_000, -34_560_000] {
        let world = world_with(every("tick", "* * * * *")).await;
        world.script("tick", [Act::ok(1)]);
        world.at(90).await;
        world.clock.jump(seconds);
        world.at(90 + 200).await;
        let begun = world.driver.stage().begun;
        let texts: Vec<_> = begun.iter().map(|it| it.split('@').nth(1).unwrap()).collect();
        // One before, at most one made up for, then one each minute.
        assert!((4..=5).contains(&texts.len()), "{seconds}: {begun:?}");
        let all = world.timebook.all().await;
        let fired = all.iter().filter(|it| it.execution.is_some()).count();
        assert_eq!(fired, texts.len(), "{seconds} {begun:?} {:?}", world.times("tick").await);
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_that_fails_goes_on_where_it_was() {
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
    assert_eq!(started, fired, "{times:?}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_that_fails_does_not_go_back_to_the_configuration_of_the_start() {
    let mut world = World::new().await;
    world.configure([every("old", "* * * * *")]).await;
    world.restart().await;
    let owner = world.caller().name;
    let spec = every("new", "* * * * *");
    let configured = vec![Configured { spec, owner }];
    world.door().configure_schedules(configured).await.unwrap();
    world.at(55).await;
    world.clock.arm(1); // Only the scheduler reads the clock next.
    world.at(90).await;
    assert!(world.status().await.scheduler.unwrap().actor.restarts > 0);
    let all = world.door().schedules(&world.caller(), None, 10).await.unwrap();
    let ids: Vec<_> = all.iter().map(|view| view.schedule.spec.id.as_str()).collect();
    assert_eq!(ids, ["new"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_nobody_who_may_ask_is_refused() {
    let world = World::new().await;
    world.schedule(every("tick", "* * * * *")).await.unwrap();
    world.at(70).await;
    assert_eq!(world.times("tick").await, ["08:01 refused"]);
    let reason = world.timebook.all().await[0].reason.clone().unwrap();
    assert!(reason.starts_with("forbidden: "), "{reason}");
    world.end().await;
}

/// Sixty schedules of this owner that are due at the same times; how often the ledger was written and the
/// tokens were read at the first of these, and what became of it.
async fn together(world: &World, owner: &str) -> (u32, u32, Vec<Verdict>) {
    let one = |number: u32| {
        let spec = ScheduleSpec {
            input: "tick".to_owned(),
            ..every(&format!("tick-{number}"), "* * * * *")
        };
        Configured { spec, owner: owner.to_owned() }
    };
    world.script("tick", [Act::ok(30)]);
    _ = world.door().configure_schedules((0..60).map(one).collect()).await;
    world.at(59).await;
    world.faults.heal();
    world.at(70).await;
    let verdicts = world.timebook.all().await.iter().map(|it| it.verdict).collect();
    (world.faults.calls(Call::Book), world.faults.calls(Call::Read), verdicts)
}

#[tokio::test(start_paused = true)]
async fn what_nobody_may_ask_for_is_refused_as_it_is_written_down() {
    let world = World::new().await;
    assert_eq!(together(&world, "nobody").await, (1, 1, vec![Verdict::Refused; 60]));
    assert_eq!(world.driver.stage().begun.len(), 0);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_due_close_together_is_decided_asked_for_and_written_down_together() {
    let world = World::tuned(|spec| spec.capacity.waiting = 100).await;
    world.admit().await;
    let (written, _, verdicts) = together(&world, &world.caller().name).await;
    assert_eq!(verdicts, vec![Verdict::Fired; 60]);
    assert!(written <= 3, "written {written} times");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_due_within_a_moment_is_decided_together_and_no_later_than_after_that() {
    let world = World::new().await;
    let one = |number: u32| {
        let jitter = Duration::from_millis(160);
        let spec = ScheduleSpec { jitter, ..every(&format!("tick-{number}"), "* * * * *") };
        Configured { spec, owner: "nobody".to_owned() }
    };
    world.door().configure_schedules((0..60).map(one).collect()).await.unwrap();
    world.at(59).await;
    world.faults.heal();
    world.at(70).await;
    let all = world.timebook.all().await;
    let late = all.iter().map(|it| (it.decided_at - it.due).num_milliseconds());
    let (first, last) = (late.clone().min(), late.max());
    assert!(first >= Some(0) && last <= Some(20), "{first:?} to {last:?} ms late");
    let written = world.faults.calls(Call::Book);
    assert!((5..=11).contains(&written), "written {written} times for {} of them", all.len());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_dies_while_it_refuses_has_refused_once() {
    for call in [Call::Book, Call::Read] {
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
async fn failures_in_a_row_are_counted_and_forgotten_with_a_success() {
    let world = world_with(every("tick", "* * * * *")).await;
    world.script("tick", [Act::fail(1, Code::Exit)]);
    world.at(190).await;
    let id = every("tick", "* * * * *").id;
    assert_eq!(world.door().schedule(&world.caller(), &id).await.unwrap().streak, 3);
    let alerts = world.status().await.alerts;
    let told = (alerts[0].cause.as_str(), alerts[0].subject.as_str(), alerts[0].value);
    assert_eq!(told, ("schedule-failing", "tick", 3));
    world.script("tick", [Act::ok(1)]);
    world.at(250).await;
    assert_eq!(world.door().schedule(&world.caller(), &id).await.unwrap().streak, 0);
    assert_eq!(world.status().await.alerts, []);
    let told = world.door().statistics(&world.caller(), &id).await.unwrap();
    assert_eq!((told.ended, told.succeeded, told.punctual_permille), (4, 1, Some(1000)));
    world.end().await;
}
