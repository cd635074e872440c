//! Streams: events in order, taken up again where they were left.

use serde_json::{Value, json};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::client::{TestResponse, completed_outcome, task_id, task_outcome, task_state};
use crate::harness::{
    ServiceClient, ServiceProcess, gated_agent_config, json_rpc_request_body, message_params,
    within_deadline,
};

const CURSOR_EXTENSION_URI: &str = "https://algonius.dev/a2a/ext/event-cursor/v1";

/// Asks what its caller wants, and answers with what it is told.
const QUESTION_AGENT: &str = r#"
[agents.asking]
command = "sh"
args = ["-c", '''
read word
if [ "$word" = ask ]; then echo '{"type":"input_required","text":"what?"}'; exit 0; fi
printf '{"type":"text","text":"%s"}\n' "$word"
''']
output = "events"
"#;

/// A subscription of 1.0 that was just begun, to be read as far as wanted.
async fn subscribe(service: &ServiceProcess, id: &str) -> TcpStream {
    open_stream(
        service,
        "asking",
        "1.0",
        &json_rpc_request_body("SubscribeToTask", &json!({"id": id})),
    )
    .await
}

/// The stream that answers a call.
pub(crate) async fn open_stream(
    client: &ServiceClient,
    agent: &str,
    version: &str,
    body: &str,
) -> TcpStream {
    let mut stream = client.connect().await;
    let request = format!(
        "POST /agents/{agent}/v1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {}\r\nContent-Type: application/json\r\n\
         A2A-Version: {version}\r\nContent-Length: {}\r\n\r\n{body}",
        client.token,
        body.len()
    );
    within_deadline("writing", stream.write_all(request.as_bytes())).await.unwrap();
    stream
}

/// What comes up to a word, or to the end.
pub(crate) async fn read_until_text_or_end(stream: &mut TcpStream, word: &str) -> String {
    let mut text = String::new();
    let mut bytes = [0; 4096];
    while !text.contains(word) {
        let count = within_deadline(word, stream.read(&mut bytes)).await.unwrap();
        if count == 0 {
            break;
        }
        text += &String::from_utf8_lossy(&bytes[..count]);
    }
    text
}

/// The events of a stream: the position after each, and its document.
fn parse_events(answer: &TestResponse) -> Vec<(String, Value)> {
    assert_eq!(answer.header("content-type"), Some("text/event-stream"), "{answer:?}");
    let lines = answer.body.lines();
    let (mut position, mut events) = (String::new(), Vec::new());
    for line in lines {
        if let Some(text) = line.strip_prefix("id: ") {
            text.clone_into(&mut position);
        } else if let Some(text) = line.strip_prefix("data: ") {
            let document: Value = serde_json::from_str(text).unwrap();
            events.push((position.clone(), document["result"].clone()));
        }
    }
    events
}

/// The events that are no pieces of the answer.
fn events_without_artifacts(events: &[Value]) -> Vec<&Value> {
    events.iter().filter(|event| event["kind"] != "artifact-update").collect()
}

/// The answer, put together of its pieces.
fn answer_text(events: &[Value]) -> String {
    let mut answer = String::new();
    for event in events.iter().filter(|event| event["kind"] == "artifact-update") {
        if event["append"] != true {
            answer.clear();
        }
        answer += event["artifact"]["parts"][0]["text"].as_str().unwrap();
    }
    answer
}

#[tokio::test]
async fn a_stream_resumes_after_any_event_also_after_a_restart() {
    let mut service = ServiceProcess::start(&gated_agent_config("one", "")).await;
    service.setup.open_gate("go");
    let received_events =
        parse_events(&service.call("one", "message/stream", &message_params("ann")).await);
    let (_, task) = &received_events[0];
    let (task_params, last_event) =
        (json!({"id": task["id"]}), received_events.last().unwrap().1.clone());
    assert_eq!(
        (&last_event["kind"], &last_event["final"]),
        (&json!("status-update"), &json!(true))
    );
    service.send_sigterm();
    assert!(service.wait_for_exit().await.success());
    service.start_again().await;
    for (number, (position, _)) in received_events.iter().enumerate() {
        let header_line = format!("Last-Event-ID: {position}");
        let resubscribe_call = ("tasks/resubscribe", &task_params);
        let resume_response =
            service.call_with_headers("one", &[header_line.as_str()], resubscribe_call).await;
        let resumed_events: Vec<_> =
            parse_events(&resume_response).into_iter().map(|(_, event)| event).collect();
        // Who knows the end is told it once more, and nothing else.
        let next_index = (number + 1).min(received_events.len() - 1);
        let expected_events: Vec<_> =
            received_events[next_index..].iter().map(|(_, event)| event.clone()).collect();
        assert_eq!(
            events_without_artifacts(&resumed_events),
            events_without_artifacts(&expected_events),
            "after {position}"
        );
        // The answer may come in other pieces, and is the same.
        let events_before: Vec<_> =
            received_events[..=number].iter().map(|(_, event)| event.clone()).collect();
        assert_eq!(
            answer_text(&[events_before, resumed_events].concat()),
            "ann\n",
            "after {position}"
        );
    }
    let resubscribed_events =
        parse_events(&service.call("one", "tasks/resubscribe", &task_params).await);
    assert_eq!(task_outcome(&resubscribed_events[0].1), completed_outcome("ann\n"));
    assert_eq!(task_id(&resubscribed_events[0].1), task_params["id"]);
}

