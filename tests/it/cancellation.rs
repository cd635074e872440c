//! Calling off: wherever an execution is, by whom it may be, and by nobody else.

use serde_json::{Value, json};

use crate::harness::client::{task_id, task_outcome, task_state};
use crate::harness::processes::pids_with_env;
use crate::harness::{ServiceProcess, Setup, gated_agent_config, message_params, within_deadline};

fn canceled_outcome() -> (String, String) {
    ("canceled".to_owned(), "execution-cancelled".to_owned())
}

#[tokio::test]
async fn a_running_task_is_cancelled_with_all_its_processes() {
    let service = ServiceProcess::start(&gated_agent_config("one", "")).await;
    let client = service.client.clone();
    let caller = tokio::spawn(async move { client.send("one", "ann").await });
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let list = service.get("/api/v1/executions").await.json();
    let id = list["executions"][0]["id"].as_str().unwrap();
    assert!(!pids_with_env(&format!("ALGONIUS_EXECUTION_ID={id}")).is_empty());
    assert_eq!(task_outcome(&service.cancel("one", id).await), canceled_outcome());
    assert_eq!(
        task_outcome(&within_deadline("the caller's answer", caller).await.unwrap()),
        canceled_outcome()
    );
    assert!(pids_with_env(&format!("ALGONIUS_EXECUTION_ID={id}")).is_empty());
    assert_eq!(service.setup.read_file("log"), "start ann\n");
}

#[tokio::test]
async fn a_queued_task_is_cancelled_and_never_runs() {
    let service = ServiceProcess::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let running_id = service.start_task("one", "ann").await;
    let cancelled_id = service.start_task("one", "bob").await;
    let last_id = service.start_task("one", "cid").await;
    assert_eq!(task_outcome(&service.cancel("one", &cancelled_id).await), canceled_outcome());
    service.setup.open_gate("go");
    service.wait_for_task_end("one", &running_id).await;
    service.wait_for_task_end("one", &last_id).await;
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\nstart cid\nend cid\n");
}

#[tokio::test]
async fn ended_and_unknown_tasks_cannot_be_cancelled() {
    let service = ServiceProcess::start(&gated_agent_config("one", "")).await;
    let id = service.start_task("one", "ann").await;
    service.cancel("one", &id).await;
    for (id, refusal) in [
        (id.as_str(), (-32002, "execution-ended")),
        ("018f0000-0000-7000-8000-000000000000", (-32001, "execution-unknown")),
        ("no id at all", (-32001, "execution-unknown")),
    ] {
        let (number, code) = service.expect_refusal("one", "tasks/cancel", json!({"id": id})).await;
        assert_eq!((number, code.as_str()), refusal, "{id}");
    }
    let response = service.post(&format!("/api/v1/executions/{id}/cancel"), "{}").await;
    assert_eq!((response.status, &response.json()["code"]), (409, &json!("execution-ended")));
}

/// What is somebody else's, or another agent's, looks like what never was: byte for byte.
#[tokio::test]
async fn tasks_of_other_callers_and_agents_are_unknown() {
    let (ann_token, bob_token) = ("a".repeat(40), "b".repeat(40));
    let agents = [gated_agent_config("one", ""), gated_agent_config("two", "")].concat();
    let tokens = "[tokens.ann]\ntoken_env = 'ANN'\n[tokens.bob]\ntoken_env = 'BOB'\n";
    let setup = Setup::new(&(agents + tokens)).env("ANN", &ann_token).env("BOB", &bob_token);
    let service = setup.start().await;
    let (ann, bob) = (service.client_with_token(&ann_token), service.client_with_token(&bob_token));
    let id = task_id(&ann.submit("one", message_params("ann")).await);
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let unknown_id = "018f0000-0000-7000-8000-000000000000";
    for method in ["tasks/get", "tasks/cancel"] {
        let existing_task_response = bob.call("one", method, &json!({"id": id})).await;
        let unknown_response = bob.call("one", method, &json!({"id": unknown_id})).await;
        assert_eq!(existing_task_response.json()["error"]["code"], -32001);
        assert_eq!(
            (existing_task_response.status, &existing_task_response.body),
            (unknown_response.status, &unknown_response.body),
            "{method}"
        );
        let other_agent_response = ann.call("two", method, &json!({"id": id})).await;
        assert_eq!(
            (other_agent_response.status, &other_agent_response.body),
            (unknown_response.status, &unknown_response.body)
        );
    }
    let mut continued_params = message_params("more");
    continued_params["message"]["taskId"] = json!(id);
    let refused = bob.expect_refusal("one", "message/send", continued_params).await;
    assert_eq!(refused.0, -32001);
    let path = format!("/api/v1/executions/{id}");
    let unknown_response = bob.get(&format!("/api/v1/executions/{unknown_id}")).await;
    let existing_task_response = bob.get(&path).await;
    assert_eq!(
        (existing_task_response.status, existing_task_response.json()["code"].clone()),
        (404, json!("execution-unknown"))
    );
    assert_eq!(
        existing_task_response.body.replace(&id, ""),
        unknown_response.body.replace("018f0000-0000-7000-8000-000000000000", "")
    );
    assert_eq!(bob.post(&format!("{path}/cancel"), "{}").await.status, 404);
    assert_eq!(bob.get("/api/v1/executions").await.json()["executions"], json!([]));
    assert_eq!(task_state(&ann.fetch_task("one", &id).await), "working");
    assert_eq!(service.get(&path).await.json()["owner"].as_str().map(str::is_empty), Some(false));
    assert_eq!(service.cancel("one", &id).await["status"]["state"], Value::from("canceled"));
}
