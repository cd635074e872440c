//! Tokens that are made, listed and revoked while the service runs.

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::{
    ServiceClient, ServiceProcess, Setup, TestResponse, fake_agent_config, gated_agent_config,
    json_rpc_request_body, message_params, poll_until,
};
use crate::reload::{config_without_watch, write_and_reload};
use crate::streams::{open_stream, read_until_text_or_end};

fn echo_agents_config() -> String {
    [fake_agent_config("one", "echo", ""), fake_agent_config("two", "echo", "")].concat()
}

async fn request_token(client: &ServiceClient, request: Value) -> TestResponse {
    client.post("/api/v1/tokens", &request.to_string()).await
}

/// Makes a token; its text.
async fn create_token(client: &ServiceClient, request: Value) -> String {
    let answer = request_token(client, request).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["token"].as_str().unwrap().to_owned()
}

async fn revoke_token(client: &ServiceClient, name: &str) -> TestResponse {
    let headers = [format!("Authorization: Bearer {}", client.token)];
    client.request(&format!("DELETE /api/v1/tokens/{name}"), &headers, b"").await
}

fn status_and_error_code(answer: &TestResponse) -> (u16, String) {
    (answer.status, answer.json()["code"].as_str().unwrap_or_default().to_owned())
}

async fn status_code_with_token(service: &ServiceProcess, token: &str) -> u16 {
    service.client_with_token(token).get("/status").await.status
}

#[tokio::test]
async fn a_token_is_valid_at_once_until_it_is_revoked() {
    let mut service =
        Setup::from_config_text(&config_without_watch(&echo_agents_config())).start().await;
    let request = json!({"name": "ann", "agents": ["one"], "expires": "2999-01-01T00:00:00Z"});
    let ann_token = create_token(&service, request).await;
    let task = service.client_with_token(&ann_token).send("one", "hello").await;
    assert_eq!(task_outcome(&task), completed_outcome("hello"));
    assert_eq!(service.client_with_token(&ann_token).get("/status/agents/two").await.status, 403);
    write_and_reload(
        &mut service,
        &config_without_watch(
            &[echo_agents_config(), fake_agent_config("three", "echo", "")].concat(),
        ),
    )
    .await;
    assert_eq!(status_code_with_token(&service, &ann_token).await, 200);
    service.kill9().await;
    service.start_again().await;
    assert_eq!(status_code_with_token(&service, &ann_token).await, 200);
    assert_eq!(
        status_and_error_code(&request_token(&service, json!({"name": "ann"})).await),
        (409, "token-exists".to_owned())
    );
    let next_token = create_token(&service, json!({"name": "ann", "replace": true})).await;
    assert_eq!(
        (
            status_code_with_token(&service, &ann_token).await,
            status_code_with_token(&service, &next_token).await
        ),
        (401, 200)
    );
    // A created token is valid at once and over restarts and reloads until it is revoked, and
    // its owner keeps all tasks
    assert_eq!(
        task_outcome(
            &service.client_with_token(&next_token).fetch_task("one", &task_id(&task)).await
        ),
        completed_outcome("hello")
    );
    assert_eq!(revoke_token(&service, "ann").await.status, 200);
    assert_eq!(status_code_with_token(&service, &next_token).await, 401);
    assert_eq!(
        status_and_error_code(&revoke_token(&service, "ann").await),
        (404, "token-unknown".to_owned())
    );
}

