//! Random core shapes and random JSON.

use chrono::{DateTime, Utc};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value};

use crate::base64;
use crate::v1::{
    A2aPart, Artifact, ArtifactUpdate, Message, Metadata, PartContent, PushAuthentication,
    PushConfig, Role, StatusUpdate, StreamEvent, Task, TaskState, TaskStatus,
};

fn any_short_text() -> impl Strategy<Value = String> {
    ".{1,8}"
}

fn any_short_texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(".{0,6}", 0..3)
}

/// Names that a reader knows.
const KNOWN_FIELDS: &[&str] = &[
    "kind",
    "parts",
    "content",
    "message",
    "role",
    "status",
    "metadata",
    "configuration",
    "id",
    "taskId",
    "task_id",
    "data",
    "file",
    "text",
    "name",
    "config",
    "protocol",
    "payload",
];

pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![prop::sample::select(KNOWN_FIELDS).prop_map(str::to_owned), ".{0,4}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        prop::sample::select(&["a2a", "message", "text", "ROLE_USER", "tasks/t"][..])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |child| {
        prop_oneof![
            prop::collection::vec(child.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key.clone(), child, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Returns the value with one of its inner values replaced.
pub(super) fn replace_value(mut value: Value, position: Index, replacement: &Value) -> Value {
    let mut remaining = position.index(count_values(&value).max(1));
    replace_nth(&mut value, &mut remaining, replacement);
    value
}

fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Object(map) => map.values().map(count_values).sum(),
        Value::Array(list) => list.iter().map(count_values).sum(),
        _ => 0,
    }
}

fn replace_nth(value: &mut Value, remaining: &mut usize, replacement: &Value) {
    if *remaining == 0 {
        *value = replacement.clone();
    }
    *remaining = remaining.wrapping_sub(1);
    match value {
        _ if *remaining > usize::MAX / 2 => {}
        Value::Object(map) => {
            map.values_mut().for_each(|child| replace_nth(child, remaining, replacement));
        }
        Value::Array(list) => {
            list.iter_mut().for_each(|child| replace_nth(child, remaining, replacement));
        }
        _ => {}
    }
}

fn any_metadata() -> impl Strategy<Value = Metadata> {
    prop::collection::hash_map(".{0,5}", any_json(), 0..3)
        .prop_map(|map| map.into_iter().collect::<Map<_, _>>())
}

fn any_part() -> impl Strategy<Value = A2aPart> {
    let content = prop_oneof![
        ".{0,12}".prop_map(PartContent::Text),
        prop::collection::vec(any::<u8>(), 0..9)
            .prop_map(|bytes| PartContent::Raw(base64::encode(&bytes))),
        ".{0,12}".prop_map(PartContent::Url),
        any_json().prop_map(PartContent::Data),
    ];
    (content, of(any_short_text()), of(any_short_text()), any_metadata()).prop_map(
        |(content, filename, media_type, metadata)| A2aPart {
            content,
            filename,
            media_type,
            metadata,
        },
    )
}

fn any_message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::User), Just(Role::Agent)];
    let ids = (any_short_text(), of(any_short_text()), of(any_short_text()));
    let parts = prop::collection::vec(any_part(), 1..4);
    (ids, role, parts, any_metadata(), any_short_texts(), any_short_texts()).prop_map(
        |((message_id, context_id, task_id), role, parts, metadata, extensions, references)| {
            Message {
                message_id,
                context_id,
                task_id,
                role,
                parts,
                metadata,
                extensions,
                reference_task_ids: references,
            }
        },
    )
}

fn any_artifact() -> impl Strategy<Value = Artifact> {
    let parts = prop::collection::vec(any_part(), 0..3);
    (
        any_short_text(),
        of(any_short_text()),
        of(any_short_text()),
        parts,
        any_metadata(),
        any_short_texts(),
    )
        .prop_map(|(artifact_id, name, description, parts, metadata, extensions)| Artifact {
            artifact_id,
            name,
            description,
            parts,
            metadata,
            extensions,
        })
}

fn any_time() -> impl Strategy<Value = DateTime<Utc>> {
    (0..4_000_000_000_000_i64)
        .prop_map(|milliseconds| DateTime::from_timestamp_millis(milliseconds).expect("a time"))
}

fn any_status() -> impl Strategy<Value = TaskStatus> {
    (prop::sample::select(TaskState::ALL), of(any_message()), any_time())
        .prop_map(|(state, message, timestamp)| TaskStatus { state, message, timestamp })
}

fn any_task() -> impl Strategy<Value = Task> {
    let artifacts = prop::collection::vec(any_artifact(), 0..3);
    let history = prop::collection::vec(any_message(), 0..3);
    (any_short_text(), any_short_text(), any_status(), artifacts, history, any_metadata()).prop_map(
        |(id, context_id, status, artifacts, history, metadata)| Task {
            id,
            context_id,
            status,
            artifacts,
            history,
            metadata,
        },
    )
}

pub(super) fn any_event() -> impl Strategy<Value = StreamEvent> {
    let status_update =
        (any_short_text(), any_short_text(), any_status(), any::<bool>(), any_metadata()).prop_map(
            |(task_id, context_id, status, is_final, metadata)| StatusUpdate {
                task_id,
                context_id,
                status,
                is_final,
                metadata,
            },
        );
    let artifact_update =
        (any_short_text(), any_short_text(), any_artifact(), any::<[bool; 2]>(), any_metadata())
            .prop_map(|(task_id, context_id, artifact, [append, last_chunk], metadata)| {
                ArtifactUpdate { task_id, context_id, artifact, append, last_chunk, metadata }
            });
    prop_oneof![
        any_task().prop_map(StreamEvent::Task),
        any_message().prop_map(StreamEvent::Message),
        status_update.prop_map(StreamEvent::Status),
        artifact_update.prop_map(StreamEvent::Artifact),
    ]
}

pub(super) fn any_push_config() -> impl Strategy<Value = PushConfig> {
    let id = || "[a-z0-9-]{1,8}";
    let authentication = (any_short_text(), of(any_short_text()))
        .prop_map(|(scheme, credentials)| PushAuthentication { scheme, credentials });
    (of(id()), id(), any_short_text(), of(any_short_text()), of(authentication)).prop_map(
        |(id, task_id, url, token, authentication)| PushConfig {
            id: id.filter(|id| id != "null" && id != "undefined"),
            task_id: Some(task_id),
            url,
            token,
            authentication,
        },
    )
}
