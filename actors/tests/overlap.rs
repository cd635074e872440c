//! Overlap policies of schedules: the decision about an occurrence while the previous one has not ended.

use std::num::NonZeroU32;

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::schedule::{Overlap, ScheduleSpec};
use algonius_actors::ports::ledger::Ledger as _;
use algonius_actors::testing::{Act, WORKER, World, every, spec};

#[tokio::test(start_paused = true)]
async fn a_busy_agent_follows_the_overlap_policy() {
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
        let world = World::tuned(|spec| spec.limits.capacity.running = NonZeroU32::new(3)).await;
        world.admit().await;
        world.schedule(ScheduleSpec { overlap, ..every("tick", "* * * * *") }).await.unwrap();
        world.script("tick", [Act::ok(90)]);
        world.at(190).await;
        let id = every("tick", "* * * * *").id;
        world.api().schedules.pause_schedule(&world.caller(), &id, true).await.unwrap();
        world.at(600).await;
        let mut times = world.times("tick").await;
        if overlap == Overlap::Queue {
            // The occurrence that waited when the schedule was paused is not sent.
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
async fn a_refused_occurrence_cancels_no_earlier_run() {
    let world = World::new().await;
    world.admit().await;
    let overlap = Overlap::CancelPrevious;
    world.schedule(ScheduleSpec { overlap, ..every("tick", "* * * * *") }).await.unwrap();
    world.script("tick", [Act::ok(90)]);
    world.at(90).await;
    // The agent is disabled while it works: it finishes its run and accepts nothing.
    world.seat(AgentSpec { enabled: false, ..spec(WORKER) }).await;
    world.at(170).await;
    assert_eq!(world.times("tick").await, ["08:01 fired completed", "08:02 refused"]);
    let reason = world.schedule_store.all().await[1].reason.clone().unwrap();
    assert!(reason.starts_with("agent-disabled: "), "{reason}");
    // It is switched on again: a later occurrence replaces the run before it as before.
    world.seat(spec(WORKER)).await;
    world.at(250).await;
    let times = world.times("tick").await;
    assert_eq!(times[2..], ["08:03 fired cancelled", "08:04 fired"], "{times:?}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_continues_when_its_owner_loses_the_right() {
    let world = World::new().await;
    world.admit().await;
    let overlap = Overlap::CancelPrevious;
    world.schedule(ScheduleSpec { overlap, ..every("tick", "* * * * *") }).await.unwrap();
    world.script("tick", [Act::ok(90)]);
    world.at(90).await;
    world.ledger.seed(Vec::new(), world.api().reader.now()).await.unwrap();
    world.at(170).await;
    assert_eq!(world.times("tick").await, ["08:01 fired completed", "08:02 refused"]);
    world.end().await;
}
