//! Integration tests of interactive agents: questions, their answers, and what the agent does then.

mod answering;
mod at_terminal;
mod by_message;
mod continuing;
mod expiring;
mod in_teams;
mod modes;
mod protocol_faults;
mod refusing;

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, failed_outcome, task_outcome};
use crate::harness::{
    ServiceClient, ServiceProcess, json_rpc_request_body, message_params, poll_until,
};

/// Control protocols, which are also the roles of the fake agent.
const PROTOCOLS: [&str; 3] = ["acp", "claude-control", "codex-app-server"];

/// Prompt of a turn that calls a tool and then answers.
const TOOL_PROMPT: &str = r#"[[tool Bash kind=execute command="make test"]] [[say done]]"#;

/// Variables of the fake agent, escaped because the setup replaces `FAKE` by the path of its program.
const SESSIONS_VARIABLE: &str = r#""F\u0041KE_ACP_STATE""#;
const TOOL_CALL_LOG_VARIABLE: &str = r#""F\u0041KE_ACP_RAN""#;

const MODE_CONFIRMATION_VARIABLE: &str = r#""F\u0041KE_ACP_CONFIRM""#;

/// Returns an agent of this protocol with further settings. It writes its tool calls into `HERE/ran`.
fn interactive_agent_config(id: &str, protocol: &str, settings: &str) -> String {
    format!(
        "[agents.{id}]\ncommand = 'FAKE'\nargs = ['{protocol}']\nprotocol = '{protocol}'\n\
         sandbox.writable = ['HERE']\nenv.{SESSIONS_VARIABLE} = 'HERE/sessions'\n\
         env.{TOOL_CALL_LOG_VARIABLE} = 'HERE/ran'\n{settings}\n"
    )
}

/// Starts a service with these agents, whose sessions outlive their processes.
async fn start_service(agents: &str) -> ServiceProcess {
    let service = ServiceProcess::start(agents).await;
    std::fs::create_dir(service.setup.test_folder().join("sessions")).unwrap();
    service
}

/// Returns the number of tool calls that ran.
fn tool_call_count(service: &ServiceProcess) -> usize {
    service.setup.read_file("ran").lines().count()
}

/// Returns the interactions of a task in this state, newest first.
async fn list_interactions(client: &ServiceClient, task_id: &str, state: &str) -> Vec<Value> {
    let path = format!("/api/v1/interactions?execution={task_id}&state={state}");
    client.get(&path).await.json()["interactions"].as_array().unwrap().clone()
}

/// Waits for the open question of a task, and returns it.
async fn wait_for_question(client: &ServiceClient, task_id: &str) -> Value {
    poll_until(&format!("a question of {task_id}"), async || {
        let open_question = list_interactions(client, task_id, "open").await.pop();
        if open_question.is_none() {
            let execution = client.fetch_execution(task_id).await;
            assert_eq!(execution["outcome"], Value::Null, "no question: {execution}");
        }
        open_question
    })
    .await
}

/// Returns the path of an interaction.
fn interaction_path(question: &Value) -> String {
    format!("/api/v1/interactions/{}", question["id"].as_str().unwrap())
}

/// Returns the interaction as it is now.
async fn fetch_interaction(client: &ServiceClient, question: &Value) -> Value {
    client.get(&interaction_path(question)).await.json()
}

/// Answers a question; returns the status, and the state of the interaction or the code of the refusal.
async fn answer_question(client: &ServiceClient, question: &Value, body: &Value) -> (u16, String) {
    let response =
        client.post(&format!("{}/answer", interaction_path(question)), &body.to_string()).await;
    let state = response.json()["state"].as_str().map(str::to_owned);
    (response.status, state.unwrap_or_else(|| response.error_code()))
}

/// Returns the response to an answer that closed the question.
fn answered_response() -> (u16, String) {
    (200, "answered".to_owned())
}

/// Returns the verdicts about the tool calls of an agent, each with its source.
async fn fetch_verdicts(client: &ServiceClient, agent: &str) -> Vec<(String, String)> {
    let list = client.get(&format!("/api/v1/permission-decisions?agent={agent}")).await.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let decisions = list["decisions"].as_array().unwrap().iter();
    decisions
        .map(|decision| (text(&decision["verdict"]), text(&decision["by"]["source"])))
        .collect()
}

/// Returns the recorded verdict of a source.
fn recorded_verdict(verdict: &str, source: &str) -> (String, String) {
    (verdict.to_owned(), source.to_owned())
}
