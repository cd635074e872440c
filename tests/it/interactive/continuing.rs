//! Turns that continue: after a crash of the service, and in the agent's own session.

use nix::sys::signal::Signal;

use super::*;

/// Returns the parameters of a message of this conversation.
fn message_params_in_context(context: &str, text: &str) -> Value {
    let mut params = message_params(text);
    params["message"]["contextId"] = json!(context);
    params
}

#[tokio::test]
async fn an_open_question_survives_a_crash_of_the_service() {
    for protocol in PROTOCOLS {
        let mut service = start_service(&interactive_agent_config("coder", protocol, "")).await;
        let task_id = service.start_task("coder", TOOL_PROMPT).await;
        let question = wait_for_question(&service, &task_id).await;
        service.kill9().await;
        service.start_again().await;
        let repeated_question = wait_for_question(&service, &task_id).await;
        assert_eq!(repeated_question["id"], question["id"], "{protocol}");
        assert_eq!(
            answer_question(&service, &repeated_question, &json!({"verdict": "allow"})).await,
            answered_response()
        );
        let ended = service.wait_for_task_end("coder", &task_id).await;
        assert_eq!(task_outcome(&ended), completed_outcome("done"), "{protocol}: {ended}");
        assert_eq!(tool_call_count(&service), 1, "{protocol}");
        let all_interactions =
            service.get(&format!("/api/v1/interactions?execution={task_id}")).await.json();
        assert_eq!(
            all_interactions["interactions"].as_array().unwrap().len(),
            1,
            "{protocol}: {all_interactions}"
        );
        assert_eq!(
            fetch_verdicts(&service, "coder").await,
            [recorded_verdict("allow", "principal")]
        );
    }
}

#[tokio::test]
async fn a_crash_right_after_an_answer_delivers_it_once() {
    for protocol in PROTOCOLS {
        let mut service = start_service(&interactive_agent_config("coder", protocol, "")).await;
        let task_id = service.start_task("coder", TOOL_PROMPT).await;
        let question = wait_for_question(&service, &task_id).await;
        assert_eq!(
            answer_question(&service, &question, &json!({"verdict": "allow"})).await,
            answered_response()
        );
        service.kill9().await;
        service.start_again().await;
        let ended = service.wait_for_task_end("coder", &task_id).await;
        assert_eq!(task_outcome(&ended), completed_outcome("done"), "{protocol}: {ended}");
        assert_eq!(tool_call_count(&service), 1, "{protocol}");
        assert_eq!(fetch_interaction(&service, &question).await["state"], "answered", "{protocol}");
    }
}

