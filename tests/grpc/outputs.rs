//! Outputs of agents, in both versions over gRPC.

use algonius_a2a::grpc::proto::a2a_v1 as old;
use algonius_a2a::grpc::proto::lf_a2a_v1 as new;
use prost_types::value::Kind;

use crate::harness::{GrpcHarness, agent_id, with_metadata, within_step_timeout};
use crate::messages::{message_request_0_3, message_request_1_0, task_0_3, task_1_0};

/// Returns the number of bytes that are missing from an artifact, from its metadata.
fn dropped_bytes(metadata: Option<&prost_types::Struct>) -> Option<f64> {
    let truncated = metadata?.fields.get("truncated")?.kind.as_ref()?;
    let Kind::StructValue(truncated) = truncated else { return None };
    match truncated.fields.get("droppedBytes")?.kind.as_ref()? {
        Kind::NumberValue(bytes) => Some(*bytes),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_answer_is_marked_in_both_versions() {
    let grpc =
        GrpcHarness::start(|settings| settings.default_agent = Some(agent_id("flood"))).await;
    let call = grpc.authorized_request(message_request_0_3("go"));
    let response = within_step_timeout(grpc.client_of_0_3("service").send_message(call))
        .await
        .expect("an answer");
    let task: old::Task = task_0_3(response.into_inner());
    assert_eq!(dropped_bytes(task.artifacts[0].metadata.as_ref()), Some(90_000.0));
    let call = grpc.authorized_request(message_request_1_0("", "go"));
    let response = within_step_timeout(grpc.client_of_1_0("service").send_message(call))
        .await
        .expect("an answer");
    let task: new::Task = task_1_0(response.into_inner());
    assert_eq!(dropped_bytes(task.artifacts[0].metadata.as_ref()), Some(90_000.0));
    grpc.stop().await;
}

/// Waits for the file that its message names after each of two lines.
fn gate_file() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let gate = folder.path().join("gate").display().to_string();
    (folder, gate)
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_streamed_over_grpc_while_the_program_waits() {
    let grpc =
        GrpcHarness::start(|settings| settings.default_agent = Some(agent_id("lines"))).await;
    let (_folder, gate) = gate_file();
    let call = with_metadata(
        grpc.authorized_request(message_request_0_3(&gate)),
        "a2a-extensions",
        REQUESTED_EXTENSIONS,
    );
    let mut client = grpc.client_of_0_3("service");
    let mut events = within_step_timeout(client.send_streaming_message(call))
        .await
        .expect("a stream")
        .into_inner();
    let (mut output, mut is_last_chunk) = (String::new(), false);
    while let Some(event) = within_step_timeout(events.message()).await.expect("an event") {
        use old::stream_response::Payload;
        let Some(Payload::ArtifactUpdate(update)) = event.payload else { continue };
        assert_eq!(update.append, !output.is_empty());
        for part in update.artifact.expect("an artifact").parts {
            let Some(old::part::Part::Text(text)) = part.part else { panic!("no text") };
            output += &text;
        }
        is_last_chunk = update.last_chunk;
        if output.contains("one") {
            std::fs::write(&gate, "").expect("a gate"); // Not before.
        }
    }
    // A line reaches each follower before the program prints the next line, on every transport
    assert_eq!((output.as_str(), is_last_chunk), ("one\ntwo\n", true));
    grpc.stop().await;
}

const REQUESTED_EXTENSIONS: &str = "https://algonius.dev/a2a/ext/stderr/v1, \
                          https://algonius.dev/a2a/ext/event-cursor/v1";

/// The texts of an artifact of 1.0.
fn artifact_text_1_0(artifact: Option<new::Artifact>) -> String {
    let parts = artifact.expect("an artifact").parts.into_iter();
    let texts = parts.filter_map(|part| match part.content {
        Some(new::part::Content::Text(text)) => Some(text),
        _ => None,
    });
    texts.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_error_is_streamed_and_a_stream_is_resumed() {
    let grpc =
        GrpcHarness::start(|settings| settings.default_agent = Some(agent_id("lines"))).await;
    let (_folder, gate) = gate_file();
    let call = with_metadata(
        grpc.authorized_request(message_request_1_0("", &gate)),
        "a2a-extensions",
        REQUESTED_EXTENSIONS,
    );
    let mut client = grpc.client_of_1_0("service");
    let mut events = within_step_timeout(client.send_streaming_message(call))
        .await
        .expect("a stream")
        .into_inner();
    let [mut task_id, mut last_cursor, mut stderr_output, mut text] = [const { String::new() }; 4];
    while !(stderr_output.contains("err one") && text.contains("one")) {
        use new::stream_response::Payload;
        let event =
            within_step_timeout(events.message()).await.expect("an event").expect("one more");
        let metadata = match event.payload.expect("a payload") {
            Payload::Task(created) => {
                task_id = created.id;
                created.metadata
            }
            Payload::StatusUpdate(update) => update.metadata,
            Payload::ArtifactUpdate(update) => {
                text += &artifact_text_1_0(update.artifact);
                update.metadata
            }
            Payload::Message(_) => panic!("no task"),
        };
        let fields = metadata.expect("metadata").fields;
        if let Some(Kind::StructValue(stderr)) =
            fields.get("stderr").and_then(|it| it.kind.as_ref())
        {
            let Some(Kind::StringValue(stderr_text)) = &stderr.fields["text"].kind else {
                panic!("no text")
            };
            stderr_output += stderr_text;
        }
        let cursor = &fields["https://algonius.dev/a2a/ext/event-cursor/v1"];
        let Some(Kind::StringValue(cursor)) = &cursor.kind else { panic!("no place") };
        last_cursor = cursor.clone();
    }
    drop(events);
    std::fs::write(&gate, "").expect("a gate");
    let request = new::SubscribeToTaskRequest { tenant: String::new(), id: task_id };
    let call = with_metadata(grpc.authorized_request(request), "last-event-id", &last_cursor);
    let mut resumed_events =
        within_step_timeout(client.subscribe_to_task(call)).await.expect("a stream").into_inner();
    let mut new_text = String::new();
    while let Some(event) = within_step_timeout(resumed_events.message()).await.expect("an event") {
        let Some(new::stream_response::Payload::ArtifactUpdate(update)) = event.payload else {
            continue;
        };
        assert!(update.append, "what came before is not told again");
        new_text += &artifact_text_1_0(update.artifact);
    }
    assert_eq!(new_text, "two\n");
    grpc.stop().await;
}
