//! Questions about tool calls, answered by a person or by a rule, in each protocol.

use super::*;

/// Secret-like word in the arguments of a tool call.
const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

#[tokio::test]
async fn an_allowed_tool_call_runs_once_in_each_protocol() {
    for protocol in PROTOCOLS {
        let service = started(&agent("coder", protocol, "")).await;
        let task = service.begin("coder", TOOL).await;
        let asked = wait_for_question(&service, &task).await;
        assert_eq!(asked["state"], "open", "{asked}");
        assert_eq!(asked["kind"], "tool_permission", "{asked}");
        assert_eq!(asked["agent"], "coder", "{asked}");
        assert_eq!(asked["question"]["tool"]["command"], "make test", "{asked}");
        assert_eq!(tool_call_count(&service), 0, "{protocol}: the call waits");
        let allowed = answer(&service, &asked, &json!({"verdict": "allow"})).await;
        assert_eq!(allowed, answered(), "{protocol}");
        let ended = service.ended("coder", &task).await;
        assert_eq!(outcome(&ended), completed("done"), "{protocol}: {ended}");
        assert_eq!(tool_call_count(&service), 1, "{protocol}");
        let closed = fetch_interaction(&service, &asked).await;
        assert_eq!(closed["state"], "answered", "{closed}");
        assert_eq!(closed["closed"]["answer"], json!({"answer": "allow"}), "{closed}");
        let by = json!({"source": "principal", "name": "operator", "channel": "api"});
        assert_eq!(closed["closed"]["by"], by, "{closed}");
        assert!(closed["closed"]["deliveredAt"].is_string(), "{closed}");
        assert_eq!(verdicts(&service, "coder").await, [verdict("allow", "principal")]);
        assert!(interactions(&service, &task, "open").await.is_empty(), "{protocol}");
    }
}

#[tokio::test]
async fn a_denied_tool_call_does_not_run_in_each_protocol() {
    for protocol in PROTOCOLS {
        let service = started(&agent("coder", protocol, "")).await;
        let task = service.begin("coder", TOOL).await;
        let asked = wait_for_question(&service, &task).await;
        let denied = json!({"verdict": "deny", "reason": "not today"});
        assert_eq!(answer(&service, &asked, &denied).await, answered(), "{protocol}");
        let ended = service.ended("coder", &task).await;
        assert_eq!(outcome(&ended), completed("done"), "{protocol}: {ended}");
        assert_eq!(tool_call_count(&service), 0, "{protocol}");
        let closed = fetch_interaction(&service, &asked).await;
        let expected = json!({"answer": "deny", "reason": "not today"});
        assert_eq!(closed["closed"]["answer"], expected, "{closed}");
        assert_eq!(verdicts(&service, "coder").await, [verdict("deny", "principal")]);
    }
}

#[tokio::test]
async fn a_question_shows_its_options_and_no_secret() {
    let service = started(&agent("coder", "acp", "")).await;
    let prompt = format!("[[tool Bash kind=execute command=\"curl -H {SECRET}\"]] [[say done]]");
    let task = service.begin("coder", &prompt).await;
    let asked = wait_for_question(&service, &task).await;
    let options = asked["question"]["options"].as_array().unwrap();
    let ids: Vec<_> = options.iter().map(|option| option["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["always", "once", "no"]);
    assert!(!asked.to_string().contains(SECRET), "{asked}");
    // The option that allows every later call allows this one only: the agent accepts `once` alone.
    assert_eq!(answer(&service, &asked, &json!({"option": "always"})).await, answered());
    assert_eq!(outcome(&service.ended("coder", &task).await), completed("done"));
    assert_eq!(tool_call_count(&service), 1);
    let ledger = service.setup.ledger();
    let is_stored = ledger.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
    assert!(!is_stored && !service.stderr_text().contains(SECRET), "stored or logged");
}

#[tokio::test]
async fn each_tool_call_of_a_turn_asks_a_question_of_its_own() {
    let service = started(&agent("coder", "acp", "")).await;
    let prompt = r#"[[ask-twice "make a" "make b"]] [[say done]]"#;
    let task = service.begin("coder", prompt).await;
    let both = until("two questions", async || {
        let open = interactions(&service, &task, "open").await;
        (open.len() == 2).then_some(open)
    })
    .await;
    let command = |asked: &Value| asked["question"]["tool"]["command"].as_str().unwrap().to_owned();
    let commands: Vec<_> = both.iter().map(command).collect();
    assert_eq!(commands, ["make b", "make a"], "newest first");
    assert_eq!(answer(&service, &both[0], &json!({"verdict": "allow"})).await, answered());
    assert_eq!(answer(&service, &both[1], &json!({"verdict": "deny"})).await, answered());
    assert_eq!(outcome(&service.ended("coder", &task).await), completed("done"));
    let ran = service.setup.read("ran");
    assert!(ran.contains("make b") && !ran.contains("make a"), "{ran}");
}

#[tokio::test]
async fn a_form_receives_the_values_of_its_answer() {
    let service = started(&agent("coder", "acp", "")).await;
    let task = service.begin("coder", "[[form Branch? name=string]]").await;
    let asked = wait_for_question(&service, &task).await;
    assert_eq!(asked["kind"], "form", "{asked}");
    let wrong = answer(&service, &asked, &json!({"values": {"name": 7}})).await;
    assert_eq!(wrong, (400, "answer-invalid".to_owned()));
    assert_eq!(answer(&service, &asked, &json!({"values": {"name": "main"}})).await, answered());
    let ended = service.ended("coder", &task).await;
    assert_eq!(outcome(&ended), completed(r#"FORM: {"name":"main"}"#));
}

#[tokio::test]
async fn a_policy_rule_decides_without_a_question() {
    let rules = "[[agents.coder.consent.rules]]\ncommand = ['make *']\nthen = 'allow'\n\
         [[agents.coder.consent.rules]]\nkind = ['execute']\nthen = 'deny'\n";
    for protocol in PROTOCOLS {
        let service = started(&agent("coder", protocol, rules)).await;
        let said = service.send("coder", TOOL).await;
        assert_eq!(outcome(&said), completed("done"), "{protocol}: {said}");
        assert_eq!(tool_call_count(&service), 1, "{protocol}");
        let denied = r#"[[tool Bash kind=execute command="rm -rf /"]] [[say kept]]"#;
        let said = service.send("coder", denied).await;
        assert_eq!(outcome(&said), completed("kept"), "{protocol}: {said}");
        // A list of commands is no simple command, so the rule that allows does not fit it.
        let list = r#"[[tool Bash kind=execute command="make a; rm b"]] [[say kept]]"#;
        let said = service.send("coder", list).await;
        assert_eq!(outcome(&said), completed("kept"), "{protocol}: {said}");
        assert_eq!(tool_call_count(&service), 1, "{protocol}");
        let decided = verdicts(&service, "coder").await;
        let rule = |word| verdict(word, "rule");
        assert_eq!(decided, [rule("allow"), rule("deny"), rule("deny")], "{protocol}");
        let all = service.get("/api/v1/interactions").await.json();
        assert_eq!(all["interactions"], json!([]), "{protocol}: {all}");
    }
}
