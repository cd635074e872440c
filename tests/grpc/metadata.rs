//! What stands beside a message: in metadata.

use algonius_a2a::grpc::proto::lf_a2a_v1 as new;
use new::stream_response::Payload;
use tonic::{Code, Streaming};

use crate::harness::{GrpcHarness, agent_id, with_metadata, within_step_timeout};
use crate::messages::{message_request_1_0, task_1_0};

const CURSOR_EXTENSION: &str = "https://algonius.dev/a2a/ext/event-cursor/v1";

async fn collect_events(mut stream: Streaming<new::StreamResponse>) -> Vec<Payload> {
    let mut events = Vec::new();
    while let Some(event) = within_step_timeout(stream.message()).await.expect("an event") {
        events.push(event.payload.expect("a payload"));
    }
    events
}

/// The number that an event tells of itself.
fn event_cursor(event: &Payload) -> String {
    let metadata = match event {
        Payload::Task(task) => &task.metadata,
        Payload::Message(message) => &message.metadata,
        Payload::StatusUpdate(update) => &update.metadata,
        Payload::ArtifactUpdate(update) => &update.metadata,
    };
    let value = metadata.as_ref().and_then(|metadata| metadata.fields.get(CURSOR_EXTENSION));
    match value.and_then(|value| value.kind.as_ref()) {
        Some(prost_types::value::Kind::StringValue(number)) => number.clone(),
        other => panic!("no number: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grpc_stream_resumes_after_an_event_number() {
    let grpc = GrpcHarness::start(|settings| settings.default_agent = Some(agent_id("echo"))).await;
    let mut client = grpc.client_of_1_0("service");
    let call = with_metadata(
        grpc.authorized_request(message_request_1_0("", "tea")),
        "a2a-extensions",
        CURSOR_EXTENSION,
    );
    let answer = within_step_timeout(client.send_streaming_message(call)).await.expect("a stream");
    let extensions = answer.metadata().get("a2a-extensions").and_then(|value| value.to_str().ok());
    assert_eq!(extensions, Some(CURSOR_EXTENSION));
    let first_events = collect_events(answer.into_inner()).await;
    let event_cursors: Vec<_> = first_events.iter().map(event_cursor).collect();
    let Payload::Task(task) = &first_events[0] else { panic!("no task: {first_events:?}") };

    let request = new::SubscribeToTaskRequest { id: task.id.clone(), ..Default::default() };
    let call = with_metadata(grpc.authorized_request(request), "last-event-id", &event_cursors[0]);
    let remaining_events =
        within_step_timeout(client.subscribe_to_task(call)).await.expect("the rest").into_inner();
    let remaining_events = collect_events(remaining_events).await;
    assert_eq!(remaining_events.len(), first_events.len() - 1);
    let Payload::StatusUpdate(end) = &remaining_events[remaining_events.len() - 1] else {
        panic!("no end: {remaining_events:?}")
    };
    assert_eq!(end.status.as_ref().expect("a status").state(), new::TaskState::Completed);
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_identifies_a_grpc_request() {
    let grpc = GrpcHarness::start(|settings| settings.default_agent = Some(agent_id("echo"))).await;
    let mut client = grpc.client_of_1_0("service");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let call = with_metadata(
            grpc.authorized_request(message_request_1_0("", "tea")),
            "idempotency-key",
            "k-1",
        );
        let response =
            within_step_timeout(client.send_message(call)).await.expect("an answer").into_inner();
        ids.push(task_1_0(response).id);
    }
    assert_eq!(ids[0], ids[1]);
    let call = with_metadata(
        grpc.authorized_request(message_request_1_0("", "coffee")),
        "idempotency-key",
        "k-1",
    );
    let refusal = within_step_timeout(client.send_message(call)).await.expect_err("another body");
    assert_eq!(refusal.code(), Code::AlreadyExists);
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grpc_call_continues_its_trace_and_has_a_request_id() {
    const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let grpc = GrpcHarness::start(|settings| settings.default_agent = Some(agent_id("env"))).await;
    let mut client = grpc.client_of_1_0("service");
    let call = with_metadata(
        grpc.authorized_request(message_request_1_0("", "tea")),
        "traceparent",
        TRACEPARENT,
    );
    let answer =
        within_step_timeout(client.send_message(with_metadata(call, "x-request-id", "mine")))
            .await
            .expect("a task");
    let request_id = answer.metadata().get("x-request-id").and_then(|value| value.to_str().ok());
    assert_eq!(request_id, Some("mine"));
    let output = format!("{:?}", answer.into_inner());
    let (_, traceparent) = output.split_once("TRACEPARENT=").expect("the environment");
    assert_eq!(traceparent.get(..36), TRACEPARENT.get(..36));
    assert_ne!(traceparent.get(..55), Some(TRACEPARENT));
    grpc.stop().await;
}
