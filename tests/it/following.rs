//! Commands that go on: what they print arrives while it happens, and they end as they are told to.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};

use crate::harness::{
    ServiceProcess, fake_agent_config, gated_agent_config, poll_until, within_deadline,
};

/// A command that goes on, whose standard output is read line by line.
struct StreamingCommand {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl StreamingCommand {
    fn start(service: &ServiceProcess, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_algonius"));
        command.args(args).env_clear().envs(service.setup.env_variables());
        command.env("ALGONIUS_URL", format!("http://{}", service.address));
        command.current_dir(service.setup.test_folder()).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Reads up to a line with this text, which it gives.
    async fn read_line_containing(&mut self, text: &str) -> String {
        within_deadline(text, async {
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

    async fn interrupt_and_wait(mut self) -> Option<i32> {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill(Pid::from_raw(pid), Signal::SIGINT).unwrap();
        within_deadline("its end", self.child.wait()).await.unwrap().code()
    }
}

#[tokio::test]
async fn followed_logs_show_each_line_once_for_the_chosen_agent() {
    let agents =
        [gated_agent_config("one", "max_concurrent = 1"), fake_agent_config("echo", "echo", "")]
            .concat();
    let service = ServiceProcess::start(&agents).await;
    let mut logs = StreamingCommand::start(&service, &["logs", "-f", "--agent", "one"]);
    let id = service.start_task("one", "ann").await;
    let first_line = logs.read_line_containing("attempt 1 starts").await;
    assert!(first_line.starts_with(&format!("one {id} ")), "{first_line}");
    service.send("echo", "unheard").await;
    service.setup.open_gate("go");
    assert_eq!(logs.read_line_containing(" stdout: ").await, format!("one {id} stdout: ann"));
    let second_id = service.start_task("one", "bob").await;
    // Whatever came between is of `one`, and what was told is not told again.
    let printed_lines = within_deadline("bob's answer", async {
        let mut printed_lines = Vec::new();
        loop {
            let line = logs.lines.next_line().await.unwrap().unwrap();
            printed_lines.push(line.clone());
            if line.contains(" stdout: bob") {
                return printed_lines;
            }
        }
    })
    .await;
    assert!(printed_lines.iter().all(|line| line.starts_with("one ")), "{printed_lines:#?}");
    assert!(!printed_lines.iter().any(|line| line.contains("stdout: ann")), "{printed_lines:#?}");
    assert_eq!(printed_lines.last().unwrap(), &format!("one {second_id} stdout: bob"));
}

#[tokio::test]
async fn json_logs_have_one_document_per_line() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let mut logs = StreamingCommand::start(&service, &["logs", "-f", "--json"]);
    service.send("echo", "hello").await;
    // Events have a channel too, inside of them: the first of a stream is told before its text.
    let line: Value =
        serde_json::from_str(&logs.read_line_containing("{\"channel\":\"stdout\",\"id\"").await)
            .unwrap();
    assert_eq!((&line["channel"], &line["text"]), (&json!("stdout"), &json!("hello")));
}

#[tokio::test]
async fn a_watched_status_without_a_terminal_prints_snapshots() {
    let mut service =
        ServiceProcess::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let mut text_follower =
        StreamingCommand::start(&service, &["status", "--watch", "--every", "0.1"]);
    let mut json_follower =
        StreamingCommand::start(&service, &["status", "--watch", "--every", "0.1", "--json"]);
    for _ in 0..2 {
        let line = text_follower.read_line_containing("└─ gateway").await;
        assert!(!line.contains('\x1b'), "{line:?}");
        let status: Value =
            serde_json::from_str(&json_follower.read_line_containing("{").await).unwrap();
        assert_eq!(status["agents"][0]["id"], "one");
    }
    service.start_task("one", "ann").await;
    text_follower.read_line_containing("running 1/1").await;
    service.setup.open_gate("go");
    // A service that is away for a while is looked for again; it comes back elsewhere.
    service.kill9().await;
    assert_eq!(text_follower.interrupt_and_wait().await, Some(0));
}

#[tokio::test]
async fn a_streamed_json_answer_has_one_document_per_line() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let output = service.run_command(&["send", "--json", "echo", "hello"], "").await;
    let events: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((output.exit_code, &events[0]["kind"]), (Some(0), &json!("task")), "{output:?}");
    let last_event = events.last().unwrap();
    assert_eq!(
        (&last_event["final"], &last_event["status"]["state"]),
        (&json!(true), &json!("completed"))
    );
    let piped_output = service.run_command(&["send", "echo"], "from a pipe").await;
    assert_eq!((piped_output.stdout.as_str(), piped_output.stderr.as_str()), ("from a pipe", ""));
}

#[tokio::test]
async fn an_interrupted_send_without_a_terminal_cancels_the_task() {
    let service = ServiceProcess::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let send_command = StreamingCommand::start(&service, &["send", "one", "ann"]);
    service.setup.wait_for_file_text("log", "start ann\n").await;
    assert_eq!(send_command.interrupt_and_wait().await, Some(5));
    let list = service.get("/api/v1/executions").await.json();
    assert_eq!(list["executions"][0]["outcome"], "cancelled", "{list}");
}

/// Forwards to a service, and cuts the first connection that was answered by this word, once.
async fn start_cutting_proxy(service: &ServiceProcess, word: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, address) = (listener.local_addr().unwrap().port(), service.address);
    tokio::spawn(async move {
        let mut has_cut_connection = false;
        while let Ok((client, _)) = listener.accept().await {
            let service = TcpStream::connect(address).await.unwrap();
            let ((mut client_reader, mut client_writer), (mut service_reader, mut service_writer)) =
                (client.into_split(), service.into_split());
            let upload = tokio::spawn(async move {
                tokio::io::copy(&mut client_reader, &mut service_writer).await
            });
            let (mut bytes, mut received) = ([0; 4096], Vec::new());
            while let Ok(count @ 1..) = service_reader.read(&mut bytes).await {
                received.extend_from_slice(&bytes[..count]);
                if client_writer.write_all(&bytes[..count]).await.is_err() {
                    break;
                }
                if !has_cut_connection && received.windows(word.len()).any(|window| window == word)
                {
                    has_cut_connection = true;
                    break;
                }
            }
            upload.abort();
        }
    });
    port
}

#[tokio::test]
async fn a_broken_stream_is_resumed_and_the_answer_printed_once() {
    let service = ServiceProcess::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let port = start_cutting_proxy(&service, b"\"working\"").await;
    let url = format!("http://127.0.0.1:{port}");
    let mut send_command =
        StreamingCommand::start(&service, &["send", "one", "ann", "--url", &url]);
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let is_running = async || {
        let status = service.get("/api/v1/executions").await.json();
        (status["executions"][0]["state"] == "running").then_some(())
    };
    poll_until("it runs", is_running).await;
    service.setup.open_gate("go");
    assert_eq!(send_command.lines.next_line().await.unwrap().as_deref(), Some("ann"));
    assert_eq!(send_command.lines.next_line().await.unwrap(), None);
    assert_eq!(
        within_deadline("its end", send_command.child.wait()).await.unwrap().code(),
        Some(0)
    );
    let list = service.get("/api/v1/executions").await.json();
    assert_eq!(list["executions"].as_array().unwrap().len(), 1, "{list}");
}

#[tokio::test]
async fn followed_logs_miss_no_task_of_a_burst() {
    let service =
        ServiceProcess::start(&fake_agent_config("echo", "echo", "max_concurrent = 4")).await;
    service.send("echo", "before").await;
    let mut logs = StreamingCommand::start(&service, &["logs", "-f", "--tasks", "1"]);
    logs.read_line_containing("stdout: before").await;
    let texts: Vec<_> = (0..30).map(|number| format!("number-{number}.")).collect();
    for text in &texts {
        service.start_task("echo", text).await;
    }
    let mut missing_texts = texts;
    within_deadline("the output of each task", async {
        while !missing_texts.is_empty() {
            let line = logs.lines.next_line().await.unwrap().unwrap();
            missing_texts.retain(|text| !line.contains(&format!("stdout: {text}")));
        }
    })
    .await;
}
