//! Who may come in, and what a token is good for.

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::{
    ServiceClient, ServiceProcess, Setup, TestResponse, fake_agent_config, gated_agent_config,
    json_rpc_request_body, message_params,
};

/// Every path that wants a token, with its method. The last ones name nothing that exists.
const PROTECTED_REQUESTS: &[&str] = &[
    "GET /status",
    "GET /status/agents/echo",
    "GET /agents",
    "GET /a2a/status",
    "POST /agents/echo/v1",
    "POST /agents/echo/v1/",
    "GET /api/v1/agents",
    "GET /api/v1/executions",
    "GET /api/v1/executions?agent=echo",
    "GET /api/v1/executions/018f0000-0000-7000-8000-000000000000",
    "POST /api/v1/executions/018f0000-0000-7000-8000-000000000000/cancel",
    "POST /agents/echo/v1/message:send",
    "GET /agents/echo/v1/tasks",
    "GET /agents/echo/v1/tasks/x",
    "GET /agents/echo/v1/nonsense",
    "GET /agents/nobody/v1/tasks",
    "GET /agents/%ff/v1/tasks",
    "GET /agents/echo/v1/tasks/%ff",
    "GET /status/agents/nobody",
    "POST /agents/nobody/v1",
    "GET /api/v1/executions?nonsense=1",
    "GET /api/v1/executions/nonsense",
    "POST /agents/%ff/v1",
    "GET /status/agents/%ff",
    "GET /api/v1/executions/%ff",
    "POST /api/v1/executions/%ff/cancel",
    "POST /api/v1/reload",
    "GET /api/v1/tokens",
    "POST /api/v1/tokens",
    "DELETE /api/v1/tokens/ann",
    "POST /api/v1/operator/rotate",
];

const CARD_PATHS: &[&str] = &[
    "/.well-known/agent-card.json",
    "/agents/echo/.well-known/agent-card.json",
    "/agents/echo/v1/.well-known/agent-card.json",
    "/agents/nobody/.well-known/agent-card.json",
    "/agents/%ff/v1/.well-known/agent-card.json",
];

async fn expect_unauthenticated(
    client: &ServiceClient,
    request_line: &str,
    headers: &[String],
) -> TestResponse {
    let body = json_rpc_request_body("message/send", &message_params("hello"));
    let headers = [headers, &["Content-Type: application/json".to_owned()]].concat();
    let answer = client.request(request_line, &headers, body.as_bytes()).await;
    assert_eq!(answer.status, 401, "{request_line} {headers:?} {answer:?}");
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{request_line}");
    answer
}

#[tokio::test]
async fn every_path_refuses_invalid_tokens_alike() {
    let expired_token = "o".repeat(40);
    let config = [
        fake_agent_config("echo", "echo", ""),
        "[lockout]\nenabled = false\n[tokens.old]\ntoken_env = 'OLD'\nexpires = 2020-01-01T00:00:00Z\n".to_owned(),
    ];
    let settings = "public_card = false\ndefault_agent = 'echo'";
    let setup = Setup::with_server_settings(settings, &config.concat());
    let service = setup.env("OLD", &expired_token).start().await;
    let token = service.token.clone();
    let authorization = |text: &str| vec![format!("Authorization: Bearer {text}")];
    let invalid_headers = [
        vec![],
        authorization(""),
        authorization("short"),
        authorization(&"w".repeat(64)),
        authorization(token.get(1..).unwrap()),
        authorization(&format!("{token}0")),
        authorization(&token.to_uppercase()),
        authorization(&expired_token),
        [authorization(&token), authorization(&token)].concat(),
        [authorization(&token), authorization("another")].concat(),
        vec![format!("Authorization: Basic {token}")],
        vec![format!("Authorization: {token}")],
        vec![format!("Authorization: Bearer {token}, Bearer {token}")],
        vec![format!("X-Api-Key: {token}")],
        vec![format!("Cookie: token={token}")],
        vec![format!("Proxy-Authorization: Bearer {token}")],
    ];
    // Each kind of path has a body of its own, which says the same whatever the cause.
    let requests = [PROTECTED_REQUESTS[0], "POST /agents/echo/v1", "GET /agents/echo/v1/tasks"];
    let mut bodies = Vec::new();
    for request_line in requests {
        let without_token = expect_unauthenticated(&service, request_line, &[]).await;
        assert_eq!(without_token.error_code(), "unauthenticated");
        for headers in &invalid_headers {
            let refused = expect_unauthenticated(&service, request_line, headers).await;
            assert_eq!(refused.body, without_token.body, "{request_line}");
        }
        bodies.push(without_token.body);
    }
    let cards = CARD_PATHS.iter().map(|path| format!("GET {path}"));
    for request_line in PROTECTED_REQUESTS.iter().map(|path| (*path).to_owned()).chain(cards) {
        let agent_path = request_line.split_once("/v1");
        let body = match agent_path.filter(|(agent, _)| agent.contains("/agents/")) {
            Some((_, "" | "/")) => &bodies[1],
            Some((_, rest)) if !rest.contains("well-known") => &bodies[2],
            _ => &bodies[0],
        };
        for headers in [&invalid_headers[0], &invalid_headers[3], &invalid_headers[8]] {
            let refused = expect_unauthenticated(&service, &request_line, headers).await;
            assert_eq!(refused.body, *body, "{request_line}");
        }
        let separator = if request_line.contains('?') { '&' } else { '?' };
        let line_with_tokens =
            format!("{request_line}{separator}access_token={token}&token={token}");
        let refused = expect_unauthenticated(&service, &line_with_tokens, &[]).await;
        assert_eq!(refused.body, *body, "{request_line}");
    }
    let health = service.request("GET /health", &[], b"").await;
    assert_eq!((health.status, health.json()), (200, json!({"status": "ok"})));
    assert_eq!(service.get("/api/v1/executions").await.json()["executions"], json!([]));
}