#[tokio::test]
async fn a_stream_ends_with_its_revoked_token_and_work_continues() {
    let service = ServiceProcess::start(&gated_agent_config("one", "")).await;
    let (ann_request, bob_request) = (json!({"name": "ann"}), json!({"name": "bob"}));
    let (ann_token, bob_token) =
        (create_token(&service, ann_request).await, create_token(&service, bob_request).await);
    let (ann_client, bob_client) =
        (service.client_with_token(&ann_token), service.client_with_token(&bob_token));
    let mut streams = Vec::new();
    for client in [&ann_client, &bob_client] {
        let mut stream = open_stream(
            client,
            "one",
            "0.3",
            &json_rpc_request_body("message/stream", &message_params("hi")),
        )
        .await;
        let initial_text = read_until_text_or_end(&mut stream, "\"working\"").await;
        assert!(initial_text.contains("working"), "{initial_text}");
        streams.push(stream);
    }
    assert_eq!(revoke_token(&service, "ann").await.status, 200);
    service.setup.open_gate("go");
    let mut remaining_texts = Vec::new();
    for stream in &mut streams {
        remaining_texts.push(read_until_text_or_end(stream, "\"completed\"").await);
    }
    let has_artifact: Vec<_> =
        remaining_texts.iter().map(|rest| rest.contains("artifact")).collect();
    assert_eq!(has_artifact, [false, true], "{remaining_texts:?}");
    poll_until("the end of both", async || {
        let list = service.get("/api/v1/executions?agent=one").await.json();
        let all = list["executions"].as_array().unwrap();
        (all.len() == 2 && all.iter().all(|one| one["state"] == "completed")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn token_lists_and_logs_show_no_token_text() {
    let tokens = "[tokens.bob]\ntoken_env = 'BOB'\n";
    let setup =
        Setup::from_config_text(&config_without_watch(&[&echo_agents_config(), tokens].concat()));
    let service = setup.env("BOB", &"b".repeat(40)).env("RUST_LOG", "trace").start().await;
    let ann_token = create_token(&service, json!({"name": "ann", "scopes": ["read"]})).await;
    let list = service.get("/api/v1/tokens").await;
    let entries: Vec<_> = list.json()["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let field_text = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
            (field_text("name"), field_text("origin"), it["scopes"].clone())
        })
        .collect();
    let expected_entry = |name: &str, origin: &str, scopes: &[&str]| {
        (name.to_owned(), origin.to_owned(), json!(scopes))
    };
    assert_eq!(
        entries,
        [
            expected_entry("ann", "api", &["read"]),
            expected_entry("bob", "config", &["read", "run"]),
            expected_entry("operator", "config", &["read", "run", "approve", "admin"]),
        ]
    );
    let keys = ["agents", "created", "expires", "name", "origin", "scopes"];
    for token in list.json()["tokens"].as_array().unwrap() {
        assert!(token.as_object().unwrap().keys().all(|key| keys.contains(&key.as_str())));
    }
    assert!(!service.stderr_text().contains(&ann_token), "the log has it");
    let bytes = service.setup.read_ledger_files();
    assert!(
        !bytes.windows(ann_token.len()).any(|window| window == ann_token.as_bytes()),
        "the ledger has it"
    );
    let answer = task_outcome(&service.send("one", &format!("say {ann_token}")).await).1;
    let list_text = service.get("/api/v1/executions").await.body;
    assert!(!answer.contains(&ann_token) && !list_text.contains(&ann_token), "{answer}");
}

#[tokio::test]
async fn a_token_cannot_create_or_revoke_a_wider_token() {
    let setup = Setup::from_config_text(&config_without_watch(&echo_agents_config()));
    let service = setup.start().await;
    let scopes = ["read", "run", "admin"];
    let bob_token =
        create_token(&service, json!({"name": "bob", "scopes": scopes, "agents": ["one"]})).await;
    let bob_client = service.client_with_token(&bob_token);
    let ann_token = create_token(&service, json!({"name": "ann"})).await;
    let forbidden_error = (403, "forbidden".to_owned());
    for request in [
        json!({"name": "eve"}),
        json!({"name": "eve", "agents": ["one", "two"]}),
        json!({"name": "eve", "agents": ["two"], "scopes": ["read"]}),
        json!({"name": "ann", "agents": ["one"], "replace": true}),
    ] {
        assert_eq!(
            status_and_error_code(&request_token(&bob_client, request.clone()).await),
            forbidden_error,
            "{request}"
        );
    }
    assert_eq!(status_and_error_code(&revoke_token(&bob_client, "ann").await), forbidden_error);
    assert_eq!(
        status_and_error_code(&bob_client.post("/api/v1/operator/rotate", "").await),
        forbidden_error
    );
    assert_eq!(
        status_and_error_code(
            &request_token(&service.client_with_token(&ann_token), json!({"name": "eve"})).await
        ),
        forbidden_error
    );
    let token_list = bob_client.get("/api/v1/tokens").await.json();
    let names: Vec<_> =
        token_list["tokens"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["bob"]);
    let eve_token = create_token(&bob_client, json!({"name": "eve", "agents": ["one"]})).await;
    assert_eq!(status_code_with_token(&service, &eve_token).await, 200);
    assert_eq!(revoke_token(&bob_client, "eve").await.status, 200);
}

#[tokio::test]
async fn an_invalid_token_request_is_refused_with_its_error() {
    let tokens = "[tokens.bob]\ntoken_env = 'BOB'\n";
    let setup =
        Setup::from_config_text(&config_without_watch(&[&echo_agents_config(), tokens].concat()));
    let service = setup.env("BOB", &"b".repeat(40)).start().await;
    for request in [
        json!({}),
        json!([]),
        json!({"name": ""}),
        json!({"name": "x".repeat(65)}),
        json!({"name": "a\nb"}),
        json!({"name": "ann", "scopes": []}),
        json!({"name": "ann", "scopes": ["rule"]}),
        json!({"name": "ann", "agents": ["nobody"]}),
        json!({"name": "ann", "expires": "2020-01-01T00:00:00Z"}),
        json!({"name": "ann", "expires": "soon"}),
        json!({"name": "ann", "text": "of my own"}),
    ] {
        assert_eq!(
            status_and_error_code(&request_token(&service, request.clone()).await),
            (400, "invalid-params".to_owned()),
            "{request}"
        );
    }
    let broken_response = service.post("/api/v1/tokens", "{").await;
    assert_eq!(status_and_error_code(&broken_response), (400, "malformed-json".to_owned()));
    for name in ["bob", "operator", "anonymous"] {
        let answer = request_token(&service, json!({"name": name, "replace": true})).await;
        assert_eq!(status_and_error_code(&answer), (409, "token-exists".to_owned()), "{name}");
        assert_eq!(
            status_and_error_code(&revoke_token(&service, name).await),
            (404, "token-unknown".to_owned()),
            "{name}"
        );
    }
}

#[tokio::test]
async fn the_command_line_creates_lists_revokes_and_rotates_tokens() {
    let service =
        Setup::from_config_text(&config_without_watch(&echo_agents_config())).start().await;
    let args = ["token", "create", "ann b", "--scope", "read,run", "--agent", "one"];
    let create_output = service.run_command(&args, "").await;
    assert_eq!(create_output.exit_code, Some(0), "{create_output:?}");
    let ann_token = create_output.stdout.trim();
    assert_eq!(status_code_with_token(&service, ann_token).await, 200);
    let list = service.run_command(&["token", "list"], "").await.stdout;
    assert!(list.contains("ann b") && list.contains("api"), "{list}");
    assert_eq!(service.run_command(&["token", "revoke", "ann b"], "").await.exit_code, Some(0));
    assert_eq!(status_code_with_token(&service, ann_token).await, 401);
    assert_eq!(service.run_command(&["token", "revoke", "ann b"], "").await.exit_code, Some(1));
    let rotate_output = service.run_command(&["token", "rotate"], "").await;
    assert_eq!(rotate_output.exit_code, Some(0), "{rotate_output:?}");
    let rotated_token = service.setup.read_file("state/algonius/token").trim().to_owned();
    let old_token_status = status_code_with_token(&service, &service.token).await;
    assert_eq!(
        (old_token_status, status_code_with_token(&service, &rotated_token).await),
        (401, 200)
    );
    assert_eq!(service.run_command(&["status"], "").await.exit_code, Some(0));
}
