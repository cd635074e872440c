//! Questions about tool calls, answered by a person or by a rule, in each protocol.

use super::*;

/// Secret-like word in the arguments of a tool call.
const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

#[tokio::test]
async fn an_allowed_tool_call_runs_once_in_each_protocol() {
    for protocol in PROTOCOLS {
        let service = start_service(&interactive_agent_config("coder", protocol, "")).await;
        let task_id = service.start_task("coder", TOOL_PROMPT).await;
        let question = wait_for_question(&service, &task_id).await;
        assert_eq!(question["state"], "open", "{question}");
        assert_eq!(question["kind"], "tool_permission", "{question}");
        assert_eq!(question["agent"], "coder", "{question}");
        assert_eq!(question["question"]["tool"]["command"], "make test", "{question}");
        assert_eq!(tool_call_count(&service), 0, "{protocol}: the call waits");
        let allowed = answer_question(&service, &question, &json!({"verdict": "allow"})).await;
        assert_eq!(allowed, answered_response(), "{protocol}");
        let ended = service.wait_for_task_end("coder", &task_id).await;
        assert_eq!(task_outcome(&ended), completed_outcome("done"), "{protocol}: {ended}");
        assert_eq!(tool_call_count(&service), 1, "{protocol}");
        let closed_interaction = fetch_interaction(&service, &question).await;
        assert_eq!(closed_interaction["state"], "answered", "{closed_interaction}");
        assert_eq!(
            closed_interaction["closed"]["answer"],
            json!({"answer": "allow"}),
            "{closed_interaction}"
        );
        let closed_by = json!({"source": "principal", "name": "operator", "channel": "api"});
        assert_eq!(closed_interaction["closed"]["by"], closed_by, "{closed_interaction}");
        assert!(closed_interaction["closed"]["deliveredAt"].is_string(), "{closed_interaction}");
        assert_eq!(
            fetch_verdicts(&service, "coder").await,
            [recorded_verdict("allow", "principal")]
        );
        assert!(list_interactions(&service, &task_id, "open").await.is_empty(), "{protocol}");
    }
}

#[tokio::test]
async fn a_denied_tool_call_does_not_run_in_each_protocol() {
    for protocol in PROTOCOLS {
        let service = start_service(&interactive_agent_config("coder", protocol, "")).await;
        let task_id = service.start_task("coder", TOOL_PROMPT).await;
        let question = wait_for_question(&service, &task_id).await;
        let denial = json!({"verdict": "deny", "reason": "not today"});
        assert_eq!(
            answer_question(&service, &question, &denial).await,
            answered_response(),
            "{protocol}"
        );
        let ended = service.wait_for_task_end("coder", &task_id).await;
        assert_eq!(task_outcome(&ended), completed_outcome("done"), "{protocol}: {ended}");
        assert_eq!(tool_call_count(&service), 0, "{protocol}");
        let closed_interaction = fetch_interaction(&service, &question).await;
        let expected = json!({"answer": "deny", "reason": "not today"});
        assert_eq!(closed_interaction["closed"]["answer"], expected, "{closed_interaction}");
        assert_eq!(
            fetch_verdicts(&service, "coder").await,
            [recorded_verdict("deny", "principal")]
        );
    }
}

