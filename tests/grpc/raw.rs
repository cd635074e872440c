//! The answer as the agent gave it, for who waits for it and owns it; masked for all else.

use std::sync::Arc;

use algonius_a2a::grpc::proto::a2a_v1 as old;
use algonius_a2a::grpc::proto::lf_a2a_v1 as new;

use crate::harness::{GrpcHarness, agent_id, within_step_timeout};
use crate::messages::{
    new_answer_text, new_send_request, new_task, old_answer_text, old_send_request, old_task,
};

const RAW_TEXT: &str = "write to someone@mail.example";
const REDACTED_TEXT: &str = "write to s***@mail.example";

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_caller_gets_raw_text_and_a_lookup_masked_text() {
    let grpc = GrpcHarness::start(|settings| {
        settings.default_agent = Some(agent_id("echo"));
        for agent in &mut settings.agents {
            let is_echo = agent.spec.id == agent_id("echo");
            let spec = Arc::make_mut(&mut agent.spec);
            Arc::make_mut(&mut spec.endpoint_config).returns_raw_answers = is_echo;
        }
    })
    .await;
    let mut client = grpc.client_of_0_3("service");
    let task = within_step_timeout(
        client.send_message(grpc.authorized_request(old_send_request(RAW_TEXT))),
    )
    .await
    .expect("an answer");
    let task = old_task(task.into_inner());
    assert_eq!(old_answer_text(&task), RAW_TEXT);
    let name = format!("tasks/{}", task.id);
    let request = old::GetTaskRequest { name, history_length: 0 };
    let stored_task = within_step_timeout(client.get_task(grpc.authorized_request(request)))
        .await
        .expect("a task")
        .into_inner();
    assert_eq!(old_answer_text(&stored_task), REDACTED_TEXT);

    let mut client = grpc.client_of_1_0("service");
    let task = within_step_timeout(
        client.send_message(grpc.authorized_request(new_send_request("", RAW_TEXT))),
    )
    .await
    .expect("an answer");
    let task = new_task(task.into_inner());
    assert_eq!((new_answer_text(&task), &task.artifacts[0].metadata), (RAW_TEXT, &None));
    let request = new::GetTaskRequest { id: task.id, ..new::GetTaskRequest::default() };
    let stored_task = within_step_timeout(client.get_task(grpc.authorized_request(request)))
        .await
        .expect("a task")
        .into_inner();
    assert_eq!(new_answer_text(&stored_task), REDACTED_TEXT);
    let metadata = stored_task.artifacts[0].metadata.as_ref().expect("metadata");
    assert_eq!(metadata.fields["redacted"].kind, Some(prost_types::value::Kind::NumberValue(1.0)));
    grpc.stop().await;
}
