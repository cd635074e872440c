//! Questions on the A2A task of an interactive agent, and answers in messages.

use super::*;
use crate::harness::client::{task_id, task_state};
use crate::streams::{open_stream, read_until_text_or_end};

/// Extensions that publish the questions of a task.
const INTERACTIONS_EXTENSION: &str = "https://algonius.dev/a2a/ext/interactions/v1";
const KAGENT_EXTENSION: &str = "https://kagent.dev/extensions/hitl/v1";

/// Sends a message with metadata to a task, and returns the task.
async fn send_with_metadata(
    service: &ServiceProcess,
    id: &str,
    text: &str,
    metadata: &Value,
) -> Value {
    service.expect_result("coder", "message/send", &reply_params(id, text, metadata)).await
}

fn reply_params(id: &str, text: &str, metadata: &Value) -> Value {
    let mut params = message_params(text);
    params["message"]["taskId"] = json!(id);
    params["message"]["metadata"] = metadata.clone();
    params
}

/// Starts a turn that asks for a tool call, and returns its task while the question is open.
async fn start_paused_turn(service: &ServiceProcess) -> Value {
    let task = service.send("coder", TOOL_PROMPT).await;
    assert_eq!(task_state(&task), "input-required", "{task}");
    task
}

#[tokio::test]
async fn an_open_question_is_published_and_answered_by_a_word() {
    for protocol in PROTOCOLS {
        let service = start_service(&interactive_agent_config("coder", protocol, "")).await;
        let task = start_paused_turn(&service).await;
        let card =
            service.expect_result("coder", "agent/getAuthenticatedExtendedCard", &json!({})).await;
        let offered_extensions = card["capabilities"]["extensions"].to_string();
        assert!(
            offered_extensions.contains(INTERACTIONS_EXTENSION)
                && offered_extensions.contains(KAGENT_EXTENSION),
            "{card}"
        );
        let message = &task["status"]["message"];
        assert!(message["parts"][0]["text"].as_str().unwrap().contains("make test"), "{message}");
        assert_eq!(
            message["extensions"],
            json!([INTERACTIONS_EXTENSION, KAGENT_EXTENSION]),
            "{message}"
        );
        let published_question = &message["metadata"][INTERACTIONS_EXTENSION]["interactions"][0];
        let question = wait_for_question(&service, &task_id(&task)).await;
        assert_eq!(
            (&published_question["id"], &published_question["digest"]),
            (&question["id"], &question["question"]["digest"])
        );
        let refused = service.expect_refusal(
            "coder",
            "message/send",
            reply_params(&task_id(&task), "hm", &json!({})),
        );
        assert_eq!(refused.await.1, "answer-invalid", "{protocol}");
        // A part that no answer contains is not dropped.
        for part in [
            json!({"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain"}}),
            json!({"kind": "data", "data": {"note": 1}}),
        ] {
            let mut params = reply_params(&task_id(&task), "yes", &json!({}));
            params["message"]["parts"].as_array_mut().unwrap().push(part);
            let refused = service.expect_refusal("coder", "message/send", params).await;
            assert_eq!(refused.1, "answer-invalid", "{protocol}");
        }
        let ended = send_with_metadata(&service, &task_id(&task), "Yes", &json!({})).await;
        assert_eq!(task_outcome(&ended), completed_outcome("done"), "{protocol}: {ended}");
        assert_eq!(tool_call_count(&service), 1, "{protocol}");
        let closed_by = &fetch_interaction(&service, &question).await["closed"]["by"];
        assert_eq!(
            (&closed_by["name"], &closed_by["channel"]),
            (&json!("operator"), &json!("a2a")),
            "{closed_by}"
        );
    }
}

#[tokio::test]
async fn a_structured_answer_counts_once_in_each_form() {
    let service = start_service(&interactive_agent_config("coder", "acp", "")).await;
    for extension in [INTERACTIONS_EXTENSION, KAGENT_EXTENSION] {
        let task = start_paused_turn(&service).await;
        let question = wait_for_question(&service, &task_id(&task)).await;
        let verdict_metadata = |verdict: &str| match extension {
            INTERACTIONS_EXTENSION => {
                json!({INTERACTIONS_EXTENSION: {"answers": [{"id": question["id"], "verdict": verdict}]}})
            }
            _ => json!({KAGENT_EXTENSION: {"type": "tool_approval_response", "approvals": [
                {"id": question["id"], "approved": verdict == "allow"}
            ]}}),
        };
        let ended =
            send_with_metadata(&service, &task_id(&task), "", &verdict_metadata("deny")).await;
        assert_eq!(task_outcome(&ended), completed_outcome("done"), "{extension}: {ended}");
        // A client that missed the response repeats the message.
        let repeated_response =
            send_with_metadata(&service, &task_id(&task), "", &verdict_metadata("deny")).await;
        assert_eq!(task_id(&repeated_response), task_id(&ended), "{extension}");
        let contrary_refusal = service.expect_refusal(
            "coder",
            "message/send",
            reply_params(&task_id(&task), "", &verdict_metadata("allow")),
        );
        assert_eq!(contrary_refusal.await.1, "interaction-closed", "{extension}");
    }
    assert_eq!(tool_call_count(&service), 0);
}

