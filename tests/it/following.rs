//! Commands that go on: what they print arrives while it happens, and they end as they are told to.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};

use crate::harness::{Service, fake, gated, soon, until};

/// A command that goes on, whose standard output is read line by line.
struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn begin(service: &Service, words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_algonius"));
        command.args(words).env_clear().envs(service.setup.variables());
        command.env("ALGONIUS_URL", format!("http://{}", service.address));
        command.current_dir(service.setup.here()).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Reads up to a line with this text, which it gives.
    async fn hears(&mut self, text: &str) -> String {
        soon(text, async {
            loop {
                let line = self.lines.next_line().await.unwrap();
                let line = line.unwrap_or_else(|| panic!("it ended before {text:?}"));
                if line.contains(text) {
                    return line;
                }
            }
        })
        .await
    }

    async fn interrupted(mut self) -> Option<i32> {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill(Pid::from_raw(pid), Signal::SIGINT).unwrap();
        soon("its end", self.child.wait()).await.unwrap().code()
    }
}

#[tokio::test]
async fn followed_logs_show_each_line_once_for_the_chosen_agent() {
    let agents = [gated("one", "max_concurrent = 1"), fake("echo", "echo", "")].concat();
    let service = Service::start(&agents).await;
    let mut logs = Follower::begin(&service, &["logs", "-f", "--agent", "one"]);
    let id = service.begin("one", "ann").await;
    let begun = logs.hears("attempt 1 starts").await;
    assert!(begun.starts_with(&format!("one {id} ")), "{begun}");
    service.send("echo", "unheard").await;
    service.setup.open("go");
    assert_eq!(logs.hears(" stdout: ").await, format!("one {id} stdout: ann"));
    let next = service.begin("one", "bob").await;
    // Whatever came between is of `one`, and what was told is not told again.
    let told = soon("bob's answer", async {
        let mut told = Vec::new();
        loop {
            let line = logs.lines.next_line().await.unwrap().unwrap();
            told.push(line.clone());
            if line.contains(" stdout: bob") {
                return told;
            }
        }
    })
    .await;
    assert!(told.iter().all(|line| line.starts_with("one ")), "{told:#?}");
    assert!(!told.iter().any(|line| line.contains("stdout: ann")), "{told:#?}");
    assert_eq!(told.last().unwrap(), &format!("one {next} stdout: bob"));
}

#[tokio::test]
async fn json_logs_have_one_document_per_line() {
    let service = Service::start(&fake("echo", "echo", "")).await;
    let mut logs = Follower::begin(&service, &["logs", "-f", "--json"]);
    service.send("echo", "hello").await;
    // Events have a channel too, inside of them: the first of a stream is told before its text.
    let line: Value =
        serde_json::from_str(&logs.hears("{\"channel\":\"stdout\",\"id\"").await).unwrap();
    assert_eq!((&line["channel"], &line["text"]), (&json!("stdout"), &json!("hello")));
}

#[tokio::test]
async fn a_watched_status_without_a_terminal_prints_snapshots() {
    let mut service = Service::start(&gated("one", "access = 'read-write'")).await;
    let mut plain = Follower::begin(&service, &["status", "--watch", "--every", "0.1"]);
    let mut json = Follower::begin(&service, &["status", "--watch", "--every", "0.1", "--json"]);
    for _ in 0..2 {
        let line = plain.hears("└─ gateway").await;
        assert!(!line.contains('\x1b'), "{line:?}");
        let shown: Value = serde_json::from_str(&json.hears("{").await).unwrap();
        assert_eq!(shown["agents"][0]["id"], "one");
    }
    service.begin("one", "ann").await;
    plain.hears("running 1/1").await;
    service.setup.open("go");
    // A service that is away for a while is looked for again; it comes back elsewhere.
    service.kill9().await;
    assert_eq!(plain.interrupted().await, Some(0));
}

#[tokio::test]
async fn a_streamed_json_answer_has_one_document_per_line() {
    let service = Service::start(&fake("echo", "echo", "")).await;
    let output = service.command(&["send", "--json", "echo", "hello"], "").await;
    let events: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((output.code, &events[0]["kind"]), (Some(0), &json!("task")), "{output:?}");
    let last = events.last().unwrap();
    assert_eq!((&last["final"], &last["status"]["state"]), (&json!(true), &json!("completed")));
    let piped = service.command(&["send", "echo"], "from a pipe").await;
    assert_eq!((piped.stdout.as_str(), piped.stderr.as_str()), ("from a pipe", ""));
}

#[tokio::test]
async fn an_interrupted_send_without_a_terminal_cancels_the_task() {
    let service = Service::start(&gated("one", "access = 'read-write'")).await;
    let send = Follower::begin(&service, &["send", "one", "ann"]);
    service.setup.written("log", "start ann\n").await;
    assert_eq!(send.interrupted().await, Some(5));
    let list = service.get("/api/v1/executions").await.json();
    assert_eq!(list["executions"][0]["outcome"], "cancelled", "{list}");
}

/// Forwards to a service, and cuts the first connection that was answered by this word, once.
async fn forward_and_cut(service: &Service, word: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, address) = (listener.local_addr().unwrap().port(), service.address);
    tokio::spawn(async move {
        let mut is_cut = false;
        while let Ok((client, _)) = listener.accept().await {
            let service = TcpStream::connect(address).await.unwrap();
            let ((mut asks, mut hears), (mut told, mut tells)) =
                (client.into_split(), service.into_split());
            let asking = tokio::spawn(async move { tokio::io::copy(&mut asks, &mut tells).await });
            let (mut bytes, mut seen) = ([0; 4096], Vec::new());
            while let Ok(count @ 1..) = told.read(&mut bytes).await {
                seen.extend_from_slice(&bytes[..count]);
                if hears.write_all(&bytes[..count]).await.is_err() {
                    break;
                }
                if !is_cut && seen.windows(word.len()).any(|window| window == word) {
                    is_cut = true;
                    break;
                }
            }
            asking.abort();
        }
    });
    port
}

#[tokio::test]
async fn a_broken_stream_is_resumed_and_the_answer_printed_once() {
    let service = Service::start(&gated("one", "access = 'read-write'")).await;
    let port = forward_and_cut(&service, b"\"working\"").await;
    let url = format!("http://127.0.0.1:{port}");
    let mut send = Follower::begin(&service, &["send", "one", "ann", "--url", &url]);
    service.setup.written("log", "start ann\n").await;
    let is_again = async || {
        let status = service.get("/api/v1/executions").await.json();
        (status["executions"][0]["state"] == "running").then_some(())
    };
    until("it runs", is_again).await;
    service.setup.open("go");
    assert_eq!(send.lines.next_line().await.unwrap().as_deref(), Some("ann"));
    assert_eq!(send.lines.next_line().await.unwrap(), None);
    assert_eq!(soon("its end", send.child.wait()).await.unwrap().code(), Some(0));
    let list = service.get("/api/v1/executions").await.json();
    assert_eq!(list["executions"].as_array().unwrap().len(), 1, "{list}");
}
