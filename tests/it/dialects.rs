//! Known programs behind a real service: what was recorded of them is played again.

use serde_json::{Value, json};

use crate::harness::client::{
    completed_outcome, failed_outcome, task_id, task_outcome, task_state,
};
use crate::harness::{ServiceProcess, json_rpc_request_body, message_params, poll_until};
use crate::streams::{open_stream, read_until_text_or_end};

/// Who, its output, and the line that is its last word.
const RECORDED_PROGRAMS: [(&str, &str, &str); 5] = [
    ("claude", "claude-stream-json", "\"type\":\"result\""),
    ("codex", "codex-jsonl", "turn.completed"),
    ("gemini", "gemini-stream-json", "\"type\":\"result\""),
    ("copilot", "copilot-jsonl", "\"type\":\"result\""),
    ("opencode", "opencode-jsonl", "step_finish"),
];

/// An agent that writes what was recorded, as a filter leaves it, and exits with this code.
fn recorded_agent_config(
    id: &str,
    (agent, case): (&str, &str),
    (filter, exit_code): (&str, u8),
) -> String {
    let (_, output, _) = RECORDED_PROGRAMS.iter().find(|(name, ..)| *name == agent).unwrap();
    let file = format!("{}/tests/corpus/{agent}/{case}.jsonl", env!("CARGO_MANIFEST_DIR"));
    format!(
        "[agents.{id}]\ncommand = 'sh'\nargs = ['-c', '''{filter} {file}; exit {exit_code}''']\n\
         output = '{output}'\nretry.base = 0.01\n"
    )
}

async fn fetch_attempt_number(service: &ServiceProcess, task: &Value) -> Value {
    service.fetch_execution(&task_id(task)).await["attempt"].clone()
}

#[tokio::test]
async fn each_known_program_succeeds_only_with_its_final_event() {
    let agents = RECORDED_PROGRAMS.map(|(agent, ..)| {
        let complete_agent = recorded_agent_config(agent, (agent, "hello"), ("cat", 0));
        let early_id = format!("{agent}-early");
        let (_, _, final_event) =
            RECORDED_PROGRAMS.iter().find(|(name, ..)| *name == agent).unwrap();
        let filter = format!("grep -v '{final_event}'");
        complete_agent + &recorded_agent_config(&early_id, (agent, "hello"), (&filter, 0))
    });
    let service = ServiceProcess::start(&agents.concat()).await;
    for (agent, ..) in RECORDED_PROGRAMS {
        let task = service.send(agent, "say hello").await;
        assert_eq!(task_outcome(&task), completed_outcome("ECHO: say hello"), "{agent}");
        let task = service.send(&format!("{agent}-early"), "say hello").await;
        assert_eq!(task_outcome(&task), failed_outcome("ended-early"), "{agent}");
    }
}

#[tokio::test]
async fn refused_credentials_are_not_retried() {
    // The exit code of each says that it may work later: that is not asked any more.
    let agents = RECORDED_PROGRAMS
        .map(|(agent, ..)| recorded_agent_config(agent, (agent, "401"), ("cat", 75)));
    let service = ServiceProcess::start(&agents.concat()).await;
    for (agent, ..) in RECORDED_PROGRAMS {
        let task = service.send(agent, "hello").await;
        assert_eq!(task_outcome(&task), failed_outcome("not-authenticated"), "{agent}");
        assert_eq!(fetch_attempt_number(&service, &task).await, 1, "{agent}");
    }
}

#[tokio::test]
async fn a_long_quota_fails_the_task_with_its_end() {
    let filter = "sed 's/rate limit exceeded/&, try again in 1h 20m/; \
                s/Too Many Requests/&, try again in 1h 20m/; s/\"retry-after\":\"1\"/\"retry-after\":\"4800\"/'";
    let agents = RECORDED_PROGRAMS.map(|(agent, ..)| {
        recorded_agent_config(agent, (agent, "429-retry-after"), (filter, 1))
            + "quota.max_wait = '1h'\n"
    });
    let service = ServiceProcess::start(&agents.concat()).await;
    for (agent, ..) in RECORDED_PROGRAMS {
        let task = service.send(agent, "hello").await;
        assert_eq!(task_outcome(&task), failed_outcome("quota-exceeded"), "{agent}");
        let message = task["status"]["message"]["parts"][0]["text"].as_str().unwrap().to_owned();
        assert!(message.contains("(until 20"), "{agent}: {message}");
        let record = service.fetch_execution(&task_id(&task)).await;
        assert_eq!(record["attempt"], 1, "{agent}");
    }
}

