//! Output that is no text is shown as text: what gRPC calls a string is UTF-8.

use crate::harness::{GrpcHarness, agent_id, within_step_timeout};
use crate::messages::{
    new_answer_text, new_send_request, new_task, old_answer_text, old_send_request, old_task,
};

#[tokio::test(flavor = "multi_thread")]
async fn invalid_utf_8_is_shown_as_text_in_both_versions() {
    let grpc = GrpcHarness::start(|settings| {
        settings.default_agent = Some(agent_id("Greet"));
        for agent in settings.agents.iter_mut().filter(|agent| agent.spec.id == agent_id("Greet")) {
            let bytes = r"\033[1m\377\000\303\251 half \342\202";
            agent.program_mut().expect("a program").args =
                vec![bytes.to_owned(), "{{ input }}".to_owned()];
        }
    })
    .await;
    let expected = "\u{1b}[1m\u{fffd}\u{0}é half \u{fffd}";
    let mut client = grpc.client_of_0_3("service");
    let sent =
        within_step_timeout(client.send_message(grpc.authorized_request(old_send_request("x"))))
            .await
            .expect("an answer");
    assert_eq!(old_answer_text(&old_task(sent.into_inner())), expected);
    let mut client = grpc.client_of_1_0("service");
    let sent = within_step_timeout(
        client.send_message(grpc.authorized_request(new_send_request("", "x"))),
    )
    .await
    .expect("an answer");
    assert_eq!(new_answer_text(&new_task(sent.into_inner())), expected);
    grpc.stop().await;
}
