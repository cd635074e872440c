//! The request path end to end, next to a bare spawn of the same program in the same run.
//!
//! `benches/README.md` says how to read what it prints.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]
#![expect(clippy::disallowed_types, reason = "a bench measures real time")]

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use algonius_supervisor::clock::WallClock;
use algonius_supervisor::warden::wardens::Origin;
use algonius_supervisor::{Running, config, start_with};
use bytes::Bytes;
use criterion::{Criterion, SamplingMode};
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Measurements of each kind, after warming up.
const SAMPLES: usize = 20;
/// How many are in flight in the wide kinds.
const WIDE: usize = 10;

/// A service in this process and a client of it; connections are kept alive.
struct House {
    _home: TempDir,
    running: Running,
    token: String,
    client: Client<HttpConnector, Full<Bytes>>,
    text: String,
}

impl House {
    /// Starts it as it is used: with authentication, ledger, redaction and a log.
    async fn start() -> Self {
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
    async fn ask(&self, path: &str, body: Option<Value>) -> Value {
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
    async fn call(&self, method: &str, params: Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut answer = self.ask("/agents/cat/v1", Some(call)).await;
        let task = answer.get_mut("result").map(Value::take);
        task.unwrap_or_else(|| unreachable!("{method} is refused: {answer}"))
    }

    /// Sends a message and waits for the program's answer; gives the task's id.
    async fn send(&self) -> String {
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

/// What the service wraps, without the service: spawn, write, read, wait.
fn bare(program: &Path, text: &str) {
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("a reader");
    drop(input);
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(child.wait().expect("an end").success() && said == text);
}

/// The program as the service finds it.
fn cat() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&path).map(|folder| folder.join("cat"));
    files.find(|file| file.is_file()).expect("`cat` on the PATH")
}

/// Measures kinds with criterion and keeps a median of each.
struct Bench {
    criterion: Criterion,
    medians: BTreeMap<&'static str, Duration>,
}

impl Bench {
    fn new() -> Self {
        let criterion = Criterion::default()
            .sample_size(SAMPLES)
            .warm_up_time(Duration::from_secs(1))
            .measurement_time(Duration::from_secs(4));
        Self { criterion: criterion.configure_from_args(), medians: BTreeMap::new() }
    }

    /// Measures one kind; `act` does it so many times.
    fn measure(&mut self, kind: &'static str, mut act: impl FnMut(u64)) {
        let mut taken = Vec::new();
        let mut group = self.criterion.benchmark_group("request_path");
        group.sampling_mode(SamplingMode::Flat).bench_function(kind, |bencher| {
            bencher.iter_custom(|times| {
                let begin = Instant::now();
                act(times);
                let took = begin.elapsed();
                taken.push(took / u32::try_from(times).unwrap_or(u32::MAX));
                took
            });
        });
        group.finish();
        // Tried out or left out, and not measured.
        if taken.len() <= SAMPLES {
            return;
        }
        // What came before the last samples was warming up.
        let mut samples = taken.split_off(taken.len() - SAMPLES);
        samples.sort_unstable();
        if let Some(median) = samples.get(samples.len() / 2) {
            self.medians.insert(kind, *median);
        }
    }

    /// One line for each kind that was measured, and the ratios.
    fn summary(&self) -> String {
        let mut text = "\nmedians of this run\n".to_owned();
        for (kind, median) in &self.medians {
            text += &format!("  {kind:<24} {:>9.3} ms\n", median.as_secs_f64() * 1e3);
        }
        for (product, base) in [
            ("send, 1 in flight", "bare, 1 in flight"),
            ("send, 10 in flight", "bare, 10 in flight"),
        ] {
            if let (Some(above), Some(below)) = (self.medians.get(product), self.medians.get(base))
            {
                let ratio = above.as_secs_f64() / below.as_secs_f64();
                text += &format!("{product} / {base}: {ratio:.2}\n");
            }
        }
        text
    }
}

/// Does `times` rounds of so many requests, all of a round's size in flight at any time.
fn send_wide(runtime: &Runtime, house: &Arc<House>, times: u64) {
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

fn bare_wide(program: &Path, text: &str, times: u64) {
    std::thread::scope(|scope| {
        for _ in 0..WIDE {
            scope.spawn(|| (0..times).for_each(|_| bare(program, text)));
        }
    });
}

fn main() {
    tracing_subscriber::fmt().with_writer(io::sink).init();
    let runtime = Runtime::new().expect("a runtime");
    let house = Arc::new(runtime.block_on(House::start()));
    let (program, text) = (cat(), house.text.clone());
    let mut bench = Bench::new();
    bench.measure("bare, 1 in flight", |times| (0..times).for_each(|_| bare(&program, &text)));
    bench.measure("send, 1 in flight", |times| {
        runtime.block_on(async {
            for _ in 0..times {
                house.send().await;
            }
        });
    });
    bench.measure("bare, 10 in flight", |times| bare_wide(&program, &text, times));
    bench.measure("send, 10 in flight", |times| send_wide(&runtime, &house, times));
    let task = runtime.block_on(house.send());
    bench.measure("tasks/get", |times| {
        runtime.block_on(async {
            for _ in 0..times {
                house.call("tasks/get", json!({"id": task})).await;
            }
        });
    });
    bench.measure("status", |times| {
        runtime.block_on(async {
            for _ in 0..times {
                house.ask("/status", None).await;
            }
        });
    });
    bench.criterion.final_summary();
    _ = io::stdout().write_all(bench.summary().as_bytes()); // Nobody reads a closed pipe.
    if let Ok(house) = Arc::try_unwrap(house) {
        runtime.block_on(house.running.stop(Duration::from_secs(5)));
    }
}
