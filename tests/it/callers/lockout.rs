//! Wrong tokens: blocked per address and token, on every transport, and never at the cost of a valid one.

use algonius_a2a::grpc::proto::lf_a2a_v1 as proto;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use prost::Message as _;
use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{
    ServiceClient, ServiceProcess, Setup, TestResponse, fake_agent_config, message_params,
    within_deadline,
};

/// Cards, health and a path that does not exist: they need no token.
const PUBLIC_PATHS: &[(&str, u16)] = &[
    ("/.well-known/agent-card.json", 200),
    ("/agents/echo/.well-known/agent-card.json", 200),
    ("/health", 200),
    ("/ready", 200),
    ("/nowhere", 404),
];

const API_KEY: &str = "key-key-key-key-key-key-key-key-1";

/// An agent that requires a token of the service, and one that accepts a key too.
fn agents_config() -> String {
    let key_auth_settings =
        "auth = { type = \"api_key\", header = \"X-Key\", token_env = \"KEY\" }";
    [fake_agent_config("echo", "echo", ""), fake_agent_config("keyed", "echo", key_auth_settings)]
        .concat()
}

/// A service that waits for a missing body longer than any wait of a test.
async fn start_service() -> ServiceProcess {
    Setup::with_server_settings("default_agent = 'echo'\nbody_timeout = 600", &agents_config())
        .env("KEY", API_KEY)
        .start()
        .await
}

/// A wrong token of this number.
fn wrong_token(number: usize) -> String {
    format!("{number:040}")
}

/// Answers of every transport to this token: the name of the transport, the HTTP status or that of gRPC,
/// and the seconds of `Retry-After`.
async fn send_over_all_transports(
    service: &ServiceProcess,
    token: &str,
) -> Vec<(&'static str, u64, Option<u64>)> {
    let client = service.client_with_token(token);
    let send_params = json!({"message": {"role": "ROLE_USER", "messageId": uuid::Uuid::new_v4(),
        "parts": [{"text": "hello"}]}});
    let bearer = format!("Authorization: Bearer {token}");
    let content_type = "Content-Type: application/json".to_owned();
    let rest_headers = [bearer, content_type, "A2A-Version: 1.0".to_owned()];
    let answers = [
        ("JSON-RPC", client.call("echo", "message/send", &message_params("hello")).await),
        (
            "HTTP+JSON",
            client
                .request(
                    "POST /agents/echo/v1/message:send",
                    &rest_headers,
                    send_params.to_string().as_bytes(),
                )
                .await,
        ),
        ("API", client.get("/api/v1/executions").await),
        ("status", client.get("/status").await),
        ("metrics", client.get("/metrics").await),
    ];
    let summarize = |(name, answer): (&'static str, TestResponse)| {
        (name, answer.status.into(), retry_after(&answer))
    };
    let mut results: Vec<_> = answers.into_iter().map(summarize).collect();
    let response =
        send_grpc_request(&client, Some(("authorization", &format!("Bearer {token}"))), true).await;
    let seconds = numeric_header(&response, "retry-after");
    results.push(("gRPC", numeric_header(&response, "grpc-status").unwrap_or(0), seconds));
    results
}

fn retry_after(answer: &TestResponse) -> Option<u64> {
    answer.header("retry-after")?.parse().ok()
}

fn numeric_header<B>(response: &Response<B>, name: &str) -> Option<u64> {
    response.headers().get(name)?.to_str().ok()?.parse().ok()
}

