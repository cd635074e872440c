//! Questions of a remote agent, and conversations with it.

use serde_json::json;

use super::{REMOTE_AGENTS, start_caller_and_remote};
use crate::harness::client::{completed_outcome, task_id, task_outcome, task_state};
use crate::harness::message_params;

#[tokio::test]
async fn a_remote_question_is_passed_on_and_answered() {
    let (caller, remote_service) = start_caller_and_remote().await;
    remote_service.setup.open_gate("go");
    for (agent, ..) in REMOTE_AGENTS {
        let task = caller.send(agent, "ask").await;
        assert_eq!(task_state(&task), "input-required", "{agent}: {task}");
        let text = &task["status"]["message"]["parts"][0]["text"];
        assert_eq!(text, "which colour?", "{agent}");
        let mut answer = message_params("blue");
        answer["message"]["taskId"] = json!(task_id(&task));
        let task = caller.expect_result(agent, "message/send", &answer).await;
        assert_eq!(
            task_outcome(&task),
            completed_outcome("first blue, then the rest"),
            "{agent}: {task}"
        );
        // The answer went to the task that asked: one execution, whose second turn it was.
        let executions = remote_service.get("/api/v1/executions").await.json();
        assert_eq!(executions["executions"][0]["state"], "completed", "{agent}: {executions}");
    }
    let executions = remote_service.get("/api/v1/executions").await.json();
    assert_eq!(executions["executions"].as_array().unwrap().len(), REMOTE_AGENTS.len());
}

#[tokio::test]
async fn a_conversation_keeps_one_remote_context() {
    let (caller, remote_service) = start_caller_and_remote().await;
    remote_service.setup.open_gate("go");
    let first_task = caller.send("new-rpc", "one").await;
    let mut next_message = message_params("two");
    next_message["message"]["contextId"] = first_task["contextId"].clone();
    caller.expect_result("new-rpc", "message/send", &next_message).await;
    caller.send("new-rpc", "three").await;
    let executions = remote_service.get("/api/v1/executions").await.json();
    let context = |number: usize| executions["executions"][number]["contextId"].clone();
    assert!(context(0).is_string(), "{executions}");
    assert_eq!(context(1), context(2), "{executions}");
    assert_ne!(context(0), context(1), "{executions}");
}
