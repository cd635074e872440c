//! Questions that end without an answer.

use super::*;
use crate::harness::Setup;

#[tokio::test]
async fn an_expired_question_denies_its_call_in_each_protocol() {
    for protocol in PROTOCOLS {
        let service =
            start_service(&interactive_agent_config("coder", protocol, "consent.timeout = 1"))
                .await;
        let task_id = service.start_task("coder", TOOL_PROMPT).await;
        let question = wait_for_question(&service, &task_id).await;
        let ended = service.wait_for_task_end("coder", &task_id).await;
        assert_eq!(task_outcome(&ended), completed_outcome("done"), "{protocol}: {ended}");
        assert_eq!(tool_call_count(&service), 0, "{protocol}");
        let closed_interaction = fetch_interaction(&service, &question).await;
        assert_eq!(closed_interaction["state"], "expired", "{closed_interaction}");
        assert_eq!(closed_interaction["closed"]["by"]["source"], "timeout", "{closed_interaction}");
        let late_answer = answer_question(&service, &question, &json!({"verdict": "allow"})).await;
        assert_eq!(late_answer, (409, "interaction-closed".to_owned()), "{protocol}");
        assert_eq!(
            fetch_verdicts(&service, "coder").await,
            [recorded_verdict("deny", "timeout")],
            "{protocol}"
        );
    }
}

#[tokio::test]
async fn an_expired_question_can_end_its_turn() {
    for protocol in PROTOCOLS {
        let settings = "consent.timeout = 1\nconsent.on_timeout = 'cancel'";
        let service = start_service(&interactive_agent_config("coder", protocol, settings)).await;
        let task_id = service.start_task("coder", TOOL_PROMPT).await;
        let question = wait_for_question(&service, &task_id).await;
        let ended = service.wait_for_task_end("coder", &task_id).await;
        let cancelled = ("canceled".to_owned(), "execution-cancelled".to_owned());
        assert_eq!(task_outcome(&ended), cancelled, "{protocol}: {ended}");
        assert_eq!(tool_call_count(&service), 0, "{protocol}");
        assert_eq!(fetch_interaction(&service, &question).await["state"], "expired", "{protocol}");
    }
}

#[tokio::test]
async fn a_question_expires_although_the_service_was_down() {
    let mut service =
        start_service(&interactive_agent_config("coder", "acp", "consent.timeout = 1")).await;
    let task_id = service.start_task("coder", TOOL_PROMPT).await;
    let question = wait_for_question(&service, &task_id).await;
    service.kill9().await;
    service.start_again().await;
    let ended = service.wait_for_task_end("coder", &task_id).await;
    assert_eq!(task_outcome(&ended), completed_outcome("done"), "{ended}");
    assert_eq!(tool_call_count(&service), 0);
    assert_eq!(fetch_interaction(&service, &question).await["state"], "expired");
}

#[tokio::test]
async fn a_cancelled_task_closes_its_open_question() {
    for protocol in PROTOCOLS {
        let service = start_service(&interactive_agent_config("coder", protocol, "")).await;
        let task_id = service.start_task("coder", TOOL_PROMPT).await;
        let question = wait_for_question(&service, &task_id).await;
        service.cancel("coder", &task_id).await;
        let ended = service.wait_for_task_end("coder", &task_id).await;
        assert_eq!(ended["status"]["state"], "canceled", "{protocol}: {ended}");
        let closed_interaction = fetch_interaction(&service, &question).await;
        assert_eq!(closed_interaction["state"], "withdrawn", "{protocol}: {closed_interaction}");
        assert_eq!(
            closed_interaction["closed"]["by"]["source"], "cancel",
            "{protocol}: {closed_interaction}"
        );
        let late_answer = answer_question(&service, &question, &json!({"verdict": "allow"})).await;
        assert_eq!(late_answer, (409, "interaction-closed".to_owned()), "{protocol}");
        assert_eq!(tool_call_count(&service), 0, "{protocol}");
    }
}

#[tokio::test]
async fn a_stopped_service_withdraws_its_questions() {
    for protocol in PROTOCOLS {
        let agents = interactive_agent_config("coder", protocol, "");
        let setup = Setup::with_server_settings("drain_timeout = 0.3", &agents);
        std::fs::create_dir(setup.test_folder().join("sessions")).unwrap();
        let mut service = setup.start().await;
        let task_id = service.start_task("coder", TOOL_PROMPT).await;
        let question = wait_for_question(&service, &task_id).await;
        service.send_sigterm();
        assert!(service.wait_for_exit().await.success(), "{protocol}");
        service.start_again().await;
        let closed_interaction = fetch_interaction(&service, &question).await;
        assert_eq!(closed_interaction["state"], "withdrawn", "{protocol}: {closed_interaction}");
        let ended = service.wait_for_task_end("coder", &task_id).await;
        let cancelled = ("canceled".to_owned(), "execution-cancelled".to_owned());
        assert_eq!(task_outcome(&ended), cancelled, "{protocol}: {ended}");
        assert_eq!(tool_call_count(&service), 0, "{protocol}");
    }
}

#[tokio::test]
async fn a_question_withdrawn_by_its_agent_is_closed() {
    let service = start_service(&interactive_agent_config("coder", "acp", "")).await;
    let task_id = service.start_task("coder", "[[withdraw]] [[say done]]").await;
    assert_eq!(
        task_outcome(&service.wait_for_task_end("coder", &task_id).await),
        completed_outcome("done")
    );
    let all_interactions = service.get("/api/v1/interactions").await.json();
    let interaction = &all_interactions["interactions"][0];
    assert_eq!(interaction["state"], "withdrawn", "{all_interactions}");
    assert_eq!(interaction["closed"]["by"]["source"], "agent", "{all_interactions}");
}
