//! Processes of MCP servers: who shares them, and each way in which they end.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{MCP_CONFIG, mcp_setup, start_with_mock_model};
use crate::harness::client::{completed_outcome, task_outcome, task_state};
use crate::harness::mock_model::{
    MockModel, final_answer_turn, prompt_with_turns, turn_with_calls,
};
use crate::harness::processes::{is_alive, kill9};
use crate::harness::steps::{error_step, fetch_steps, observation_step, run_tool_calls};
use crate::harness::{ServiceProcess, poll_until};

/// Returns the process id of the server `store`, and the number of its calls.
pub(super) async fn fetch_server_pid_and_call_count(
    service: &ServiceProcess,
    agent: &str,
) -> (i32, u32) {
    let results = run_tool_calls(service, agent, &[("store__count", json!({}))]).await;
    let (pid, calls) = results[0].1.split_once(' ').unwrap();
    (pid.parse().unwrap(), calls.parse().unwrap())
}

#[tokio::test]
async fn a_server_that_ends_in_mid_call_is_started_again() {
    let (_model, service) = start_with_mock_model().await;
    let tool_calls = [
        ("store__count", json!({})),
        ("store__crash", json!({})),
        ("store__count", json!({})),
        ("store__flood", json!({})),
        ("store__count", json!({})),
        // After this one it exits by itself, because its input is closed.
        ("store__many", json!({})),
        ("store__count", json!({})),
    ];
    let results = run_tool_calls(&service, "worker", &tool_calls).await;
    let interrupted_error = |reason: &str| {
        error_step(format!(
            "the call was interrupted, and may have had its effect: the MCP server {reason}"
        ))
    };
    // An MCP server that ends in mid-call fails its call and not the run, and the next call starts it again
    assert_eq!(results[1], interrupted_error("ended with exit code 7: the store is damaged"));
    assert_eq!(results[3], interrupted_error("sent a message of more than 4 MiB"));
    assert_eq!(results[5], interrupted_error("sent a message of more than 100000 values"));
    let pids: BTreeSet<_> = [0, 2, 4, 6].map(|index| results[index].1.clone()).into();
    assert_eq!(pids.len(), 4, "{results:?}");
    assert!(pids.iter().all(|text| text.ends_with(" 1")), "{results:?}");
}

/// Starts a run that calls a tool of `store` which never answers, and then has these turns. Returns the run and the
/// file to which each call appends a line, once the server has received the call.
async fn start_hanging_call(service: &ServiceProcess, later_turns: &[Value]) -> (String, PathBuf) {
    let mark_file = service.setup.test_folder().join("writable/mark");
    let first = turn_with_calls(&[("store__mark", json!({ "path": mark_file }))]);
    let turns = [&[first], later_turns, &[final_answer_turn("done")]].concat();
    let run_id = service.start_task("worker", &prompt_with_turns("go", &turns)).await;
    poll_until("the call", async || mark_file.exists().then_some(())).await;
    (run_id, mark_file)
}

#[tokio::test]
async fn a_killed_server_ends_its_call_and_not_the_run() {
    let (_model, service) = start_with_mock_model().await;
    let (pid, _) = fetch_server_pid_and_call_count(&service, "worker").await;
    let (run, _) = start_hanging_call(&service, &[]).await;
    kill9(pid);
    let task = service.wait_for_task_end("worker", &run).await;
    // An MCP server that ends in mid-call fails its call and not the run, and the next call starts it again
    assert_eq!(task_outcome(&task), completed_outcome("done"));
    let steps = fetch_steps(&service, &run).await;
    assert_eq!(
        steps[1]["text"],
        "the call was interrupted, and may have had its effect: signal 9 ended the MCP server"
    );
}

