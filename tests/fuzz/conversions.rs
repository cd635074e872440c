//! From one dialect to another: nothing gets lost but what is known to.

use algonius_a2a::add_path_params;
use algonius_a2a::v0_3::{self, rest};
use algonius_a2a::v1::{PushConfig, StreamEvent};
use algonius_a2a::v1_json as json;
use algonius_actors::model::failure::Failure;
use chrono::{DateTime, SubsecRound, Utc};
use serde_json::Value;

use super::losses::{DialectLosses, LOSSES_0_3, LOSSES_0_3_REST, LOSSES_1_0};

/// How a dialect is read and written, and what is lost then.
struct DialectCodec {
    read_event: fn(Value) -> Result<StreamEvent, Failure>,
    write_event: fn(StreamEvent) -> Value,
    read_push: fn(Value) -> Result<PushConfig, Failure>,
    write_push: fn(PushConfig) -> Value,
    losses: DialectLosses,
}

const DIALECTS: [DialectCodec; 3] = [
    DialectCodec {
        read_event: json::read::event,
        write_event: json::write::event,
        read_push: json::read::push_set_request,
        write_push: json::write::push_config,
        losses: LOSSES_1_0,
    },
    DialectCodec {
        read_event: v0_3::read::event,
        write_event: v0_3::write::event,
        read_push: v0_3::read::push_set_request,
        write_push: v0_3::write::push_config,
        losses: LOSSES_0_3,
    },
    DialectCodec {
        read_event: rest::read::event,
        write_event: rest::write::event,
        read_push: rest::read::push_set_request,
        write_push: rest::write::push_config,
        losses: LOSSES_0_3_REST,
    },
];

/// What one dialect hears, every dialect tells so that it is heard the same but for its losses,
/// and then told the same again.
pub fn check(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    for source in &DIALECTS {
        if let Ok(event) = (source.read_event)(value.clone()) {
            let event = truncate_to_milliseconds(event);
            DIALECTS.iter().for_each(|target| assert_event_round_trip(&event, target));
        }
        let push = (source.read_push)(value.clone());
        if let Some(push) = push.ok().filter(has_path_safe_ids) {
            DIALECTS.iter().for_each(|target| assert_push_round_trip(&push, target));
        }
    }
}

fn assert_event_round_trip(event: &StreamEvent, target: &DialectCodec) {
    let written_event = (target.write_event)(event.clone());
    let reread = (target.read_event)(written_event.clone());
    assert_eq!(reread, Ok(target.losses.apply_to_event(event.clone())), "{written_event}");
    assert_eq!(reread.map(target.write_event), Ok(written_event));
}

/// Where the path says which task is meant, the body need not; and a configuration without an id
/// may have got its task's.
fn assert_push_round_trip(push: &PushConfig, target: &DialectCodec) {
    let task = push.task_id.as_deref().unwrap_or_default();
    let written_push = (target.write_push)(push.clone());
    let body = add_path_params(written_push.clone(), &[("taskId", task)]);
    let reread = body.and_then(target.read_push);
    let push_with_default_id =
        PushConfig { id: push.id.clone().or(push.task_id.clone()), ..push.clone() };
    assert!(
        reread.as_ref() == Ok(push) || reread == Ok(push_with_default_id),
        "{written_push}: {reread:?}"
    );
}

/// Whether the ids can stand in `tasks/ID/pushNotificationConfigs/ID`, and none is a word that
/// clients write there when they have no id.
fn has_path_safe_ids(push: &PushConfig) -> bool {
    let ids = [push.task_id.as_deref(), push.id.as_deref()];
    let is_path_safe = |id: &str| {
        !id.is_empty() && !id.contains('/') && !["None", "undefined", "null"].contains(&id)
    };
    ids.into_iter().flatten().all(is_path_safe)
}

/// JSON tells times in milliseconds.
fn truncate_to_milliseconds(mut event: StreamEvent) -> StreamEvent {
    let truncate = |time: &mut DateTime<Utc>| *time = time.trunc_subsecs(3);
    match &mut event {
        StreamEvent::Task(task) => truncate(&mut task.status.timestamp),
        StreamEvent::Status(update) => truncate(&mut update.status.timestamp),
        StreamEvent::Message(_) | StreamEvent::Artifact(_) => {}
    }
    event
}
