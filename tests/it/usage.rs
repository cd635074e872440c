//! What a person reads of tasks, schedules and usage: sentences with times, tokens and cost, lost contexts.

use serde_json::{Value, json};

use crate::harness::client::{task_id, task_outcome};
use crate::harness::{ServiceProcess, message_params, poll_until};

/// Counts tokens and cost by events.
const COUNTING_AGENT: &str = r#"
[agents.counts]
command = "sh"
args = ["-c", '''cat >/dev/null
echo '{"type":"status","text":"reading the diff"}'
echo '{"type":"usage","input_tokens":1200,"output_tokens":34,"cost_usd":0.0125}'
echo '{"type":"text","text":"the answer"}' ''']
output = "events"
"#;

const FAILING_AGENT: &str = r#"
[agents.fails]
command = "sh"
args = ["-c", 'for i in $(seq 60); do echo "line $i" >&2; done; echo "no licence" >&2; exit 7']
"#;

/// Answers each message, and ends when it is told to.
const SESSION_AGENT: &str = "session_timeout_min = 0.05\n[agents.kept]\ncommand = 'FAKE'\nargs = ['turns']\n\
    mode = 'interactive'\nstop_grace = 0.3\n[agents.kept.turn]\nend_line = 'END'\n";

#[tokio::test]
async fn tokens_and_cost_are_counted_without_a_budget() {
    let service =
        ServiceProcess::start(&format!("{COUNTING_AGENT}[agents.echo]\ncommand = 'cat'\n")).await;
    for _ in 0..2 {
        assert_eq!(task_outcome(&service.send("counts", "x").await).0, "completed");
    }
    service.send("echo", "x").await;
    let report = service.get("/api/v1/usage").await.json();
    let entries = report["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{report}");
    let entry = &entries[0];
    assert_eq!((&entry["agent"], &entry["inputTokens"]), (&json!("counts"), &json!(2400)));
    assert_eq!((&entry["outputTokens"], &entry["costMicros"]), (&json!(68), &json!(25_000)));
    assert_eq!(report["total"]["costMicros"], 25_000);
    let echo_report = service.get("/api/v1/usage?agent=echo&days=1").await.json();
    assert_eq!(echo_report["entries"], json!([]));
    for invalid_query in ["?days=0", "?days=367", "?day=1", "?agent=%20"] {
        let answer = service.get(&format!("/api/v1/usage{invalid_query}")).await;
        assert_eq!(answer.status, 400, "{invalid_query}");
    }
    let list = service.get("/api/v1/executions?agent=counts&limit=1").await.json();
    assert_eq!(list["executions"][0]["usage"]["inputTokens"], 1200, "{list}");
}

#[tokio::test]
async fn usage_is_printed_by_day_and_by_task() {
    let service =
        ServiceProcess::start(&format!("{COUNTING_AGENT}[agents.echo]\ncommand = 'cat'\n")).await;
    service.send("counts", "x").await;
    service.send("counts", "x").await;
    let usage_table = service.run_command(&["usage"], "").await.stdout;
    let row = usage_table.lines().nth(1).unwrap_or_else(|| panic!("{usage_table}"));
    let cells: Vec<_> = row.split_whitespace().collect();
    assert_eq!(cells[1..], ["counts", "-", "2400", "-", "68", "$0.025000"], "{usage_table}");
    let usage_table =
        service.run_command(&["usage", "--tasks", "--agent", "counts"], "").await.stdout;
    assert!(usage_table.contains("$0.012500") && usage_table.lines().count() == 3, "{usage_table}");
    let empty_table = service.run_command(&["usage", "--agent", "echo"], "").await.stdout;
    assert!(empty_table.starts_with("no agent has counted anything from "), "{empty_table}");
}

