//! Agents of several services that call each other.

use std::net::TcpListener;

use serde_json::json;

use super::{REMOTE_AGENTS, remote_agent_config};
use crate::harness::client::{completed_outcome, failed_outcome, task_outcome};
use crate::harness::{ServiceProcess, Setup, message_params, within_deadline};

/// Key of the metadata with the number of services that passed a message on.
const HOP_COUNT_KEY: &str = "https://algonius.dev/a2a/ext/hops/v1";
/// Greatest number of services that may pass a message on.
const MAX_HOPS: usize = 8;

/// Returns an address on this machine that nobody uses.
fn unused_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Returns one remote agent for each way, which anybody may call, and which call the agent of the same id at the
/// address.
fn public_remote_agents_config(address: &str) -> String {
    let agents = REMOTE_AGENTS.iter().map(|(id, version, binding, path)| {
        let url = format!("http://{address}/agents/{id}{path}");
        let settings = format!("version = '{version}'\nbinding = '{binding}'");
        remote_agent_config(id, &url, &settings).replace(
            "kind = 'remote'\n",
            "kind = 'remote'\nauth.type = 'none'\nauth.insecure = true\n",
        )
    });
    agents.collect()
}

/// Starts two services whose agents call each other.
async fn start_mutual_services() -> (ServiceProcess, ServiceProcess) {
    let (one_address, other_address) = (unused_address(), unused_address());
    let first_service = Setup::new(&public_remote_agents_config(&other_address))
        .with_listen_address(&one_address)
        .start()
        .await;
    let second_service = Setup::new(&public_remote_agents_config(&one_address))
        .with_listen_address(&other_address)
        .start()
        .await;
    (first_service, second_service)
}

async fn list_executions(service: &ServiceProcess) -> Vec<serde_json::Value> {
    let list = service.get("/api/v1/executions?limit=100").await.json();
    list["executions"].as_array().unwrap().clone()
}

#[tokio::test]
async fn agents_that_call_each_other_end_with_a_typed_error() {
    let (one_service, other_service) = start_mutual_services().await;
    for (number, (id, ..)) in REMOTE_AGENTS.iter().enumerate() {
        let task = within_deadline("the answer", one_service.send(id, "hello")).await;
        assert_eq!(task_outcome(&task), failed_outcome("too-many-hops"), "{id}: {task}");
        // The first message and those with one to eight hops were accepted, and no one was tried again.
        let count =
            list_executions(&one_service).await.len() + list_executions(&other_service).await.len();
        assert_eq!(count, (number + 1) * (MAX_HOPS + 1), "{id}");
    }
    let all_executions =
        [list_executions(&one_service).await, list_executions(&other_service).await].concat();
    for execution in all_executions {
        assert_eq!(execution["error"]["code"], "too-many-hops", "{execution}");
    }
}

#[tokio::test]
async fn a_message_beyond_the_hop_limit_creates_no_execution() {
    let service = ServiceProcess::start("[agents.echo]\ncommand = 'cat'\n").await;
    let params_with_hop_count = |count: usize| {
        let mut params = message_params("hello");
        params["message"]["metadata"][HOP_COUNT_KEY] = json!({"count": count});
        params
    };
    let task =
        service.expect_result("echo", "message/send", &params_with_hop_count(MAX_HOPS)).await;
    assert_eq!(task_outcome(&task), completed_outcome("hello"));
    let refusal =
        service.expect_refusal("echo", "message/send", params_with_hop_count(MAX_HOPS + 1)).await;
    assert_eq!(refusal, (-32068, "too-many-hops".to_owned()));
    assert_eq!(list_executions(&service).await.len(), 1);
}