#[tokio::test]
async fn a_missing_token_is_no_failed_attempt() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    for _ in 0..10 {
        expect_unauthenticated(&service, PROTECTED_REQUESTS[0], &[]).await;
    }
}

#[tokio::test]
async fn a_token_is_valid_for_its_agents_only() {
    let ann_token = "s".repeat(32);
    let agents =
        [fake_agent_config("one", "echo", ""), fake_agent_config("two", "echo", "")].concat();
    let setup = Setup::new(&format!("{agents}[tokens.ann]\ntoken_env = 'ANN'\nagents = ['one']\n"));
    let service = setup.env("ANN", &ann_token).start().await;
    let ann = service.client_with_token(&ann_token);
    assert_eq!(task_outcome(&ann.send("one", "hello").await), completed_outcome("hello"));
    for method in ["message/send", "tasks/get", "tasks/cancel"] {
        let refused = ann.expect_refusal("two", method, message_params("hello")).await;
        assert_eq!(refused, (-32059, "forbidden".to_owned()), "{method}");
    }
    assert_eq!(ann.get("/status/agents/two").await.status, 403);
    let ids = |list: &Value| -> Vec<Value> {
        list["agents"].as_array().unwrap().iter().map(|agent| agent["id"].clone()).collect()
    };
    assert_eq!(ids(&ann.get("/status").await.json()), ["one"]);
    assert_eq!(ids(&ann.get("/api/v1/agents").await.json()), ["one"]);
    assert_eq!(ids(&service.get("/status").await.json()), ["one", "two"]);
}

#[tokio::test]
async fn read_and_run_scopes_allow_only_their_operations() {
    let (reader_token, runner_token) = ("r".repeat(32), "u".repeat(32));
    let tokens = "[tokens.reader]\ntoken_env = 'READER'\nscopes = ['read']\n\
         [tokens.runner]\ntoken_env = 'RUNNER'\nscopes = ['run']\n";
    let setup = Setup::new(&[gated_agent_config("one", ""), tokens.to_owned()].concat());
    let setup = setup.env("READER", &reader_token).env("RUNNER", &runner_token);
    let service = setup.start().await;
    let (reader, runner) =
        (service.client_with_token(&reader_token), service.client_with_token(&runner_token));
    let forbidden = (-32059, "forbidden".to_owned());
    assert_eq!(
        reader.expect_refusal("one", "message/send", message_params("ann")).await,
        forbidden
    );
    assert_eq!(reader.expect_refusal("one", "tasks/cancel", json!({"id": "x"})).await, forbidden);
    assert_eq!(reader.post("/api/v1/executions/x/cancel", "{}").await.status, 403);
    assert_eq!(reader.get("/status").await.status, 200);
    assert_eq!(runner.expect_refusal("one", "tasks/get", json!({"id": "x"})).await, forbidden);
    assert_eq!(runner.get("/status").await.status, 403);
    assert_eq!(service.get("/api/v1/executions").await.json()["executions"], json!([]));
    assert_eq!(service.setup.read_file("log"), "");
}

#[tokio::test]
async fn an_administrator_sees_tasks_of_others() {
    let ann_token = "a".repeat(32);
    let tokens = "[tokens.ann]\ntoken_env = 'ANN'\n";
    let setup = Setup::new(&[fake_agent_config("echo", "echo", ""), tokens.to_owned()].concat());
    let service = setup.env("ANN", &ann_token).start().await;
    let task = service.client_with_token(&ann_token).send("echo", "hello").await;
    assert_eq!(service.fetch_task("echo", &task_id(&task)).await, task);
    let list = service.get("/api/v1/executions").await.json();
    assert_eq!(list["executions"][0]["id"], task["id"]);
}

#[tokio::test]
async fn a_rate_limit_counts_authenticated_calls_of_its_agent() {
    let limit = "a2a.rate_limit = { requests_per_second = 0.001, burst = 2 }";
    let agents =
        [fake_agent_config("one", "echo", limit), fake_agent_config("two", "echo", "")].concat();
    let setup = Setup::new(&format!("{agents}[lockout]\nenabled = false\n"));
    let service = setup.start().await;
    let unauthenticated = service.client_with_token(&"x".repeat(40));
    for _ in 0..3 {
        assert_eq!(
            unauthenticated.call("one", "message/send", &message_params("x")).await.status,
            401
        );
    }
    for _ in 0..2 {
        assert_eq!(task_outcome(&service.send("one", "hello").await), completed_outcome("hello"));
    }
    let refused = service.call("one", "message/send", &message_params("hello")).await;
    assert_eq!((refused.status, refused.error_code().as_str()), (429, "rate-limited"));
    let retry_after: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=1000).contains(&retry_after), "{retry_after}");
    assert_eq!(service.get("/agents/one/v1/tasks").await.status, 429);
    for _ in 0..3 {
        assert_eq!(task_outcome(&service.send("two", "hello").await), completed_outcome("hello"));
    }
    assert_eq!(service.get("/status/agents/one").await.status, 200);
}
