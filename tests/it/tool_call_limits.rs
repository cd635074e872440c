//! Tool calls of interactive agents under a permission policy: their number, and calls without permission.

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, failed_outcome, task_id, task_outcome};
use crate::harness::{ServiceProcess, poll_until};

/// Returns an agent that follows the instructions of its prompt, with a policy. It writes its tool calls into
/// `HERE/ran`, and the lines that it reads into `HERE/log`. Its variables are escaped because the setup replaces
/// `FAKE`.
fn agent_config_with_policy(consent: &str) -> String {
    let [tool_call_log_variable, input_log_variable] =
        ["RAN", "LOG"].map(|name| format!(r#""F\u0041KE_ACP_{name}""#));
    format!(
        "[agents.coder]\ncommand = 'FAKE'\nargs = ['acp']\nprotocol = 'acp'\nstop_grace = 1\n\
         sandbox.writable = ['HERE']\nenv.{tool_call_log_variable} = 'HERE/ran'\nenv.{input_log_variable} = 'HERE/log'\n\
         [agents.coder.consent]\n{consent}\n"
    )
}

/// Returns the number of tool calls that ran.
fn tool_call_count(service: &ServiceProcess) -> usize {
    service.setup.read_file("ran").lines().count()
}

/// Returns the sentence of a failed task.
fn failure_text(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_turn_within_the_limit_of_tool_calls_completes() {
    let service =
        ServiceProcess::start(&agent_config_with_policy("default = 'allow'\nmax_tool_calls = 2"))
            .await;
    let prompt = "[[tool Bash command=a]][[tool Bash command=b]][[say done]]";
    assert_eq!(task_outcome(&service.send("coder", prompt).await), completed_outcome("done"));
    assert_eq!(
        task_outcome(&service.send("coder", prompt).await),
        completed_outcome("done"),
        "each turn"
    );
    assert_eq!(tool_call_count(&service), 4);
}

#[tokio::test]
async fn the_tool_call_after_the_limit_cancels_the_turn() {
    for (third_call, expected_call_count) in
        [("[[tool Bash command=c]]", 2), ("[[tool Bash command=c unasked]]", 3)]
    {
        let service = ServiceProcess::start(&agent_config_with_policy(
            "default = 'allow'\nmax_tool_calls = 2",
        ))
        .await;
        let prompt = format!(
            "[[tool Bash command=a]][[tool Bash command=b]]{third_call}[[hang]][[say done]]"
        );
        let task = service.send("coder", &prompt).await;
        assert_eq!(task_outcome(&task), failed_outcome("tool-limit"), "{third_call}");
        let message = failure_text(&task);
        assert!(message.contains("more than 2 tool calls"), "{message}");
        assert_eq!(tool_call_count(&service), expected_call_count, "{third_call}");
        let log = service.setup.read_file("log");
        assert_eq!(log.matches("session/cancel").count(), 1, "{log}");
        assert_eq!(log.matches("session/prompt").count(), 1, "it is not tried again: {log}");
    }
}

#[tokio::test]
async fn an_agent_that_ignores_the_cancellation_is_ended() {
    let service =
        ServiceProcess::start(&agent_config_with_policy("default = 'allow'\nmax_tool_calls = 1"))
            .await;
    let prompt = "[[ignore-cancel]][[tool Bash command=a]][[tool Bash command=b unasked]][[hang]]";
    assert_eq!(task_outcome(&service.send("coder", prompt).await), failed_outcome("tool-limit"));
}

#[tokio::test]
async fn a_tool_call_without_a_request_fails_the_turn() {
    for (consent, tool, cause) in [
        ("", "[[tool Bash command=a unasked]]", "without a request for permission"),
        ("tools = { Bash = 'deny' }", "[[tool Bash command=a unasked]]", "which the policy denies"),
    ] {
        let service = ServiceProcess::start(&agent_config_with_policy(consent)).await;
        let task = service.send("coder", &format!("{tool}[[hang]][[say done]]")).await;
        assert_eq!(task_outcome(&task), failed_outcome("unauthorized-tool"), "{consent}");
        let message = failure_text(&task);
        assert!(message.contains("`Bash`") && message.contains(cause), "{message}");
        let log = service.setup.read_file("log");
        assert_eq!(log.matches("session/cancel").count(), 1, "{log}");
    }
}

#[tokio::test]
async fn allowed_and_denied_tool_calls_are_authorized() {
    let consent = "tools = { Read = 'allow', Bash = 'allow', Write = 'deny' }";
    let service = ServiceProcess::start(&agent_config_with_policy(consent)).await;
    let prompt = "[[tool Read path=a kind=read unasked]][[tool Bash command=b]]\
                  [[tool Bash command=c early]][[tool Write path=d kind=edit]][[say done]]";
    assert_eq!(task_outcome(&service.send("coder", prompt).await), completed_outcome("done"));
    assert_eq!(tool_call_count(&service), 3, "the denied call did not run");
}

#[tokio::test]
async fn an_unauthorized_tool_call_can_only_be_reported() {
    let service = ServiceProcess::start(&agent_config_with_policy("unauthorized = 'report'")).await;
    let task = service.send("coder", "[[tool Bash command=a unasked]][[say done]]").await;
    assert_eq!(task_outcome(&task), completed_outcome("done"));
    let events = service.get(&format!("/api/v1/executions/{}/events", task_id(&task))).await.body;
    let text = "the agent used the tool `Bash` without a request for permission";
    assert_eq!(events.matches(text).count(), 1, "{events}");
    assert!(
        service.stderr_text().contains("tool call without permission"),
        "{}",
        service.stderr_text()
    );
}

/// Waits for the open question of a task, and allows it.
async fn allow_open_question(service: &ServiceProcess, task_id: &str) {
    let path = format!("/api/v1/interactions?execution={task_id}&state=open");
    let interaction_id = poll_until("an open question", async || {
        let list = service.get(&path).await.json();
        list["interactions"][0]["id"].as_str().map(str::to_owned)
    })
    .await;
    let answer = json!({"verdict": "allow"}).to_string();
    let response =
        service.post(&format!("/api/v1/interactions/{interaction_id}/answer"), &answer).await;
    assert_eq!(response.status, 200, "{response:?}");
}

/// The answer is among the lines that the process before the restart has sent. Both calls count after it.
#[tokio::test]
async fn answered_tool_calls_are_judged_again_after_a_restart() {
    for (limit, expected_outcome) in
        [(2, completed_outcome("done")), (1, failed_outcome("tool-limit"))]
    {
        let agent_with_limit =
            |limit| agent_config_with_policy(&format!("max_tool_calls = {limit}"));
        let mut service = ServiceProcess::start(&agent_with_limit(2)).await;
        let prompt = "[[tool Bash command=a]][[tool Bash command=b]][[say done]]";
        let task_id = service.start_task("coder", prompt).await;
        allow_open_question(&service, &task_id).await;
        poll_until("the first call", async || (tool_call_count(&service) == 1).then_some(())).await;
        service.kill9().await;
        let config_file = service.setup.write_config().to_owned();
        let config_text = std::fs::read_to_string(&config_file).unwrap();
        service.setup.set_config_text(
            &config_text.replace("max_tool_calls = 2", &format!("max_tool_calls = {limit}")),
        );
        service.start_again().await;
        if limit == 2 {
            allow_open_question(&service, &task_id).await;
        }
        assert_eq!(
            task_outcome(&service.wait_for_task_end("coder", &task_id).await),
            expected_outcome
        );
    }
}