#[tokio::test]
async fn a_task_is_described_in_sentences_with_times() {
    let service = ServiceProcess::start(COUNTING_AGENT).await;
    let task_id = task_id(&service.send("counts", "look at this").await);
    let output = service.run_command(&["tasks", "show", &task_id], "").await.stdout;
    for sentence in [
        "asked: look at this",
        "attempt 1 starts",
        "the agent says: reading the diff",
        "used 1200 input tokens, 34 output tokens, $0.012500",
        "the answer is complete",
        "completed",
    ] {
        let line = output.lines().find(|line| line.ends_with(&format!("Z  {sentence}")));
        assert!(line.is_some_and(|line| line.starts_with("20")), "{sentence}: {output}");
    }
    assert!(
        output.contains("\nused     1200 input tokens, 34 output tokens, $0.012500\n"),
        "{output}"
    );
    for internal_word in ["{", "process-started", "cpuMs", "pid", "state-changed"] {
        assert!(!output.contains(internal_word), "{internal_word}: {output}");
    }
    let events = service.run_command(&["tasks", "show", &task_id, "--events"], "").await.stdout;
    assert!(events.contains(r#" state-changed {"from":"idle""#), "{events}");
}

#[tokio::test]
async fn protocol_events_are_shown_as_the_answer() {
    let service = ServiceProcess::start(COUNTING_AGENT).await;
    let task_id = task_id(&service.send("counts", "look at this").await);
    let watch_output = service.run_command(&["tasks", "watch", &task_id], "").await;
    assert_eq!(watch_output.stdout, "the answer", "{watch_output:?}");
    assert!(
        watch_output.stderr.contains("Z  the agent says: reading the diff"),
        "{watch_output:?}"
    );
    let logs = service.run_command(&["logs", "--agent", "counts"], "").await.stdout;
    assert!(logs.contains(&format!("counts {task_id} answer: the answer\n")), "{logs}");
    assert!(!logs.contains('{'), "{logs}");
    let raw_output =
        service.run_command(&["logs", "--agent", "counts", "--output"], "").await.stdout;
    assert!(raw_output.contains(r#"stdout: {"type":"status""#), "{raw_output}");
}

#[tokio::test]
async fn a_failure_shows_the_last_lines_of_standard_error() {
    let service = ServiceProcess::start(FAILING_AGENT).await;
    let task_id = task_id(&service.send("fails", "x").await);
    let watch_output = service.run_command(&["tasks", "watch", &task_id], "").await;
    assert_eq!(watch_output.exit_code, Some(5), "{watch_output:?}");
    for part in ["exit code: 7", "standard error: no licence", "more: algonius tasks show "] {
        assert!(watch_output.stderr.contains(part), "{part}: {watch_output:?}");
    }
    let output = service.run_command(&["tasks", "show", &task_id], "").await;
    assert!(output.stdout.contains("line 60\nno licence\n"), "{output:?}");
    assert!(!output.stdout.contains("line 1\n"), "{output:?}");
    assert!(
        output.stderr.contains("21 earlier lines of standard error are not shown"),
        "{output:?}"
    );
    assert!(output.stdout.contains("Z  failed: exited with code 7"), "{output:?}");
}

#[tokio::test]
async fn a_lost_context_stays_visible() {
    let service = ServiceProcess::start(SESSION_AGENT).await;
    let send_in_context = async |text: &str| {
        let mut params = message_params(text);
        params["message"]["contextId"] = json!("c");
        service.expect_result("kept", "message/send", &params).await
    };
    let first_task: Value = send_in_context("one").await;
    assert!(first_task["metadata"]["continuity"].is_null(), "{first_task}");
    send_in_context("exit 3").await;
    let task = send_in_context("two").await;
    assert_eq!(task["metadata"]["continuity"], "lost", "{task}");
    let stored_task = service.fetch_task("kept", &task_id(&task)).await;
    assert_eq!(stored_task["metadata"]["continuity"], "lost", "{stored_task}");
    let output = service.run_command(&["tasks", "show", &task_id(&task)], "").await.stdout;
    assert!(output.contains("\ncontext  lost: "), "{output}");
    assert!(output.contains("Z  context was lost: "), "{output}");
}

#[tokio::test]
async fn a_schedule_is_described_in_sentences() {
    let service = ServiceProcess::start("[agents.echo]\ncommand = 'cat'\n").await;
    let create_args = ["schedule", "create", "nightly", "--agent", "echo", "--cron", "0 3 * * *"];
    let args = [&create_args[..], &["--input", "good night", "--timezone", "UTC"]].concat();
    assert_eq!(service.run_command(&args, "").await.exit_code, Some(0));
    let output = service.run_command(&["schedule", "show", "nightly"], "").await.stdout;
    assert!(output.contains("30 days   no time has passed yet\n"), "{output}");
    assert!(output.contains("input     good night\n") && !output.contains('{'), "{output}");
    assert_eq!(service.run_command(&["schedule", "run", "nightly"], "").await.exit_code, Some(0));
    let output = poll_until("its end", async || {
        let output = service.run_command(&["schedule", "show", "nightly"], "").await.stdout;
        output.contains("results   1 of 1 tasks succeeded (100.0 %)\n").then_some(output)
    })
    .await;
    assert!(output.contains("30 days   1 fired times\n") && !output.contains('{'), "{output}");
}