/// Until its delivery, the ledger has the answer only sealed.
#[tokio::test]
async fn a_redacted_answer_reaches_its_agent_over_a_crash() {
    let mut service = start_service(&interactive_agent_config("coder", "acp", "")).await;
    let task_id = service.start_task("coder", "[[form Whom? name=string]]").await;
    let question = wait_for_question(&service, &task_id).await;
    let holder = nix::unistd::Pid::from_raw(service.holder_pid());
    nix::sys::signal::kill(holder, Signal::SIGSTOP).unwrap(); // The agent does not receive the answer yet.
    let address = "jane.doe@mail.example";
    assert_eq!(
        answer_question(&service, &question, &json!({"values": {"name": address}})).await,
        answered_response()
    );
    crate::sealed_inputs::expect_texts_not_stored(&service, &[address]);
    service.kill9().await;
    nix::sys::signal::kill(holder, Signal::SIGCONT).unwrap();
    service.start_again().await;
    let ended = service.wait_for_task_end("coder", &task_id).await;
    assert_eq!(task_outcome(&ended), completed_outcome(r#"FORM: {"name":"j***@mail.example"}"#));
    // A redacted text is not redacted once more, so the agent has received the raw one.
    assert_eq!(ended["artifacts"][0]["metadata"]["redacted"], 1, "{ended}");
}

#[tokio::test]
async fn an_open_question_is_handed_over_to_the_next_service() {
    for protocol in PROTOCOLS {
        let mut service = start_service(&interactive_agent_config("coder", protocol, "")).await;
        let task_id = service.start_task("coder", TOOL_PROMPT).await;
        let question = wait_for_question(&service, &task_id).await;
        service.send_signal(Signal::SIGUSR2);
        assert_eq!(service.wait_for_exit().await.code(), Some(0), "{protocol}");
        service.start_again().await;
        let repeated_question = wait_for_question(&service, &task_id).await;
        assert_eq!(
            (&repeated_question["id"], &repeated_question["dueAt"]),
            (&question["id"], &question["dueAt"]),
            "{protocol}"
        );
        assert_eq!(
            answer_question(&service, &repeated_question, &json!({"verdict": "allow"})).await,
            answered_response()
        );
        let ended = service.wait_for_task_end("coder", &task_id).await;
        assert_eq!(task_outcome(&ended), completed_outcome("done"), "{protocol}: {ended}");
        assert_eq!(tool_call_count(&service), 1, "{protocol}");
    }
}

#[tokio::test]
async fn a_crash_at_the_end_of_a_turn_keeps_its_answer() {
    for protocol in PROTOCOLS {
        // The agent runs on after its input is closed, so the turn is over and its attempt is not.
        let agents = format!(
            "[agents.coder]\ncommand = 'sh'\nprotocol = '{protocol}'\nsandbox.writable = ['HERE']\n\
             args = ['-c', 'FAKE {protocol}; touch HERE/over; until [ -e HERE/go ]; do sleep 0.05; done']\n"
        );
        let mut service = ServiceProcess::start(&agents).await;
        let task_id = service.start_task("coder", "[[say done]]").await;
        poll_until("the end of the turn", async || {
            service.setup.test_folder().join("over").exists().then_some(())
        })
        .await;
        service.kill9().await;
        service.start_again().await;
        service.setup.open_gate("go");
        let ended = service.wait_for_task_end("coder", &task_id).await;
        assert_eq!(task_outcome(&ended), completed_outcome("done"), "{protocol}: {ended}");
        assert_eq!(ended["metadata"]["warnings"], Value::Null, "{protocol}: {ended}");
    }
}

#[tokio::test]
async fn a_question_is_closed_when_its_process_is_lost() {
    let mut service = start_service(&interactive_agent_config("coder", "acp", "")).await;
    let task_id = service.start_task("coder", TOOL_PROMPT).await;
    let question = wait_for_question(&service, &task_id).await;
    service.kill9_with_holder().await;
    service.start_again().await;
    let ended = service.wait_for_task_end("coder", &task_id).await;
    assert_eq!(task_outcome(&ended), failed_outcome("interrupted"), "{ended}");
    let closed_interaction = fetch_interaction(&service, &question).await;
    assert_eq!(closed_interaction["state"], "lost", "{closed_interaction}");
    assert_eq!(closed_interaction["closed"]["by"]["source"], "process-end", "{closed_interaction}");
    let late_answer = answer_question(&service, &question, &json!({"verdict": "allow"})).await;
    assert_eq!(late_answer, (409, "interaction-closed".to_owned()));
    assert_eq!(tool_call_count(&service), 0);
}

/// Deletes the sessions of the agent.
fn delete_sessions(service: &ServiceProcess) {
    let files = std::fs::read_dir(service.setup.test_folder().join("sessions")).unwrap().flatten();
    let count = files.map(|file| std::fs::remove_file(file.path()).unwrap()).count();
    assert!(count > 0, "the agent kept no session");
}

#[tokio::test]
async fn an_unknown_session_is_replaced_once_and_reported() {
    for protocol in PROTOCOLS {
        let service = start_service(&interactive_agent_config("coder", protocol, "")).await;
        service
            .expect_result("coder", "message/send", &message_params_in_context("c", "[[say one]]"))
            .await;
        delete_sessions(&service);
        let body =
            json_rpc_request_body("message/stream", &message_params_in_context("c", "[[say two]]"));
        let response = service.post("/agents/coder/v1", &body).await.body;
        assert!(response.contains(r#""continuity":"lost""#), "{protocol}: {response}");
        assert!(response.contains(r#""text":"two""#), "{protocol}: {response}");
        assert_eq!(
            response.matches("the agent does not know it").count(),
            1,
            "{protocol}: {response}"
        );
        let task = service
            .expect_result("coder", "message/send", &message_params_in_context("c", "[[recall]]"))
            .await;
        assert_eq!(task_outcome(&task), completed_outcome("[[say two]]"), "{protocol}: {task}");
    }
}

#[tokio::test]
async fn a_second_turn_resumes_the_session_of_the_agent() {
    for protocol in PROTOCOLS {
        let mut service = start_service(&interactive_agent_config("coder", protocol, "")).await;
        let task = service
            .expect_result("coder", "message/send", &message_params_in_context("c", "[[say one]]"))
            .await;
        assert_eq!(task_outcome(&task), completed_outcome("one"), "{protocol}: {task}");
        service.send_sigterm();
        assert!(service.wait_for_exit().await.success());
        service.start_again().await;
        let task = service
            .expect_result("coder", "message/send", &message_params_in_context("c", "[[recall]]"))
            .await;
        assert_eq!(task_outcome(&task), completed_outcome("[[say one]]"), "{protocol}: {task}");
        let task = service
            .expect_result("coder", "message/send", &message_params_in_context("c", "[[recall]]"))
            .await;
        let both_prompts = "[[say one]] | [[recall]]";
        assert_eq!(task_outcome(&task), completed_outcome(both_prompts), "{protocol}: {task}");
        let other_answer = service
            .expect_result(
                "coder",
                "message/send",
                &message_params_in_context("d", "new [[recall]] [[say .]]"),
            )
            .await;
        assert_eq!(
            task_outcome(&other_answer),
            completed_outcome("."),
            "{protocol}: another context: {other_answer}"
        );
    }
}
