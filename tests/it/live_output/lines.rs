//! Every way to follow: each line is received before the program prints the next.

use serde_json::{Value, json};

use super::{
    TextCollector, agents_config, assemble_artifact, channel_text, open_api_stream,
    open_rest_message_stream, parse_events, receive_lines_and_open_gates,
};
use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::{ServiceProcess, json_rpc_request_body, message_params};
use crate::streams::open_stream;

#[tokio::test]
async fn each_line_is_streamed_at_once_over_json_rpc() {
    for (agent, version, method) in [
        ("lines", "0.3", "message/stream"),
        ("lines", "1.0", "SendStreamingMessage"),
        ("teller", "0.3", "message/stream"),
        ("writer", "0.3", "message/stream"),
        ("writer", "1.0", "SendStreamingMessage"),
    ] {
        let service = ServiceProcess::start(&agents_config()).await;
        let mut params = message_params("hello");
        if version == "1.0" {
            params = json!({"message": {"messageId": "m", "role": "ROLE_USER",
                "parts": [{"text": "hello"}]}});
        }
        let body = json_rpc_request_body(method, &params);
        let stream = TextCollector::from_socket(open_stream(&service, agent, version, &body).await);
        // R-93: A line reaches each follower before the program prints the next line, on every
        // transport
        let text =
            receive_lines_and_open_gates(&service, stream, &["out"]).await.wait_for_end().await;
        assert!(!text.contains("err 1"), "{agent} {version}: nobody asked for it\n{text}");
        let list = service.get("/api/v1/executions").await.json();
        let task = service.fetch_task(agent, &task_id(&list["executions"][0])).await;
        assert_eq!(task_outcome(&task), completed_outcome("out 1\nout 2\nout 3\n"));
        if version == "0.3" {
            assert_eq!(assemble_artifact(&text), (task_outcome(&task).1, true), "{text}");
        }
    }
}

#[tokio::test]
async fn each_line_is_streamed_at_once_over_http() {
    for (agent, version) in
        [("lines", "0.3"), ("lines", "1.0"), ("teller", "1.0"), ("writer", "1.0")]
    {
        let service = ServiceProcess::start(&agents_config()).await;
        let stream =
            TextCollector::from_socket(open_rest_message_stream(&service, agent, version).await);
        // R-93: A line reaches each follower before the program prints the next line, on every
        // transport
        let text = receive_lines_and_open_gates(&service, stream, &["out", "err"])
            .await
            .wait_for_end()
            .await;
        let has_stderr = |document: &&Value| {
            !document.pointer("/statusUpdate/metadata/stderr").unwrap_or(&Value::Null).is_null()
        };
        let documents: Vec<_> =
            parse_events(&text).into_iter().map(|(.., document)| document).collect();
        assert!(
            documents.iter().any(|document| has_stderr(&document)),
            "{agent} {version}: {text}"
        );
    }
}

#[tokio::test]
async fn each_line_is_streamed_at_once_by_the_event_api() {
    for agent in ["lines", "teller"] {
        let service = ServiceProcess::start(&agents_config()).await;
        let id = service.start_task(agent, "hello").await;
        let path = format!("/api/v1/executions/{id}/events?text=stdout,stderr");
        let stream = TextCollector::from_socket(open_api_stream(&service, &path, None).await);
        // R-93: A line reaches each follower before the program prints the next line, on every
        // transport
        let text = receive_lines_and_open_gates(&service, stream, &["out", "err"])
            .await
            .wait_for_end()
            .await;
        assert_eq!(channel_text(&text, "stderr"), "err 1\nerr 2\nerr 3\n");
        assert_eq!(channel_text(&text, "stdout").lines().count(), 3);
        let names: Vec<_> = parse_events(&text).into_iter().map(|(_, name, _)| name).collect();
        assert_eq!(names.last().map(String::as_str), Some("rest"));
        assert_eq!(names.first().map(String::as_str), Some("event"));
    }
}

#[tokio::test]
async fn each_line_is_streamed_at_once_on_the_command_line() {
    for agent in ["lines", "teller", "writer"] {
        let service = ServiceProcess::start(&agents_config()).await;
        let send_output =
            TextCollector::from_command(&service, &["send", "--stderr", agent, "hello"]);
        // R-93: A line reaches each follower before the program prints the next line, on every
        // transport
        receive_lines_and_open_gates(&service, send_output, &["out", "err"])
            .await
            .wait_for_end()
            .await;

        let service = ServiceProcess::start(&agents_config()).await;
        let id = service.start_task(agent, "hello").await;
        let watch_output = TextCollector::from_command(&service, &["tasks", "watch", &id]);
        receive_lines_and_open_gates(&service, watch_output, &["out", "err"])
            .await
            .wait_for_end()
            .await;

        let service = ServiceProcess::start(&agents_config()).await;
        let logs_output = TextCollector::from_command(&service, &["logs", "-f"]);
        service.start_task(agent, "hello").await;
        receive_lines_and_open_gates(&service, logs_output, &["out", "err"]).await;
    }
}

