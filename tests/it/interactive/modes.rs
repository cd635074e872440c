//! Modes of interactive agents: set and confirmed before the first message.

use super::*;

#[tokio::test]
async fn the_configured_mode_is_set_before_the_message() {
    let modes = "session.mode = 'ask'\nenv.\"F\\u0041KE_ACP_MODES\" = 'auto,ask'";
    let service = start_service(&interactive_agent_config("coder", "acp", modes)).await;
    let task_id = service.start_task("coder", TOOL_PROMPT).await;
    let question = wait_for_question(&service, &task_id).await;
    assert_eq!(
        answer_question(&service, &question, &json!({"verdict": "deny"})).await,
        answered_response()
    );
    assert_eq!(
        task_outcome(&service.wait_for_task_end("coder", &task_id).await),
        completed_outcome("done")
    );
    assert_eq!(tool_call_count(&service), 0);
}

#[tokio::test]
async fn a_mode_that_the_agent_does_not_confirm_fails_the_task() {
    for (mode, confirm) in [("auto", "no"), ("auto", "silent"), ("unknown", "yes")] {
        let settings =
            format!("session.mode = '{mode}'\nenv.{MODE_CONFIRMATION_VARIABLE} = '{confirm}'");
        let service = start_service(&interactive_agent_config("coder", "acp", &settings)).await;
        let task_id = service.start_task("coder", TOOL_PROMPT).await;
        let ended = service.wait_for_task_end("coder", &task_id).await;
        assert_eq!(
            task_outcome(&ended),
            failed_outcome("mode-refused"),
            "{mode} {confirm}: {ended}"
        );
        assert_eq!(tool_call_count(&service), 0, "{mode} {confirm}");
    }
}