#[tokio::test]
async fn a_short_rate_limit_is_waited_for() {
    let placeholder_filter = "[ -e HERE/seen ] && cat";
    let agent = recorded_agent_config("again", ("opencode", "hello"), (placeholder_filter, 0));
    let refusal_file =
        format!("{}/tests/corpus/opencode/429-retry-after.jsonl", env!("CARGO_MANIFEST_DIR"));
    let script =
        format!("[ -e HERE/seen ] || {{ touch HERE/seen; cat {refusal_file}; exit 1; }}; cat");
    let agent =
        agent.replace(placeholder_filter, &script).replace("retry.base = 0.01", "retry.base = 0.5");
    let service = ServiceProcess::start(&(agent + "sandbox.writable = ['HERE']\n")).await;
    let started_at = tokio::time::Instant::now();
    let task = service.send("again", "hello").await;
    assert_eq!(task_outcome(&task), completed_outcome("ECHO: say hello"));
    assert!(
        started_at.elapsed() >= std::time::Duration::from_millis(900),
        "{:?}",
        started_at.elapsed()
    );
    let record = service.fetch_execution(&task_id(&task)).await;
    assert_eq!(record["attempt"], 2);
    let events = record["events"].as_array().unwrap().iter().map(|event| &event["data"]);
    let failure = events.into_iter().find(|event| event["kind"] == "attempt-failed").unwrap();
    assert_eq!(failure["code"], "agent-rate-limited");
    assert!(failure["until"].is_string(), "{failure}");
}

#[tokio::test]
async fn denials_are_a_warning_or_a_failure_without_an_answer() {
    let denied_agents = ["claude", "gemini", "copilot", "opencode"];
    let agents = denied_agents
        .map(|agent| recorded_agent_config(agent, (agent, "permission-denied"), ("cat", 0)));
    let service = ServiceProcess::start(&agents.concat()).await;
    for agent in ["claude", "gemini", "copilot"] {
        let task = service.send(agent, "do it").await;
        assert_eq!(task_state(&task), "completed", "{agent}");
        let record = service.fetch_execution(&task_id(&task)).await;
        let events = record["events"].as_array().unwrap().iter().map(|event| &event["data"]);
        let denial_warnings = events
            .filter(|event| event["kind"] == "warning")
            .filter_map(|warning| warning["message"].as_str());
        let denial_warnings: Vec<_> = denial_warnings
            .filter(|warning| warning.starts_with("it answered, but was not"))
            .collect();
        assert_eq!(denial_warnings.len(), 1, "{agent}: {record}");
    }
    let task = service.send("opencode", "do it").await;
    assert_eq!(task_outcome(&task), failed_outcome("denied"));
}

#[tokio::test]
async fn steps_are_streamed_and_not_in_the_answer() {
    let service = ServiceProcess::start(&recorded_agent_config(
        "claude",
        ("claude", "file-change"),
        ("cat", 0),
    ))
    .await;
    let mut stream = open_stream(
        &service,
        "claude",
        "0.3",
        &json_rpc_request_body("message/stream", &message_params("make a file")),
    )
    .await;
    let stream_text = read_until_text_or_end(&mut stream, "\"final\":true").await;
    let steps = stream_text.lines().filter_map(|line| {
        let event: Value = serde_json::from_str(line.strip_prefix("data:")?.trim()).ok()?;
        let step = event["result"]["metadata"]["step"].clone();
        (!step.is_null()).then_some(step)
    });
    let steps: Vec<Value> = steps.collect();
    let tool_call_step = |stage| json!({"step": "tool-call", "id": "toolu_mock_50", "tool": "Write", "stage": stage});
    let count_in_stage = |stage: &str| steps.iter().filter(|step| step["stage"] == stage).count();
    assert_eq!((count_in_stage("started"), count_in_stage("completed")), (1, 1), "{steps:?}");
    assert_eq!(steps[0]["tool"], tool_call_step("started")["tool"]);
    assert_eq!(steps.last().unwrap()["step"], "file-change");
    assert!(stream_text.contains("TOOL RESULT"), "{stream_text}");
}

/// A program that ends well when it is asked to end does not decide how it ended.
#[tokio::test]
async fn a_stop_of_the_service_decides_the_outcome() {
    let script = "args = ['-c', '''trap \"exit 0\" TERM; echo up > HERE/WHO; sleep 600 & wait''']\n\
                  command = 'sh'\nsandbox.writable = ['HERE']\n";
    let agent = |id: &str, settings: &str| {
        format!("[agents.{id}]\n{}{settings}", script.replace("WHO", id))
    };
    let agents = [
        agent("plain", "output = 'stdout'\n"),
        agent("known", "output = 'gemini-stream-json'\n"),
        agent("late", "timeout = 0.5\n"),
    ];
    let service = ServiceProcess::start(&agents.concat()).await;
    for name in ["plain", "known"] {
        let id = service.start_task(name, "work").await;
        poll_until("its trap", async || service.setup.read_file(name).contains("up").then_some(()))
            .await;
        service.cancel(name, &id).await;
        assert_eq!(task_state(&service.wait_for_task_end(name, &id).await), "canceled", "{name}");
        assert_eq!(service.fetch_execution(&id).await["exitCode"], 0, "{name}");
    }
    let late_task = service.send("late", "work").await;
    assert_eq!(task_outcome(&late_task), failed_outcome("execution-timeout"));
}
