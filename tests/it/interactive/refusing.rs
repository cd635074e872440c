//! Answers that the service refuses, with the documented code and never with a fault of its own.

use super::*;
use crate::harness::Setup;

/// Id of no interaction.
const UNKNOWN_INTERACTION_PATH: &str = "/api/v1/interactions/00000000-0000-7000-8000-000000000000";

/// Creates a token with these rights, and returns a client with it.
async fn create_client_with_scopes(
    service: &ServiceProcess,
    name: &str,
    scopes: &[&str],
) -> ServiceClient {
    let token_request = json!({"name": name, "scopes": scopes}).to_string();
    let created = service.post("/api/v1/tokens", &token_request).await.json();
    service.client_with_token(created["token"].as_str().unwrap())
}

fn refusal(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn a_wrong_answer_is_refused_and_the_question_stays_open() {
    let service = start_service(&interactive_agent_config("coder", "acp", "")).await;
    let task_id = service.start_task("coder", TOOL_PROMPT).await;
    let question = wait_for_question(&service, &task_id).await;
    let invalid_answer = refusal(400, "answer-invalid");
    for (body, expected) in [
        (json!({}), invalid_answer.clone()),
        (json!({"verdict": "ask"}), invalid_answer.clone()),
        (json!({"verdict": "allow", "option": "once"}), invalid_answer.clone()),
        (json!({"verdict": "allow", "reason": "why"}), invalid_answer.clone()),
        (json!({"option": "unknown"}), invalid_answer.clone()),
        (json!({"text": "yes"}), invalid_answer.clone()),
        (json!({"values": {}}), invalid_answer.clone()),
        (json!({"decline": true}), invalid_answer.clone()),
        (json!({"verdict": "deny", "reason": "x".repeat(100_000)}), invalid_answer),
        (json!({"verdict": "allow", "digest": "other"}), refusal(409, "interaction-changed")),
        (json!({"verdict": "maybe"}), refusal(400, "invalid-params")),
        (json!({"verdict": "allow", "more": 1}), refusal(400, "invalid-params")),
        (json!({"verdict": 7}), refusal(400, "invalid-params")),
        (json!([]), refusal(400, "invalid-params")),
        (json!(["allow"]), refusal(400, "invalid-params")),
        (json!("allow"), refusal(400, "invalid-params")),
        (json!(null), refusal(400, "invalid-params")),
    ] {
        assert_eq!(answer_question(&service, &question, &body).await, expected, "{body}");
    }
    let path = format!("{}/answer", interaction_path(&question));
    for body in ["", "{", "{\"verdict\":\"allow\"}{}", "\u{0}"] {
        let response = service.post(&path, body).await;
        assert_eq!(
            (response.status, response.error_code()),
            refusal(400, "malformed-json"),
            "{body:?}"
        );
    }
    assert_eq!(fetch_interaction(&service, &question).await["state"], "open");
    assert_eq!(tool_call_count(&service), 0);
    let digest = &question["question"]["digest"];
    let allow = json!({"verdict": "allow", "digest": digest});
    assert_eq!(answer_question(&service, &question, &allow).await, answered_response());
    assert_eq!(
        task_outcome(&service.wait_for_task_end("coder", &task_id).await),
        completed_outcome("done")
    );
}

#[tokio::test]
async fn a_second_answer_is_refused_unless_it_is_the_same() {
    for (first_verdict, second_verdict) in [("allow", "deny"), ("deny", "allow")] {
        let service = start_service(&interactive_agent_config("coder", "acp", "")).await;
        let task_id = service.start_task("coder", TOOL_PROMPT).await;
        let question = wait_for_question(&service, &task_id).await;
        let (first_verdict, second_verdict) =
            (json!({"verdict": first_verdict}), json!({"verdict": second_verdict}));
        assert_eq!(answer_question(&service, &question, &first_verdict).await, answered_response());
        assert_eq!(
            answer_question(&service, &question, &first_verdict).await,
            answered_response(),
            "the same again"
        );
        let closed_refusal = refusal(409, "interaction-closed");
        assert_eq!(answer_question(&service, &question, &second_verdict).await, closed_refusal);
        service.wait_for_task_end("coder", &task_id).await;
        assert_eq!(
            answer_question(&service, &question, &first_verdict).await,
            answered_response(),
            "after the end"
        );
        assert_eq!(answer_question(&service, &question, &second_verdict).await, closed_refusal);
        assert_eq!(fetch_verdicts(&service, "coder").await.len(), 1);
    }
}

#[tokio::test]
async fn one_of_many_different_answers_at_once_succeeds() {
    let service = start_service(&interactive_agent_config("coder", "acp", "")).await;
    let task_id = service.start_task("coder", TOOL_PROMPT).await;
    let question = wait_for_question(&service, &task_id).await;
    let reasons = (0..8).map(|n| json!({"verdict": "deny", "reason": format!("reason {n}")}));
    let bodies: Vec<_> = reasons.collect();
    let answer_futures = bodies.iter().map(|body| answer_question(&service, &question, body));
    let answers = futures_util::future::join_all(answer_futures).await;
    let accepted_count = answers.iter().filter(|answer| **answer == answered_response()).count();
    let refused_count =
        answers.iter().filter(|answer| **answer == refusal(409, "interaction-closed")).count();
    assert_eq!((accepted_count, refused_count), (1, 7), "{answers:?}");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("coder", &task_id).await),
        completed_outcome("done")
    );
    assert_eq!(tool_call_count(&service), 0);
}

