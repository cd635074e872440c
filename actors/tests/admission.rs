//! Who runs, who waits and who is refused, in virtual time.

use std::num::NonZeroU32;
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::testing::{Act, GatedCall, WORKER, World};
use futures_of::all;

/// Futures polled together, in order, on the test's own task.
mod futures_of {
    use std::pin::Pin;
    use std::task::Poll;

    pub(crate) async fn all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
        let mut futures: Vec<Pin<Box<_>>> = futures.into_iter().map(Box::pin).collect();
        let mut answers: Vec<Option<T>> = futures.iter().map(|_| None).collect();
        std::future::poll_fn(move |context| {
            for (future, answer) in futures.iter_mut().zip(&mut answers) {
                if answer.is_none()
                    && let Poll::Ready(value) = future.as_mut().poll(context)
                {
                    *answer = Some(value);
                }
            }
            if answers.iter().all(Option::is_some) {
                Poll::Ready(answers.iter_mut().filter_map(Option::take).collect())
            } else {
                Poll::Pending
            }
        })
        .await
    }
}

async fn ten_seconds_each(world: &World, texts: &[&str]) -> Vec<Result<(), Code>> {
    for text in texts {
        world.script(text, [Act::ok(10)]);
    }
    let submissions = texts.iter().map(|text| world.submit(text)).collect();
    all(submissions).await.into_iter().map(|answer| answer.map(drop)).collect()
}

#[tokio::test(start_paused = true)]
async fn executions_begin_in_the_order_of_their_arrival() {
    let world = World::new().await;
    ten_seconds_each(&world, &["a", "b", "c", "d"]).await;
    world.at(100).await;
    assert_eq!(world.driver.stage().begun, ["a#1@0", "b#1@10", "c#1@20", "d#1@30"]);
    assert_eq!(world.driver.stage().most_alive, 1);
    world.end().await;
}

