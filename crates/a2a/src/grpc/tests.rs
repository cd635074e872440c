//! Random core shapes of all kinds that a version can express.

use chrono::{DateTime, Utc};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::Value;

use super::conversions;
use crate::base64;
use crate::v1::{
    A2aPart, Artifact, ArtifactUpdate, Message, Metadata, PartContent, ProtocolVersion,
    PushAuthentication, PushConfig, Role, StatusUpdate, StreamEvent, Task, TaskState, TaskStatus,
};

pub(super) fn any_short_text() -> impl Strategy<Value = String> {
    "[a-z0-9é ]{1,8}"
}

pub(super) fn any_short_texts() -> impl Strategy<Value = Vec<String>> {
    vec(any_short_text(), 0..3)
}

/// Returns JSON as it is after the transfer: whole numbers within the exact range are integers.
fn any_json() -> impl Strategy<Value = Value> {
    let fraction = any::<f64>().prop_filter("has a fraction", |number| number.fract() != 0.0);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_992_i64..=9_007_199_254_740_992).prop_map(Value::from),
        fraction.prop_filter_map("is finite", |number| {
            serde_json::Number::from_f64(number).map(Value::Number)
        }),
        any_short_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((any_short_text(), inner), 0..4)
                .prop_map(|list| Value::Object(list.into_iter().collect())),
        ]
    })
}

pub(super) fn any_metadata() -> impl Strategy<Value = Metadata> {
    vec((any_short_text(), any_json()), 0..3).prop_map(|list| list.into_iter().collect())
}

pub(super) fn any_time() -> impl Strategy<Value = DateTime<Utc>> {
    (-62_135_596_800_i64..253_402_300_800, 0_u32..1_000_000_000)
        .prop_filter_map("a time", |(seconds, nanos)| DateTime::from_timestamp(seconds, nanos))
}

fn any_content(version: ProtocolVersion) -> impl Strategy<Value = PartContent> {
    let data = match version {
        ProtocolVersion::V0_3 => any_metadata().prop_map(Value::Object).boxed(),
        ProtocolVersion::V1_0 => any_json().boxed(),
    };
    prop_oneof![
        any_short_text().prop_map(PartContent::Text),
        vec(any::<u8>(), 0..9).prop_map(|bytes| PartContent::Raw(base64::encode(&bytes))),
        any_short_text().prop_map(PartContent::Url),
        data.prop_map(PartContent::Data),
    ]
}

fn any_part(version: ProtocolVersion) -> impl Strategy<Value = A2aPart> {
    let file_fields = (option::of(any_short_text()), option::of(any_short_text()));
    (any_content(version), file_fields, any_metadata()).prop_map(
        move |(content, (filename, media_type), metadata)| match (version, &content) {
            (ProtocolVersion::V0_3, PartContent::Text(_) | PartContent::Data(_)) => {
                A2aPart { metadata, ..A2aPart::from_content(content) }
            }
            (ProtocolVersion::V0_3, PartContent::Raw(_) | PartContent::Url(_))
            | (ProtocolVersion::V1_0, _) => A2aPart { content, filename, media_type, metadata },
        },
    )
}