#[tokio::test]
async fn events_have_ids_for_users_of_the_extension() {
    let service = ServiceProcess::start(&gated_agent_config("one", "")).await;
    service.setup.open_gate("go");
    let card = service.get("/agents/one/.well-known/agent-card.json").await.json();
    let offered_extensions = card["capabilities"]["extensions"].as_array().unwrap();
    assert!(
        offered_extensions
            .iter()
            .any(|one| one["uri"] == CURSOR_EXTENSION_URI && one["required"] != true),
        "{card}"
    );

    for header in ["A2A-Extensions", "X-A2A-Extensions"] {
        let header_line = format!("{header}: urn:of-others, {CURSOR_EXTENSION_URI}");
        let params = message_params("ann");
        let stream_call = ("message/stream", &params);
        let answer = service.call_with_headers("one", &[header_line.as_str()], stream_call).await;
        assert_eq!(answer.header(&header.to_lowercase()), Some(CURSOR_EXTENSION_URI));
        for (position, event) in parse_events(&answer) {
            assert_eq!(event["metadata"][CURSOR_EXTENSION_URI], position, "{event}");
        }
    }
    let plain_response = service.call("one", "message/stream", &message_params("ann")).await;
    assert_eq!(plain_response.header("a2a-extensions"), None);
    assert!(!plain_response.body.contains(CURSOR_EXTENSION_URI));
}

#[tokio::test]
async fn a_1_0_subscription_continues_past_a_question() {
    let service = ServiceProcess::start(QUESTION_AGENT).await;
    let task = service.send("asking", "ask").await;
    assert_eq!(task_state(&task), "input-required");
    let mut stream = subscribe(&service, &task_id(&task)).await;
    let initial_text = read_until_text_or_end(&mut stream, "TASK_STATE_INPUT_REQUIRED").await;
    assert!(initial_text.contains("\"task\""), "{initial_text}");
    for (word, task_state) in
        [("ask", "TASK_STATE_INPUT_REQUIRED"), ("tea", "TASK_STATE_COMPLETED")]
    {
        let mut answer = message_params(word);
        answer["message"]["taskId"] = json!(task_id(&task));
        service.expect_result("asking", "message/send", &answer).await;
        let next_text = read_until_text_or_end(&mut stream, task_state).await;
        let working_index =
            next_text.find("TASK_STATE_WORKING").unwrap_or_else(|| panic!("{next_text}"));
        assert!(next_text.find(task_state).is_some_and(|at| at > working_index), "{next_text}");
        assert_eq!(next_text.contains("tea"), word == "tea", "{next_text}");
    }
    let remaining_events = read_until_text_or_end(&mut stream, "never").await;
    assert!(!remaining_events.contains("data:"), "{remaining_events}");
}

#[tokio::test]
async fn an_open_subscription_does_not_delay_the_stop() {
    let mut service = ServiceProcess::start(QUESTION_AGENT).await;
    let task = service.send("asking", "ask").await;
    let mut stream = subscribe(&service, &task_id(&task)).await;
    read_until_text_or_end(&mut stream, "TASK_STATE_INPUT_REQUIRED").await;
    service.send_sigterm();
    assert!(service.wait_for_exit().await.success());
    read_until_text_or_end(&mut stream, "never").await;
    service.start_again().await;
    let mut answer = message_params("tea");
    answer["message"]["taskId"] = json!(task_id(&task));
    let finished_task = service.expect_result("asking", "message/send", &answer).await;
    assert_eq!(task_outcome(&finished_task), completed_outcome("tea"));
}
