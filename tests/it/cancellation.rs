//! Calling off: wherever an execution is, by whom it may be, and by nobody else.

use serde_json::{Value, json};

use crate::harness::client::{task_id, task_outcome, task_state};
use crate::harness::processes::processes_with_env;
use crate::harness::{Service, Setup, gated_agent_config, message_params, within_deadline};

fn canceled_outcome() -> (String, String) {
    ("canceled".to_owned(), "execution-cancelled".to_owned())
}

#[tokio::test]
async fn a_running_task_is_cancelled_with_all_its_processes() {
    let service = Service::start(&gated_agent_config("one", "")).await;
    let client = service.client.clone();
    let caller = tokio::spawn(async move { client.send("one", "ann").await });
    service.setup.wait_for_text("log", "start ann\n").await;
    let list = service.get("/api/v1/executions").await.json();
    let id = list["executions"][0]["id"].as_str().unwrap();
    assert!(!processes_with_env(&format!("ALGONIUS_EXECUTION_ID={id}")).is_empty());
    assert_eq!(task_outcome(&service.cancel("one", id).await), canceled_outcome());
    assert_eq!(
        task_outcome(&within_deadline("the caller's answer", caller).await.unwrap()),
        canceled_outcome()
    );
    assert!(processes_with_env(&format!("ALGONIUS_EXECUTION_ID={id}")).is_empty());
    assert_eq!(service.setup.read("log"), "start ann\n");
}

#[tokio::test]
async fn a_queued_task_is_cancelled_and_never_runs() {
    let service = Service::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let first = service.start_task("one", "ann").await;
    let second = service.start_task("one", "bob").await;
    let third = service.start_task("one", "cid").await;
    assert_eq!(task_outcome(&service.cancel("one", &second).await), canceled_outcome());
    service.setup.open_gate("go");
    service.wait_for_end("one", &first).await;
    service.wait_for_end("one", &third).await;
    assert_eq!(service.setup.read("log"), "start ann\nend ann\nstart cid\nend cid\n");
}

#[tokio::test]
async fn ended_and_unknown_tasks_cannot_be_cancelled() {
    let service = Service::start(&gated_agent_config("one", "")).await;
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
    let task = task_id(&ann.submit("one", message_params("ann")).await);
    service.setup.wait_for_text("log", "start ann\n").await;
    let unknown_id = "018f0000-0000-7000-8000-000000000000";
    for method in ["tasks/get", "tasks/cancel"] {
        let known_response = bob.call("one", method, &json!({"id": task})).await;
        let unknown = bob.call("one", method, &json!({"id": unknown_id})).await;
        assert_eq!(known_response.json()["error"]["code"], -32001);
        assert_eq!(
            (known_response.status, &known_response.body),
            (unknown.status, &unknown.body),
            "{method}"
        );
        let other_agent = ann.call("two", method, &json!({"id": task})).await;
        assert_eq!((other_agent.status, &other_agent.body), (unknown.status, &unknown.body));
    }
    let mut continued = message_params("more");
    continued["message"]["taskId"] = json!(task);
    let refused = bob.expect_refusal("one", "message/send", continued).await;
    assert_eq!(refused.0, -32001);
    let path = format!("/api/v1/executions/{task}");
    let unknown = bob.get(&format!("/api/v1/executions/{unknown_id}")).await;
    let known_response = bob.get(&path).await;
    assert_eq!(
        (known_response.status, known_response.json()["code"].clone()),
        (404, json!("execution-unknown"))
    );
    assert_eq!(
        known_response.body.replace(&task, ""),
        unknown.body.replace("018f0000-0000-7000-8000-000000000000", "")
    );
    assert_eq!(bob.post(&format!("{path}/cancel"), "{}").await.status, 404);
    assert_eq!(bob.get("/api/v1/executions").await.json()["executions"], json!([]));
    assert_eq!(task_state(&ann.task("one", &task).await), "working");
    assert_eq!(service.get(&path).await.json()["owner"].as_str().map(str::is_empty), Some(false));
    assert_eq!(service.cancel("one", &task).await["status"]["state"], Value::from("canceled"));
}