pub(super) fn any_message(version: ProtocolVersion) -> impl Strategy<Value = Message> {
    let ids = (any_short_text(), option::of(any_short_text()), option::of(any_short_text()));
    let role = prop_oneof![Just(Role::User), Just(Role::Agent)];
    let references = match version {
        ProtocolVersion::V0_3 => Just(Vec::new()).boxed(),
        ProtocolVersion::V1_0 => any_short_texts().boxed(),
    };
    (ids, role, vec(any_part(version), 1..3), any_metadata(), any_short_texts(), references)
        .prop_map(
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

fn any_artifact(version: ProtocolVersion) -> impl Strategy<Value = Artifact> {
    let texts = (any_short_text(), option::of(any_short_text()), option::of(any_short_text()));
    (texts, vec(any_part(version), 0..3), any_metadata(), any_short_texts()).prop_map(
        |((artifact_id, name, description), parts, metadata, extensions)| Artifact {
            artifact_id,
            name,
            description,
            parts,
            metadata,
            extensions,
        },
    )
}

fn any_status(version: ProtocolVersion) -> impl Strategy<Value = TaskStatus> {
    (proptest::sample::select(TaskState::ALL), option::of(any_message(version)), any_time())
        .prop_map(|(state, message, timestamp)| TaskStatus { state, message, timestamp })
}

pub(super) fn any_task(version: ProtocolVersion) -> impl Strategy<Value = Task> {
    let artifacts = vec(any_artifact(version), 0..3);
    (
        any_short_text(),
        any_short_text(),
        any_status(version),
        artifacts,
        vec(any_message(version), 0..3),
        any_metadata(),
    )
        .prop_map(|(id, context_id, status, artifacts, history, metadata)| Task {
            id,
            context_id,
            status,
            artifacts,
            history,
            metadata,
        })
}

pub(super) fn any_event(version: ProtocolVersion) -> impl Strategy<Value = StreamEvent> {
    let status_event =
        (any_short_text(), any_short_text(), any_status(version), any::<bool>(), any_metadata())
            .prop_map(move |(task_id, context_id, status, ends_stream, metadata)| {
                // 1.0 has no field for the end of a stream; the stream simply ends.
                let is_final = ends_stream && version == ProtocolVersion::V0_3;
                StreamEvent::Status(StatusUpdate {
                    task_id,
                    context_id,
                    status,
                    is_final,
                    metadata,
                })
            });
    let flags = (any::<bool>(), any::<bool>());
    let artifact_event =
        (any_short_text(), any_short_text(), any_artifact(version), flags, any_metadata())
            .prop_map(|(task_id, context_id, artifact, (append, last_chunk), metadata)| {
                StreamEvent::Artifact(ArtifactUpdate {
                    task_id,
                    context_id,
                    artifact,
                    append,
                    last_chunk,
                    metadata,
                })
            });
    prop_oneof![
        any_task(version).prop_map(StreamEvent::Task),
        any_message(version).prop_map(StreamEvent::Message),
        status_event,
        artifact_event,
    ]
}

pub(super) fn any_push_config() -> impl Strategy<Value = PushConfig> {
    let authentication = (any_short_text(), option::of(any_short_text()))
        .prop_map(|(scheme, credentials)| PushAuthentication { scheme, credentials });
    (
        any_short_text(),
        any_short_text(),
        any_short_text(),
        option::of(any_short_text()),
        option::of(authentication),
    )
        .prop_map(|(id, task_id, url, token, authentication)| PushConfig {
            id: Some(id),
            task_id: Some(task_id),
            url,
            token,
            authentication,
        })
}

proptest! {
    #[test]
    fn json_values_survive_a_round_trip(original in any_json()) {
        prop_assert_eq!(conversions::read_json(conversions::to_proto_value(original.clone())), Ok(original));
    }

    #[test]
    fn times_survive_a_round_trip(original in any_time()) {
        prop_assert_eq!(conversions::read_time(conversions::to_timestamp(original), "t"), Ok(original));
    }

    #[test]
    fn only_finite_numbers_are_accepted(bits in any::<u64>()) {
        let kind = prost_types::value::Kind::NumberValue(f64::from_bits(bits));
        let result = conversions::read_json(prost_types::Value { kind: Some(kind) });
        prop_assert_eq!(result.is_ok(), f64::from_bits(bits).is_finite());
    }
}

#[test]
fn times_outside_of_the_json_range_are_refused() {
    for (seconds, is_in_range) in [
        (0, true),
        (253_402_300_799, true),
        (253_402_300_800, false),
        (-62_135_596_800, true),
        (-62_135_596_801, false),
        (i64::MAX, false),
    ] {
        let result = conversions::read_time(prost_types::Timestamp { seconds, nanos: 0 }, "t");
        assert_eq!(result.is_ok(), is_in_range, "{seconds}");
    }
}
