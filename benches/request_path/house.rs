//! The service with everything on, and a client of it.

use std::sync::Arc;

use algonius_supervisor::clock::WallClock;
use algonius_supervisor::warden::wardens::Origin;
use algonius_supervisor::{Running, config, start_with};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::WIDE;

/// A service in this process and a client of it; connections are kept alive.
pub(crate) struct House {
    _home: TempDir,
    pub(crate) running: Running,
    token: String,
    client: Client<HttpConnector, Full<Bytes>>,
    pub(crate) text: String,
}

impl House {
    /// Starts it as it is used: with authentication, ledger, redaction and a log.
    pub(crate) async fn start() -> Self {
        let home = tempfile::tempdir().expect("a home");
        let file = home.path().join("bench.toml");
        let text = "[server]\nlisten = \"127.0.0.1:0\"\n\
            [agents.cat]\ncommand = \"cat\"\nmax_concurrent = 10\nqueue_depth = 100\n";
        std::fs::write(&file, text).expect("a configuration");
        let at = |name: &str| home.path().join(name).to_string_lossy().into_owned();
        let env = |name: &str| match name {
            "HOME" => Some(at("")),
            "XDG_RUNTIME_DIR" => Some(at("run")),
            "PATH" => std::env::var(name).ok(),
            _ => None,
        };
        let checked = config::load(&file, &env).expect("a good configuration");
        let token_file = checked.settings.server.token_file.clone();
        let running = start_with(
            checked.settings,
            Arc::new(WallClock),
            Origin::of(env!("CARGO_BIN_EXE_algonius")),
        )
        .await
        .expect("a service");
        let token = std::fs::read_to_string(token_file).expect("a token").trim().to_owned();
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Self { _home: home, running, token, client, text: text_of_a_kibibyte() }
    }

    /// One request; gives its answer, which must be a good one.
    pub(crate) async fn ask(&self, path: &str, body: Option<Value>) -> Value {
        let uri = format!("{}{path}", self.running.url());
        let request = Request::builder().uri(uri).header("content-type", "application/json");
        let request = request.header("authorization", format!("Bearer {}", self.token));
        let request = match body {
            Some(body) => request.method("POST").body(Full::from(body.to_string())),
            None => request.body(Full::default()),
        };
        let answer = self.client.request(request.expect("a request")).await.expect("an answer");
        assert!(answer.status().is_success(), "{path} answers {}", answer.status());
        let bytes = answer.into_body().collect().await.expect("a whole answer").to_bytes();
        serde_json::from_slice(&bytes).expect("JSON")
    }

    /// One call; gives the task.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut answer = self.ask("/agents/cat/v1", Some(call)).await;
        let task = answer.get_mut("result").map(Value::take);
        task.unwrap_or_else(|| unreachable!("{method} is refused: {answer}"))
    }

    /// Sends a message and waits for the program's answer; gives the task's id.
    pub(crate) async fn send(&self) -> String {
        let id = uuid::Uuid::new_v4().to_string();
        let parts = json!([{"kind": "text", "text": self.text}]);
        let message = json!({"kind": "message", "role": "user", "messageId": id, "parts": parts});
        let task = self.call("message/send", json!({"message": message})).await;
        let said = task.pointer("/artifacts/0/parts/0/text").and_then(Value::as_str);
        assert_eq!(said, Some(self.text.as_str()), "{task}");
        task.get("id").and_then(Value::as_str).expect("an id").to_owned()
    }
}

/// Plain words, so that nothing in it is masked.
fn text_of_a_kibibyte() -> String {
    "a line of plain words and no more than that, thirteen and a few.\n".repeat(16)
}

/// Does `times` rounds of so many requests, all of a round's size in flight at any time.
pub(crate) fn send_wide(runtime: &Runtime, house: &Arc<House>, times: u64) {
    runtime.block_on(async {
        let mut senders = JoinSet::new();
        for _ in 0..WIDE {
            let house = Arc::clone(house);
            senders.spawn(async move {
                for _ in 0..times {
                    house.send().await;
                }
            });
        }
        senders.join_all().await;
    });
}
