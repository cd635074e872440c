//! Addresses: cards contain the one that a caller used, and receivers may be in the operator's own network.

use std::fs;

use algonius_supervisor::platform::tls::CertificateFiles;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::harness::certificate_authority::CertificateAuthority;
use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{
    ServiceClient, ServiceProcess, Setup, TestResponse, fake_agent_config, json_rpc_request_body,
    message_params, poll_until, within_deadline,
};

const CARD_PATH: &str = "/agents/echo/.well-known/agent-card.json";

/// A service on all addresses of the machine.
async fn start_on_all_addresses(server_settings: &str) -> ServiceProcess {
    let server = format!("default_agent = 'echo'\n{server_settings}");
    Setup::with_server_settings(&server, &fake_agent_config("echo", "echo", ""))
        .with_listen_address("0.0.0.0:0")
        .start()
        .await
}

/// Returns the answer to a caller that names this host.
async fn request_to_host(
    service: &ServiceProcess,
    host: &str,
    line: &str,
    body: &str,
) -> TestResponse {
    let client: &ServiceClient = service;
    let head = format!(
        "{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        client.token,
        body.len()
    );
    TestResponse::parse(&client.send_raw(head.as_bytes()).await).unwrap()
}

/// Every address in a document.
fn find_urls(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if text.contains("://") => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(find_urls).collect(),
        Value::Object(values) => values.values().flat_map(find_urls).collect(),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn a_wildcard_listener_publishes_the_host_of_its_caller() {
    let service = start_on_all_addresses("allowed_hosts = ['box.lan']").await;
    let port = service.address.port();
    let extended = json_rpc_request_body("agent/getAuthenticatedExtendedCard", &json!({}));
    let hosts = ["127.0.0.1", "localhost", "[::1]", "10.9.8.7", "box.lan"];
    for host in hosts.map(|host| format!("{host}:{port}")) {
        for (line, body) in [
            (format!("GET {CARD_PATH}"), ""),
            ("GET /.well-known/agent-card.json".to_owned(), ""),
            ("POST /agents/echo/v1".to_owned(), extended.as_str()),
            ("GET /api/v1/agents".to_owned(), ""),
            ("GET /api/v1/agents/echo".to_owned(), ""),
            ("GET /a2a/status".to_owned(), ""),
        ] {
            let response = request_to_host(&service, &host, &line, body).await;
            let (urls, expected) = (find_urls(&response.json()), format!("http://{host}"));
            assert!(!urls.is_empty() && response.status == 200, "{line}: {response:?}");
            let unexpected: Vec<_> = urls
                .iter()
                .filter(|url| !url.starts_with(&expected) && !url.contains("algonius.dev"))
                .collect();
            assert!(unexpected.is_empty(), "{host} {line}: {unexpected:?}");
        }
    }
    let card =
        request_to_host(&service, &format!("localhost:{port}"), &format!("GET {CARD_PATH}"), "")
            .await;
    let url = card.json()["url"].as_str().unwrap().to_owned();
    let path = url.strip_prefix(&format!("http://localhost:{port}")).unwrap();
    let answer =
        service.post(path, &json_rpc_request_body("message/send", &message_params("hello"))).await;
    assert_eq!(task_outcome(&answer.json()["result"]), completed_outcome("hello"));
    for host in ["evil.example", "localhost.evil.example", "me@localhost", "box.lan.evil"] {
        let response = request_to_host(&service, host, &format!("GET {CARD_PATH}"), "").await;
        assert_eq!(
            (response.status, response.error_code().as_str()),
            (421, "host-unknown"),
            "{host}"
        );
        assert!(!response.body.contains(host), "{response:?}");
    }
}

#[tokio::test]
async fn a_configured_address_is_published_to_every_caller() {
    let service = start_on_all_addresses("public_url = 'https://agents.example/base'").await;
    for host in ["127.0.0.1", "agents.example"] {
        let card = request_to_host(&service, host, &format!("GET {CARD_PATH}"), "").await.json();
        assert_eq!(card["url"], "https://agents.example/base/agents/echo/v1");
    }
}

/// A receiver over TLS with a certificate of this authority: the body of its first request.
async fn start_webhook_receiver(
    authority: &CertificateAuthority,
    setup: &Setup,
) -> (u16, JoinHandle<Option<String>>) {
    let folder = setup.test_folder().join("receiver");
    fs::create_dir(&folder).unwrap();
    authority.issue(&["localhost"]).write_files(&folder);
    let key_pair =
        CertificateFiles { cert_file: folder.join("cert.pem"), key_file: folder.join("key.pem") };
    let acceptor = TlsAcceptor::from(key_pair.read_server_config().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let received = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.ok()?;
        let mut stream = acceptor.accept(stream).await.ok()?;
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"}") {
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                break;
            }
        }
        stream.write_all(b"HTTP/1.1 204 Fine\r\ncontent-length: 0\r\n\r\n").await.ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    });
    (port, received)
}

