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

fn word() -> impl Strategy<Value = String> {
    ".{1,8}"
}

fn words() -> impl Strategy<Value = Vec<String>> {
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
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key.clone(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Returns the value with one of its inner values replaced.
pub(super) fn replace_value(mut value: Value, at: Index, other: &Value) -> Value {
    let mut remaining = at.index(count(&value).max(1));
    replace(&mut value, &mut remaining, other);
    value
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Object(map) => map.values().map(count).sum(),
        Value::Array(list) => list.iter().map(count).sum(),
        _ => 0,
    }
}

fn replace(value: &mut Value, remaining: &mut usize, other: &Value) {
    if *remaining == 0 {
        *value = other.clone();
    }
    *remaining = remaining.wrapping_sub(1);
    match value {
        _ if *remaining > usize::MAX / 2 => {}
        Value::Object(map) => map.values_mut().for_each(|inner| replace(inner, remaining, other)),
        Value::Array(list) => list.iter_mut().for_each(|inner| replace(inner, remaining, other)),
        _ => {}
    }
}

fn metadata() -> impl Strategy<Value = Metadata> {
    prop::collection::hash_map(".{0,5}", any_json(), 0..3)
        .prop_map(|map| map.into_iter().collect::<Map<_, _>>())
}

fn part() -> impl Strategy<Value = A2aPart> {
    let content = prop_oneof![
        ".{0,12}".prop_map(PartContent::Text),
        prop::collection::vec(any::<u8>(), 0..9)
            .prop_map(|bytes| PartContent::Raw(base64::encode(&bytes))),
        ".{0,12}".prop_map(PartContent::Url),
        any_json().prop_map(PartContent::Data),
    ];
    (content, of(word()), of(word()), metadata()).prop_map(
        |(content, filename, media_type, metadata)| A2aPart {
            content,
            filename,
            media_type,
            metadata,
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::User), Just(Role::Agent)];
    let ids = (word(), of(word()), of(word()));
    let parts = prop::collection::vec(part(), 1..4);
    (ids, role, parts, metadata(), words(), words()).prop_map(
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

fn artifact() -> impl Strategy<Value = Artifact> {
    let parts = prop::collection::vec(part(), 0..3);
    (word(), of(word()), of(word()), parts, metadata(), words()).prop_map(
        |(artifact_id, name, description, parts, metadata, extensions)| Artifact {
            artifact_id,
            name,
            description,
            parts,
            metadata,
            extensions,
        },
    )
}

fn time() -> impl Strategy<Value = DateTime<Utc>> {
    (0..4_000_000_000_000_i64)
        .prop_map(|milliseconds| DateTime::from_timestamp_millis(milliseconds).expect("a time"))
}

fn status() -> impl Strategy<Value = TaskStatus> {
    (prop::sample::select(TaskState::ALL), of(message()), time())
        .prop_map(|(state, message, timestamp)| TaskStatus { state, message, timestamp })
}

fn task() -> impl Strategy<Value = Task> {
    let artifacts = prop::collection::vec(artifact(), 0..3);
    let history = prop::collection::vec(message(), 0..3);
    (word(), word(), status(), artifacts, history, metadata()).prop_map(
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

pub(super) fn event() -> impl Strategy<Value = StreamEvent> {
    let status_update = (word(), word(), status(), any::<bool>(), metadata()).prop_map(
        |(task_id, context_id, status, is_final, metadata)| StatusUpdate {
            task_id,
            context_id,
            status,
            is_final,
            metadata,
        },
    );
    let artifact_update = (word(), word(), artifact(), any::<[bool; 2]>(), metadata()).prop_map(
        |(task_id, context_id, artifact, [append, last_chunk], metadata)| ArtifactUpdate {
            task_id,
            context_id,
            artifact,
            append,
            last_chunk,
            metadata,
        },
    );
    prop_oneof![
        task().prop_map(StreamEvent::Task),
        message().prop_map(StreamEvent::Message),
        status_update.prop_map(StreamEvent::Status),
        artifact_update.prop_map(StreamEvent::Artifact),
    ]
}

pub(super) fn push() -> impl Strategy<Value = PushConfig> {
    let id = || "[a-z0-9-]{1,8}";
    let authentication = (word(), of(word()))
        .prop_map(|(scheme, credentials)| PushAuthentication { scheme, credentials });
    (of(id()), id(), word(), of(word()), of(authentication)).prop_map(
        |(id, task_id, url, token, authentication)| PushConfig {
            id: id.filter(|id| id != "null" && id != "undefined"),
            task_id: Some(task_id),
            url,
            token,
            authentication,
        },
    )
}