#[tokio::test]
async fn message_deltas_are_in_the_event_stream_of_the_api() {
    let service = ServiceProcess::start(&agents_config()).await;
    let id = service.start_task("writer", "hello").await;
    let path = format!("/api/v1/executions/{id}/events?text=answer,stdout");
    let stream = TextCollector::from_socket(open_api_stream(&service, &path, None).await);
    let text = receive_lines_and_open_gates(&service, stream, &["out"]).await.wait_for_end().await;
    assert_eq!(channel_text(&text, "answer"), "let me look\nout 1\nout 2\nout 3\n");
    assert!(!channel_text(&text, "stdout").contains("stream_event"), "{text}");
}

#[tokio::test]
async fn a_late_follower_gets_the_complete_answer_only() {
    let service = ServiceProcess::start(&agents_config()).await;
    let id = service.start_task("writer", "hello").await;
    let path = format!("/api/v1/executions/{id}/events?text=answer");
    let mut early_stream = TextCollector::from_socket(open_api_stream(&service, &path, None).await);
    early_stream.wait_for_text("out 1").await;
    service.setup.open_gate("go-1");
    early_stream.wait_for_text("out 2").await;
    let body = json_rpc_request_body("tasks/resubscribe", &json!({"id": id}));
    let mut late_stream =
        TextCollector::from_socket(open_stream(&service, "writer", "0.3", &body).await);
    late_stream.wait_for_text("out 2").await;
    service.setup.open_gate("go-2");
    let text = late_stream.wait_for_end().await;
    assert_eq!(assemble_artifact(&text), ("out 1\nout 2\nout 3\n".to_owned(), true), "{text}");
    assert!(!text.contains(r#""text":"let me look\nout"#), "{text}");
}

#[tokio::test]
async fn send_prints_each_byte_of_the_answer_once() {
    let service = ServiceProcess::start(&agents_config()).await;
    for gate in ["go-1", "go-2"] {
        service.setup.open_gate(gate);
    }
    let output = service.run_command(&["send", "lines", "hello"], "").await;
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out 1\nout 2\nout 3\n", ""));
}

#[tokio::test]
async fn a_prompt_without_a_line_end_is_visible() {
    let agents = r#"
[agents.asks]
command = "sh"
interactive_prompts = []
args = ["-c", '''
printf 'What is your name? '
until [ -e HERE/go ]; do sleep 0.01; done
echo 'Ann'
''']
[agents.tells]
command = "sh"
output = "events"
args = ["-c", '''
printf '{"type":"text","text":"What is your name? "}\n'
printf '{"type":"artifact","id":"a","text":"half a ","last":false}\n'
until [ -e HERE/go ]; do sleep 0.01; done
printf '{"type":"artifact","id":"a","text":"line","append":true}\n'
printf '{"type":"text","text":"Ann"}\n'
''']
"#;
    for (agent, visible_texts) in
        [("asks", &["your name? "][..]), ("tells", &["your name? ", "half a "])]
    {
        let service = ServiceProcess::start(agents).await;
        let body = json_rpc_request_body("message/stream", &message_params("hello"));
        let mut stream =
            TextCollector::from_socket(open_stream(&service, agent, "0.3", &body).await);
        for words in visible_texts {
            // R-94: A follower sees a question without a line end while the program waits, and does
            // not see text that may become a secret
            stream.wait_for_text(words).await;
        }
        service.setup.open_gate("go");
        let text = stream.wait_for_end().await;
        assert!(text.contains("Ann"), "{text}");
    }
}

#[tokio::test]
async fn a_possible_secret_is_held_back_without_a_time_limit() {
    let agents = r#"
[agents.slow]
command = "sh"
interactive_prompts = []
args = ["-c", '''
printf 'log in with password: '
printf 'begun' >&2
until [ -e HERE/go-1 ]; do sleep 0.01; done
printf 'hunter2'
printf ' and on' >&2
until [ -e HERE/go-2 ]; do sleep 0.01; done
echo 'hunter2 now'
echo ' and over' >&2
''']
"#;
    let service = ServiceProcess::start(agents).await;
    let id = service.start_task("slow", "hello").await;
    let path = format!("/api/v1/executions/{id}/events?text=stdout,stderr");
    let mut stream = TextCollector::from_socket(open_api_stream(&service, &path, None).await);
    stream.wait_for_text("log in with ").await;
    service.setup.open_gate("go-1");
    // Standard error has advanced, so standard output has too, and its word was ready to be released.
    stream.wait_for_text(" and ").await;
    // R-94: A follower sees a question without a line end while the program waits, and does not see
    // text that may become a secret
    assert!(!stream.text().contains("hunter"), "{}", stream.text());
    service.setup.open_gate("go-2");
    let text = stream.wait_for_end().await;
    assert!(!text.contains("hunter"), "{text}");
    assert_eq!(channel_text(&text, "stdout"), "log in with password: *** now\n");
}
