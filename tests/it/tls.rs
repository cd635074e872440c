//! TLS on the one port: real handshakes with certificates of the story's own authority.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use algonius_a2a::grpc::proto::lf_a2a_v1 as proto;
use algonius_supervisor::platform::tls;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use proto::a2a_service_client::A2aServiceClient;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::harness::certificate_authority::{CertificateAuthority, IssuedCertificate};
use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::processes::open_socket_count;
use crate::harness::{
    ServiceProcess, Setup, TestResponse, fake_agent_config, json_rpc_request_body, message_params,
    poll_until, within_deadline,
};

const TLS_SETTINGS: &str = "tls = { cert = \"HERE/cert.pem\", key = \"HERE/key.pem\" }\n";
const CERTIFICATE_NAMES: [&str; 2] = ["localhost", "agents.example"];

/// A service that speaks TLS, and whom its certificates are of.
struct TlsService {
    service: ServiceProcess,
    authority: CertificateAuthority,
    certificate: IssuedCertificate,
    connector: TlsConnector,
}

impl TlsService {
    async fn start(server_settings: &str, agents: &str) -> Self {
        let setup =
            Setup::with_server_settings(&format!("{TLS_SETTINGS}{server_settings}"), agents);
        let authority = CertificateAuthority::new();
        let certificate = authority.issue(&CERTIFICATE_NAMES);
        certificate.write_files(setup.test_folder());
        let authority_file = authority.write_certificate(setup.test_folder());
        let mut config = tls::client_config(Some(&authority_file)).unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let connector = TlsConnector::from(Arc::new(config));
        Self { service: setup.start().await, authority, certificate, connector }
    }

    async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        connect_tls(&self.connector, self.service.address).await
    }

    /// The certificate that a new connection is shown.
    async fn served_certificate(&self) -> Vec<u8> {
        let stream = self.connect().await.unwrap();
        let (_, session) = stream.get_ref();
        session.peer_certificates().unwrap()[0].to_vec()
    }

    /// The bytes of one call of the echo agent.
    fn request_bytes(&self, should_close: bool) -> Vec<u8> {
        request_bytes(&self.service.token, should_close)
    }

    fn url(&self) -> String {
        format!("https://localhost:{}", self.service.address.port())
    }

    /// Asks for the status with these further words of the command line.
    async fn run_status_command(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = self.service.setup.run_command(&[&["status"], args].concat(), "").await;
        (output.exit_code, output.stderr)
    }
}

async fn connect_tls(
    connector: &TlsConnector,
    address: std::net::SocketAddr,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    connector.connect(ServerName::try_from("localhost").unwrap(), stream).await
}

