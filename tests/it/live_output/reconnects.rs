//! Followers that connect late, reconnect or disconnect: each byte is sent once, and a
//! former follower costs nothing.

use serde_json::json;

use super::{
    EVENTS_AGENT, LINES_AGENT, TextCollector, agents_config, assemble_artifact, channel_text,
    open_api_stream, parse_events,
};
use crate::harness::client::task_id;
use crate::harness::{ServiceProcess, Setup, json_rpc_request_body, message_params, poll_until};
use crate::streams::open_stream;

#[tokio::test]
async fn a_late_follower_gets_all_output_once() {
    let service = ServiceProcess::start(&agents_config()).await;
    let id = service.start_task("lines", "hello").await;
    let path = format!("/api/v1/executions/{id}/events?text=stdout,stderr");
    let mut early_stream = TextCollector::from_socket(open_api_stream(&service, &path, None).await);
    early_stream.wait_for_text("err 1").await;
    service.setup.open_gate("go-1");
    early_stream.wait_for_text("err 2").await;
    let body = json_rpc_request_body("tasks/resubscribe", &json!({"id": id}));
    let mut late_stream =
        TextCollector::from_socket(open_stream(&service, "lines", "0.3", &body).await);
    let mut other_stream = TextCollector::from_socket(open_api_stream(&service, &path, None).await);
    late_stream.wait_for_text("out 2").await;
    other_stream.wait_for_text("err 2").await;
    service.setup.open_gate("go-2");
    let (late_text, other_text) =
        (late_stream.wait_for_end().await, other_stream.wait_for_end().await);
    // R-95: A follower that joins late, or returns after a kill of the service, receives each byte
    // once
    assert_eq!(
        assemble_artifact(&late_text),
        ("out 1\nout 2\nout 3\n".to_owned(), true),
        "{late_text}"
    );
    assert_eq!(channel_text(&other_text, "stdout"), "out 1\nout 2\nout 3\n");
    assert_eq!(channel_text(&other_text, "stderr"), "err 1\nerr 2\nerr 3\n");
}

/// Resumes after each position of the streams that were read before a kill. The text before and after is
/// together the whole, without a gap and without a byte twice.
#[tokio::test]
async fn a_stream_resumes_after_a_kill_of_the_service() {
    let mut service = ServiceProcess::start(&agents_config()).await;
    let id = service.start_task("lines", "hello").await;
    let path = format!("/api/v1/executions/{id}/events?text=stdout,stderr");
    let body = json_rpc_request_body("tasks/resubscribe", &json!({"id": id}));
    let mut api_stream = TextCollector::from_socket(open_api_stream(&service, &path, None).await);
    let mut a2a_stream =
        TextCollector::from_socket(open_stream(&service, "lines", "0.3", &body).await);
    api_stream.wait_for_text("err 1").await;
    service.setup.open_gate("go-1");
    api_stream.wait_for_text("err 2").await;
    api_stream.wait_for_text("out 2").await;
    a2a_stream.wait_for_text("out 2").await;
    service.kill9().await;
    service.start_again().await;

    let api_text_before = api_stream.text();
    let (position, ..) = parse_events(&api_text_before).pop().unwrap();
    let mut api_stream =
        TextCollector::from_socket(open_api_stream(&service, &path, Some(&position)).await);
    let a2a_text_before = a2a_stream.text();
    let (position, ..) = parse_events(&a2a_text_before).pop().unwrap();
    let header = format!("Last-Event-ID: {position}");
    service.setup.open_gate("go-2");
    api_stream.wait_for_text("err 3").await;
    let params = json!({"id": id});
    let resubscribe_call = ("tasks/resubscribe", &params);
    let resumed_a2a_text =
        service.call_with_headers("lines", &[header.as_str()], resubscribe_call).await.body;
    assert!(
        !resumed_a2a_text.contains("out 1") && !resumed_a2a_text.contains("out 2"),
        "{resumed_a2a_text}"
    );
    let (artifact, has_last_chunk) =
        assemble_artifact(&format!("{a2a_text_before}\n{resumed_a2a_text}"));
    // R-95: A follower that joins late, or returns after a kill of the service, receives each byte
    // once
    assert_eq!(
        (artifact.as_str(), has_last_chunk),
        ("out 1\nout 2\nout 3\n", true),
        "{a2a_text_before}\n{resumed_a2a_text}"
    );
    let resumed_api_text = api_stream.wait_for_end().await;
    for (channel, expected) in
        [("stdout", "out 1\nout 2\nout 3\n"), ("stderr", "err 1\nerr 2\nerr 3\n")]
    {
        assert_eq!(
            channel_text(&format!("{api_text_before}\n{resumed_api_text}"), channel),
            expected,
            "{api_text_before}\n{resumed_api_text}"
        );
    }
}