#[tokio::test]
async fn a_repeated_message_answers_no_later_question() {
    let service = start_service(&interactive_agent_config("coder", "acp", "")).await;
    let prompt = "[[tool Bash kind=execute command=one]] [[tool Bash kind=execute command=two]] [[say done]]";
    let task = task_id(&service.send("coder", prompt).await);
    let yes_params = reply_params(&task, "yes", &json!({}));
    for _ in 0..2 {
        let paused_task = service.expect_result("coder", "message/send", &yes_params).await;
        assert_eq!(
            (task_state(&paused_task).as_str(), tool_call_count(&service)),
            ("input-required", 1),
            "{paused_task}"
        );
        let open_interactions = list_interactions(&service, &task, "open").await;
        assert_eq!(open_interactions[0]["question"]["tool"]["command"], "two");
    }
    let ended = send_with_metadata(&service, &task, "no", &json!({})).await;
    assert_eq!(
        (task_outcome(&ended), tool_call_count(&service)),
        (completed_outcome("done"), 1),
        "{ended}"
    );
}

#[tokio::test]
async fn a_word_never_answers_several_questions() {
    let service = start_service(&interactive_agent_config("coder", "acp", "")).await;
    let id = service.start_task("coder", "[[ask-twice one two]] [[say done]]").await;
    poll_until("two questions", async || {
        (list_interactions(&service, &id, "open").await.len() == 2).then_some(())
    })
    .await;
    let refused =
        service.expect_refusal("coder", "message/send", reply_params(&id, "yes", &json!({})));
    assert_eq!(refused.await.1, "answer-invalid");
    let open_interactions = list_interactions(&service, &id, "open").await;
    let denial = |question: &Value| json!({"id": question["id"], "approved": false});
    let approvals: Vec<_> = open_interactions.iter().map(denial).collect();
    let answers =
        json!({KAGENT_EXTENSION: {"type": "tool_approval_response", "approvals": approvals}});
    let ended = send_with_metadata(&service, &id, "", &answers).await;
    assert_eq!(task_outcome(&ended), completed_outcome("done"), "{ended}");
    assert!(list_interactions(&service, &id, "open").await.is_empty());
}

#[tokio::test]
async fn a_stream_ends_with_a_question_and_1_0_goes_past_it() {
    let service = start_service(&interactive_agent_config("coder", "acp", "")).await;
    let body = json_rpc_request_body("message/stream", &message_params(TOOL_PROMPT));
    let mut stream = open_stream(&service, "coder", "0.3", &body).await;
    let stream_text = read_until_text_or_end(&mut stream, "\"final\":true").await;
    let last_result = event_results(&stream_text).pop().unwrap();
    assert_eq!(last_result["status"]["state"], "input-required", "{last_result}");
    assert!(
        last_result["status"]["message"]["metadata"][INTERACTIONS_EXTENSION].is_object(),
        "{last_result}"
    );
    let task = last_result["taskId"].as_str().unwrap();
    let body = json_rpc_request_body("SubscribeToTask", &json!({"id": task}));
    let mut stream = open_stream(&service, "coder", "1.0", &body).await;
    let stream_text = read_until_text_or_end(&mut stream, "TASK_STATE_INPUT_REQUIRED").await;
    assert!(!stream_text.contains("statusUpdate"), "{stream_text}");
    send_with_metadata(&service, task, "yes", &json!({})).await;
    let stream_text = read_until_text_or_end(&mut stream, "TASK_STATE_COMPLETED").await;
    assert!(
        stream_text.contains("TASK_STATE_WORKING") && stream_text.contains("done"),
        "{stream_text}"
    );
}

/// Returns the results of the events in a stream.
fn event_results(stream_text: &str) -> Vec<Value> {
    let events = stream_text.lines().filter_map(|line| line.strip_prefix("data:"));
    events.map(|event| serde_json::from_str::<Value>(event).unwrap()["result"].clone()).collect()
}

#[tokio::test]
async fn an_answer_may_repeat_the_parameters_of_its_task() {
    let settings = "params.style = 'plain'\nparams.mail = 'none'\nargs = ['acp', '{{ param.style }}', '{{ param.mail }}']\n\
                    overrides.params = ['style', 'mail']\n";
    let agent =
        interactive_agent_config("coder", "acp", settings).replacen("args = ['acp']\n", "", 1);
    let service = start_service(&agent).await;
    let parameters_metadata = |style: &str| {
        let params = json!({"style": style, "mail": "jane.doe@mail.example"});
        json!({ "https://algonius.dev/a2a/ext/parameters/v1": params })
    };
    let mut params = message_params(TOOL_PROMPT);
    params["message"]["metadata"] = parameters_metadata("fine");
    let task = service.expect_result("coder", "message/send", &params).await;
    assert_eq!(task_state(&task), "input-required", "{task}");
    let id = task_id(&task);
    let other_params = reply_params(&id, "yes", &parameters_metadata("other"));
    let (_, code) = service.expect_refusal("coder", "message/send", other_params).await;
    assert_eq!(code, "answer-invalid");
    // The record has the address redacted, which makes it no other parameter.
    let task = send_with_metadata(&service, &id, "yes", &parameters_metadata("fine")).await;
    assert_eq!(task_state(&task), "completed", "{task}");
}
