//! Agents of several services that call each other.

use std::net::TcpListener;

use serde_json::json;

use super::{REMOTE_AGENTS, remote_agent};
use crate::harness::client::{completed_with, failed_with, task_outcome};
use crate::harness::{Service, Setup, message_params, within_deadline};

/// Key of the metadata with the number of services that passed a message on.
const HOP_COUNT_KEY: &str = "https://algonius.dev/a2a/ext/hops/v1";
/// Greatest number of services that may pass a message on.
const MAX_HOPS: usize = 8;

/// Returns an address on this machine that nobody uses.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Returns one remote agent for each way, which anybody may call, and which call the agent of the same id at the
/// address.
fn open_remote_agents(address: &str) -> String {
    let agents = REMOTE_AGENTS.iter().map(|(id, version, binding, path)| {
        let url = format!("http://{address}/agents/{id}{path}");
        let settings = format!("version = '{version}'\nbinding = '{binding}'");
        remote_agent(id, &url, &settings).replace(
            "kind = 'remote'\n",
            "kind = 'remote'\nauth.type = 'none'\nauth.insecure = true\n",
        )
    });
    agents.collect()
}

/// Starts two services whose agents call each other.
async fn start_mutual_services() -> (Service, Service) {
    let (one_address, other) = (free_address(), free_address());
    let first = Setup::new(&open_remote_agents(&other)).listen_on(&one_address).start().await;
    let second = Setup::new(&open_remote_agents(&one_address)).listen_on(&other).start().await;
    (first, second)
}

async fn list_executions(service: &Service) -> Vec<serde_json::Value> {
    let list = service.get("/api/v1/executions?limit=100").await.json();
    list["executions"].as_array().unwrap().clone()
}

#[tokio::test]
async fn agents_that_call_each_other_end_with_a_typed_error() {
    let (one, other) = start_mutual_services().await;
    for (number, (id, ..)) in REMOTE_AGENTS.iter().enumerate() {
        let task = within_deadline("the answer", one.send(id, "hello")).await;
        assert_eq!(task_outcome(&task), failed_with("too-many-hops"), "{id}: {task}");
        // The first message and those with one to eight hops were accepted, and no one was tried again.
        let count = list_executions(&one).await.len() + list_executions(&other).await.len();
        assert_eq!(count, (number + 1) * (MAX_HOPS + 1), "{id}");
    }
    let all = [list_executions(&one).await, list_executions(&other).await].concat();
    for execution in all {
        assert_eq!(execution["error"]["code"], "too-many-hops", "{execution}");
    }
}

#[tokio::test]
async fn a_message_beyond_the_hop_limit_creates_no_execution() {
    let service = Service::start("[agents.echo]\ncommand = 'cat'\n").await;
    let params_with_hop_count = |count: usize| {
        let mut params = message_params("hello");
        params["message"]["metadata"][HOP_COUNT_KEY] = json!({"count": count});
        params
    };
    let task =
        service.expect_result("echo", "message/send", &params_with_hop_count(MAX_HOPS)).await;
    assert_eq!(task_outcome(&task), completed_with("hello"));
    let refused =
        service.expect_refusal("echo", "message/send", params_with_hop_count(MAX_HOPS + 1)).await;
    assert_eq!(refused, (-32068, "too-many-hops".to_owned()));
    assert_eq!(list_executions(&service).await.len(), 1);
}
