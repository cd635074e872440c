//! Contenders: the service, and servers of other projects, each in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use algonius_gauge::ask::{VERSION_1_0, message_of_1_0, plain, stamped};
use algonius_gauge::client::{Answer, Client};
use algonius_gauge::limit::found;
use algonius_gauge::load::{Asked, number};
use algonius_gauge::process::share;
use algonius_gauge::service::Service;
use algonius_gauge::spawn::text;
use serde_json::{Value, json};

use super::BYTES;

/// Agent as in the other benches, with a queue.
const CAT: &str = "[agents.cat]\ncommand = \"cat\"\nmax_concurrent = 10\nqueue_depth = 1000\n";

/// Contender of the measurement. Dropping it ends its process.
pub(crate) struct Contender {
    /// Name of its components, with versions.
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) asked: Rc<Asked>,
    server: Server,
}

enum Server {
    Service(Service),
    Peer(Child),
}

impl Contender {
    /// Starts the service with this binary.
    pub(crate) async fn service(program: &str) -> Self {
        let service = Service::start(program, "", CAT).await;
        let request = service.request("POST /agents/cat/v1", VERSION_1_0, &call());
        let name = "this service".to_owned();
        Self {
            name,
            address: service.address,
            asked: asked(&request),
            server: Server::Service(service),
        }
    }

    /// Starts a server of another project with this command.
    pub(crate) fn peer(words: &[String]) -> Self {
        let (program, words) = words.split_first().expect("a command after `--`");
        let mut command = Command::new(program);
        command.args(words).arg(found("cat")).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a peer");
        let mut line = String::new();
        let said = child.stdout.as_mut().expect("its output");
        BufReader::new(said).read_line(&mut line).expect("a line");
        let server = Server::Peer(child);
        let (address, name) = line.trim().split_once(' ').expect("a peer that tells its address");
        let address = address.parse().expect("an address");
        let asked = asked(&plain("/", VERSION_1_0, &call()));
        Self { name: name.to_owned(), address, asked, server }
    }

    /// Returns the key of its runs with this many requests in flight.
    pub(crate) fn key(&self, in_flight: usize) -> String {
        format!("{} {in_flight}", self.name)
    }

    /// Returns the memory of its processes in bytes, with proportional shares of shared pages.
    pub(crate) fn memory(&self) -> f64 {
        match &self.server {
            Server::Service(service) => service.sum(share),
            Server::Peer(child) => share(child.id()),
        }
    }

    /// Sends one request, and checks the whole answer.
    ///
    /// # Panics
    /// Panics if the answer is not a completed task with the sent text as its artifact.
    pub(crate) async fn is_tried(&self, bytes: usize) {
        let mut client = Client::to(self.address).await;
        let answer = client.ask(&(self.asked.request)(number())).await;
        let said: Value = serde_json::from_slice(answer.body).unwrap_or_default();
        let at = |path: &str| said.pointer(path).and_then(Value::as_str);
        let state = at("/result/task/status/state");
        let made = at("/result/task/artifacts/0/parts/0/text");
        let is_good = state == Some("TASK_STATE_COMPLETED") && made == Some(text(bytes).as_str());
        assert!(is_good, "{} answered {} with {said}", self.name, answer.status);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Self::Peer(child) = self {
            _ = child.kill(); // The process may have ended.
            _ = child.wait();
        }
    }
}

fn call() -> String {
    let params = message_of_1_0(BYTES);
    json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}).to_string()
}

/// Each answer contains the sent text and the resulting artifact.
fn asked(request: &str) -> Rc<Asked> {
    let is_good = |answer: &Answer<'_>| {
        answer.holds("\"TASK_STATE_COMPLETED\"") && answer.body.len() >= 2 * BYTES
    };
    Rc::new(Asked { request: stamped(request), is_good: Box::new(is_good) })
}