#[tokio::test]
async fn all_agents_share_the_process_of_a_server() {
    let (_model, service) = start_with_mock_model().await;
    let (pid, calls) = fetch_server_pid_and_call_count(&service, "worker").await;
    assert_eq!(calls, 1);
    assert_eq!(fetch_server_pid_and_call_count(&service, "other").await, (pid, 2));
    // A reload that does not change the server keeps it.
    let text = fs::read_to_string(service.setup.write_config()).unwrap();
    let rewrite_config = |from: &str, to: &str| {
        fs::write(service.setup.write_config(), text.replace(from, to)).unwrap();
    };
    rewrite_config("max_steps = 20", "max_steps = 21");
    let reload_output = service.run_command(&["reload"], "").await;
    assert!(reload_output.stdout.contains("worker"), "{reload_output:?}");
    assert_eq!(fetch_server_pid_and_call_count(&service, "worker").await, (pid, 3));
    // One that changes it ends it.
    rewrite_config("\"mcp\", \"--end\"", "\"mcp\", \"--noise\", \"--end\"");
    let reload_output = service.run_command(&["reload"], "").await;
    assert!(reload_output.stdout.contains("other"), "{reload_output:?}");
    let (new_pid, calls) = fetch_server_pid_and_call_count(&service, "other").await;
    assert!(new_pid != pid && calls == 1, "{new_pid} {calls}");
    poll_until("the end of the server", async || (!is_alive(pid)).then_some(())).await;
}

#[tokio::test]
async fn a_timeout_cancels_the_call_and_not_the_server() {
    let (_model, service) = start_with_mock_model().await;
    let (pid, _) = fetch_server_pid_and_call_count(&service, "worker").await;
    let results =
        run_tool_calls(&service, "worker", &[("slow", json!({})), ("store__cancelled", json!({}))])
            .await;
    let timeout_error = "the tool gave no result within 1 s; the call may have had its effect";
    assert_eq!(results, [error_step(timeout_error), observation_step("1")]);
    assert_eq!(fetch_server_pid_and_call_count(&service, "worker").await.0, pid);
}

#[tokio::test]
async fn a_server_without_calls_is_ended() {
    let model = MockModel::start(&[]);
    let config = MCP_CONFIG.replace("MODEL", &model.base_url());
    let config = config.replace(
        "args = [\"mcp\", \"--end\", \"HERE/writable/end\"]",
        "args = [\"mcp\", \"--end\", \"HERE/writable/end\"]\nidle = 1",
    );
    let service = mcp_setup(&config).start().await;
    let (pid, _) = fetch_server_pid_and_call_count(&service, "worker").await;
    poll_until("the end of the server", async || (!is_alive(pid)).then_some(())).await;
    assert_eq!(service.setup.read_file("writable/end"), "ended\n");
    let (new_pid, calls) = fetch_server_pid_and_call_count(&service, "worker").await;
    assert!(new_pid != pid && calls == 1, "{new_pid} {calls}");
}

#[tokio::test]
async fn a_server_ends_with_the_service() {
    let (_model, mut service) = start_with_mock_model().await;
    let (pid, _) = fetch_server_pid_and_call_count(&service, "worker").await;
    service.send_sigterm();
    service.wait_for_exit().await;
    // An MCP server ends with the service, also after a kill
    assert!(!is_alive(pid), "the server is left after a stop");
    // It could end by itself.
    assert_eq!(service.setup.read_file("writable/end"), "ended\n");
    service.start_again().await;
    let (pid, _) = fetch_server_pid_and_call_count(&service, "worker").await;
    service.kill9().await;
    poll_until("the end of the server", async || (!is_alive(pid)).then_some(())).await;
    service.start_again().await;
    assert_eq!(fetch_server_pid_and_call_count(&service, "worker").await.1, 1);
}

#[tokio::test]
async fn a_cancelled_run_cancels_its_call_at_the_server() {
    let (_model, service) = start_with_mock_model().await;
    let (pid, _) = fetch_server_pid_and_call_count(&service, "worker").await;
    let (run, _) = start_hanging_call(&service, &[]).await;
    let task = service.cancel("worker", &run).await;
    assert_eq!(task_state(&task), "canceled", "{task}");
    let results = run_tool_calls(&service, "worker", &[("store__cancelled", json!({}))]).await;
    assert_eq!(results, [observation_step("1")]);
    assert_eq!(fetch_server_pid_and_call_count(&service, "other").await.0, pid);
}

