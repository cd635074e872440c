//! Connections without authentication: they use up the places of their own address,
//! and do not delay valid callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use algonius_supervisor::platform::tls;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::harness::certificate_authority::CertificateAuthority;
use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::processes::open_socket_count;
use crate::harness::{
    ServiceProcess, Setup, TestResponse, fake_agent_config, json_rpc_request_body, message_params,
    poll_until, within_deadline,
};

/// Default limit of connections of the service.
const MAX_CONNECTIONS: usize = 1024;

/// Silent connections stay open longer than any wait of a test, so a test fails if a caller waits for their end.
const LONG_TIMEOUT_SETTINGS: &str = "header_timeout = 600\n";

/// The first bytes of HTTP/2: the preface and an empty SETTINGS frame.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// An incomplete TLS record with a handshake.
const TLS_HELLO: &[u8] = &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];

/// Opens connections that have sent this and are silent then.
async fn open_silent_connections(
    service: &ServiceProcess,
    count: usize,
    bytes: &[u8],
) -> Vec<TcpStream> {
    let mut streams = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = service.connect().await;
        _ = stream.write_all(bytes).await; // It may be closed already.
        streams.push(stream);
    }
    streams
}

/// A request with a token, on a connection that stays open.
fn message_request_bytes(service: &ServiceProcess) -> Vec<u8> {
    let body = json_rpc_request_body("message/send", &message_params("hello"));
    let head = format!(
        "POST /agents/echo/v1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        service.token,
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// Sends a request and reads its task.
async fn send_and_read_task(stream: &mut TcpStream, request: &[u8]) -> Value {
    stream.write_all(request).await.unwrap();
    let mut bytes = Vec::new();
    within_deadline("an answer", async {
        loop {
            assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "the connection was closed");
            let answer = TestResponse::parse(&bytes);
            let length = answer
                .as_ref()
                .and_then(|response| response.header("content-length")?.parse().ok());
            if let Some(answer) = answer.filter(|response| Some(response.body.len()) == length) {
                return answer.json()["result"].clone();
            }
        }
    })
    .await
}

/// Makes some calls, each on a new connection; every call must succeed.
async fn expect_calls_succeed(service: &ServiceProcess, call_count: usize) {
    for _ in 0..call_count {
        let answer = within_deadline("the answer", service.get("/api/v1/agents")).await;
        assert_eq!(answer.status, 200);
    }
}

async fn start_service(server_settings: &str) -> ServiceProcess {
    Setup::with_server_settings(server_settings, &fake_agent_config("echo", "echo", ""))
        .start()
        .await
}

#[tokio::test]
async fn silent_connections_delay_no_caller_with_a_token() {
    let service = start_service(LONG_TIMEOUT_SETTINGS).await;
    let mut authenticated_stream = service.connect().await;
    assert_eq!(
        task_outcome(
            &send_and_read_task(&mut authenticated_stream, &message_request_bytes(&service)).await
        ),
        completed_outcome("hello")
    );
    for bytes in
        [b"".as_slice(), b"GET /status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", HTTP2_PREFACE]
    {
        let silent_streams = open_silent_connections(&service, MAX_CONNECTIONS, bytes).await;
        expect_calls_succeed(&service, 20).await;
        assert_eq!(task_outcome(&service.send("echo", "hello").await), completed_outcome("hello"));
        // A connection that was authenticated before is not displaced.
        assert_eq!(
            task_outcome(
                &send_and_read_task(&mut authenticated_stream, &message_request_bytes(&service))
                    .await
            ),
            completed_outcome("hello")
        );
        assert!(
            open_socket_count(service.pid()) < MAX_CONNECTIONS / 2 + 100,
            "{}",
            open_socket_count(service.pid())
        );
        drop(silent_streams);
    }
    let warning_count = service.stderr_text().matches("connection limit reached").count();
    assert_eq!(warning_count, 1, "{}", service.stderr_text());
    assert!(!service.stderr_text().contains("panicked"), "{}", service.stderr_text());
}

/// Requests that wait to be read, on connections whose clients read no answer, keep no connection open.
#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_keep_no_connection_open() {
    let service = start_service("max_connections = 64\nwrite_timeout = 600").await;
    let requests =
        b"GET /errors HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n".repeat(2000);
    let mut streams = Vec::new();
    for _ in 0..100 {
        let mut stream = service.connect().await;
        // As much as the service and the kernel take: the service reads no more while it cannot answer.
        let sending = stream.write_all(&requests);
        _ = tokio::time::timeout(Duration::from_millis(50), sending).await;
        streams.push(stream);
    }
    expect_calls_succeed(&service, 5).await;
    drop(streams);
}

