//! Output that is no text is shown as text: what gRPC calls a string is UTF-8.

use crate::harness::{GrpcHarness, agent_id, within_step_timeout};
use crate::messages::{
    answer_text_0_3, answer_text_1_0, message_request_0_3, message_request_1_0, task_0_3, task_1_0,
};

#[tokio::test(flavor = "multi_thread")]
async fn invalid_utf_8_is_shown_as_text_in_both_versions() {
    let grpc = GrpcHarness::start(|settings| {
        settings.default_agent = Some(agent_id("Greet"));
        for agent in settings.agents.iter_mut().filter(|agent| agent.spec.id == agent_id("Greet")) {
            let printf_format = r"\033[1m\377\000\303\251 half \342\202";
            agent.program_mut().expect("a program").args =
                vec![printf_format.to_owned(), "{{ input }}".to_owned()];
        }
    })
    .await;
    let expected = "\u{1b}[1m\u{fffd}\u{0}é half \u{fffd}";
    let mut client = grpc.client_of_0_3("service");
    let sent =
        within_step_timeout(client.send_message(grpc.authorized_request(message_request_0_3("x"))))
            .await
            .expect("an answer");
    assert_eq!(answer_text_0_3(&task_0_3(sent.into_inner())), expected);
    let mut client = grpc.client_of_1_0("service");
    let sent = within_step_timeout(
        client.send_message(grpc.authorized_request(message_request_1_0("", "x"))),
    )
    .await
    .expect("an answer");
    assert_eq!(answer_text_1_0(&task_1_0(sent.into_inner())), expected);
    grpc.stop().await;
}
