//! The answer as the agent gave it, for who waits for it and owns it; masked for all else.

use std::sync::Arc;

use algonius_a2a::grpc::proto::a2a_v1 as old;
use algonius_a2a::grpc::proto::lf_a2a_v1 as new;

use crate::harness::{GrpcHarness, id, timed};
use crate::messages::{new_answer, new_task, new_text, old_answer, old_task, old_text};

const RAW_TEXT: &str = "write to someone@mail.example";
const REDACTED_TEXT: &str = "write to s***@mail.example";

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_caller_gets_raw_text_and_a_lookup_masked_text() {
    let grpc = GrpcHarness::start(|settings| {
        settings.default_agent = Some(id("echo"));
        for agent in &mut settings.agents {
            let is_echo = agent.spec.id == id("echo");
            let spec = Arc::make_mut(&mut agent.spec);
            Arc::make_mut(&mut spec.a2a_exposure).raw = is_echo;
        }
    })
    .await;
    let mut client = grpc.client_of_0_3("service");
    let sent = timed(client.send_message(grpc.call(old_text(RAW_TEXT)))).await.expect("an answer");
    let sent = old_task(sent.into_inner());
    assert_eq!(old_answer(&sent), RAW_TEXT);
    let name = format!("tasks/{}", sent.id);
    let request = old::GetTaskRequest { name, history_length: 0 };
    let found = timed(client.get_task(grpc.call(request))).await.expect("a task").into_inner();
    assert_eq!(old_answer(&found), REDACTED_TEXT);

    let mut client = grpc.client_of_1_0("service");
    let sent =
        timed(client.send_message(grpc.call(new_text("", RAW_TEXT)))).await.expect("an answer");
    let sent = new_task(sent.into_inner());
    assert_eq!((new_answer(&sent), &sent.artifacts[0].metadata), (RAW_TEXT, &None));
    let request = new::GetTaskRequest { id: sent.id, ..new::GetTaskRequest::default() };
    let found = timed(client.get_task(grpc.call(request))).await.expect("a task").into_inner();
    assert_eq!(new_answer(&found), REDACTED_TEXT);
    let metadata = found.artifacts[0].metadata.as_ref().expect("metadata");
    assert_eq!(metadata.fields["redacted"].kind, Some(prost_types::value::Kind::NumberValue(1.0)));
    grpc.stop().await;
}
