//! What can be seen of the living tree.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::harness::processes::{is_alive, pids_with_env};
use crate::harness::{ServiceProcess, fake_agent_config, gated_agent_config, poll_until};

fn parse_time(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_running_execution_shows_its_phase_pid_and_deadline() {
    let service = ServiceProcess::start(&gated_agent_config("one", "timeout = 100")).await;
    let id = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let status = service.get("/status").await.json();
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    for actor in ["root", "gateway"] {
        assert_eq!(
            (&status[actor]["health"], &status[actor]["restarts"]),
            (&json!("alive"), &json!(0))
        );
    }
    let agent = &status["agents"][0];
    assert_eq!((&agent["id"], &agent["health"]), (&json!("one"), &json!("alive")));
    let running_execution = &agent["running"][0];
    assert_eq!(
        (&running_execution["id"], &running_execution["state"]),
        (&json!(id), &json!("running"))
    );
    assert_eq!(running_execution["attemptId"], json!({"turn": 1, "attempt": 1}));
    let pid = i32::try_from(running_execution["pid"].as_i64().unwrap()).unwrap();
    assert!(is_alive(pid) && pids_with_env(&format!("ALGONIUS_EXECUTION_ID={id}")).contains(&pid));
    let remaining_time =
        parse_time(&running_execution["deadline"]) - parse_time(&running_execution["since"]);
    assert!((99..=100).contains(&remaining_time.num_seconds()), "{remaining_time}");
    assert!(parse_time(&running_execution["since"]) <= parse_time(&status["at"]));
}

#[tokio::test]
async fn the_queue_shows_positions_and_the_last_outcome() {
    let settings = "access = 'read-write'\nqueue_depth = 3\nqueue_timeout = 100";
    let service = ServiceProcess::start(&gated_agent_config("one", settings)).await;
    let mut ids = Vec::new();
    for word in ["ann", "bob", "cid"] {
        ids.push(json!(service.start_task("one", word).await));
    }
    let agent = service.fetch_agent_status("one").await;
    assert_eq!((&agent["capacity"], &agent["queueDepth"]), (&json!(1), &json!(3)));
    assert_eq!(agent["running"][0]["id"], ids[0]);
    let queued = agent["queued"].as_array().unwrap();
    let positions: Vec<_> = queued.iter().map(|one| (&one["position"], &one["id"])).collect();
    assert_eq!(positions, [(&json!(1), &ids[1]), (&json!(2), &ids[2])]);
    let remaining_time = parse_time(&queued[0]["deadline"]) - parse_time(&queued[0]["since"]);
    assert_eq!((remaining_time.num_seconds(), &agent["lastExecution"]), (100, &Value::Null));
    service.setup.open_gate("go");
    let agent = poll_until("the last", async || {
        let agent = service.fetch_agent_status("one").await;
        (agent["lastExecution"]["id"] == ids[2]).then_some(agent)
    })
    .await;
    assert_eq!(agent["lastExecution"]["outcome"], "completed");
    assert_eq!((&agent["running"], &agent["queued"]), (&json!([]), &json!([])));
}

#[tokio::test]
async fn one_agent_can_be_shown_alone() {
    let agents =
        [fake_agent_config("echo", "echo", "name = 'Echo'"), gated_agent_config("one", "")]
            .concat();
    let service = ServiceProcess::start(&agents).await;
    let detail = service.get("/status/agents/echo").await.json();
    assert_eq!(detail, service.fetch_agent_status("echo").await);
    assert_eq!(detail["name"], "Echo");
    let unknown_response = service.get("/status/agents/nobody").await;
    assert_eq!(
        (unknown_response.status, &unknown_response.json()["code"]),
        (404, &json!("agent-unknown"))
    );
}
