//! Contenders: the service, and servers of other projects, each in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use algonius_gauge::a2a_requests::{
    VERSION_1_0_HEADER, post_request, request_builder, sized_message_params_1_0,
};
use algonius_gauge::client::{BenchResponse, KeepAliveClient};
use algonius_gauge::load::{LoadRequest, unique_number};
use algonius_gauge::process::proportional_set_bytes;
use algonius_gauge::service::Service;
use algonius_gauge::spawn::plain_text;
use algonius_gauge::spawn_limit::find_program;
use serde_json::{Value, json};

use super::MESSAGE_BYTES;

/// Agent as in the other benches, with a queue.
const CAT_CONFIG: &str =
    "[agents.cat]\ncommand = \"cat\"\nmax_concurrent = 10\nqueue_depth = 1000\n";

/// Contender of the measurement. Dropping it ends its process.
pub(crate) struct Contender {
    /// Name of its components, with versions.
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) load_request: Rc<LoadRequest>,
    server: ContenderProcess,
}

enum ContenderProcess {
    Service(Service),
    Peer(Child),
}

impl Contender {
    /// Starts the service with this binary.
    pub(crate) async fn start_service(program: &str) -> Self {
        let service = Service::start(program, "", CAT_CONFIG).await;
        let request =
            service.build_request("POST /agents/cat/v1", VERSION_1_0_HEADER, &request_body());
        let name = "this service".to_owned();
        Self {
            name,
            address: service.address,
            load_request: echo_load_request(&request),
            server: ContenderProcess::Service(service),
        }
    }

    /// Starts a server of another project with this command.
    pub(crate) fn start_peer(command_line: &[String]) -> Self {
        let (program, arguments) = command_line.split_first().expect("a command after `--`");
        let mut command = Command::new(program);
        command
            .args(arguments)
            .arg(find_program("cat"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("a peer");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("its output");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let server = ContenderProcess::Peer(child);
        let (address, name) = line.trim().split_once(' ').expect("a peer that tells its address");
        let address = address.parse().expect("an address");
        let load_request =
            echo_load_request(&post_request("/", VERSION_1_0_HEADER, &request_body()));
        Self { name: name.to_owned(), address, load_request, server }
    }

    /// Returns the key of its runs with this many requests in flight.
    pub(crate) fn series_name(&self, in_flight: usize) -> String {
        format!("{} {in_flight}", self.name)
    }

    /// Returns the memory of its processes in bytes, with proportional shares of shared pages.
    pub(crate) fn memory_bytes(&self) -> f64 {
        match &self.server {
            ContenderProcess::Service(service) => {
                service.sum_over_processes(proportional_set_bytes)
            }
            ContenderProcess::Peer(child) => proportional_set_bytes(child.id()),
        }
    }

    /// Sends one request, and checks the whole answer.
    ///
    /// # Panics
    /// Panics if the answer is not a completed task with the sent text as its artifact.
    pub(crate) async fn verify(&self, bytes: usize) {
        let mut client = KeepAliveClient::connect(self.address).await;
        let answer = client.send_request(&(self.load_request.build)(unique_number())).await;
        let body: Value = serde_json::from_slice(answer.body).unwrap_or_default();
        let text_at = |path: &str| body.pointer(path).and_then(Value::as_str);
        let state = text_at("/result/task/status/state");
        let artifact_text = text_at("/result/task/artifacts/0/parts/0/text");
        let is_good = state == Some("TASK_STATE_COMPLETED")
            && artifact_text == Some(plain_text(bytes).as_str());
        assert!(is_good, "{} answered {} with {body}", self.name, answer.status);
    }
}

impl Drop for ContenderProcess {
    fn drop(&mut self) {
        if let Self::Peer(child) = self {
            _ = child.kill(); // The process may have ended.
            _ = child.wait();
        }
    }
}

fn request_body() -> String {
    let params = sized_message_params_1_0(MESSAGE_BYTES);
    json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}).to_string()
}

/// Each answer contains the sent text and the resulting artifact.
fn echo_load_request(request: &str) -> Rc<LoadRequest> {
    let is_good = |answer: &BenchResponse<'_>| {
        answer.is_ok_and_contains("\"TASK_STATE_COMPLETED\"")
            && answer.body.len() >= 2 * MESSAGE_BYTES
    };
    Rc::new(LoadRequest { build: request_builder(request), is_good: Box::new(is_good) })
}
