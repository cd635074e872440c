//! Turns that continue: after a crash of the service, and in the agent's own session.

use nix::sys::signal::Signal;

use super::*;

/// Returns the parameters of a message of this conversation.
fn of(context: &str, text: &str) -> Value {
    let mut params = message(text);
    params["message"]["contextId"] = json!(context);
    params
}

#[tokio::test]
async fn an_open_question_survives_a_crash_of_the_service() {
    for protocol in PROTOCOLS {
        let mut service = started(&agent("coder", protocol, "")).await;
        let task = service.begin("coder", TOOL).await;
        let asked = wait_for_question(&service, &task).await;
        service.kill9().await;
        service.restart().await;
        let again = wait_for_question(&service, &task).await;
        assert_eq!(again["id"], asked["id"], "{protocol}");
        assert_eq!(answer(&service, &again, &json!({"verdict": "allow"})).await, answered());
        let ended = service.ended("coder", &task).await;
        assert_eq!(outcome(&ended), completed("done"), "{protocol}: {ended}");
        assert_eq!(tool_call_count(&service), 1, "{protocol}");
        let all = service.get(&format!("/api/v1/interactions?execution={task}")).await.json();
        assert_eq!(all["interactions"].as_array().unwrap().len(), 1, "{protocol}: {all}");
        assert_eq!(verdicts(&service, "coder").await, [verdict("allow", "principal")]);
    }
}

#[tokio::test]
async fn a_crash_right_after_an_answer_delivers_it_once() {
    for protocol in PROTOCOLS {
        let mut service = started(&agent("coder", protocol, "")).await;
        let task = service.begin("coder", TOOL).await;
        let asked = wait_for_question(&service, &task).await;
        assert_eq!(answer(&service, &asked, &json!({"verdict": "allow"})).await, answered());
        service.kill9().await;
        service.restart().await;
        let ended = service.ended("coder", &task).await;
        assert_eq!(outcome(&ended), completed("done"), "{protocol}: {ended}");
        assert_eq!(tool_call_count(&service), 1, "{protocol}");
        assert_eq!(fetch_interaction(&service, &asked).await["state"], "answered", "{protocol}");
    }
}

#[tokio::test]
async fn an_open_question_is_handed_over_to_the_next_service() {
    for protocol in PROTOCOLS {
        let mut service = started(&agent("coder", protocol, "")).await;
        let task = service.begin("coder", TOOL).await;
        let asked = wait_for_question(&service, &task).await;
        service.signal(Signal::SIGUSR2);
        assert_eq!(service.exit().await.code(), Some(0), "{protocol}");
        service.restart().await;
        let again = wait_for_question(&service, &task).await;
        assert_eq!((&again["id"], &again["dueAt"]), (&asked["id"], &asked["dueAt"]), "{protocol}");
        assert_eq!(answer(&service, &again, &json!({"verdict": "allow"})).await, answered());
        let ended = service.ended("coder", &task).await;
        assert_eq!(outcome(&ended), completed("done"), "{protocol}: {ended}");
        assert_eq!(tool_call_count(&service), 1, "{protocol}");
    }
}

#[tokio::test]
async fn a_crash_at_the_end_of_a_turn_keeps_its_answer() {
    for protocol in PROTOCOLS {
        // The agent runs on after its input is closed, so the turn is over and its attempt is not.
        let lasting = format!(
            "[agents.coder]\ncommand = 'sh'\nprotocol = '{protocol}'\nsandbox.writable = ['HERE']\n\
             args = ['-c', 'FAKE {protocol}; touch HERE/over; until [ -e HERE/go ]; do sleep 0.05; done']\n"
        );
        let mut service = Service::start(&lasting).await;
        let task = service.begin("coder", "[[say done]]").await;
        until("the end of the turn", async || {
            service.setup.here().join("over").exists().then_some(())
        })
        .await;
        service.kill9().await;
        service.restart().await;
        service.setup.open("go");
        let ended = service.ended("coder", &task).await;
        assert_eq!(outcome(&ended), completed("done"), "{protocol}: {ended}");
        assert_eq!(ended["metadata"]["warnings"], Value::Null, "{protocol}: {ended}");
    }
}

#[tokio::test]
async fn a_question_is_closed_when_its_process_is_lost() {
    let mut service = started(&agent("coder", "acp", "")).await;
    let task = service.begin("coder", TOOL).await;
    let asked = wait_for_question(&service, &task).await;
    service.kill9_both().await;
    service.restart().await;
    let ended = service.ended("coder", &task).await;
    assert_eq!(outcome(&ended), failed("interrupted"), "{ended}");
    let closed = fetch_interaction(&service, &asked).await;
    assert_eq!(closed["state"], "lost", "{closed}");
    assert_eq!(closed["closed"]["by"]["source"], "process-end", "{closed}");
    let late = answer(&service, &asked, &json!({"verdict": "allow"})).await;
    assert_eq!(late, (409, "interaction-closed".to_owned()));
    assert_eq!(tool_call_count(&service), 0);
}

/// Deletes the sessions of the agent.
fn forget_sessions(service: &Service) {
    let files = std::fs::read_dir(service.setup.here().join("sessions")).unwrap().flatten();
    let count = files.map(|file| std::fs::remove_file(file.path()).unwrap()).count();
    assert!(count > 0, "the agent kept no session");
}

#[tokio::test]
async fn an_unknown_session_is_replaced_once_and_reported() {
    for protocol in PROTOCOLS {
        let service = started(&agent("coder", protocol, "")).await;
        service.rpc("coder", "message/send", &of("c", "[[say one]]")).await;
        forget_sessions(&service);
        let body = json_rpc_call("message/stream", &of("c", "[[say two]]"));
        let told = service.post("/agents/coder/v1", &body).await.body;
        assert!(told.contains(r#""continuity":"lost""#), "{protocol}: {told}");
        assert!(told.contains(r#""text":"two""#), "{protocol}: {told}");
        assert_eq!(told.matches("the agent does not know it").count(), 1, "{protocol}: {told}");
        let said = service.rpc("coder", "message/send", &of("c", "[[recall]]")).await;
        assert_eq!(outcome(&said), completed("[[say two]]"), "{protocol}: {said}");
    }
}

#[tokio::test]
async fn a_second_turn_resumes_the_session_of_the_agent() {
    for protocol in PROTOCOLS {
        let mut service = started(&agent("coder", protocol, "")).await;
        let said = service.rpc("coder", "message/send", &of("c", "[[say one]]")).await;
        assert_eq!(outcome(&said), completed("one"), "{protocol}: {said}");
        service.sigterm();
        assert!(service.exit().await.success());
        service.restart().await;
        let said = service.rpc("coder", "message/send", &of("c", "[[recall]]")).await;
        assert_eq!(outcome(&said), completed("[[say one]]"), "{protocol}: {said}");
        let said = service.rpc("coder", "message/send", &of("c", "[[recall]]")).await;
        let both = "[[say one]] | [[recall]]";
        assert_eq!(outcome(&said), completed(both), "{protocol}: {said}");
        let other =
            service.rpc("coder", "message/send", &of("d", "new [[recall]] [[say .]]")).await;
        assert_eq!(outcome(&other), completed("."), "{protocol}: another context: {other}");
    }
}