/// Head of the response to `ListTasks` of `echo`, whose body ends, or never does.
async fn send_grpc_request(
    client: &ServiceClient,
    credential: Option<(&str, &str)>,
    is_body_complete: bool,
) -> Response<hyper::body::Incoming> {
    let list_request = proto::ListTasksRequest { tenant: "echo".to_owned(), ..Default::default() };
    let list_request = list_request.encode_to_vec();
    let prefix =
        [[0].as_slice(), &u32::try_from(list_request.len()).unwrap().to_be_bytes()].concat();
    let first_frame =
        Ok::<_, std::io::Error>(Frame::data(Bytes::from([prefix, list_request].concat())));
    let mut frames = vec![Some(first_frame)];
    if !is_body_complete {
        frames.push(None);
    }
    let body = StreamBody::new(stream::unfold(frames.into_iter(), async |mut frames| match frames
        .next()?
    {
        Some(frame) => Some((frame, frames)),
        None => std::future::pending().await,
    }));
    let url = format!("http://{}/lf.a2a.v1.A2AService/ListTasks", client.address);
    let mut request =
        Request::post(url).header("content-type", "application/grpc").header("te", "trailers");
    if let Some((name, value)) = credential {
        request = request.header(name, value);
    }
    let http_client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let request = request.body(Box::pin(body)).unwrap();
    within_deadline("the response", http_client.request(request)).await.unwrap()
}

async fn expect_public_and_token_access(service: &ServiceProcess) {
    for (path, status) in PUBLIC_PATHS {
        let answer = service.request(&format!("GET {path}"), &[], b"").await;
        assert_eq!(answer.status, *status, "{path}");
    }
    for (name, status, retry_after_seconds) in
        send_over_all_transports(service, &service.token).await
    {
        let expected = if name == "gRPC" { 0 } else { 200 };
        assert_eq!((status, retry_after_seconds), (expected, None), "{name}");
    }
}

#[tokio::test]
async fn a_wrong_token_is_blocked_alone_and_on_every_transport() {
    let service = start_service().await;
    for _ in 0..5 {
        assert_eq!(service.client_with_token(&wrong_token(1)).get("/status").await.status, 401);
    }
    for (name, status, retry_after_seconds) in
        send_over_all_transports(&service, &wrong_token(1)).await
    {
        let expected = if name == "gRPC" { 8 } else { 429 };
        assert_eq!(status, expected, "{name}");
        assert!(
            retry_after_seconds.is_some_and(|wait| (800..=900).contains(&wait)),
            "{name}: {retry_after_seconds:?}"
        );
    }
    expect_public_and_token_access(&service).await;
    assert_eq!(service.request("GET /status", &[], b"").await.status, 401);
    assert_eq!(service.client_with_token(&wrong_token(2)).get("/status").await.status, 401);
    let block_count = service.stderr_text().matches("wrong credential blocked").count();
    assert_eq!(block_count, 1, "{}", service.stderr_text());
}

#[tokio::test]
async fn different_wrong_tokens_block_the_wrong_ones_of_their_address() {
    let service = start_service().await;
    for number in 0..5 {
        assert_eq!(
            service.client_with_token(&wrong_token(number)).get("/status").await.status,
            401,
            "{number}"
        );
    }
    for number in 3..9 {
        let refused = service.client_with_token(&wrong_token(number)).get("/status").await;
        assert_eq!((refused.status, retry_after(&refused).is_some()), (429, true), "{number}");
        assert_eq!(refused.json()["code"], "locked-out");
    }
    for (name, status, retry_after_seconds) in
        send_over_all_transports(&service, &wrong_token(9)).await
    {
        let expected = if name == "gRPC" { 8 } else { 429 };
        assert_eq!((status, retry_after_seconds.is_some()), (expected, true), "{name}");
    }
    expect_public_and_token_access(&service).await;
}

/// Clients that send wrong tokens in a loop slow down no other caller, also while
/// the table is locked and full.
#[tokio::test(flavor = "multi_thread")]
async fn a_valid_caller_is_served_while_others_guess_tokens() {
    let service = start_service().await;
    let guessers: Vec<_> = (0..8)
        .map(|guesser| {
            let client = service.client.clone();
            tokio::spawn(async move {
                for number in 0..100 {
                    let token = wrong_token(guesser * 1000 + number);
                    let status =
                        ServiceClient { token, ..client.clone() }.get("/status").await.status;
                    assert!(matches!(status, 401 | 429), "{status}");
                }
            })
        })
        .collect();
    while !guessers.iter().all(tokio::task::JoinHandle::is_finished) {
        let task = within_deadline("the answer", service.send("echo", "hello")).await;
        assert_eq!(task_outcome(&task), completed_outcome("hello"));
    }
    for guesser in guessers {
        guesser.await.unwrap();
    }
    expect_public_and_token_access(&service).await;
}