fn request_bytes(token: &str, should_close: bool) -> Vec<u8> {
    let body = json_rpc_request_body("message/send", &message_params("hello"));
    let connection_header = if should_close { "close" } else { "keep-alive" };
    let head = format!(
        "POST /agents/echo/v1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nConnection: {connection_header}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// Sends a request that closes, and reads the result.
async fn send_and_read_result(mut stream: TlsStream<TcpStream>, request: &[u8]) -> Option<Value> {
    stream.write_all(request).await.ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok()?;
    let document: Value = serde_json::from_str(&TestResponse::parse(&answer)?.body).ok()?;
    Some(document["result"].clone())
}

#[tokio::test]
async fn tls_callers_are_served_and_the_card_has_an_https_url() {
    let tls_service = TlsService::start("", &fake_agent_config("echo", "echo", "")).await;
    let stream = tls_service.connect().await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
    let request = tls_service.request_bytes(true);
    let result_future = send_and_read_result(stream, &request);
    let task = within_deadline("an answer", result_future).await.unwrap();
    assert_eq!(task_outcome(&task), completed_outcome("hello"));
    let mut stream = tls_service.connect().await.unwrap();
    let card_request = "GET /agents/echo/.well-known/agent-card.json HTTP/1.1\r\nHost: localhost\r\n\
        Connection: close\r\n\r\n";
    stream.write_all(card_request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    within_deadline("the card", stream.read_to_end(&mut answer)).await.unwrap();
    let card = TestResponse::parse(&answer).unwrap().json();
    let url = card["url"].as_str().unwrap();
    assert!(url.starts_with(&format!("https://{}/", tls_service.service.address)), "{url}");
}

/// One port for all: clients of gRPC ask for HTTP/2 while they agree upon TLS.
#[tokio::test]
async fn grpc_works_over_tls() {
    let tls_service = TlsService::start("", &fake_agent_config("echo", "echo", "")).await;
    let config =
        tls::client_config(Some(&tls_service.service.setup.test_folder().join("ca.pem"))).unwrap();
    let mut dual_protocol_config = config.clone();
    dual_protocol_config.alpn_protocols =
        ["http/1.1", "h2"].map(|name| name.as_bytes().to_vec()).to_vec();
    let tls_connector = TlsConnector::from(Arc::new(dual_protocol_config));
    let stream = connect_tls(&tls_connector, tls_service.service.address).await;
    assert_eq!(stream.unwrap().get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let connector = HttpsConnectorBuilder::new().with_tls_config(config).https_only();
    let http2_client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build(connector.enable_http2().build());
    let mut client =
        A2aServiceClient::with_origin(http2_client, tls_service.url().parse().unwrap());
    let content = Some(proto::part::Content::Text("over h2".to_owned()));
    let mut grpc_request = tonic::Request::new(proto::SendMessageRequest {
        tenant: "echo".to_owned(),
        message: Some(proto::Message {
            message_id: "m-1".to_owned(),
            role: proto::Role::User.into(),
            parts: vec![proto::Part { content: content.clone(), ..proto::Part::default() }],
            ..proto::Message::default()
        }),
        ..proto::SendMessageRequest::default()
    });
    let bearer = format!("Bearer {}", tls_service.service.token);
    grpc_request.metadata_mut().insert("authorization", bearer.parse().unwrap());
    let answer =
        within_deadline("an answer", client.send_message(grpc_request)).await.unwrap().into_inner();
    let Some(proto::send_message_response::Payload::Task(task)) = answer.payload else {
        panic!("not a task: {answer:?}")
    };
    assert_eq!(task.artifacts[0].parts[0].content, content);
}

#[tokio::test]
async fn the_command_line_explains_untrusted_certificates() {
    let tls_service = TlsService::start("", &fake_agent_config("echo", "echo", "")).await;
    let (url, ca_file) =
        (tls_service.url(), tls_service.service.setup.test_folder().join("ca.pem"));
    let ca_file = ca_file.to_str().unwrap();
    assert_eq!(
        tls_service.run_status_command(&["--url", &url, "--ca", ca_file]).await,
        (Some(0), String::new())
    );
    let args = ["send", "echo", "hi", "--url", &url, "--ca", ca_file];
    assert_eq!(tls_service.service.setup.run_command(&args, "").await.stdout, "hi");
    let other_ca_file = tls_service.service.setup.test_folder().join("other.pem");
    fs::write(&other_ca_file, CertificateAuthority::new().pem()).unwrap();
    let ip_url = url.replace("localhost", "127.0.0.1");
    let plain_url = url.replace("https", "http");
    for (args, expected_code, expected_error) in [
        (
            vec!["--url", &url],
            1,
            "authority that is not trusted; name the authority's file by --ca",
        ),
        (
            vec!["--url", &url, "--ca", other_ca_file.to_str().unwrap()],
            1,
            "not signed by the authority",
        ),
        (vec!["--url", &ip_url, "--ca", ca_file], 1, "for other names"),
        (vec!["--url", &plain_url], 1, "write `https://`"),
        (vec!["--url", &url, "--ca", "none.pem"], 4, "none.pem cannot be read"),
        (vec!["--url", &url, "--ca", "key.pem"], 4, "holds no certificate"),
    ] {
        let (exit_code, stderr) = tls_service.run_status_command(&args).await;
        assert_eq!(exit_code, Some(expected_code), "{args:?}: {stderr}");
        assert!(stderr.contains(expected_error), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    }
    tls_service
        .authority
        .issue_expired(&CERTIFICATE_NAMES)
        .write_files(tls_service.service.setup.test_folder());
    poll_until("the refusal of what has expired", async || {
        let (_, stderr) = tls_service.run_status_command(&["--url", &url, "--ca", ca_file]).await;
        stderr.contains("has expired").then_some(())
    })
    .await;
}

#[tokio::test]
async fn https_to_a_plain_text_service_is_reported() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let url = format!("https://{}", service.address);
    let output = service.setup.run_command(&["status", "--url", &url], "").await;
    assert_eq!(output.exit_code, Some(1));
    assert!(output.stderr.contains("does not speak TLS; try `http://`"), "{}", output.stderr);
}

/// Each client asks over and over, over a connection of its own each time, while the files change.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_replaced_under_load_without_an_error() {
    let tls_service =
        TlsService::start("", &fake_agent_config("echo", "echo", "max_concurrent = 8")).await;
    let is_done = Arc::new(AtomicBool::new(false));
    let mut old_connection = tls_service.connect().await.unwrap();
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let (connector, is_done) = (tls_service.connector.clone(), Arc::clone(&is_done));
            let (address, token) = (tls_service.service.address, tls_service.service.token.clone());
            tokio::spawn(async move {
                let mut request_count = 0;
                while !is_done.load(Ordering::Relaxed) {
                    let stream = connect_tls(&connector, address).await.unwrap();
                    let task =
                        send_and_read_result(stream, &request_bytes(&token, true)).await.unwrap();
                    assert_eq!(task_outcome(&task), completed_outcome("hello"));
                    request_count += 1;
                }
                request_count
            })
        })
        .collect();
    assert_eq!(tls_service.served_certificate().await, tls_service.certificate.cert_der);
    for _ in 0..2 {
        let next_certificate = tls_service.authority.issue(&CERTIFICATE_NAMES);
        next_certificate.write_files(tls_service.service.setup.test_folder());
        poll_until("the next one", async || {
            (tls_service.served_certificate().await == next_certificate.cert_der).then_some(())
        })
        .await;
    }
    is_done.store(true, Ordering::Relaxed);
    for client in clients {
        let request_count: u32 = within_deadline("the last request", client).await.unwrap();
        assert!(request_count > 0);
    }
    // A connection from before goes on.
    old_connection.write_all(&tls_service.request_bytes(true)).await.unwrap();
    let mut answer = Vec::new();
    within_deadline("its answer", old_connection.read_to_end(&mut answer)).await.unwrap();
    assert_eq!(TestResponse::parse(&answer).unwrap().status, 200);
}

#[tokio::test]
async fn a_mismatched_pair_keeps_the_last_one_and_is_reported_once() {
    let tls_service = TlsService::start("", &fake_agent_config("echo", "echo", "")).await;
    let folder = tls_service.service.setup.test_folder();
    let next_certificate = tls_service.authority.issue(&CERTIFICATE_NAMES);
    fs::write(folder.join("key.pem"), &next_certificate.key_pem).unwrap();
    let failure_count =
        || tls_service.service.stderr_text().matches("failed to reload certificate").count();
    poll_until("the complaint", async || (failure_count() == 1).then_some(())).await;
    assert!(tls_service.service.stderr_text().contains("is not that of the first certificate"));
    assert_eq!(tls_service.served_certificate().await, tls_service.certificate.cert_der);
    let stream = tls_service.connect().await.unwrap();
    let request = tls_service.request_bytes(true);
    let result_future = send_and_read_result(stream, &request);
    let task = within_deadline("an answer", result_future).await.unwrap();
    assert_eq!(task_outcome(&task), completed_outcome("hello"));
    fs::write(folder.join("cert.pem"), &next_certificate.cert_pem).unwrap();
    poll_until("the next one", async || {
        (tls_service.served_certificate().await == next_certificate.cert_der).then_some(())
    })
    .await;
    assert_eq!(failure_count(), 1);
    assert!(!tls_service.service.stderr_text().contains("PRIVATE KEY"));
}

/// The only place is free again each time.
#[tokio::test]
async fn a_slow_or_plain_text_handshake_is_cut_without_a_log_line() {
    let server_settings = "header_timeout = 0.5\nmax_connections = 1\n";
    let tls_service =
        TlsService::start(server_settings, &fake_agent_config("echo", "echo", "")).await;
    let log_before = tls_service.service.stderr_text();
    // The head of a handshake's record, of which the rest never comes.
    let partial_record: &[u8] = &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    for bytes in
        [b"".as_slice(), partial_record, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"]
    {
        let mut stream = tls_service.service.connect().await;
        stream.write_all(bytes).await.unwrap();
        let mut rest = Vec::new();
        _ = within_deadline("the close", stream.read_to_end(&mut rest)).await; // A reset is a close.
        assert!(!rest.starts_with(b"HTTP"), "{rest:?}");
    }
    let mut silent_stream = poll_until("a place", async || tls_service.connect().await.ok()).await;
    let mut rest = Vec::new();
    _ = within_deadline("the close", silent_stream.read_to_end(&mut rest)).await;
    assert_eq!(rest, b"");
    let stream = poll_until("a place", async || tls_service.connect().await.ok()).await;
    assert_eq!(tls_service.service.stderr_text(), log_before);
    let request = tls_service.request_bytes(true);
    let result_future = send_and_read_result(stream, &request);
    let task = within_deadline("an answer", result_future).await.unwrap();
    assert_eq!(task_outcome(&task), completed_outcome("hello"));
}

/// What says 20 MB, when the gate is open.
const TALKER_AGENT: &str = r#"
[agents.talker]
command = "sh"
args = ["-c", '''
until [ -e HERE/go ]; do sleep 0.05; done
words=$(printf 'some %.0s' $(seq 1600))
yes "{\"type\":\"text\",\"text\":\"$words\"}" | head -n 2500
''']
output = "events"
max_output_bytes = 40000000
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_tls_follower_that_never_reads_is_disconnected() {
    let tls_service = TlsService::start("write_timeout = 1\n", TALKER_AGENT).await;
    let idle_socket_count = open_socket_count(tls_service.service.pid());
    let mut stream = tls_service.connect().await.unwrap();
    let body = json_rpc_request_body("message/stream", &message_params("talk"));
    let request = format!(
        "POST /agents/talker/v1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        tls_service.service.token,
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    poll_until("its place", async || {
        (open_socket_count(tls_service.service.pid()) > idle_socket_count).then_some(())
    })
    .await;
    tls_service.service.setup.open_gate("go");
    let is_cut =
        async || (open_socket_count(tls_service.service.pid()) <= idle_socket_count).then_some(());
    poll_until("its end", is_cut).await;
    let mut answer = Vec::new();
    _ = within_deadline("what was on its way", stream.read_to_end(&mut answer)).await; // It is no whole answer.
    assert!(answer.len() < 10_000_000, "{} bytes came", answer.len());
}

#[tokio::test]
async fn unusable_certificate_files_stop_the_start() {
    let setup = Setup::with_server_settings(TLS_SETTINGS, &fake_agent_config("echo", "echo", ""));
    let (authority, other_authority) = (CertificateAuthority::new(), CertificateAuthority::new());
    let IssuedCertificate { cert_pem, key_pem, .. } = authority.issue(&CERTIFICATE_NAMES);
    let foreign_key = other_authority.issue(&CERTIFICATE_NAMES).key_pem;
    for (cert, key, expected_error) in [
        (&*cert_pem, "", "server.tls.key = \"HERE/key.pem\": HERE/key.pem holds no private key"),
        (
            "nothing",
            &*key_pem,
            "server.tls.cert = \"HERE/cert.pem\": HERE/cert.pem holds no certificate",
        ),
        (
            &cert_pem,
            &foreign_key,
            "HERE/key.pem is not that of the first certificate in HERE/cert.pem",
        ),
    ] {
        fs::write(setup.test_folder().join("cert.pem"), cert).unwrap();
        fs::write(setup.test_folder().join("key.pem"), key).unwrap();
        let file = setup.write_config().display().to_string();
        let output = setup.run_command(&["serve", "--config", &file], "").await;
        let expected_error = expected_error.replace("HERE", setup.test_folder().to_str().unwrap());
        assert_eq!(output.exit_code, Some(4), "{output:?}");
        assert!(output.stderr.contains(&expected_error), "{output:?}");
    }
}
