//! An execution that is followed: as an event stream, and from the command line.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::harness::client::task_id;
use crate::harness::{ServiceProcess, fake_agent_config, gated_agent_config, within_deadline};
use crate::streams::read_until_text_or_end;

/// Says something, waits for its gate, says something else.
const TALKER_AGENT: &str = r#"
[agents.talker]
sandbox.writable = ['HERE']
command = "sh"
args = ["-c", 'echo first; echo aside >&2; echo up > HERE/log; until [ -e HERE/go ]; do sleep 0.02; done; echo second']
"#;

async fn open_event_stream(
    service: &ServiceProcess,
    id: &str,
    after: u64,
) -> tokio::net::TcpStream {
    let mut stream = service.connect().await;
    let request = format!(
        "GET /api/v1/executions/{id}/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {}\r\nAccept: text/event-stream\r\nLast-Event-ID: {after}\r\n\r\n",
        service.token
    );
    within_deadline("writing", stream.write_all(request.as_bytes())).await.unwrap();
    stream
}

fn event_numbers(text: &str) -> Vec<u64> {
    text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect()
}

#[tokio::test]
async fn events_are_streamed_to_the_end_and_from_any_event() {
    let service = ServiceProcess::start(TALKER_AGENT).await;
    let id = service.start_task("talker", "x").await;
    let mut stream = open_event_stream(&service, &id, 0).await;
    let first_text = read_until_text_or_end(&mut stream, "\"process-started\"").await;
    assert!(
        first_text.contains("text/event-stream") && first_text.contains("event: event"),
        "{first_text}"
    );
    service.setup.open_gate("go");
    let remaining_text = read_until_text_or_end(&mut stream, "event: rest").await;
    let all_numbers = event_numbers(&format!("{first_text}{remaining_text}"));
    assert_eq!(all_numbers, (1..=all_numbers.len() as u64).collect::<Vec<_>>());
    let mut second_stream = open_event_stream(&service, &id, 3).await;
    let later_numbers =
        event_numbers(&read_until_text_or_end(&mut second_stream, "event: rest").await);
    // The clean-up goes on after the end.
    assert!(later_numbers.len() + 3 >= all_numbers.len(), "{later_numbers:?}");
    assert_eq!(later_numbers, (4..4 + later_numbers.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn watching_a_task_exits_by_its_outcome() {
    let service =
        ServiceProcess::start(&[TALKER_AGENT, &fake_agent_config("exit", "exit 7", "")].concat())
            .await;
    let id = service.start_task("talker", "x").await;
    service.setup.wait_for_file_text("log", "up\n").await;
    let args = ["tasks", "watch", &id];
    let open_gate = async {
        // Both halves are told, whichever of them came first.
        service.setup.open_gate("go");
    };
    let (watch_output, ()) = tokio::join!(service.run_command(&args, ""), open_gate);
    assert_eq!(
        (watch_output.exit_code, watch_output.stdout.as_str()),
        (Some(0), "first\nsecond\n"),
        "{watch_output:?}"
    );
    assert!(
        watch_output.stderr.contains("aside\n") && watch_output.stderr.contains("Z  completed\n"),
        "{watch_output:?}"
    );
    let failed_id = crate::harness::client::task_id(&service.send("exit", "x").await);
    let watch_output = service.run_command(&["tasks", "watch", &failed_id], "").await;
    assert_eq!(watch_output.exit_code, Some(5), "{watch_output:?}");
    let unknown_id = "018f0000-0000-7000-8000-000000000000";
    assert_eq!(service.run_command(&["tasks", "watch", unknown_id], "").await.exit_code, Some(3));
    let lines = service.run_command(&["tasks", "watch", "--json", &id], "").await.stdout;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["text"] == "first\nsecond\n"), "{lines:?}");
    assert!(lines.iter().any(|line| line["event"]["data"]["kind"] == "state-changed"), "{lines:?}");
}

#[tokio::test]
async fn logs_print_the_latest_tasks_line_by_line() {
    let agents = [
        TALKER_AGENT.to_owned(),
        fake_agent_config("echo", "echo", ""),
        gated_agent_config("one", ""),
    ]
    .concat();
    let service = ServiceProcess::start(&agents).await;
    service.setup.open_gate("go");
    let talker_id = task_id(&service.send("talker", "x").await);
    let echo_id = task_id(&service.send("echo", "no end of line").await);
    let logs = service.run_command(&["logs"], "").await;
    assert_eq!(logs.exit_code, Some(0), "{logs:?}");
    for line in [
        format!("talker {talker_id} stdout: first\n"),
        format!("talker {talker_id} stderr: aside\n"),
        format!("echo {echo_id} stdout: no end of line\n"),
    ] {
        assert!(logs.stdout.contains(&line), "{line} is not in {}", logs.stdout);
    }
    let agent_logs = service.run_command(&["logs", "--agent", "echo", "--json"], "").await.stdout;
    let lines: Vec<Value> =
        agent_logs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["id"] == json!(echo_id)), "{lines:?}");
}