#[tokio::test]
async fn a_question_shows_its_options_and_no_secret() {
    let service = start_service(&interactive_agent_config("coder", "acp", "")).await;
    let prompt = format!("[[tool Bash kind=execute command=\"curl -H {SECRET}\"]] [[say done]]");
    let task_id = service.start_task("coder", &prompt).await;
    let question = wait_for_question(&service, &task_id).await;
    let options = question["question"]["options"].as_array().unwrap();
    let ids: Vec<_> = options.iter().map(|option| option["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["always", "once", "no"]);
    assert!(!question.to_string().contains(SECRET), "{question}");
    // The option that allows every later call allows this one only: the agent accepts `once` alone.
    assert_eq!(
        answer_question(&service, &question, &json!({"option": "always"})).await,
        answered_response()
    );
    assert_eq!(
        task_outcome(&service.wait_for_task_end("coder", &task_id).await),
        completed_outcome("done")
    );
    assert_eq!(tool_call_count(&service), 1);
    let ledger = service.setup.read_ledger_files();
    let is_stored = ledger.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
    assert!(!is_stored && !service.stderr_text().contains(SECRET), "stored or logged");
}

#[tokio::test]
async fn each_tool_call_of_a_turn_asks_a_question_of_its_own() {
    let service = start_service(&interactive_agent_config("coder", "acp", "")).await;
    let prompt = r#"[[ask-twice "make a" "make b"]] [[say done]]"#;
    let task_id = service.start_task("coder", prompt).await;
    let questions = poll_until("two questions", async || {
        let open_interactions = list_interactions(&service, &task_id, "open").await;
        (open_interactions.len() == 2).then_some(open_interactions)
    })
    .await;
    let command =
        |question: &Value| question["question"]["tool"]["command"].as_str().unwrap().to_owned();
    let commands: Vec<_> = questions.iter().map(command).collect();
    assert_eq!(commands, ["make b", "make a"], "newest first");
    assert_eq!(
        answer_question(&service, &questions[0], &json!({"verdict": "allow"})).await,
        answered_response()
    );
    assert_eq!(
        answer_question(&service, &questions[1], &json!({"verdict": "deny"})).await,
        answered_response()
    );
    assert_eq!(
        task_outcome(&service.wait_for_task_end("coder", &task_id).await),
        completed_outcome("done")
    );
    let log = service.setup.read_file("ran");
    assert!(log.contains("make b") && !log.contains("make a"), "{log}");
}

#[tokio::test]
async fn a_form_receives_the_values_of_its_answer() {
    let service = start_service(&interactive_agent_config("coder", "acp", "")).await;
    let task_id = service.start_task("coder", "[[form Branch? name=string]]").await;
    let question = wait_for_question(&service, &task_id).await;
    assert_eq!(question["kind"], "form", "{question}");
    let wrong_answer = answer_question(&service, &question, &json!({"values": {"name": 7}})).await;
    assert_eq!(wrong_answer, (400, "answer-invalid".to_owned()));
    assert_eq!(
        answer_question(&service, &question, &json!({"values": {"name": "main"}})).await,
        answered_response()
    );
    let ended = service.wait_for_task_end("coder", &task_id).await;
    assert_eq!(task_outcome(&ended), completed_outcome(r#"FORM: {"name":"main"}"#));
}

#[tokio::test]
async fn a_policy_rule_decides_without_a_question() {
    let rules = "[[agents.coder.consent.rules]]\ncommand = ['make *']\nthen = 'allow'\n\
         [[agents.coder.consent.rules]]\nkind = ['execute']\nthen = 'deny'\n";
    for protocol in PROTOCOLS {
        let service = start_service(&interactive_agent_config("coder", protocol, rules)).await;
        let task = service.send("coder", TOOL_PROMPT).await;
        assert_eq!(task_outcome(&task), completed_outcome("done"), "{protocol}: {task}");
        assert_eq!(tool_call_count(&service), 1, "{protocol}");
        let denied_prompt = r#"[[tool Bash kind=execute command="rm -rf /"]] [[say kept]]"#;
        let task = service.send("coder", denied_prompt).await;
        assert_eq!(task_outcome(&task), completed_outcome("kept"), "{protocol}: {task}");
        // A list of commands is no simple command, so the rule that allows does not fit it.
        let command_list_prompt =
            r#"[[tool Bash kind=execute command="make a; rm b"]] [[say kept]]"#;
        let task = service.send("coder", command_list_prompt).await;
        assert_eq!(task_outcome(&task), completed_outcome("kept"), "{protocol}: {task}");
        assert_eq!(tool_call_count(&service), 1, "{protocol}");
        let verdicts = fetch_verdicts(&service, "coder").await;
        let rule = |word| recorded_verdict(word, "rule");
        assert_eq!(verdicts, [rule("allow"), rule("deny"), rule("deny")], "{protocol}");
        let all_interactions = service.get("/api/v1/interactions").await.json();
        assert_eq!(all_interactions["interactions"], json!([]), "{protocol}: {all_interactions}");
    }
}
