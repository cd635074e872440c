//! From one dialect to another: nothing gets lost but what is known to.

use algonius_a2a::placed;
use algonius_a2a::v0_3::{self, rest};
use algonius_a2a::v1::{PushConfig, StreamEvent};
use algonius_a2a::v1_json as json;
use algonius_actors::model::failure::Failure;
use chrono::{DateTime, SubsecRound, Utc};
use serde_json::Value;

use super::losses::{Losses, OF_0_3, OF_1_0, OF_REST};

/// How a dialect tells and hears, and what is lost then.
struct Dialect {
    hear: fn(Value) -> Result<StreamEvent, Failure>,
    tell: fn(StreamEvent) -> Value,
    hear_push: fn(Value) -> Result<PushConfig, Failure>,
    tell_push: fn(PushConfig) -> Value,
    losses: Losses,
}

const DIALECTS: [Dialect; 3] = [
    Dialect {
        hear: json::read::event,
        tell: json::write::event,
        hear_push: json::read::push_set,
        tell_push: json::write::push,
        losses: OF_1_0,
    },
    Dialect {
        hear: v0_3::read::event,
        tell: v0_3::write::event,
        hear_push: v0_3::read::push_set,
        tell_push: v0_3::write::push,
        losses: OF_0_3,
    },
    Dialect {
        hear: rest::read::event,
        tell: rest::write::event,
        hear_push: rest::read::push_set,
        tell_push: rest::write::push,
        losses: OF_REST,
    },
];

/// What one dialect hears, every dialect tells so that it is heard the same but for its losses,
/// and then told the same again.
pub fn check(bytes: &[u8]) {
    let Ok(said) = serde_json::from_slice::<Value>(bytes) else { return };
    for from in &DIALECTS {
        if let Ok(event) = (from.hear)(said.clone()) {
            let event = in_milliseconds(event);
            DIALECTS.iter().for_each(|to| event_survives(&event, to));
        }
        let push = (from.hear_push)(said.clone());
        if let Some(push) = push.ok().filter(can_be_named) {
            DIALECTS.iter().for_each(|to| push_survives(&push, to));
        }
    }
}

fn event_survives(event: &StreamEvent, to: &Dialect) {
    let told = (to.tell)(event.clone());
    let heard = (to.hear)(told.clone());
    assert_eq!(heard, Ok(to.losses.event(event.clone())), "{told}");
    assert_eq!(heard.map(to.tell), Ok(told));
}

/// Where the path says which task is meant, the body need not; and a configuration without an id
/// may have got its task's.
fn push_survives(push: &PushConfig, to: &Dialect) {
    let task = push.task_id.as_deref().unwrap_or_default();
    let told = (to.tell_push)(push.clone());
    let body = placed(told.clone(), &[("taskId", task)]);
    let heard = body.and_then(to.hear_push);
    let named = PushConfig { id: push.id.clone().or(push.task_id.clone()), ..push.clone() };
    assert!(heard.as_ref() == Ok(push) || heard == Ok(named), "{told}: {heard:?}");
}

/// Whether the ids can stand in `tasks/ID/pushNotificationConfigs/ID`, and none is a word that
/// clients write there when they have no id.
fn can_be_named(push: &PushConfig) -> bool {
    let ids = [push.task_id.as_deref(), push.id.as_deref()];
    let is_name = |id: &str| {
        !id.is_empty() && !id.contains('/') && !["None", "undefined", "null"].contains(&id)
    };
    ids.into_iter().flatten().all(is_name)
}

/// JSON tells times in milliseconds.
fn in_milliseconds(mut event: StreamEvent) -> StreamEvent {
    let cut = |time: &mut DateTime<Utc>| *time = time.trunc_subsecs(3);
    match &mut event {
        StreamEvent::Task(task) => cut(&mut task.status.timestamp),
        StreamEvent::Status(update) => cut(&mut update.status.timestamp),
        StreamEvent::Message(_) | StreamEvent::Artifact(_) => {}
    }
    event
}
