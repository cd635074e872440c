//! The answer as the agent gave it, for who waits for it and owns it; masked for all else.

use std::sync::Arc;

use algonius_a2a::grpc::proto::a2a_v1 as old;
use algonius_a2a::grpc::proto::lf_a2a_v1 as new;

use crate::harness::{GrpcHarness, agent_id, within_step_timeout};
use crate::messages::{
    answer_text_0_3, answer_text_1_0, message_request_0_3, message_request_1_0, task_0_3, task_1_0,
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
        client.send_message(grpc.authorized_request(message_request_0_3(RAW_TEXT))),
    )
    .await
    .expect("an answer");
    let task = task_0_3(task.into_inner());
    assert_eq!(answer_text_0_3(&task), RAW_TEXT);
    let name = format!("tasks/{}", task.id);
    let request = old::GetTaskRequest { name, history_length: 0 };
    let stored_task = within_step_timeout(client.get_task(grpc.authorized_request(request)))
        .await
        .expect("a task")
        .into_inner();
    assert_eq!(answer_text_0_3(&stored_task), REDACTED_TEXT);

    let mut client = grpc.client_of_1_0("service");
    let task = within_step_timeout(
        client.send_message(grpc.authorized_request(message_request_1_0("", RAW_TEXT))),
    )
    .await
    .expect("an answer");
    let task = task_1_0(task.into_inner());
    assert_eq!((answer_text_1_0(&task), &task.artifacts[0].metadata), (RAW_TEXT, &None));
    let request = new::GetTaskRequest { id: task.id, ..new::GetTaskRequest::default() };
    let stored_task = within_step_timeout(client.get_task(grpc.authorized_request(request)))
        .await
        .expect("a task")
        .into_inner();
    assert_eq!(answer_text_1_0(&stored_task), REDACTED_TEXT);
    let metadata = stored_task.artifacts[0].metadata.as_ref().expect("metadata");
    assert_eq!(metadata.fields["redacted"].kind, Some(prost_types::value::Kind::NumberValue(1.0)));
    grpc.stop().await;
}