/// The callers of an agent that anybody may call, and one with a token, have half of the places each.
#[tokio::test]
async fn anonymous_callers_take_no_place_of_a_caller_with_a_token() {
    let ann_token = "a".repeat(32);
    let agents = [
        fake_agent_config("open", "echo", "auth = { type = \"none\", insecure = true }\n"),
        fake_agent_config("echo", "echo", "") + "[tokens.ann]\ntoken_env = 'ANN'\n",
    ];
    let setup = Setup::with_server_settings("max_connections = 16", &agents.concat());
    let service = setup.env("ANN", &ann_token).start().await;
    let own_request = String::from_utf8(message_request_bytes(&service)).unwrap();
    let authorization = format!("Authorization: Bearer {}\r\n", service.token);
    let open_request =
        own_request.replace("/agents/echo/", "/agents/open/").replace(&authorization, "");
    let ann_request = own_request.replace(&service.token, &ann_token);
    let mut streams = Vec::new();
    for request in [&open_request, &ann_request].repeat(8) {
        let mut stream = service.connect().await;
        let task = send_and_read_task(&mut stream, request.as_bytes()).await;
        assert_eq!(task_outcome(&task), completed_outcome("hello"));
        streams.push(stream);
    }
    expect_calls_succeed(&service, 20).await;
}

/// Many clients connect again and again, as fast as they can, and use most of the processor time: the caller
/// waits for the processors, and is never refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_rush_of_callers_refuses_no_caller_with_a_token() {
    let service = Arc::new(start_service("").await);
    let should_stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (service, should_stop) = (Arc::clone(&service), Arc::clone(&should_stop));
            tokio::spawn(async move {
                let (mut connections, mut count) = (std::collections::VecDeque::new(), 0_u64);
                while !should_stop.load(Ordering::Relaxed) {
                    connections.push_front(service.connect().await);
                    count += 1;
                    connections.truncate(400);
                }
                count
            })
        })
        .collect();
    poll_until("a full table", async || {
        service.stderr_text().contains("connection limit reached").then_some(())
    })
    .await;
    expect_calls_succeed(&service, 25).await;
    assert_eq!(task_outcome(&service.send("echo", "hello").await), completed_outcome("hello"));
    should_stop.store(true, Ordering::Relaxed);
    let mut count = 0;
    for client in clients {
        count += client.await.unwrap();
    }
    assert!(count > 1000, "{count} connections");
}

#[tokio::test]
async fn silent_tls_handshakes_delay_no_caller_with_a_token() {
    let tls_setting = "tls = { cert = \"HERE/cert.pem\", key = \"HERE/key.pem\" }\n";
    let setup = Setup::with_server_settings(
        &[LONG_TIMEOUT_SETTINGS, tls_setting].concat(),
        &fake_agent_config("echo", "echo", ""),
    );
    let authority = CertificateAuthority::new();
    authority.issue(&["localhost"]).write_files(setup.test_folder());
    let ca_file = authority.write_certificate(setup.test_folder());
    let service = setup.start().await;
    let connector = TlsConnector::from(Arc::new(tls::client_config(Some(&ca_file)).unwrap()));
    for bytes in [b"".as_slice(), TLS_HELLO] {
        let silent_streams = open_silent_connections(&service, MAX_CONNECTIONS, bytes).await;
        for _ in 0..5 {
            let stream = service.connect().await;
            let name = ServerName::try_from("localhost").unwrap();
            let mut stream = within_deadline("TLS", connector.connect(name, stream)).await.unwrap();
            let head = format!(
                "GET /api/v1/agents HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                 Authorization: Bearer {}\r\n\r\n",
                service.token
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            within_deadline("the answer", stream.read_to_end(&mut answer)).await.unwrap();
            assert_eq!(TestResponse::parse(&answer).unwrap().status, 200);
        }
        drop(silent_streams);
    }
}

/// Callers with tokens are refused only because of others with tokens, and each keeps its connections.
#[tokio::test]
async fn connections_of_callers_with_tokens_are_kept() {
    let ann_token = "a".repeat(32);
    let agents =
        [fake_agent_config("echo", "echo", ""), "[tokens.ann]\ntoken_env = 'ANN'\n".to_owned()];
    let setup =
        Setup::with_server_settings("max_connections = 2", &agents.concat()).env("ANN", &ann_token);
    let service = setup.start().await;
    let own_request = message_request_bytes(&service);
    let ann_request =
        String::from_utf8(own_request.clone()).unwrap().replace(&service.token, &ann_token);
    let mut own_stream = service.connect().await;
    send_and_read_task(&mut own_stream, &own_request).await;
    let mut ann_stream = service.connect().await;
    send_and_read_task(&mut ann_stream, ann_request.as_bytes()).await;
    let health_request = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(service.send_raw(health_request).await, b"");
    send_and_read_task(&mut own_stream, &own_request).await;
    send_and_read_task(&mut ann_stream, ann_request.as_bytes()).await;
    drop(own_stream);
    poll_until("a free place", async || {
        service.send_raw(health_request).await.starts_with(b"HTTP/1.1 200").then_some(())
    })
    .await;
}