#[tokio::test]
async fn a_retried_attempt_restarts_its_answer() {
    let agents = r#"
[agents.again]
command = "sh"
args = ["-c", '''
echo "attempt $ALGONIUS_ATTEMPT"
until [ -e "HERE/go-$ALGONIUS_ATTEMPT" ]; do sleep 0.01; done
[ "$ALGONIUS_ATTEMPT" = 1 ] && exit 75
echo done
''']
[agents.again.retry]
base = 0.01
"#;
    let service = ServiceProcess::start(agents).await;
    let body = json_rpc_request_body("message/stream", &message_params("hello"));
    let mut stream = TextCollector::from_socket(open_stream(&service, "again", "0.3", &body).await);
    stream.wait_for_text("attempt 1").await;
    service.setup.open_gate("go-1");
    stream.wait_for_text("attempt 2").await;
    service.setup.open_gate("go-2");
    let text = stream.wait_for_end().await;
    // R-96: The pieces of a stream together are the answer, also for a second attempt
    assert_eq!(assemble_artifact(&text), ("attempt 2\ndone\n".to_owned(), true), "{text}");
}

#[tokio::test]
async fn an_agent_may_withhold_output_until_the_end() {
    let config = format!(
        "[agents.lines]\nstream_output = false\n{LINES_AGENT}[agents.teller]\nstream_output = false\n{EVENTS_AGENT}"
    );
    for agent in ["lines", "teller"] {
        let service = ServiceProcess::start(&config).await;
        let body = json_rpc_request_body("message/stream", &message_params("hello"));
        let mut stream =
            TextCollector::from_socket(open_stream(&service, agent, "0.3", &body).await);
        stream.wait_for_text("working").await;
        let list = service.get("/api/v1/executions").await.json();
        let id = task_id(&list["executions"][0]);
        // The operator of the service sees all of the text in time.
        let path = format!("/api/v1/executions/{id}/events?text=stdout,stderr");
        let operator_stream =
            TextCollector::from_socket(open_api_stream(&service, &path, None).await);
        let mut operator_stream = operator_stream;
        operator_stream.wait_for_text("err 1").await;
        service.setup.open_gate("go-1");
        operator_stream.wait_for_text("err 2").await;
        assert!(!stream.text().contains("artifact-update"), "{}", stream.text());
        service.setup.open_gate("go-2");
        let text = stream.wait_for_end().await;
        assert_eq!(assemble_artifact(&text), ("out 1\nout 2\nout 3\n".to_owned(), true), "{text}");
    }
}

/// The bytes of standard output that the ledger has.
async fn stored_stdout_byte_count(service: &ServiceProcess, id: &str) -> u64 {
    let stdout_page =
        service.get(&format!("/api/v1/executions/{id}/text?channel=stdout")).await.json();
    stdout_page["bytes"].as_u64().unwrap()
}

#[tokio::test]
async fn without_followers_no_output_is_written_early() {
    let setup = Setup::new(&format!(
        "[agents.lines]\n{}",
        LINES_AGENT.replace("gate go-1", "touch HERE/printed; gate go-1")
            + "sandbox.writable = ['HERE']\n"
    ));
    let service = setup.start().await;
    let id = service.start_task("lines", "hello").await;
    service.setup.wait_for_file_text("printed", "").await;
    // Printed is not read: a follower makes sure that it is.
    let path = format!("/api/v1/executions/{id}/events?text=stdout");
    // R-97: Without followers, the service writes no output early
    assert_eq!(stored_stdout_byte_count(&service, &id).await, 0);
    let mut follower = TextCollector::from_socket(open_api_stream(&service, &path, None).await);
    follower.wait_for_text("out 1").await;
    assert_eq!(stored_stdout_byte_count(&service, &id).await, "out 1\n".len() as u64);
    drop(follower);
    let has_no_followers = async || {
        let status = service.fetch_agent_status("lines").await;
        status["running"][0]["followers"].is_null().then_some(())
    };
    poll_until("nobody follows", has_no_followers).await;
    service.setup.open_gate("go-1");
    // The program continues without a follower: its output waits for more, or for the end.
    let other_id = service.start_task("lines", "hello").await;
    let path = format!("/api/v1/executions/{other_id}/events?text=stdout");
    let mut follower = TextCollector::from_socket(open_api_stream(&service, &path, None).await);
    follower.wait_for_text("out 2").await;
    assert_eq!(stored_stdout_byte_count(&service, &id).await, "out 1\n".len() as u64);
    service.setup.open_gate("go-2");
    service.wait_for_task_end("lines", &id).await;
    assert_eq!(stored_stdout_byte_count(&service, &id).await, "out 1\nout 2\nout 3\n".len() as u64);
}
