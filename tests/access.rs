//! Access rules and advertised features of a service that this process starts on loopback.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that cannot help fails the test")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use algonius_supervisor::platform::clock::WallClock;
use algonius_supervisor::{RunningService, StartError, config, start_with_clock};
use algonius_warden::process_holders::HolderCommand;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const AGENT_KEY: &str = "key-key-key-key-key-key-key-key-1";
const WRONG_TOKEN: &str = "other-other-other-other-other-oth";
const CARD_PATH: &str = "/agents/a/.well-known/agent-card.json";
const AGENT_CONFIG: &str = "[agents.a]\ncommand = \"cat\"\n";

/// A service of these settings; an agent's tables may follow its line.
struct TestService {
    running_service: RunningService,
    token: String,
    _home: TempDir,
}

/// An answer.
#[derive(Debug)]
struct RawResponse {
    status: u16,
    head: String,
    body: String,
}

impl RawResponse {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a refusal, in whichever format its path has.
    fn error_code(&self) -> String {
        let document = self.json();
        let pointers = ["/code", "/error/data/0/metadata/code", "/error/details/0/metadata/code"];
        let code = pointers.iter().find_map(|pointer| document.pointer(pointer)?.as_str());
        code.unwrap_or_default().to_owned()
    }
}

async fn try_start(
    server_settings: &str,
    agent_settings: &str,
    listen: Option<SocketAddr>,
) -> Result<TestService, StartError> {
    let home = tempfile::tempdir().unwrap();
    let config_file = home.path().join("supervisor.toml");
    let text = format!(
        "[pressure]\nenabled = false\n[server]\nlisten = \"127.0.0.1:0\"\ndata_dir = \"data\"\nruntime_dir = \"run\"\n{server_settings}\n{agent_settings}"
    );
    std::fs::write(&config_file, text).unwrap();
    let env = |name: &str| match name {
        "PATH" => Some("/usr/bin:/bin".into()),
        "KEY" => Some(AGENT_KEY.into()),
        "OTHER" => Some(WRONG_TOKEN.into()),
        _ => None,
    };
    let loaded = config::load(&config_file, &env).unwrap_or_else(|faults| panic!("{faults}"));
    let mut settings = loaded.settings;
    settings.server.listen_address = listen.unwrap_or(settings.server.listen_address);
    let running_service = start_with_clock(
        settings,
        Arc::new(WallClock),
        HolderCommand::new(env!("CARGO_BIN_EXE_algonius")),
    )
    .await?;
    let token = std::fs::read_to_string(home.path().join("data/token")).unwrap().trim().to_owned();
    Ok(TestService { running_service, token, _home: home })
}

async fn start(server_settings: &str, agent_settings: &str) -> TestService {
    try_start(server_settings, agent_settings, None).await.unwrap_or_else(|error| panic!("{error}"))
}

