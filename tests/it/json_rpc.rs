//! Programs that are asked by JSON-RPC, over an input that stays open until they have answered.

use serde_json::Value;

use crate::harness::client::{completed_outcome, failed_outcome, task_outcome, task_state};
use crate::harness::processes::pids_with_env;
use crate::harness::{ServiceProcess, poll_until};
use crate::persistent_processes::pids_of_agent;

/// The fake server with its options, and further keys of `json_rpc`.
fn rpc_agent_config(options: &str, settings: &str, json_rpc_settings: &str) -> String {
    format!(
        "[agents.rpc]\ncommand = 'FAKE'\nargs = ['rpc'{options}]\nstop_grace = 0.2\n\
         input = 'json-rpc'\noutput = 'json-rpc'\n{settings}\n[agents.rpc.json_rpc]\n\
         method = 'ask'\nparams = {{ text = '{{{{ input }}}}' }}\nresult = '/answer'\n{json_rpc_settings}\n"
    )
}

const TEXT_NOTIFICATION: &str = "notifications = { said = { kind = 'text', pointer = '/text' } }";

async fn fetch_events(service: &ServiceProcess, task: &Value) -> String {
    let id = task["id"].as_str().unwrap();
    service.get(&format!("/api/v1/executions/{id}/events")).await.body
}

#[tokio::test]
async fn a_json_rpc_server_is_called_in_both_framings() {
    for (options, framing) in [("", ""), (", '--counted'", "framing = 'content-length'\n")] {
        let keys = format!("{framing}usage = '/usage'\n{TEXT_NOTIFICATION}");
        let service = ServiceProcess::start(&rpc_agent_config(options, "", &keys)).await;
        let text = "a \"quoted\"\nline, {{ not.filled }} in é";
        assert_eq!(task_outcome(&service.send("rpc", text).await), completed_outcome(text));
        assert_eq!(
            task_outcome(&service.send("rpc", "notify a b").await),
            completed_outcome("a;b;")
        );
        assert_eq!(
            task_outcome(&service.send("rpc", "junk").await),
            completed_outcome("after junk")
        );
        let long_text = "word ".repeat(60_000) + "end"; // More than a pipe holds, in both directions.
        assert!(
            task_outcome(&service.send("rpc", &long_text).await) == completed_outcome(&long_text)
        );
        assert!(pids_of_agent(&service, "rpc").is_empty());
    }
}

#[tokio::test]
async fn a_json_rpc_server_is_initialized_and_names_its_session() {
    let service_without_initialize =
        ServiceProcess::start(&rpc_agent_config(", '--init'", "", "")).await;
    assert_eq!(
        task_outcome(&service_without_initialize.send("rpc", "hello").await),
        failed_outcome("agent-reported")
    );
    let keys = "initialize = { method = 'initialize', params = { version = 1 } }\n\
                initialized = { method = 'initialized' }\nsession = '/session'";
    let service = ServiceProcess::start(&rpc_agent_config(", '--init'", "", keys)).await;
    let task = service.send("rpc", "hello").await;
    assert_eq!(task_outcome(&task), completed_outcome("hello"));
    let events = fetch_events(&service, &task).await;
    assert!(events.contains("server-7"), "{events}");
}

#[tokio::test]
async fn json_rpc_errors_and_early_ends_have_their_codes() {
    let keys = "transient_codes = [-32000]";
    let service = ServiceProcess::start(&rpc_agent_config("", "retry.max = 0", keys)).await;
    for (text, code) in [
        ("error 7", "agent-reported"),
        ("error -32000", "agent-transient"),
        ("notify a", "answer-missing"),
        ("exit 3", "agent-exit"),
        ("exit 0", "answer-missing"),
    ] {
        let task = service.send("rpc", text).await;
        assert_eq!(task_outcome(&task), failed_outcome(code), "{text}");
        let reason = task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default();
        assert_eq!(reason.contains("it cannot be done"), text.starts_with("error"), "{reason}");
    }
}

#[tokio::test]
async fn requests_of_a_json_rpc_server_are_refused_and_noted() {
    let service = ServiceProcess::start(&rpc_agent_config("", "", "")).await;
    let task = service.send("rpc", "reverse").await;
    assert_eq!(task_outcome(&task), completed_outcome("-32601"));
    let events = fetch_events(&service, &task).await;
    assert!(events.contains("`fs/read`, which the service does not offer"), "{events}");
}

#[tokio::test]
async fn a_json_rpc_server_that_keeps_running_is_ended() {
    let service = ServiceProcess::start(&rpc_agent_config(", '--stays'", "", "")).await;
    assert_eq!(task_outcome(&service.send("rpc", "hello").await), completed_outcome("hello"));
    assert!(pids_of_agent(&service, "rpc").is_empty());
}

#[tokio::test]
async fn a_hanging_call_can_be_cancelled_and_ends_with_its_service() {
    let mut service = ServiceProcess::start(&rpc_agent_config("", "", "")).await;
    let id = service.start_task("rpc", "hang").await;
    let env_entry = format!("ALGONIUS_EXECUTION_ID={id}");
    poll_until("its process", async || (!pids_with_env(&env_entry).is_empty()).then_some(())).await;
    assert_eq!(task_state(&service.cancel("rpc", &id).await), "canceled");
    poll_until("its end", async || pids_with_env(&env_entry).is_empty().then_some(())).await;

    let id = service.start_task("rpc", "hang").await;
    let env_entry = format!("ALGONIUS_EXECUTION_ID={id}");
    poll_until("its process", async || (!pids_with_env(&env_entry).is_empty()).then_some(())).await;
    service.kill9().await;
    poll_until("the end of its program", async || {
        pids_with_env(&env_entry).is_empty().then_some(())
    })
    .await;
    service.start_again().await;
    assert_eq!(
        task_outcome(&service.wait_for_task_end("rpc", &id).await),
        failed_outcome("interrupted")
    );
}
