//! Agents of several services that call each other.

use std::net::TcpListener;

use serde_json::json;

use super::{REMOTE_AGENTS, remote};
use crate::harness::client::{completed, failed, outcome};
use crate::harness::{Service, Setup, message, within_deadline};

/// Key of the metadata with the number of services that passed a message on.
const HOPS: &str = "https://algonius.dev/a2a/ext/hops/v1";
/// Greatest number of services that may pass a message on.
const MAX_HOPS: usize = 8;

/// Returns an address on this machine that nobody uses.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Returns one remote agent for each way, which anybody may call, and which call the agent of the same id at the
/// address.
fn callers_of(address: &str) -> String {
    let agents = REMOTE_AGENTS.iter().map(|(id, version, binding, path)| {
        let url = format!("http://{address}/agents/{id}{path}");
        let settings = format!("version = '{version}'\nbinding = '{binding}'");
        remote(id, &url, &settings).replace(
            "kind = 'remote'\n",
            "kind = 'remote'\nauth.type = 'none'\nauth.insecure = true\n",
        )
    });
    agents.collect()
}

/// Starts two services whose agents call each other.
async fn start_circle() -> (Service, Service) {
    let (one, other) = (free_address(), free_address());
    let first = Setup::new(&callers_of(&other)).listening(&one).start().await;
    let second = Setup::new(&callers_of(&one)).listening(&other).start().await;
    (first, second)
}

async fn executions(service: &Service) -> Vec<serde_json::Value> {
    let list = service.get("/api/v1/executions?limit=100").await.json();
    list["executions"].as_array().unwrap().clone()
}

#[tokio::test]
async fn agents_that_call_each_other_end_with_a_typed_error() {
    let (one, other) = start_circle().await;
    for (number, (id, ..)) in REMOTE_AGENTS.iter().enumerate() {
        let task = within_deadline("the answer", one.send(id, "hello")).await;
        assert_eq!(outcome(&task), failed("too-many-hops"), "{id}: {task}");
        // The first message and those with one to eight hops were accepted, and no one was tried again.
        let count = executions(&one).await.len() + executions(&other).await.len();
        assert_eq!(count, (number + 1) * (MAX_HOPS + 1), "{id}");
    }
    let all = [executions(&one).await, executions(&other).await].concat();
    for execution in all {
        assert_eq!(execution["error"]["code"], "too-many-hops", "{execution}");
    }
}

#[tokio::test]
async fn a_message_beyond_the_hop_limit_creates_no_execution() {
    let service = Service::start("[agents.echo]\ncommand = 'cat'\n").await;
    let with_hops = |count: usize| {
        let mut params = message("hello");
        params["message"]["metadata"][HOPS] = json!({"count": count});
        params
    };
    let task = service.rpc("echo", "message/send", &with_hops(MAX_HOPS)).await;
    assert_eq!(outcome(&task), completed("hello"));
    let refused = service.refused("echo", "message/send", with_hops(MAX_HOPS + 1)).await;
    assert_eq!(refused, (-32068, "too-many-hops".to_owned()));
    assert_eq!(executions(&service).await.len(), 1);
}
