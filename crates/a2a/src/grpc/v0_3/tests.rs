//! Property tests: messages written in 0.3 are read back unchanged.

use algonius_actors::model::failure::Failure;
use proptest::prelude::*;
use prost::Message as _;

use super::{read, write};
use crate::grpc::conversions;
use crate::grpc::proto::a2a_v1 as pb;
use crate::grpc::tests::{any_event, any_message, any_push_config};
use crate::v1::{
    Artifact, ArtifactUpdate, HistoryLength, ProtocolVersion, StatusUpdate, StreamEvent, Task,
    TaskState, TaskStatus,
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
        Payload::Msg(message) => StreamEvent::Message(read::message(message)?),
        Payload::StatusUpdate(update) => StreamEvent::Status(StatusUpdate {
            task_id: update.task_id,
            context_id: update.context_id,
            status: read_status(update.status)?,
            is_final: update.r#final,
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
    let states = TaskState::ALL.iter().copied();
    let has_name = |state: &TaskState| {
        let name = status.state().as_str_name().to_owned();
        name == format!("TASK_STATE_{}", state_name(*state))
    };
    Ok(TaskStatus {
        state: states.clone().find(has_name).expect("a state"),
        message: status.update.map(read::message).transpose()?,
        timestamp: conversions::read_time(status.timestamp.expect("a time"), "timestamp")?,
    })
}

const fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "SUBMITTED",
        TaskState::Working => "WORKING",
        TaskState::InputRequired => "INPUT_REQUIRED",
        TaskState::Completed => "COMPLETED",
        TaskState::Canceled => "CANCELLED",
        TaskState::Failed => "FAILED",
        TaskState::Rejected => "REJECTED",
        TaskState::AuthRequired => "AUTH_REQUIRED",
    }
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
    fn events_survive_a_round_trip(original in any_event(ProtocolVersion::V0_3)) {
        let bytes = write::event(original.clone()).expect("written").encode_to_vec();
        let event = pb::StreamResponse::decode(&*bytes).expect("decoded");
        prop_assert_eq!(read_event(event), Ok(original));
    }

    #[test]
    fn messages_survive_a_round_trip(original in any_message(ProtocolVersion::V0_3)) {
        let encoded = write::message(original.clone()).expect("written");
        prop_assert_eq!(read::message(encoded), Ok(original));
    }

    #[test]
    fn registrations_survive_a_round_trip(original in any_push_config()) {
        let registration = write::push_config(original.clone());
        let (task, config) = read::parse_push_config_name(&registration.name).expect("a name");
        prop_assert_eq!((Some(task), config), (original.task_id.as_deref(), original.id.as_deref()));
        let config = registration.push_notification_config.expect("a registration");
        prop_assert_eq!(read::push_config(Some(task.to_owned()), config), Ok(original));
    }

    #[test]
    fn no_bytes_make_the_0_3_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(request) = pb::SendMessageRequest::decode(&*bytes) {
            _ = read::send_request(request);
        }
    }
}

#[test]
fn a_missing_history_length_means_all() {
    assert_eq!(read::read_history_length(0), Ok(HistoryLength::All));
    assert_eq!(read::read_history_length(2), Ok(HistoryLength::Last(2)));
    assert!(read::read_history_length(-1).is_err());
}
