//! Who waits is told its place and why, in words and as data, for as long as it is true.

use serde_json::{Value, json};

use crate::harness::client::{task_id, task_state};
use crate::harness::{
    ServiceProcess, gated_agent_config, json_rpc_request_body, message_params, poll_until,
};
use crate::streams::{open_stream, read_until_text_or_end};

const WORKSPACE_SETTINGS: &str = "access = 'read-write'\nworking_dir = 'HERE/home'";

/// What is said about a task, and the data beside it.
fn status_content(status: &Value) -> (Option<String>, Value) {
    let message = &status["message"];
    let text = message.pointer("/parts/0/text").and_then(Value::as_str);
    (text.map(str::to_owned), message["metadata"].clone())
}

fn waiting_status(message_text: &str, position: usize, reason: &str) -> (Option<String>, Value) {
    (Some(message_text.to_owned()), json!({"position": position, "reason": reason}))
}

async fn wait_for_status(service: &ServiceProcess, agent: &str, id: &str, message_text: &str) {
    poll_until(message_text, async || {
        let task = service.fetch_task(agent, id).await;
        (status_content(&task["status"]).0.as_deref() == Some(message_text)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_queued_task_shows_its_current_position_and_reason() {
    let service = ServiceProcess::start(&gated_agent_config("one", WORKSPACE_SETTINGS)).await;
    let mut ids = Vec::new();
    for word in ["ann", "bob", "cid"] {
        ids.push(service.start_task("one", word).await);
    }
    let second_status = waiting_status("waiting: 2nd in line, the agent is busy", 2, "agent-busy");
    let task = service.fetch_task("one", &ids[2]).await;
    assert_eq!(
        (task_state(&task), status_content(&task["status"])),
        ("submitted".to_owned(), second_status.clone())
    );
    let query = json!({"id": ids[2]});
    let answer =
        service.call_with_headers("one", &["A2A-Version: 1.0"], ("GetTask", &query)).await.json();
    assert_eq!(status_content(&answer["result"]["status"]), second_status, "{answer}");
    let detail = service.fetch_execution(&ids[2]).await;
    let expected_queue =
        json!({"position": 2, "reason": "agent-busy", "message": second_status.0.clone().unwrap()});
    assert_eq!(detail["queue"], expected_queue);
    let list = service.get("/api/v1/executions?unfinished=true").await.json();
    assert_eq!(
        (&list["executions"][0]["queue"], list["executions"][2].get("queue")),
        (&expected_queue, None)
    );
    assert_eq!(service.fetch_agent_status("one").await["queued"][1]["reason"], "agent-busy");
    let event_count = detail["events"].as_array().unwrap().len();

    service.cancel("one", &ids[1]).await;
    let task = service.fetch_task("one", &ids[2]).await;
    let first_status = waiting_status("waiting: 1st in line, the agent is busy", 1, "agent-busy");
    assert_eq!(status_content(&task["status"]), first_status);
    assert!(
        service.run_command(&["tasks", "show", &ids[2]], "").await.stdout.contains("1st in line")
    );
    // A place is true now only: nothing of it is recorded.
    let detail = service.fetch_execution(&ids[2]).await;
    assert_eq!(detail["events"].as_array().unwrap().len(), event_count);
    service.setup.open_gate("go");
    let task = service.wait_for_task_end("one", &ids[2]).await;
    assert_eq!(status_content(&task["status"]), (None, Value::Null));
}

#[tokio::test]
async fn a_follower_of_a_queued_task_sees_every_position() {
    let service = ServiceProcess::start(&gated_agent_config("one", WORKSPACE_SETTINGS)).await;
    service.start_task("one", "ann").await;
    let ahead_id = service.start_task("one", "bob").await;
    let body = json_rpc_request_body("message/stream", &message_params("cid"));
    let mut stream = open_stream(&service, "one", "0.3", &body).await;
    let mut body = read_until_text_or_end(&mut stream, "2nd in line").await;
    service.cancel("one", &ahead_id).await;
    body += &read_until_text_or_end(&mut stream, "1st in line").await;
    service.setup.open_gate("go");
    body += &read_until_text_or_end(&mut stream, "the end").await;
    let documents = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let statuses: Vec<_> = documents
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["result"]["status"].clone())
        .filter(Value::is_object)
        .map(|status| (status["state"].as_str().unwrap().to_owned(), status_content(&status).0))
        .collect();
    let waiting_state = |words: &str| ("submitted".to_owned(), Some(words.to_owned()));
    let state_only = |state: &str| (state.to_owned(), None);
    assert_eq!(
        statuses,
        [
            waiting_state("waiting: 2nd in line, the agent is busy"),
            waiting_state("waiting: 1st in line, the agent is busy"),
            state_only("working"),
            state_only("completed"),
        ]
    );
}

#[tokio::test]
async fn a_wait_for_a_workspace_is_shown_without_its_path() {
    let agents =
        ["ann", "bob", "cid"].map(|id| gated_agent_config(id, WORKSPACE_SETTINGS)).concat();
    let service = ServiceProcess::start(&agents).await;
    service.start_task("ann", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.start_task("bob", "bob").await;
    service.wait_until_in_workspace_queue("bob").await;
    let last_id = task_id(&service.submit("cid", message_params("cid")).await);
    let message_text = "waiting: 2nd in line, the workspace is in use by another agent";
    wait_for_status(&service, "cid", &last_id, message_text).await;
    let task = service.fetch_task("cid", &last_id).await;
    assert_eq!(status_content(&task["status"]), waiting_status(message_text, 2, "workspace-busy"));
    let folder = service.setup.test_folder().display().to_string();
    let status = service.fetch_agent_status("cid").await;
    assert_eq!(status["running"][0]["queued"]["reason"], "workspace-busy");
    for document in [task, status, service.fetch_execution(&last_id).await] {
        assert!(!document.to_string().contains(&folder), "{document}");
    }
    service.setup.open_gate("go");
    service.wait_for_task_end("cid", &last_id).await;
}
