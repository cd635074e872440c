//! Property tests: messages written in 1.0 are read back unchanged.

mod oracle;

use algonius_actors::model::failure::Failure;
use proptest::prelude::*;
use prost::Message as _;

use super::{read, write};
use crate::grpc::conversions;
use crate::grpc::proto::lf_a2a_v1 as pb;
use crate::grpc::tests::{any_event, any_message, any_push_config};
use crate::v1::{
    Artifact, ArtifactUpdate, HistoryLength, ListRequest, ProtocolVersion, StatusUpdate,
    StreamEvent, Task, TaskStatus,
};

fn read_event(event: pb::StreamResponse) -> Result<StreamEvent, Failure> {
    use pb::stream_response::Payload;
    Ok(match event.payload.expect("an event") {
        Payload::Task(task) => StreamEvent::Task(Task {
            id: task.id,
            context_id: task.context_id,
            status: read_status(task.status)?,
            artifacts: task.artifacts.into_iter().map(read_artifact).collect::<Result<_, _>>()?,
            history: task.history.into_iter().map(read::message).collect::<Result<_, _>>()?,
            metadata: conversions::read_metadata(task.metadata)?,
        }),
        Payload::Message(message) => StreamEvent::Message(read::message(message)?),
        Payload::StatusUpdate(update) => StreamEvent::Status(StatusUpdate {
            task_id: update.task_id,
            context_id: update.context_id,
            status: read_status(update.status)?,
            is_final: false,
            metadata: conversions::read_metadata(update.metadata)?,
        }),
        Payload::ArtifactUpdate(update) => StreamEvent::Artifact(ArtifactUpdate {
            task_id: update.task_id,
            context_id: update.context_id,
            artifact: read_artifact(update.artifact.expect("an artifact"))?,
            append: update.append,
            last_chunk: update.last_chunk,
            metadata: conversions::read_metadata(update.metadata)?,
        }),
    })
}

fn read_status(status: Option<pb::TaskStatus>) -> Result<TaskStatus, Failure> {
    let status = status.expect("a status");
    let request = pb::ListTasksRequest { status: status.state, ..pb::ListTasksRequest::default() };
    Ok(TaskStatus {
        state: read::list_request(request)?.state.expect("a state"),
        message: status.message.map(read::message).transpose()?,
        timestamp: conversions::read_time(status.timestamp.expect("a time"), "timestamp")?,
    })
}

fn read_artifact(artifact: pb::Artifact) -> Result<Artifact, Failure> {
    Ok(Artifact {
        artifact_id: artifact.artifact_id,
        name: conversions::optional_text(artifact.name),
        description: conversions::optional_text(artifact.description),
        parts: artifact.parts.into_iter().map(read::part).collect::<Result<_, _>>()?,
        metadata: conversions::read_metadata(artifact.metadata)?,
        extensions: artifact.extensions,
    })
}

proptest! {
    #[test]
    fn events_survive_a_round_trip(original in any_event(ProtocolVersion::V1_0)) {
        let bytes = write::event(original.clone()).expect("written").encode_to_vec();
        let event = pb::StreamResponse::decode(&*bytes).expect("decoded");
        prop_assert_eq!(read_event(event), Ok(original));
    }

    #[test]
    fn messages_survive_a_round_trip(original in any_message(ProtocolVersion::V1_0)) {
        let encoded = write::message(original.clone()).expect("written");
        prop_assert_eq!(read::message(encoded), Ok(original));
    }

    #[test]
    fn registrations_survive_a_round_trip(original in any_push_config()) {
        prop_assert_eq!(read::push_config(write::push_config(original.clone())), Ok(original));
    }

    #[test]
    fn no_bytes_make_the_1_0_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(request) = pb::SendMessageRequest::decode(&*bytes) {
            _ = read::send_request(request);
        }
    }
}

#[test]
fn absent_grpc_fields_have_no_assumed_value() {
    let request = pb::ListTasksRequest::default();
    assert_eq!(read::list_request(request), Ok(ListRequest::default()));
    assert_eq!(read::read_history_length(None), Ok(HistoryLength::All));
    assert_eq!(read::read_history_length(Some(0)), Ok(HistoryLength::Last(0)));
    assert!(read::read_history_length(Some(-1)).is_err());
}