/// What is written last, that nothing is left, holds up nobody; what is left does.
#[tokio::test(start_paused = true)]
async fn the_next_execution_begins_after_the_cleanup() {
    let world = World::new().await;
    ten_seconds_each(&world, &["a", "b", "c"]).await;
    world.at(5).await;
    world.faults.slow(GatedCall::Record, [7]);
    world.at(15).await;
    world.faults.slow(GatedCall::Settle, [4]);
    world.at(100).await;
    assert_eq!(world.driver.stage().begun, ["a#1@0", "b#1@10", "c#1@24"]);
    assert_eq!(world.driver.stage().most_alive, 1);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn executions_begin_in_order_though_records_are_slow() {
    let world = World::new().await;
    world.faults.slow(GatedCall::Accept, [9, 1, 5, 2]);
    ten_seconds_each(&world, &["a", "b", "c", "d"]).await;
    world.at(100).await;
    assert_eq!(world.driver.stage().begun, ["a#1@9", "b#1@19", "c#1@29", "d#1@39"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn executions_run_in_parallel_up_to_the_limit() {
    let world = World::tuned(|spec| spec.limits.capacity.running = NonZeroU32::new(10)).await;
    let texts: Vec<_> = (0..20).map(|number| format!("text {number}")).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    ten_seconds_each(&world, &texts).await;
    world.at(9).await;
    let first = world.driver.stage();
    world.at(19).await;
    let second = world.driver.stage();
    assert_eq!([first.alive, first.most_alive, second.alive, second.most_alive], [10; 4]);
    assert_eq!(second.begun.len(), 20);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn all_executions_run_if_there_is_no_limit() {
    let world = World::tuned(|spec| spec.limits.capacity.running = None).await;
    let texts: Vec<_> = (0..50).map(|number| format!("text {number}")).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    ten_seconds_each(&world, &texts).await;
    world.at(5).await;
    assert_eq!(world.driver.stage().alive, 50);
    world.end().await;
}

/// One runs and ten wait; the slots are counted before any record is committed.
#[tokio::test(start_paused = true)]
async fn the_twelfth_request_is_refused() {
    for seconds in [0, 3] {
        let world = World::new().await;
        world.faults.slow_all(GatedCall::Accept, seconds);
        let texts = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"];
        let answers = ten_seconds_each(&world, &texts).await;
        let full = Err(Code::QueueFull);
        assert_eq!((&answers[..11], &answers[11..]), (&[Ok(()); 11][..], &[full, full][..]));
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_freed_queue_place_can_be_used() {
    let world = World::tuned(|spec| spec.limits.capacity.waiting = 1).await;
    world.script("a", [Act::ok(10)]);
    world.submit("a").await.unwrap();
    let waiting = world.submit("b").await.unwrap();
    let refused = world.submit("c").await;
    world.cancel(waiting).await.unwrap();
    let taken = world.submit("d").await.map(drop);
    assert_eq!((refused, taken), (Err(Code::QueueFull), Ok(())));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_queue_accepts_work_for_free_slots_only() {
    let world = World::tuned(|spec| spec.limits.capacity.waiting = 0).await;
    world.script("a", [Act::ok(10)]);
    world.submit("a").await.unwrap();
    world.at(5).await;
    let refused = world.submit("b").await;
    world.at(15).await;
    let taken = world.submit("b").await.map(drop);
    assert_eq!((refused, taken), (Err(Code::QueueFull), Ok(())));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_queue_timeout_fails_the_request_and_frees_its_place() {
    let world = World::tuned(|spec| spec.limits.capacity.patience = Duration::from_secs(60)).await;
    world.script("a", [Act::ok(100)]);
    let mut ids = Vec::new();
    for (second, text) in [(0, "a"), (10, "b"), (20, "c"), (50, "d")] {
        world.at(second).await;
        ids.push(world.submit(text).await.unwrap());
    }
    let mut ends = Vec::new();
    for id in ids {
        ends.push(format!("{} at {}", world.wait(id).await, world.second()));
    }
    // Those who wait are told while `a` still runs: their ends are older than its end.
    assert_eq!(ends[0], "completed at 100");
    assert_eq!(ends[1..3], ["failed: queue-timeout at 100", "failed: queue-timeout at 100"]);
    assert_eq!(ends[3], "completed at 100");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn each_queued_request_times_out_to_the_second() {
    let world = World::tuned(|spec| spec.limits.capacity.patience = Duration::from_secs(60)).await;
    world.script("a", [Act::ok(290)]);
    world.submit("a").await.unwrap();
    world.at(10).await;
    let first = world.submit("b").await.unwrap();
    world.at(30).await;
    let second = world.submit("c").await.unwrap();
    let first = format!("{} at {}", world.wait(first).await, world.second());
    let second = format!("{} at {}", world.wait(second).await, world.second());
    assert_eq!([first, second], ["failed: queue-timeout at 70", "failed: queue-timeout at 90"]);
    world.end().await;
}

/// The first record takes longer than anybody may wait: it is not given up behind its caller's
/// back, and whoever came after it loses patience in time.
#[tokio::test(start_paused = true)]
async fn the_queue_timeout_applies_to_recorded_requests_only() {
    let world = World::tuned(|spec| spec.limits.capacity.patience = Duration::from_secs(5)).await;
    world.faults.slow(GatedCall::Accept, [9, 0]);
    let slow = async { world.run("slow").await };
    let quick = async { world.run("quick").await };
    let (slow, quick) = tokio::join!(slow, quick);
    assert_eq!([slow, quick], ["completed at 9", "failed: queue-timeout at 5"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_message_is_the_same_execution() {
    let world = World::new().await;
    world.script("text", [Act::ok(10)]);
    let (id, first) = world.submit_as(WORKER, "message", "text").await.unwrap();
    let in_flight = world.submit_as(WORKER, "message", "text").await;
    let end = world.wait(id).await;
    let after_the_end = world.submit_as(WORKER, "message", "text").await;
    assert_eq!((first, in_flight, after_the_end), (false, Ok((id, true)), Ok((id, true))));
    assert_eq!((end.as_str(), world.driver.stage().begun), ("completed", vec!["text#1@0".into()]));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_takes_no_queue_place_and_gets_the_answer() {
    let world = World::tuned(|spec| spec.limits.capacity.waiting = 2).await;
    world.script("a", [Act::ok(10)]);
    world.submit("a").await.unwrap();
    let (id, _) = world.submit_as(WORKER, "message", "b").await.unwrap();
    let twin = world.submit_as(WORKER, "message", "b").await;
    let next = world.submit("c").await.map(drop);
    assert_eq!((twin, next), (Ok((id, true)), Ok(())));
    assert_eq!((world.wait(id).await.as_str(), world.second()), ("completed", 10));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn simultaneous_duplicates_are_one_execution() {
    let world = World::new().await;
    world.faults.slow(GatedCall::Accept, [2, 1]);
    let twins = (0..2).map(|_| world.submit_as(WORKER, "message", "text")).collect();
    let answers = all(twins).await;
    let id = answers[1].unwrap().0;
    assert_eq!(answers, [Ok((id, true)), Ok((id, false))]);
    assert_eq!(world.wait(id).await, "completed");
    assert_eq!(world.driver.stage().begun, ["text#1@2"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_message_with_another_body_is_refused() {
    let world = World::new().await;
    world.script("a", [Act::ok(10)]);
    world.submit_as(WORKER, "message", "a").await.unwrap();
    let conflict = world.submit_as(WORKER, "message", "b").await;
    let next = world.submit("c").await.unwrap();
    assert_eq!(
        (conflict, world.wait(next).await.as_str()),
        (Err(Code::MessageReused), "completed")
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_recorded_frees_its_place() {
    let world = World::tuned(|spec| spec.limits.capacity.waiting = 0).await;
    world.faults.fail(GatedCall::Accept, 1);
    let refused = world.run("a").await;
    let next = world.run("b").await;
    assert_eq!([refused, next], ["refused: ledger-unavailable at 0", "completed at 0"]);
    assert_eq!(world.driver.stage().begun, ["b#1@0"]);
    world.end().await;
}

/// The first in line holds everybody up until it is known that it could not be recorded.
#[tokio::test(start_paused = true)]
async fn a_failed_record_unblocks_the_next_request() {
    let world = World::new().await;
    world.faults.slow(GatedCall::Accept, [5, 0]);
    world.faults.fail(GatedCall::Accept, 1);
    let (refused, next) = tokio::join!(world.run("a"), world.run("b"));
    assert_eq!([refused, next], ["refused: ledger-unavailable at 5", "completed at 5"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_disabled_agent_refuses_requests() {
    let world = World::tuned(|spec| spec.enabled = false).await;
    assert_eq!(world.run("a").await, "refused: agent-disabled at 0");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn input_is_accepted_up_to_its_limit() {
    let world = World::tuned(|spec| spec.limits.sizes.input = 5).await;
    let story = [world.run("12345").await, world.run("123456").await];
    assert_eq!(story, ["completed at 0", "refused: input-too-large at 0"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_agent_refuses_requests() {
    let world = World::new().await;
    assert_eq!(world.submit_to("stranger", "a").await, Err(Code::AgentUnknown));
    world.end().await;
}

/// The same message may be sent to two agents: it is one execution of each.
#[tokio::test(start_paused = true)]
async fn each_agent_has_a_queue_of_its_own() {
    let world = World::of(["one", "two"].map(algonius_actors::testing::spec)).await;
    world.script("text", [Act::ok(10)]);
    let (one, _) = world.submit_as("one", "message", "text").await.unwrap();
    let (two, _) = world.submit_as("two", "message", "text").await.unwrap();
    assert_eq!(
        (world.wait(one).await, world.wait(two).await),
        ("completed".into(), "completed".into())
    );
    assert_eq!((world.second(), one == two), (10, false));
    world.end().await;
}