#[tokio::test]
async fn the_key_of_an_agent_is_blocked_like_a_token() {
    let service = start_service().await;
    let send = async |key: &str| {
        let headers = [format!("X-Key: {key}"), "Content-Type: application/json".to_owned()];
        let body = crate::harness::json_rpc_request_body("message/send", &message_params("hello"));
        service.request("POST /agents/keyed/v1", &headers, body.as_bytes()).await.status
    };
    for _ in 0..5 {
        assert_eq!(send(&wrong_token(1)).await, 401);
    }
    assert_eq!(send(&wrong_token(1)).await, 429);
    assert_eq!(send(API_KEY).await, 200);
    let refused = send_grpc_request(&service.client, Some(("x-key", &wrong_token(1))), true).await;
    assert_eq!(numeric_header(&refused, "grpc-status"), Some(8));
    expect_public_and_token_access(&service).await;
}

/// For an agent that accepts a key, only the message names the agent. A caller who may use no agent is
/// refused before the message is read: this body never ends.
#[tokio::test]
async fn the_message_of_an_anonymous_grpc_caller_is_not_read() {
    let service = start_service().await;
    for credential in [
        None,
        Some(("x-key", "no-key-no-key-no-key-no-key-no-key")),
        Some(("authorization", "Bearer x")),
    ] {
        let refused = send_grpc_request(&service.client, credential, false).await;
        assert_eq!(numeric_header(&refused, "grpc-status"), Some(16), "{credential:?}");
    }
    // A key of some agent is a credential: the message is read, and names another agent.
    let refused = send_grpc_request(&service.client, Some(("x-key", API_KEY)), true).await;
    assert_eq!(numeric_header(&refused, "grpc-status"), Some(16));
}

#[tokio::test]
async fn the_command_line_reports_the_duration_of_a_lockout() {
    let service = start_service().await;
    std::fs::write(service.setup.test_folder().join("wrong.token"), wrong_token(1)).unwrap();
    let token_args = ["--token-file", "wrong.token"];
    let run = async |args: &[&str]| service.run_command(&[args, &token_args].concat(), "").await;
    for _ in 0..5 {
        let refused = run(&["status"]).await;
        assert_eq!(refused.exit_code, Some(2));
        assert!(refused.stderr.contains("(unauthenticated)"), "{}", refused.stderr);
    }
    for args in [&["status"][..], &["send", "echo", "x"], &["send", "--no-stream", "echo", "x"]] {
        let refused = run(args).await;
        let stderr = &refused.stderr;
        assert_eq!(refused.exit_code, Some(2), "{stderr}");
        let durations = ["14 min ", "15 min 0 s"];
        let messages =
            durations.map(|duration| format!("wrong tokens are blocked for another {duration}"));
        let is_reported = messages.iter().any(|message| stderr.contains(message));
        assert!(is_reported && stderr.contains("(locked-out)"), "{stderr}");
    }
    let refused = run(&["status", "--json"]).await;
    let error: Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!((&error["code"], &error["exitCode"]), (&json!("locked-out"), &json!(2)));
    let seconds = error["retryAfterSeconds"].as_u64().unwrap();
    assert!((800..=900).contains(&seconds), "{error}");
    let valid_token_output = service.run_command(&["send", "echo", "hello"], "").await;
    assert_eq!(
        (valid_token_output.exit_code, valid_token_output.stdout.as_str()),
        (Some(0), "hello")
    );
}