#[tokio::test]
async fn a_killed_service_does_not_repeat_a_call() {
    let (_model, mut service) = start_with_mock_model().await;
    let (run, mark_file) = start_hanging_call(&service, &[]).await;
    service.kill9().await;
    service.start_again().await;
    let task = service.wait_for_task_end("worker", &run).await;
    assert_eq!(task_outcome(&task), completed_outcome("done"), "{task}");
    let steps = fetch_steps(&service, &run).await;
    let text = steps[1]["text"].as_str().unwrap();
    assert!(text.starts_with("outcome unknown: "), "{text}");
    assert_eq!(fs::read_to_string(mark_file).unwrap(), "called\n");
}

#[tokio::test]
async fn a_cancelled_run_starts_no_second_process() {
    let model = MockModel::start(&[]);
    let silent_server_settings = "args = [\"mcp\", \"--silent\", \"--start\", \"HERE/writable/starts\"]\n\
                  sandbox = { writable = [\"HERE/writable\"] }\nstart_timeout = 600";
    let config = MCP_CONFIG.replace("MODEL", &model.base_url());
    let config =
        config.replace("args = [\"mcp\", \"--silent\"]\nstart_timeout = 1", silent_server_settings);
    let service = mcp_setup(&config).start().await;
    let starts_file = service.setup.test_folder().join("writable/starts");
    for _ in 0..3 {
        let run = service
            .start_task("other", &prompt_with_turns("go", &[final_answer_turn("done")]))
            .await;
        poll_until("the start", async || starts_file.exists().then_some(())).await;
        let is_running =
            async || (service.fetch_execution(&run).await["state"] == "running").then_some(());
        poll_until("the run", is_running).await;
        let task = service.cancel("other", &run).await;
        assert_eq!(task_state(&task), "canceled", "{task}");
    }
    assert_eq!(fs::read_to_string(starts_file).unwrap(), "started\n");
}

#[tokio::test]
async fn a_server_that_ignores_the_end_is_killed() {
    let model = MockModel::start(&[]);
    let config = MCP_CONFIG.replace("MODEL", &model.base_url());
    let config = config.replace("\"mcp\", \"--end\"", "\"mcp\", \"--stubborn\", \"--end\"");
    let mut service = mcp_setup(&config).start().await;
    let (pid, _) = fetch_server_pid_and_call_count(&service, "worker").await;
    service.send_sigterm();
    service.wait_for_exit().await;
    assert!(!is_alive(pid), "the server is left after a stop");
}

#[tokio::test]
async fn the_loss_of_the_process_holder_is_an_error_of_the_call() {
    let (_model, service) = start_with_mock_model().await;
    let later_turn = turn_with_calls(&[("store__count", json!({}))]);
    let (run, _) = start_hanging_call(&service, &[later_turn]).await;
    kill9(service.holder_pid());
    let task = service.wait_for_task_end("worker", &run).await;
    assert_eq!(task_outcome(&task), completed_outcome("done"), "{task}");
    let steps = fetch_steps(&service, &run).await;
    let text = steps[1]["text"].as_str().unwrap();
    assert!(
        text.contains("may have had its effect: the process holder of the MCP server was lost"),
        "{text}"
    );
    assert!(!service.stderr_text().contains("panicked"), "{}", service.stderr_text());
}

#[tokio::test]
async fn a_server_beyond_its_limits_is_ended() {
    let model = MockModel::start(&[]);
    let limits = "args = [\"mcp\", \"--end\", \"HERE/writable/end\"]\nresources = { memory_bytes = 100_000_000, group = \"off\" }";
    let config = MCP_CONFIG
        .replace("MODEL", &model.base_url())
        .replace("args = [\"mcp\", \"--end\", \"HERE/writable/end\"]", limits);
    let service = mcp_setup(&config).start().await;
    let tool_calls = [("store__grow", json!({})), ("store__count", json!({}))];
    let results = run_tool_calls(&service, "worker", &tool_calls).await;
    let (kind, text) = &results[0];
    let start = "the call was interrupted, and may have had its effect: the MCP server took ";
    let end = "`resources.memory_bytes` allows 100000000, and the service killed it";
    assert!(kind == "error" && text.starts_with(start) && text.ends_with(end), "{text}");
    assert!(results[1].1.ends_with(" 1"), "{results:?}");
}