#[tokio::test]
async fn unknown_interactions_and_filters_are_refused() {
    let service = start_service(&interactive_agent_config("coder", "acp", "")).await;
    let unknown_refusal = refusal(404, "interaction-unknown");
    for path in
        [UNKNOWN_INTERACTION_PATH, "/api/v1/interactions/nonsense", "/api/v1/interactions/%00"]
    {
        let response = service.get(path).await;
        assert_eq!((response.status, response.error_code()), unknown_refusal, "{path}");
        let response = service.post(&format!("{path}/answer"), r#"{"verdict":"allow"}"#).await;
        assert_eq!((response.status, response.error_code()), unknown_refusal, "{path}");
    }
    for query in [
        "interactions?state=shut",
        "interactions?execution=x",
        "interactions?cursor=x",
        "interactions?limit=0",
        "interactions?limit=1001",
        "interactions?limit=-1",
        "interactions?more=1",
        "permission-decisions?agent=%20",
        "permission-decisions?execution=x",
        "permission-decisions?after=x",
        "permission-decisions?limit=0",
    ] {
        let response = service.get(&format!("/api/v1/{query}")).await;
        assert_eq!(
            (response.status, response.error_code()),
            refusal(400, "invalid-params"),
            "{query}"
        );
    }
}

#[tokio::test]
async fn an_answer_requires_the_right_to_approve() {
    let service = start_service(&interactive_agent_config("coder", "acp", "")).await;
    let runner = create_client_with_scopes(&service, "runner", &["read", "run"]).await;
    let task_id = runner.start_task("coder", TOOL_PROMPT).await;
    let question = wait_for_question(&runner, &task_id).await;
    let allow = json!({"verdict": "allow"});
    assert_eq!(
        answer_question(&runner, &question, &allow).await,
        refusal(403, "forbidden"),
        "its own"
    );
    let run_only_client = create_client_with_scopes(&service, "blind", &["run"]).await;
    assert_eq!(
        answer_question(&run_only_client, &question, &allow).await,
        refusal(403, "forbidden")
    );
    assert_eq!(run_only_client.get("/api/v1/interactions").await.status, 403);
    let anonymous = service.client_with_token("");
    assert_eq!(answer_question(&anonymous, &question, &allow).await.0, 401);
    for client in [&runner, &run_only_client] {
        assert_eq!(client.get("/api/v1/permission-decisions").await.status, 403);
    }
    assert_eq!(tool_call_count(&service), 0);
    assert_eq!(
        answer_question(&service, &question, &allow).await,
        answered_response(),
        "an administrator may"
    );
    assert_eq!(
        task_outcome(&runner.wait_for_task_end("coder", &task_id).await),
        completed_outcome("done")
    );
}

#[tokio::test]
async fn a_question_of_another_principal_is_hidden() {
    let service = start_service(&interactive_agent_config("coder", "acp", "")).await;
    let owner = create_client_with_scopes(&service, "owner", &["read", "run", "approve"]).await;
    let other_client = create_client_with_scopes(&service, "other", &["read", "run"]).await;
    let approver = create_client_with_scopes(&service, "approver", &["read", "approve"]).await;
    let task_id = owner.start_task("coder", TOOL_PROMPT).await;
    let question = wait_for_question(&owner, &task_id).await;
    let unknown_refusal = refusal(404, "interaction-unknown");
    let allow = json!({"verdict": "allow"});
    assert_eq!(answer_question(&other_client, &question, &allow).await, unknown_refusal);
    let response = other_client.get(&interaction_path(&question)).await;
    assert_eq!((response.status, response.error_code()), unknown_refusal);
    assert_eq!(list_interactions(&other_client, &task_id, "open").await, Vec::<Value>::new());
    // The right to approve shows all questions; the policy names who may answer this one.
    assert_eq!(list_interactions(&approver, &task_id, "open").await.len(), 1);
    assert_eq!(answer_question(&approver, &question, &allow).await, refusal(403, "forbidden"));
    assert_eq!(answer_question(&owner, &question, &allow).await, answered_response());
    assert_eq!(
        task_outcome(&owner.wait_for_task_end("coder", &task_id).await),
        completed_outcome("done")
    );
}

#[tokio::test]
async fn a_token_for_other_agents_sees_no_question() {
    let agents = [
        interactive_agent_config("coder", "acp", ""),
        interactive_agent_config("tester", "acp", ""),
    ]
    .concat();
    let service = start_service(&agents).await;
    let scopes = ["read", "approve", "admin"];
    let token_request = json!({"name": "ann", "scopes": scopes, "agents": ["tester"]}).to_string();
    let created = service.post("/api/v1/tokens", &token_request).await.json();
    let ann = service.client_with_token(created["token"].as_str().unwrap());
    let [other_start, own_start] =
        ["coder", "tester"].map(|agent| service.start_task(agent, TOOL_PROMPT));
    let (other_task_id, own_task_id) = (other_start.await, own_start.await);
    let hidden_question = wait_for_question(&service, &other_task_id).await;
    let question = wait_for_question(&service, &own_task_id).await;
    let allow = json!({"verdict": "allow"});
    assert_eq!(
        answer_question(&ann, &hidden_question, &allow).await,
        refusal(404, "interaction-unknown")
    );
    let list = ann.get("/api/v1/interactions").await.json();
    let ids: Vec<_> = list["interactions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|interaction| &interaction["id"])
        .collect();
    assert_eq!(ids, [&question["id"]], "{list}");
    let forbidden = ann.get("/api/v1/permission-decisions?agent=coder").await;
    assert_eq!((forbidden.status, forbidden.error_code()), refusal(403, "forbidden"));
    assert_eq!(answer_question(&ann, &question, &allow).await, answered_response());
    assert_eq!(
        task_outcome(&service.wait_for_task_end("tester", &own_task_id).await),
        completed_outcome("done")
    );
    let all_decisions_response = ann.get("/api/v1/permission-decisions").await;
    assert_eq!(
        (all_decisions_response.status, all_decisions_response.error_code()),
        refusal(403, "forbidden"),
        "those of all agents"
    );
    assert_eq!(fetch_verdicts(&ann, "tester").await, [recorded_verdict("allow", "principal")]);
}

#[tokio::test]
async fn interactions_are_listed_by_page() {
    let service =
        start_service(&interactive_agent_config("coder", "acp", "max_concurrent = 4")).await;
    let mut expected = Vec::new();
    for _ in 0..3 {
        let task_id = service.start_task("coder", TOOL_PROMPT).await;
        expected.push(wait_for_question(&service, &task_id).await["id"].clone());
    }
    expected.reverse();
    let (mut seen_ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/interactions?state=open&limit=2{cursor}");
        let page = service.get(&path).await.json();
        seen_ids.extend(
            page["interactions"]
                .as_array()
                .unwrap()
                .iter()
                .map(|interaction| interaction["id"].clone()),
        );
        let Some(next) = page["next"].as_str() else { break };
        assert_eq!(page["interactions"].as_array().unwrap().len(), 2, "{page}");
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen_ids, expected, "newest first, each once");
}

#[tokio::test]
async fn a_policy_can_require_an_approver_other_than_the_owner() {
    let settings = "consent.approvers = ['owner', 'boss']\nconsent.four_eyes = true";
    let service = start_service(&interactive_agent_config("coder", "acp", settings)).await;
    let owner = create_client_with_scopes(&service, "worker", &["read", "run", "approve"]).await;
    let boss = create_client_with_scopes(&service, "boss", &["read", "approve"]).await;
    let task_id = owner.start_task("coder", TOOL_PROMPT).await;
    let question = wait_for_question(&owner, &task_id).await;
    let allow = json!({"verdict": "allow"});
    assert_eq!(answer_question(&owner, &question, &allow).await, refusal(403, "forbidden"));
    assert_eq!(answer_question(&boss, &question, &allow).await, answered_response());
    assert_eq!(
        task_outcome(&owner.wait_for_task_end("coder", &task_id).await),
        completed_outcome("done")
    );
    let closed_by = fetch_interaction(&service, &question).await["closed"]["by"].take();
    assert_eq!(closed_by, json!({"source": "principal", "name": "boss", "channel": "api"}));
}

/// An ACP agent that requests a permission, and closes its input before the answer.
const CLOSED_STDIN_AGENT: &str = r#"#!/bin/sh
number() { printf %s "$1" | sed 's/.*"id":\([0-9]*\).*/\1/'; }
read -r line; echo '{"jsonrpc":"2.0","id":'"$(number "$line")"',"result":{"protocolVersion":1,"agentCapabilities":{}}}'
read -r line; echo '{"jsonrpc":"2.0","id":'"$(number "$line")"',"result":{"sessionId":"s"}}'
read -r line; exec <&-
echo '{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","kind":"execute","rawInput":{"command":"ls"}},"options":[{"optionId":"y","name":"y","kind":"allow_once"}]}}'
until [ -e go ]; do sleep 0.05; done
echo '{"jsonrpc":"2.0","id":'"$(number "$line")"',"result":{"stopReason":"end_turn"}}'
"#;

#[tokio::test]
async fn an_answer_that_the_agent_cannot_receive_is_not_delivered() {
    let agent = "[agents.acp]\ncommand = 'HERE/acp'\nprotocol = 'acp'\nworking_dir = 'HERE/home'\n\
                 stop_grace = 0.3\nsuccess.require_output = false\n";
    let service = Setup::new(agent).with_executable("acp", CLOSED_STDIN_AGENT).start().await;
    let task_id = service.start_task("acp", "go").await;
    let question = wait_for_question(&service, &task_id).await;
    let response = answer_question(&service, &question, &json!({"verdict": "allow"})).await;
    assert_eq!(response, answered_response());
    std::fs::write(service.setup.test_folder().join("home/go"), "").unwrap();
    service.wait_for_task_end("acp", &task_id).await;
    let closed_interaction = service.get(&interaction_path(&question)).await.json();
    assert_eq!(
        (&closed_interaction["state"], &closed_interaction["deliveredAt"]),
        (&json!("answered"), &Value::Null)
    );
    let record = service.fetch_execution(&task_id).await.to_string();
    assert!(record.contains("the agent closed its standard input"), "{record}");
}
