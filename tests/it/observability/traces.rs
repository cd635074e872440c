//! One trace from the caller to the program, and ids in every line of the log.

use serde_json::Value;

use crate::harness::client::{task_id, task_outcome};
use crate::harness::{ServiceProcess, Setup, fake_agent_config, message_params, poll_until};

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN_ID: &str = "00f067aa0ba902b7";

/// Prints its environment.
fn env_agent_config() -> String {
    fake_agent_config("env", "env", "")
}

/// A variable in the environment that an agent has printed.
fn env_variable(task: &Value, name: &str) -> Option<String> {
    let output = task_outcome(task).1;
    let value = output.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    value.map(str::to_owned)
}

/// What an agent is told when its caller says this.
async fn send_with_trace_headers(
    service: &ServiceProcess,
    header_lines: &[&str],
) -> (Option<String>, Option<String>, String) {
    let answer = service
        .call_with_headers("env", header_lines, ("message/send", &message_params("x")))
        .await;
    let task = answer.json()["result"].take();
    let trace_id =
        service.fetch_execution(&task_id(&task)).await["traceId"].as_str().unwrap().to_owned();
    (env_variable(&task, "TRACEPARENT"), env_variable(&task, "TRACESTATE"), trace_id)
}

#[tokio::test]
async fn a_program_gets_a_child_span_of_its_caller() {
    let service = ServiceProcess::start(&env_agent_config()).await;
    let traceparent_header = format!("traceparent: 00-{TRACE_ID}-{SPAN_ID}-01");
    let (first_traceparent, trace_state, trace_id) =
        send_with_trace_headers(&service, &[&traceparent_header, "tracestate: a=b"]).await;
    let first_traceparent = first_traceparent.unwrap();
    assert_eq!(
        (first_traceparent.get(..36), first_traceparent.get(52..)),
        (Some(&*format!("00-{TRACE_ID}-")), Some("-01"))
    );
    assert_ne!(first_traceparent.get(36..52), Some(SPAN_ID));
    assert_eq!((trace_state.as_deref(), trace_id.as_str()), (Some("a=b"), TRACE_ID));
    let (second_traceparent, _, _) =
        send_with_trace_headers(&service, &[&traceparent_header]).await;
    assert_ne!(second_traceparent.unwrap(), first_traceparent);
}

#[tokio::test]
async fn a_malformed_traceparent_starts_a_new_trace() {
    let service = ServiceProcess::start(&env_agent_config()).await;
    let zero_id_header = format!("traceparent: 00-{}-{SPAN_ID}-01", "0".repeat(32));
    let repeated_header = format!("traceparent: 00-{TRACE_ID}-{SPAN_ID}-01");
    for header_lines in [
        vec![],
        vec!["traceparent: nonsense"],
        vec![&*zero_id_header],
        vec![&*repeated_header, &*repeated_header],
    ] {
        let header_lines = [header_lines, vec!["tracestate: a=b"]].concat();
        let (traceparent, trace_state, trace_id) =
            send_with_trace_headers(&service, &header_lines).await;
        let traceparent = traceparent.unwrap();
        assert_eq!(
            (traceparent.len(), traceparent.get(3..35), trace_state),
            (55, Some(&*trace_id), None),
            "{header_lines:?}"
        );
        assert_ne!(trace_id, TRACE_ID);
    }
}

#[tokio::test]
async fn all_attempts_are_in_the_trace_of_the_request() {
    let agent = r#"
[agents.fails]
command = "sh"
args = ["-c", 'echo "$TRACEPARENT" >>HERE/traces; exit 75']
sandbox.writable = ["HERE"]
retry = { max = 1, base = 0.1 }
transient_exit_codes = [75]
"#;
    let service = ServiceProcess::start(agent).await;
    let traceparent_header = format!("traceparent: 00-{TRACE_ID}-{SPAN_ID}-00");
    let params = message_params("x");
    let answer =
        service.call_with_headers("fails", &[&traceparent_header], ("message/send", &params)).await;
    assert_eq!(task_outcome(&answer.json()["result"]).0, "failed");
    let traces = service.setup.read_file("traces");
    let lines: Vec<_> = traces.lines().collect();
    assert_eq!(lines.len(), 2, "{traces}");
    assert!(lines.iter().all(|line| line.starts_with(&format!("00-{TRACE_ID}-"))), "{traces}");
    assert_ne!(lines[0], lines[1]);
}

#[tokio::test]
async fn each_request_has_an_id_in_its_answer_and_log_lines() {
    let service = Setup::new(&env_agent_config()).env("RUST_LOG", "debug").start().await;
    let send = async |line: &str| {
        let answer =
            service.call_with_headers("env", &[line], ("message/send", &message_params("x"))).await;
        let request_id = answer.header("x-request-id").unwrap().to_owned();
        (request_id, task_id(&answer.json()["result"]))
    };
    let (request_id, execution) = send("X-Request-Id: my.request:1").await;
    assert_eq!(request_id, "my.request:1");
    let lines = poll_until("the end in the log", async || {
        let log_text = service.stderr_text();
        let lines = log_text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let lines: Vec<_> = lines.filter(|line| line["execution"] == *execution).collect();
        lines.iter().any(|line| line["message"] == "ended").then_some(lines)
    })
    .await;
    assert!(lines.len() > 2, "{lines:?}");
    for line in lines {
        assert_eq!(
            (&line["request_id"], &line["agent"]),
            (&request_id.clone().into(), &"env".into())
        );
    }
    for header_line in ["X-Request-Id: a b", "X-Other: x"] {
        let (generated_id, _) = send(header_line).await;
        assert!(uuid::Uuid::parse_str(&generated_id).is_ok(), "{generated_id}");
    }
    assert!(service.request("GET /health", &[], b"").await.header("x-request-id").is_some());
}

#[tokio::test]
async fn text_log_lines_are_printed_if_configured() {
    let config = format!("{}[log]\nformat = 'human'\n", env_agent_config());
    let service = ServiceProcess::start(&config).await;
    let task = task_id(&service.send("env", "x").await);
    let line = poll_until("the end in the log", async || {
        let log_text = service.stderr_text();
        log_text.lines().find(|line| line.contains(" INFO ended ")).map(str::to_owned)
    })
    .await;
    assert!(
        line.contains(&format!(" execution={task} ")) && line.contains(" request_id="),
        "{line}"
    );
    assert_eq!((line.matches("agent=env").count(), line.matches("execution=").count()), (1, 1));
}
