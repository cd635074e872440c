//! Questions on the A2A task of an interactive agent, and answers in messages.

use super::*;
use crate::harness::client::{id, state};
use crate::streams::{open_stream, read_to};

/// Extensions that publish the questions of a task.
const INTERACTIONS_EXTENSION: &str = "https://algonius.dev/a2a/ext/interactions/v1";
const KAGENT_EXTENSION: &str = "https://kagent.dev/extensions/hitl/v1";

/// Sends a message with metadata to a task, and returns the task.
async fn send(service: &Service, task: &str, text: &str, metadata: &Value) -> Value {
    service.rpc("coder", "message/send", &reply(task, text, metadata)).await
}

fn reply(task: &str, text: &str, metadata: &Value) -> Value {
    let mut params = message(text);
    params["message"]["taskId"] = json!(task);
    params["message"]["metadata"] = metadata.clone();
    params
}

/// Starts a turn that asks for a tool call, and returns its task while the question is open.
async fn start_paused(service: &Service) -> Value {
    let task = service.send("coder", TOOL).await;
    assert_eq!(state(&task), "input-required", "{task}");
    task
}

#[tokio::test]
async fn an_open_question_is_published_and_answered_by_a_word() {
    for protocol in PROTOCOLS {
        let service = start_service(&agent("coder", protocol, "")).await;
        let task = start_paused(&service).await;
        let card = service.rpc("coder", "agent/getAuthenticatedExtendedCard", &json!({})).await;
        let offered = card["capabilities"]["extensions"].to_string();
        assert!(
            offered.contains(INTERACTIONS_EXTENSION) && offered.contains(KAGENT_EXTENSION),
            "{card}"
        );
        let message = &task["status"]["message"];
        assert!(message["parts"][0]["text"].as_str().unwrap().contains("make test"), "{message}");
        assert_eq!(
            message["extensions"],
            json!([INTERACTIONS_EXTENSION, KAGENT_EXTENSION]),
            "{message}"
        );
        let published = &message["metadata"][INTERACTIONS_EXTENSION]["interactions"][0];
        let question = wait_for_question(&service, &id(&task)).await;
        assert_eq!(
            (&published["id"], &published["digest"]),
            (&question["id"], &question["question"]["digest"])
        );
        let refused = service.refused("coder", "message/send", reply(&id(&task), "hm", &json!({})));
        assert_eq!(refused.await.1, "answer-invalid", "{protocol}");
        let ended = send(&service, &id(&task), "Yes", &json!({})).await;
        assert_eq!(outcome(&ended), completed("done"), "{protocol}: {ended}");
        assert_eq!(tool_call_count(&service), 1, "{protocol}");
        let by = &fetch_interaction(&service, &question).await["closed"]["by"];
        assert_eq!((&by["name"], &by["channel"]), (&json!("operator"), &json!("a2a")), "{by}");
    }
}

#[tokio::test]
async fn a_structured_answer_counts_once_in_each_form() {
    let service = start_service(&agent("coder", "acp", "")).await;
    for form in [INTERACTIONS_EXTENSION, KAGENT_EXTENSION] {
        let task = start_paused(&service).await;
        let question = wait_for_question(&service, &id(&task)).await;
        let answer = |verdict: &str| match form {
            INTERACTIONS_EXTENSION => {
                json!({INTERACTIONS_EXTENSION: {"answers": [{"id": question["id"], "verdict": verdict}]}})
            }
            _ => json!({KAGENT_EXTENSION: {"type": "tool_approval_response", "approvals": [
                {"id": question["id"], "approved": verdict == "allow"}
            ]}}),
        };
        let ended = send(&service, &id(&task), "", &answer("deny")).await;
        assert_eq!(outcome(&ended), completed("done"), "{form}: {ended}");
        // A client that missed the response repeats the message.
        let repeated = send(&service, &id(&task), "", &answer("deny")).await;
        assert_eq!(id(&repeated), id(&ended), "{form}");
        let other =
            service.refused("coder", "message/send", reply(&id(&task), "", &answer("allow")));
        assert_eq!(other.await.1, "interaction-closed", "{form}");
    }
    assert_eq!(tool_call_count(&service), 0);
}

#[tokio::test]
async fn a_repeated_message_answers_no_later_question() {
    let service = start_service(&agent("coder", "acp", "")).await;
    let prompt = "[[tool Bash kind=execute command=one]] [[tool Bash kind=execute command=two]] [[say done]]";
    let task = id(&service.send("coder", prompt).await);
    let yes = reply(&task, "yes", &json!({}));
    for _ in 0..2 {
        let paused = service.rpc("coder", "message/send", &yes).await;
        assert_eq!(
            (state(&paused).as_str(), tool_call_count(&service)),
            ("input-required", 1),
            "{paused}"
        );
        let open = interactions(&service, &task, "open").await;
        assert_eq!(open[0]["question"]["tool"]["command"], "two");
    }
    let ended = send(&service, &task, "no", &json!({})).await;
    assert_eq!((outcome(&ended), tool_call_count(&service)), (completed("done"), 1), "{ended}");
}

#[tokio::test]
async fn a_word_never_answers_several_questions() {
    let service = start_service(&agent("coder", "acp", "")).await;
    let task = service.begin("coder", "[[ask-twice one two]] [[say done]]").await;
    poll_until("two questions", async || {
        (interactions(&service, &task, "open").await.len() == 2).then_some(())
    })
    .await;
    let refused = service.refused("coder", "message/send", reply(&task, "yes", &json!({})));
    assert_eq!(refused.await.1, "answer-invalid");
    let open = interactions(&service, &task, "open").await;
    let denial = |question: &Value| json!({"id": question["id"], "approved": false});
    let approvals: Vec<_> = open.iter().map(denial).collect();
    let answers =
        json!({KAGENT_EXTENSION: {"type": "tool_approval_response", "approvals": approvals}});
    let ended = send(&service, &task, "", &answers).await;
    assert_eq!(outcome(&ended), completed("done"), "{ended}");
    assert!(interactions(&service, &task, "open").await.is_empty());
}

#[tokio::test]
async fn a_stream_ends_with_a_question_and_1_0_goes_past_it() {
    let service = start_service(&agent("coder", "acp", "")).await;
    let body = json_rpc_call("message/stream", &message(TOOL));
    let mut stream = open_stream(&service, "coder", "0.3", &body).await;
    let stream_text = read_to(&mut stream, "\"final\":true").await;
    let last = results(&stream_text).pop().unwrap();
    assert_eq!(last["status"]["state"], "input-required", "{last}");
    assert!(last["status"]["message"]["metadata"][INTERACTIONS_EXTENSION].is_object(), "{last}");
    let task = last["taskId"].as_str().unwrap();
    let body = json_rpc_call("SubscribeToTask", &json!({"id": task}));
    let mut stream = open_stream(&service, "coder", "1.0", &body).await;
    let stream_text = read_to(&mut stream, "TASK_STATE_INPUT_REQUIRED").await;
    assert!(!stream_text.contains("statusUpdate"), "{stream_text}");
    send(&service, task, "yes", &json!({})).await;
    let stream_text = read_to(&mut stream, "TASK_STATE_COMPLETED").await;
    assert!(
        stream_text.contains("TASK_STATE_WORKING") && stream_text.contains("done"),
        "{stream_text}"
    );
}

/// Returns the results of the events in a stream.
fn results(stream_text: &str) -> Vec<Value> {
    let events = stream_text.lines().filter_map(|line| line.strip_prefix("data:"));
    events.map(|event| serde_json::from_str::<Value>(event).unwrap()["result"].clone()).collect()
}
