//! Plays a plan in a world of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::event::{Event, EventKind, MessageRole};
use algonius_actors::model::execution::record::{Filter, Record};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::testing::{CallerResult, Life, World};
use algonius_redact::Redactor;
use tokio::task::JoinSet;

use crate::chance::Chance;
use crate::plan::{Plan, Step};

/// What is left when all has come to its end.
pub(crate) struct Played {
    /// What callers got, with the agent and the message that they had named.
    pub(crate) answers: Vec<((usize, u64), CallerResult)>,
    /// All executions, oldest first, with what happened in them.
    pub(crate) records: BTreeMap<ExecutionId, Told>,
    /// All work.
    pub(crate) lives: Vec<Life>,
}

/// What the ledger tells of one execution.
pub(crate) struct Told {
    pub(crate) record: Record,
    pub(crate) events: Vec<Event>,
    /// What was asked.
    pub(crate) text: String,
}

/// Plays it to the end of everything.
pub(crate) async fn play(plan: &Plan, chance: &mut Chance, redactor: &Arc<Redactor>) -> Played {
    let specs = plan.agents.iter().map(|player| player.spec.clone());
    let mut world = World::masked(specs, Arc::clone(redactor)).await;
    for player in &plan.agents {
        player
            .folder
            .iter()
            .for_each(|folder| world.driver.settle(player.spec.id.as_str(), folder));
    }
    for (number, deeds) in plan.acts.iter().enumerate() {
        world.script(&format!("t{number}"), deeds.iter().map(|deed| deed.act()));
    }
    let (mut callers, mut answers) = (JoinSet::new(), Vec::new());
    for (pause, step) in &plan.steps {
        // Paused time: it is the plan that says when things happen.
        tokio::time::sleep(Duration::from_secs(*pause)).await;
        match step {
            Step::Ask { agent, message, text } => {
                let id = plan.agents[*agent].spec.id.as_str();
                let asking = world.asking(id, &format!("m{message}"), &format!("t{text}"));
                let named = (*agent, *message);
                callers.spawn(async move { (named, asking.await) });
            }
            Step::Restart { away, held } => {
                // Who calls a service that is killed is cut off.
                answers.extend(heard(&mut callers));
                callers.shutdown().await;
                restart(&mut world, chance, (*away, *held)).await;
            }
            Step::Crash { readings, held } => {
                hold(&world, chance, *held);
                world.clock.arm(*readings);
            }
            step => disturb(&world, step).await,
        }
    }
    while let Some(answer) = callers.join_next().await {
        answers.push(answer.unwrap());
    }
    end(world, answers).await
}

fn heard<T: 'static>(callers: &mut JoinSet<T>) -> Vec<T> {
    std::iter::from_fn(|| callers.try_join_next()).map(Result::unwrap).collect()
}

async fn disturb(world: &World, step: &Step) {
    match step {
        Step::Cancel(number) => {
            let all = world.ledger.executions(Filter::default()).await.unwrap();
            let nth = all.iter().rev().nth(usize::try_from(*number).unwrap());
            if let Some(record) = nth {
                _ = world.cancel(record.id).await; // It may have ended.
            }
        }
        Step::Fail(call, times) => world.faults.fail(*call, *times),
        Step::Slow(call, seconds) => world.faults.slow(*call, seconds.clone()),
        Step::Ask { .. } | Step::Restart { .. } | Step::Crash { .. } => {}
    }
}

/// Lets some of what lives be held.
fn hold(world: &World, chance: &mut Chance, percent: u64) {
    for life in world.driver.stage().lives {
        if life.ended.is_none() && chance.percent(percent) {
            world.driver.hold(life.execution);
        }
    }
}

async fn restart(world: &mut World, chance: &mut Chance, (away, held): (u64, u64)) {
    hold(world, chance, held);
    world.clock.arm(0);
    world.kill().await;
    world.faults.heal(); // A service whose ledger cannot be read does not start.
    // Paused time, in which nobody is there.
    tokio::time::sleep(Duration::from_secs(away)).await;
    world.start().await;
}

/// Lets everything end, and looks at it.
async fn end(world: World, answers: Vec<((usize, u64), CallerResult)>) -> Played {
    world.clock.arm(0);
    let unfinished = Filter { unfinished: true, ..Filter::default() };
    for _ in 0..300 {
        if world.ledger.executions(unfinished.clone()).await.unwrap().is_empty() {
            break;
        }
        // Paused time: a minute costs as much as there is to do in it.
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    // Paused time, in which what has ended is cleaned.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let stage = world.driver.stage();
    assert_eq!((stage.alive, stage.leases), (0, 0), "work is alive and leases are held at the end");
    let mut records = BTreeMap::new();
    for record in world.ledger.executions(Filter::default()).await.unwrap() {
        let told = tell(&world, record).await;
        records.insert(told.record.id, told);
    }
    world.end().await;
    Played { answers, records, lives: stage.lives }
}

async fn tell(world: &World, record: Record) -> Told {
    let events = world.ledger.events(record.id, 0).await.unwrap();
    let asked = events.iter().find_map(|event| match &event.data {
        EventKind::Message { speaker: MessageRole::User, pieces, .. } => pieces.first(),
        _ => None,
    });
    let text = world.ledger.text(record.id, asked.unwrap().text).await.unwrap();
    Told { record, events, text }
}
