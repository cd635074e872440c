//! Who runs when: read-write agents one at a time and in order, read-only agents side by side.

use serde_json::json;

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{
    ServiceProcess, gated_agent_config, message_params, poll_until, within_deadline,
};

const READ_WRITE_ACCESS: &str = "access = 'read-write'";

#[tokio::test]
async fn a_read_write_agent_runs_one_task_at_a_time_in_order() {
    let service = ServiceProcess::start(&gated_agent_config("one", READ_WRITE_ACCESS)).await;
    let mut ids = Vec::new();
    for word in ["ann", "bob", "cid", "dan"] {
        ids.push((word, service.start_task("one", word).await));
    }
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.setup.open_gate("go");
    for (word, id) in &ids {
        let answer = format!("{word}\n");
        assert_eq!(
            task_outcome(&service.wait_for_task_end("one", id).await),
            completed_outcome(&answer)
        );
    }
    let log = ids.iter().map(|(word, _)| format!("start {word}\nend {word}\n"));
    // A read-write agent runs one execution at a time, in the order of arrival
    assert_eq!(service.setup.read_file("log"), log.collect::<String>());
}

#[tokio::test]
async fn a_read_only_agent_runs_up_to_its_limit_in_parallel() {
    let service = ServiceProcess::start(&gated_agent_config("many", "max_concurrent = 2")).await;
    let mut ids = Vec::new();
    for word in ["ann", "bob", "cid"] {
        ids.push(service.start_task("many", word).await);
    }
    poll_until("two at once", async || {
        (service.setup.read_file("log").lines().count() == 2).then_some(())
    })
    .await;
    assert!(!service.setup.read_file("log").contains("cid"));
    let agent = service.fetch_agent_status("many").await;
    assert_eq!(
        (&agent["queued"][0]["id"], &agent["queued"][0]["position"]),
        (&json!(ids[2]), &json!(1))
    );
    service.setup.open_gate("go-bob");
    poll_until("the third", async || {
        service.setup.read_file("log").contains("start cid").then_some(())
    })
    .await;
    assert!(!service.setup.read_file("log").contains("end ann"));
    service.setup.open_gate("go");
    for id in &ids {
        service.wait_for_task_end("many", id).await;
    }
}

#[tokio::test]
async fn agents_are_read_only_with_ten_slots_by_default() {
    let service = ServiceProcess::start(&gated_agent_config("many", "queue_depth = 1")).await;
    for number in 0..11 {
        service.start_task("many", &format!("w{number}")).await;
    }
    let agent = service.fetch_agent_status("many").await;
    let count = |name: &str| agent[name].as_array().map(Vec::len);
    assert_eq!((count("running"), count("queued")), (Some(10), Some(1)));
    let refused =
        service.expect_refusal("many", "message/send", message_params("one too many")).await;
    assert_eq!(refused, (-32050, "queue-full".to_owned()));
}

#[tokio::test]
async fn a_full_queue_answers_503_with_retry_after() {
    let service = ServiceProcess::start(&gated_agent_config(
        "one",
        &format!("{READ_WRITE_ACCESS}\nqueue_depth = 1"),
    ))
    .await;
    service.start_task("one", "ann").await;
    service.start_task("one", "bob").await;
    let answer = service.call("one", "message/send", &message_params("cid")).await;
    assert_eq!(answer.status, 503);
    assert!(answer.header("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok()));
    let document = answer.json();
    assert_eq!((&document["id"], &document["error"]["code"]), (&json!(7), &json!(-32050)));
    assert_eq!(document["error"]["data"][0]["metadata"]["category"], "transient");
    let list = service.get("/api/v1/executions").await.json();
    assert_eq!(list["executions"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_default_queue_depth_is_ten() {
    let service = ServiceProcess::start(&gated_agent_config("one", READ_WRITE_ACCESS)).await;
    for number in 0..11 {
        service.start_task("one", &format!("w{number}")).await;
    }
    let refused =
        service.expect_refusal("one", "message/send", message_params("the twelfth")).await;
    assert_eq!(refused, (-32050, "queue-full".to_owned()));
}

#[tokio::test]
async fn a_queue_timeout_answers_503_or_rejects_the_task() {
    let service = ServiceProcess::start(&gated_agent_config(
        "one",
        &format!("{READ_WRITE_ACCESS}\nqueue_timeout = 0.3"),
    ))
    .await;
    service.start_task("one", "ann").await;
    let queued_id = service.start_task("one", "bob").await;
    let response = service.call("one", "message/send", &message_params("cid")).await;
    assert_eq!((response.status, &response.json()["error"]["code"]), (503, &json!(-32051)));
    assert!(response.header("retry-after").is_some());
    let rejected = ("rejected".to_owned(), "queue-timeout".to_owned());
    assert_eq!(task_outcome(&service.wait_for_task_end("one", &queued_id).await), rejected);
    service.setup.open_gate("go");
    poll_until("a free slot", async || {
        (service.fetch_agent_status("one").await["running"] == json!([])).then_some(())
    })
    .await;
    assert_eq!(task_outcome(&service.send("one", "dan").await), completed_outcome("dan\n"));
    assert!(!service.setup.read_file("log").contains("bob"));
}

#[tokio::test]
async fn a_disconnected_caller_does_not_end_its_task() {
    let service = ServiceProcess::start(&gated_agent_config("one", READ_WRITE_ACCESS)).await;
    let client = service.client.clone();
    let caller = tokio::spawn(async move { client.send("one", "ann").await });
    service.setup.wait_for_file_text("log", "start ann\n").await;
    caller.abort();
    assert!(within_deadline("the end of the caller", caller).await.is_err());
    service.setup.open_gate("go");
    service.setup.wait_for_file_text("log", "start ann\nend ann\n").await;
    let list = service.get("/api/v1/executions").await.json();
    let id = list["executions"][0]["id"].as_str().unwrap();
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", id).await),
        completed_outcome("ann\n")
    );
}
