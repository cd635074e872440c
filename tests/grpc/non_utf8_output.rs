//! Output that is no text is shown as text: what gRPC calls a string is UTF-8.

use crate::harness::{GrpcHarness, id, timed};
use crate::messages::{new_answer, new_task, new_text, old_answer, old_task, old_text};

#[tokio::test(flavor = "multi_thread")]
async fn invalid_utf_8_is_shown_as_text_in_both_versions() {
    let grpc = GrpcHarness::start(|settings| {
        settings.default_agent = Some(id("Greet"));
        for agent in settings.agents.iter_mut().filter(|agent| agent.spec.id == id("Greet")) {
            let bytes = r"\033[1m\377\000\303\251 half \342\202";
            agent.program_mut().expect("a program").args =
                vec![bytes.to_owned(), "{{ input }}".to_owned()];
        }
    })
    .await;
    let expected = "\u{1b}[1m\u{fffd}\u{0}é half \u{fffd}";
    let mut client = grpc.client_of_0_3("service");
    let sent = timed(client.send_message(grpc.call(old_text("x")))).await.expect("an answer");
    assert_eq!(old_answer(&old_task(sent.into_inner())), expected);
    let mut client = grpc.client_of_1_0("service");
    let sent = timed(client.send_message(grpc.call(new_text("", "x")))).await.expect("an answer");
    assert_eq!(new_answer(&new_task(sent.into_inner())), expected);
    grpc.stop().await;
}