/// Raises an alert: a hundred requests and one.
async fn raise_request_rate_alert(service: &ServiceProcess) {
    for _ in 0..101 {
        service.get("/agents").await;
    }
}

fn push_message_params(url: &str) -> Value {
    let mut params = message_params("hello");
    params["configuration"] = json!({"blocking": true, "pushNotificationConfig": {"url": url}});
    params
}

#[tokio::test]
async fn an_internal_webhook_does_not_allow_its_address_to_callers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let alerts = format!("[alerts]\nwebhook = '{url}'\nallow = ['127.0.0.1']\n");
    let service =
        Setup::new(&[fake_agent_config("echo", "echo", ""), alerts].concat()).start().await;
    let (_, code) = service.expect_refusal("echo", "message/send", push_message_params(&url)).await;
    assert_eq!(code, "invalid-params");
    raise_request_rate_alert(&service).await;
    let (mut stream, _) = within_deadline("the webhook", listener.accept()).await.unwrap();
    let mut bytes = vec![0; 4096];
    let length = within_deadline("the alert", stream.read(&mut bytes)).await.unwrap();
    let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
    assert!(text.starts_with("POST /hook HTTP/1.1"), "{text}");
}

#[tokio::test]
async fn receivers_with_a_private_authority_get_their_messages() {
    let authority = CertificateAuthority::new();
    for (section, has_ca_file) in [("push", true), ("alerts", true), ("push", false)] {
        let setup = Setup::new("");
        authority.write_certificate(setup.test_folder());
        let (port, received) = start_webhook_receiver(&authority, &setup).await;
        let url = format!("https://localhost:{port}/hook");
        let hook = if section == "alerts" { format!("webhook = '{url}'") } else { String::new() };
        let ca_setting = if has_ca_file { "ca_file = 'HERE/ca.pem'" } else { "" };
        let allow = "allow = ['127.0.0.1', '::1']";
        let mut setup = setup;
        let agents = fake_agent_config("echo", "echo", "");
        setup.set_config_text(&format!(
            "[pressure]\nenabled = false\n{agents}\n[{section}]\n{allow}\n{ca_setting}\n{hook}\n"
        ));
        let service = setup.start().await;
        if section == "alerts" {
            raise_request_rate_alert(&service).await;
        } else {
            service.expect_result("echo", "message/send", &push_message_params(&url)).await;
        }
        let received = within_deadline("the receiver", received).await.unwrap();
        assert_eq!(
            received.is_some_and(|request| request.starts_with("POST /hook")),
            has_ca_file,
            "{section}"
        );
    }
}

#[tokio::test]
async fn an_invalid_ca_file_is_reported_with_its_key() {
    let setup = Setup::new(
        &[fake_agent_config("echo", "echo", ""), "[push]\nca_file = 'none.pem'\n".into()].concat(),
    );
    let config = setup.write_config().display().to_string();
    let output = setup.run_command(&["check", &config], "").await;
    assert!(output.exit_code == Some(4) && output.stderr.contains("push.ca_file"), "{output:?}");
}

#[tokio::test]
async fn the_container_command_starts_a_usable_service() {
    let file = include_str!("../../Dockerfile");
    assert!(file.contains(
        r#"CMD ["serve", "--config", "/etc/algonius/supervisor.toml", "--listen", "0.0.0.0:8080"]"#
    ));
    let shipped_config = include_str!("../../config/supervisor.toml");
    let service =
        Setup::from_config_text(shipped_config).with_listen_address("0.0.0.0:0").start().await;
    let port = service.address.port();
    // As from the host, by a port that is published elsewhere.
    let card =
        request_to_host(&service, "localhost:18080", "GET /.well-known/agent-card.json", "").await;
    assert_eq!(card.json()["url"], "http://localhost:18080/agents/echo/v1");
    let request_body = json_rpc_request_body("message/send", &message_params("hi"));
    let response =
        request_to_host(&service, "localhost:18080", "POST /agents/echo/v1", &request_body).await;
    assert_eq!(task_outcome(&response.json()["result"]), completed_outcome("hi"));
    // As its own check of health does.
    let url = format!("http://127.0.0.1:{port}");
    let healthy = async || {
        let status =
            service.setup.run_command_with_env(&["status"], "", &[("ALGONIUS_URL", &url)]).await;
        (status.exit_code == Some(0)).then_some(())
    };
    poll_until("a healthy status", healthy).await;
}
