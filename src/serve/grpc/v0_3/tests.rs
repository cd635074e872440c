//! What goes out in 0.3 can be read back as it was.

use algonius_actors::model::failure::Failure;
use proptest::prelude::*;
use prost::Message as _;

use super::{pb, read, write};
use crate::serve::grpc::tests::{event, message, push};
use crate::serve::grpc::value;
use crate::wire::a2a::v1::{
    Artifact, ArtifactUpdate, History, StatusUpdate, StreamEvent, Task, TaskState, TaskStatus,
    Version,
};

fn heard(event: pb::StreamResponse) -> Result<StreamEvent, Failure> {
    use pb::stream_response::Payload;
    Ok(match event.payload.expect("an event") {
        Payload::Task(task) => StreamEvent::Task(Task {
            id: task.id,
            context_id: task.context_id,
            status: status(task.status)?,
            artifacts: task.artifacts.into_iter().map(artifact).collect::<Result<_, _>>()?,
            history: task.history.into_iter().map(read::message).collect::<Result<_, _>>()?,
            metadata: value::metadata(task.metadata)?,
        }),
        Payload::Msg(said) => StreamEvent::Message(read::message(said)?),
        Payload::StatusUpdate(update) => StreamEvent::Status(StatusUpdate {
            task_id: update.task_id,
            context_id: update.context_id,
            status: status(update.status)?,
            is_final: update.r#final,
            metadata: value::metadata(update.metadata)?,
        }),
        Payload::ArtifactUpdate(update) => StreamEvent::Artifact(ArtifactUpdate {
            task_id: update.task_id,
            context_id: update.context_id,
            artifact: artifact(update.artifact.expect("an artifact"))?,
            append: update.append,
            last_chunk: update.last_chunk,
            metadata: value::metadata(update.metadata)?,
        }),
    })
}

fn status(status: Option<pb::TaskStatus>) -> Result<TaskStatus, Failure> {
    let status = status.expect("a status");
    let words = TaskState::ALL.iter().copied();
    let is_it = |state: &TaskState| {
        let name = status.state().as_str_name().to_owned();
        name == format!("TASK_STATE_{}", spelled(*state))
    };
    Ok(TaskStatus {
        state: words.clone().find(is_it).expect("a state"),
        message: status.update.map(read::message).transpose()?,
        timestamp: value::time(status.timestamp.expect("a time"), "timestamp")?,
    })
}

const fn spelled(state: TaskState) -> &'static str {
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

fn artifact(artifact: pb::Artifact) -> Result<Artifact, Failure> {
    Ok(Artifact {
        artifact_id: artifact.artifact_id,
        name: value::some(artifact.name),
        description: value::some(artifact.description),
        parts: artifact.parts.into_iter().map(read::part).collect::<Result<_, _>>()?,
        metadata: value::metadata(artifact.metadata)?,
        extensions: artifact.extensions,
    })
}

proptest! {
    #[test]
    fn events_come_back_as_they_went(went in event(Version::V0_3)) {
        let bytes = write::event(went.clone()).expect("written").encode_to_vec();
        let event = pb::StreamResponse::decode(&*bytes).expect("decoded");
        prop_assert_eq!(heard(event), Ok(went));
    }

    #[test]
    fn messages_come_back_as_they_went(went in message(Version::V0_3)) {
        let said = write::message(went.clone()).expect("written");
        prop_assert_eq!(read::message(said), Ok(went));
    }

    #[test]
    fn registrations_come_back_as_they_went(went in push()) {
        let told = write::registration(went.clone());
        let (task, config) = read::config_name(&told.name).expect("a name");
        prop_assert_eq!((Some(task), config), (went.task_id.as_deref(), went.id.as_deref()));
        let config = told.push_notification_config.expect("a registration");
        prop_assert_eq!(read::push(Some(task.to_owned()), config), Ok(went));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(asked) = pb::SendMessageRequest::decode(&*bytes) {
            _ = read::send_request(asked);
        }
    }
}

#[test]
fn names_are_read_strictly_and_an_id_may_be_left_out() {
    let read = |name| read::config_name(name).ok();
    assert_eq!(read("tasks/t/pushNotificationConfigs/c"), Some(("t", Some("c"))));
    assert_eq!(read("tasks/t/pushNotificationConfigs/"), Some(("t", None)));
    assert_eq!(read("tasks/t/pushNotificationConfigs"), Some(("t", None)));
    assert_eq!(read("tasks/t"), Some(("t", None)));
    for name in [
        "",
        "t",
        "tasks/",
        "tasks/t/u",
        "tasks/t/pushNotificationConfigsc",
        "tasks//pushNotificationConfigs/c",
        "tasks/t/pushNotificationConfigs/c/d",
    ] {
        assert_eq!(read(name), None, "{name}");
    }
}

#[test]
fn no_history_length_is_all_of_it() {
    assert_eq!(read::history(0), Ok(History::All));
    assert_eq!(read::history(2), Ok(History::Last(2)));
    assert!(read::history(-1).is_err());
}