impl TestService {
    /// Sends a head as it is given; `Host` is added unless there is one.
    async fn send(&self, request_line: &str, headers: &[&str], body: &str) -> RawResponse {
        let mut head = format!("{request_line} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            head.push_str("Host: localhost\r\n");
        }
        for header in headers {
            head.push_str(&format!("{header}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        let exchange = async {
            let mut stream = TcpStream::connect(self.running_service.address()).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            text
        };
        let text = timeout(Duration::from_secs(20), exchange).await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        RawResponse { status, head: head.to_owned(), body: body.to_owned() }
    }

    async fn fetch_with_headers(&self, path: &str, headers: &[&str]) -> RawResponse {
        self.send(&format!("GET {path}"), headers, "").await
    }

    async fn fetch_with_token(&self, path: &str) -> RawResponse {
        self.fetch_with_headers(path, &[&authorization(&self.token)]).await
    }

    /// Calls a method of the agent at a path.
    async fn call(&self, path: &str, method: &str, headers: &[&str]) -> RawResponse {
        let message =
            json!({"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "hi"}]});
        let params = json!({"message": message, "id": "x"});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let headers = [headers, &["Content-Type: application/json"]].concat();
        self.send(&format!("POST {path}"), &headers, &body.to_string()).await
    }

    async fn stop(self) {
        self.running_service.stop(Duration::from_secs(5)).await;
    }
}

fn authorization(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

fn task_state(answer: &RawResponse) -> Value {
    answer.json().pointer("/result/status/state").cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_lockout_ends_and_its_count_restarts() {
    let agent_settings = format!("{AGENT_CONFIG}[lockout]\nfailures = 3\nblock = 1\n");
    let service = start("", &agent_settings).await;
    for _ in 0..5 {
        assert_eq!(service.fetch_with_headers("/status", &[]).await.status, 401);
    }
    let wrong_authorization = authorization(WRONG_TOKEN);
    let send_wrong_token =
        async || service.fetch_with_headers("/status", &[&wrong_authorization]).await;
    for _ in 0..2 {
        for _ in 0..3 {
            assert_eq!(send_wrong_token().await.status, 401);
        }
        let lockout_response = send_wrong_token().await;
        assert_eq!(
            (lockout_response.status, lockout_response.header("retry-after")),
            (429, Some("1"))
        );
        assert_eq!(lockout_response.error_code(), "locked-out");
        for path in ["/agents", "/api/v1/executions"] {
            assert_eq!(
                service.fetch_with_headers(path, &[&wrong_authorization]).await.body,
                lockout_response.body,
                "{path}"
            );
        }
        for refusal in [
            service.call("/agents/a/v1", "message/send", &[&wrong_authorization]).await,
            service.fetch_with_headers("/agents/a/v1/tasks", &[&wrong_authorization]).await,
        ] {
            assert_eq!((refusal.status, refusal.error_code().as_str()), (429, "locked-out"));
        }
        assert_eq!(
            service.fetch_with_headers(CARD_PATH, &[&wrong_authorization]).await.status,
            200
        );
        assert_eq!(service.fetch_with_token("/status").await.status, 200);
        // The block lasts for a second, and a request that is refused does not make it longer.
        tokio::time::sleep(Duration::from_millis(1100)).await;
    }
    service.stop().await;
}

#[tokio::test]
async fn forwarded_addresses_are_trusted_from_proxies_only() {
    let agent_settings = format!("{AGENT_CONFIG}[lockout]\nfailures = 1\n");
    let wrong_authorization = authorization(WRONG_TOKEN);
    let service_behind_proxy = start("trusted_proxies = [\"127.0.0.1\"]", &agent_settings).await;
    let status = async |service: &TestService, client_address: &str| {
        let forwarded_for = format!("X-Forwarded-For: {client_address}");
        service
            .fetch_with_headers("/status", &[wrong_authorization.as_str(), &forwarded_for])
            .await
            .status
    };
    assert_eq!(status(&service_behind_proxy, "198.51.100.7").await, 401);
    assert_eq!(status(&service_behind_proxy, "198.51.100.7").await, 429);
    assert_eq!(status(&service_behind_proxy, "198.51.100.8").await, 401);
    assert_eq!(status(&service_behind_proxy, "192.0.2.1, 198.51.100.7").await, 429);
    assert_eq!(status(&service_behind_proxy, "2001:db8::1").await, 401);
    assert_eq!(status(&service_behind_proxy, "2001:db8::2").await, 429);
    assert_eq!(service_behind_proxy.fetch_with_token("/status").await.status, 200);
    service_behind_proxy.stop().await;
    let service_without_proxy = start("", &agent_settings).await;
    assert_eq!(status(&service_without_proxy, "198.51.100.7").await, 401);
    assert_eq!(status(&service_without_proxy, "198.51.100.8").await, 429);
    assert_eq!(service_without_proxy.fetch_with_token("/status").await.status, 200);
    service_without_proxy.stop().await;
    let exempt_settings =
        format!("{AGENT_CONFIG}[lockout]\nfailures = 1\nexempt = [\"127.0.0.0/8\"]\n");
    let service_with_exemption = start("", &exempt_settings).await;
    assert_eq!(status(&service_with_exemption, "198.51.100.7").await, 401);
    assert_eq!(status(&service_with_exemption, "198.51.100.7").await, 401);
    service_with_exemption.stop().await;
}

#[tokio::test]
async fn an_agent_key_works_for_its_agent_only() {
    let agent_settings = format!(
        "{AGENT_CONFIG}[agents.a.auth]\ntype = \"api_key\"\nheader = \"X-Key\"\ntoken_env = \"KEY\"\n\
         [agents.b]\ncommand = \"cat\"\n\
         [agents.c]\ncommand = \"cat\"\n[agents.c.auth]\ntype = \"none\"\ninsecure = true\n"
    );
    let service = start("", &agent_settings).await;
    let key_header = format!("X-Key: {AGENT_KEY}");
    let send_method = "message/send";
    assert_eq!(
        task_state(&service.call("/agents/a/v1", send_method, &[&key_header]).await),
        "completed"
    );
    assert_eq!(service.call("/agents/a/v1", send_method, &[]).await.status, 401);
    assert_eq!(service.call("/agents/b/v1", send_method, &[&key_header]).await.status, 401);
    let both_credentials = [key_header.as_str(), &authorization(&service.token)];
    assert_eq!(service.call("/agents/a/v1", send_method, &both_credentials).await.status, 401);
    let key_as_bearer = authorization(AGENT_KEY);
    let other_agent = service.call("/agents/b/v1", send_method, &[&key_as_bearer]).await;
    assert_eq!(other_agent.json()["error"]["data"][0]["metadata"]["code"], "forbidden");
    assert_eq!(task_state(&service.call("/agents/c/v1", send_method, &[]).await), "completed");
    assert_eq!(
        service.call("/agents/c/v1", send_method, &["X-Forwarded-For: ::1"]).await.status,
        401
    );
    assert_eq!(
        service.call("/agents/c/v1", send_method, &[&authorization(WRONG_TOKEN)]).await.status,
        401
    );
    assert_eq!(service.fetch_with_headers("/api/v1/executions", &[]).await.status, 401);
    service.stop().await;
}

#[tokio::test]
async fn an_open_agent_refuses_remote_clients() {
    let agent_settings =
        format!("{AGENT_CONFIG}[agents.a.auth]\ntype = \"none\"\ninsecure = true\n");
    let listen = Some(SocketAddr::from(([0, 0, 0, 0], 0)));
    let error = try_start("", &agent_settings, listen).await.err().map(|error| error.to_string());
    assert!(error.is_some_and(|error| error.contains("admits every caller")));
}

#[tokio::test]
async fn unknown_hosts_and_origins_are_refused_first() {
    let server_settings = "allowed_hosts = [\"agents.lan\"]\nallowed_origins = [\"https://c.example\"]\n\
                  public_url = \"https://agents.example.org\"";
    let service = start(server_settings, AGENT_CONFIG).await;
    let bearer_header = authorization(&service.token);
    let status_with = async |headers: &[&str]| {
        service
            .fetch_with_headers("/status", &[headers, &[bearer_header.as_str()]].concat())
            .await
            .status
    };
    for host in ["localhost:9", "127.0.0.1", "agents.lan:80", "agents.example.org"] {
        assert_eq!(status_with(&[&format!("Host: {host}")]).await, 200, "{host}");
    }
    assert_eq!(status_with(&["Host: evil.example"]).await, 421);
    assert_eq!(status_with(&["Origin: https://c.example"]).await, 200);
    assert_eq!(status_with(&["Origin: http://localhost"]).await, 200);
    assert_eq!(status_with(&["Origin: https://evil.example"]).await, 403);
    assert_eq!(service.fetch_with_headers("/health", &["Host: 10.1.2.3:80"]).await.status, 200);
    assert_eq!(
        service.fetch_with_headers(CARD_PATH, &["Host: evil.example"]).await.error_code(),
        "host-unknown"
    );
    service.stop().await;
}

#[tokio::test]
async fn disabled_features_are_neither_advertised_nor_available() {
    let agent_settings = format!(
        "{AGENT_CONFIG}[agents.a.a2a]\nbase_path = \"/bots/x\"\nmethods = [\"send\"]\n\
         input_modes = [\"image/*\"]\nrate_limit = {{ requests_per_second = 0.01, burst = 2 }}\n\
         [agents.b]\ncommand = \"cat\"\n[agents.b.a2a]\nversions = [\"1.0\"]\n"
    );
    let service = start("", &agent_settings).await;
    let bearer_header = authorization(&service.token);
    let rpc_code =
        |answer: &RawResponse| answer.json()["error"]["data"][0]["metadata"]["code"].clone();
    let send_response = service.call("/bots/x/v1", "message/send", &[&bearer_header]).await;
    assert_eq!(rpc_code(&send_response), "content-type-unsupported");
    let get_response = service.call("/agents/a/v1/", "tasks/get", &[&bearer_header]).await;
    assert_eq!(rpc_code(&get_response), "operation-unsupported");
    let third = service.call("/bots/x/v1", "message/send", &[&bearer_header]).await;
    assert_eq!((third.status, third.error_code().as_str()), (429, "rate-limited"));
    assert_eq!(third.header("retry-after"), Some("100"));
    assert_eq!(service.fetch_with_token("/status/agents/a").await.status, 200);
    let old_version_response =
        service.call("/agents/b/v1", "message/send", &[&bearer_header]).await;
    assert_eq!(rpc_code(&old_version_response), "version-unsupported");

    let card = service.fetch_with_headers("/bots/x/.well-known/agent-card.json", &[]).await;
    let url = format!("{}/bots/x/v1", service.running_service.public_url());
    assert_eq!(card.json()["url"], json!(url));
    assert_eq!(card.json()["defaultInputModes"], json!(["image/*"]));
    assert_eq!(service.fetch_with_headers(CARD_PATH, &[]).await.body, card.body);

    let directory = service.fetch_with_token("/agents").await.json();
    assert_eq!(directory, service.fetch_with_token("/api/v1/agents").await.json());
    assert_eq!(directory["agents"][0]["url"], json!(url));
    assert_eq!(service.fetch_with_headers("/agents", &[]).await.status, 401);
    let status = service.fetch_with_token("/a2a/status").await.json();
    assert_eq!(status["agents"][0]["interfaces"][0]["url"], json!(url));
    assert_eq!(status["agents"][0]["health"], "alive");
    service.stop().await;
}

#[tokio::test]
async fn legacy_paths_give_the_same_responses() {
    let service = start("", AGENT_CONFIG).await;
    let bearer_header = authorization(&service.token);
    let card = service.fetch_with_headers(CARD_PATH, &[]).await;
    let card_file = service.fetch_with_headers("/.well-known/agent-cards/a.json", &[]).await;
    assert_eq!((card_file.status, &card_file.body), (200, &card.body));
    for unknown in ["a", "b.json", ".json", "list.json"] {
        let path = format!("/.well-known/agent-cards/{unknown}");
        let answer = service.fetch_with_headers(&path, &[]).await;
        assert_eq!(
            (answer.status, answer.error_code().as_str()),
            (404, "agent-unknown"),
            "{unknown}"
        );
    }
    let list = service.fetch_with_token("/agents/list.json").await.json();
    assert_eq!(list, service.fetch_with_token("/agents").await.json());
    assert_eq!(list["agents"][0]["id"], "a");
    assert_eq!(service.fetch_with_headers("/agents/list.json", &[]).await.status, 401);

    let send_document =
        service.call("/agents/a/v1/jsonrpc", "message/send", &[&bearer_header]).await.json();
    assert_eq!(send_document["result"]["kind"], "task", "{send_document}");
    let refusal = service.call("/agents/a/v1/jsonrpc", "message/send", &[]).await;
    assert_eq!(refusal.status, 401);
    assert_eq!(refusal.json()["jsonrpc"], "2.0");
    service.stop().await;
}

/// See ADR 44: each has its equivalent, and none answers with an error of the service.
#[tokio::test]
async fn rejected_paths_are_unknown() {
    let service = start("", AGENT_CONFIG).await;
    let bearer_header = authorization(&service.token);
    let rpc = service.call("/rpc", "message/send", &[&bearer_header]).await;
    assert_eq!((rpc.status, rpc.error_code().as_str()), (404, "path-unknown"));
    for path in ["/discovery/agents", "/discovery/capabilities", "/agents/a/v1/executions"] {
        let answer = service.fetch_with_token(path).await;
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
    }
    service.stop().await;
}

#[tokio::test]
async fn a_card_is_cacheable_and_not_sent_twice() {
    let service = start("", AGENT_CONFIG).await;
    let card = service.fetch_with_headers(CARD_PATH, &[]).await;
    assert_eq!(card.header("cache-control"), Some("public, max-age=300"));
    assert_eq!(card.header("vary"), Some("A2A-Version"));
    let tag = card.header("etag").unwrap();
    let revalidated =
        service.fetch_with_headers(CARD_PATH, &[&format!("If-None-Match: {tag}")]).await;
    assert_eq!(
        (revalidated.status, revalidated.body.as_str(), revalidated.header("etag")),
        (304, "", Some(tag))
    );
    let head_response = service.send(&format!("HEAD {CARD_PATH}"), &[], "").await;
    assert_eq!(
        (head_response.status, head_response.body.as_str(), head_response.header("etag")),
        (200, "", Some(tag))
    );
    assert_eq!(head_response.header("content-length"), card.header("content-length"));
    service.stop().await;
}
