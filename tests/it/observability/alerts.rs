//! Who is told that they should look.

use std::time::Duration;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::harness::{
    ServiceClient, ServiceProcess, Setup, TestResponse, fake_agent_config, poll_until,
    within_deadline,
};

/// The alerts that are open.
async fn fetch_open_alerts(client: &ServiceClient) -> Vec<Value> {
    let status = client.get("/status").await.json();
    status["alerts"].as_array().cloned().unwrap_or_default()
}

/// How often something was told in the log.
fn count_in_log(service: &ServiceProcess, message: &str, cause: &str) -> usize {
    let log_text = service.stderr_text();
    let lines = log_text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["message"] == message && line["cause"] == cause).count()
}

#[tokio::test]
async fn a_request_rate_alert_opens_once_and_refuses_no_request() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let request_status = async || service.get("/agents").await.status;
    for _ in 0..100 {
        assert_eq!(request_status().await, 200);
    }
    assert_eq!(fetch_open_alerts(&service).await, Vec::<Value>::new());
    for _ in 0..30 {
        assert_eq!(request_status().await, 200);
    }
    let alerts = fetch_open_alerts(&service).await;
    let [alert] = alerts.as_slice() else { panic!("{alerts:?}") };
    assert_eq!((&alert["cause"], &alert["subject"]), (&json!("request-rate"), &json!("/agents")));
    let value = alert["value"].as_u64().expect("a value");
    assert!((101..=130).contains(&value) && alert["limit"] == 100, "{alert}");
    poll_until("the line", async || {
        (count_in_log(&service, "alert", "request-rate") > 0).then_some(())
    })
    .await;
    assert_eq!(count_in_log(&service, "alert", "request-rate"), 1);
    let metrics = service.get("/metrics").await.body;
    assert!(metrics.contains("algonius_alerts_open{cause=\"request-rate\"} 1.0\n"), "{metrics}");
    assert!(metrics.contains("algonius_alerts_total{cause=\"request-rate\"} 1\n"), "{metrics}");
}

#[tokio::test]
async fn a_failure_streak_alert_lasts_until_the_agent_succeeds() {
    let agent = r#"
[agents.moody]
command = "sh"
args = ["-c", 'test -e HERE/good && echo well']
[alerts]
failure_streak = 3
"#;
    let service = ServiceProcess::start(agent).await;
    for expected_open_count in [0, 0, 1, 1] {
        service.send("moody", "x").await;
        assert_eq!(fetch_open_alerts(&service).await.len(), expected_open_count);
    }
    assert_eq!(fetch_open_alerts(&service).await[0]["subject"], "moody");
    service.setup.open_gate("good");
    service.send("moody", "x").await;
    assert_eq!(fetch_open_alerts(&service).await, Vec::<Value>::new());
    poll_until("the line", async || {
        (count_in_log(&service, "alert over", "failure-streak") == 1).then_some(())
    })
    .await;
}

/// Takes one request whole, and answers it.
async fn receive_and_respond(listener: &TcpListener, status: &str) -> TestResponse {
    let (mut stream, _) = within_deadline("a caller", listener.accept()).await.unwrap();
    let request = within_deadline("the request", read_request_as_response(&mut stream)).await;
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.unwrap();
    request
}

/// Reads a request as long as its head says; its status means nothing.
async fn read_request_as_response(stream: &mut TcpStream) -> TestResponse {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let complete_request = text.split_once("\r\n\r\n").and_then(|(head, body)| {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
            (body.len() == length.parse::<usize>().ok()?).then_some(())
        });
        if complete_request.is_some() {
            let text_as_response =
                text.replacen("POST /hook?key=canary HTTP/1.1", "HTTP/1.1 200 OK", 1);
            assert_ne!(text_as_response, text, "asked for something else");
            return TestResponse::parse(text_as_response.as_bytes()).unwrap();
        }
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "it ended early: {text}");
    }
}

/// A hundred requests and one.
async fn raise_request_rate_alert(service: &ServiceProcess) {
    for _ in 0..101 {
        assert_eq!(service.get("/agents").await.status, 200);
    }
}

#[tokio::test]
async fn an_alert_webhook_is_signed_and_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?key=canary", listener.local_addr().unwrap());
    let settings = format!(
        "[push]\nallow = ['127.0.0.1']\n[alerts]\nwebhook = '{url}'\nwebhook_secret_file = 'HERE/key'\n"
    );
    let setup = Setup::new(&format!("{}{settings}", fake_agent_config("echo", "echo", "")));
    let service = setup.with_executable("key", "the key of the webhook\n").start().await;
    raise_request_rate_alert(&service).await;
    let refused_request = receive_and_respond(&listener, "500 No").await;
    let delivered_request = receive_and_respond(&listener, "204 No Content").await;
    assert_eq!(refused_request.body, delivered_request.body);
    let body = delivered_request.json();
    assert_eq!((&body["event"], &body["cause"]), (&json!("opened"), &json!("request-rate")));
    assert_eq!((&body["subject"], &body["limit"]), (&json!("/agents"), &json!(100)));
    let mut mac = Hmac::<Sha256>::new_from_slice(b"the key of the webhook").unwrap();
    mac.update(delivered_request.body.as_bytes());
    let mac_bytes = mac.finalize().into_bytes();
    let expected: String = mac_bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let signature = delivered_request.header("x-algonius-signature").unwrap();
    assert_eq!(signature, format!("sha256={expected}"));
    assert!(!service.stderr_text().contains("canary"), "{}", service.stderr_text());
    // Nobody is told a second time: whatever comes now is not told of this alert.
    service.get("/agents").await;
    let further_request = tokio::time::timeout(Duration::from_millis(300), listener.accept()).await;
    assert!(further_request.is_err(), "told once more");
}

#[tokio::test]
async fn an_alert_program_gets_the_alert_and_a_clean_environment() {
    let settings = "[alerts]\ncommand = ['HERE/tell', 'me']\n";
    let script =
        "#!/bin/sh\ncat >${0%/*}/told.$1; env >${0%/*}/env; mv ${0%/*}/told.$1 ${0%/*}/told\n";
    let setup = Setup::new(&format!("{}{settings}", fake_agent_config("echo", "echo", "")));
    let service = setup.with_executable("tell", script).env("CANARY", "canary").start().await;
    raise_request_rate_alert(&service).await;
    let alert = poll_until("the file", async || {
        serde_json::from_str::<Value>(&service.setup.read_file("told")).ok()
    })
    .await;
    assert_eq!((&alert["cause"], &alert["value"]), (&json!("request-rate"), &json!(101)));
    let env = service.setup.read_file("env");
    assert!(env.contains("PATH=") && !env.contains("canary") && !env.contains("HOME="), "{env}");
}

#[tokio::test]
async fn a_failed_alert_program_is_logged_with_its_last_line() {
    let token = format!("gh{}_{}", 'p', "Zk3vQ8nR1tLx7WdYb5HcJ2mPf9Us4GaE6oTi");
    let script = format!(
        "#!/bin/sh\necho first >&2\nprintf 'no route to %s\\n\\n' {token} >&2\n\
         echo on stdout\nhead -c 200000 /dev/zero | tr '\\0' x >&2; echo >&2\n\
         echo 'the host {token} is unknown' >&2\nexit 7\n"
    );
    let settings = "[alerts]\ncommand = ['HERE/tell']\n";
    let setup = Setup::new(&format!("{}{settings}", fake_agent_config("echo", "echo", "")));
    let service = setup.with_executable("tell", &script).start().await;
    raise_request_rate_alert(&service).await;
    poll_until("the log line", async || {
        let log = service.stderr_text();
        log.contains("the program ended with exit code 7: the host ").then_some(())
    })
    .await;
    let log = service.stderr_text();
    assert!(log.contains("is unknown") && !log.contains(&token), "{log}");
    assert!(!log.contains("xxxx") && !log.contains("on stdout"), "{log}");
}

#[tokio::test]
async fn a_hanging_alert_webhook_blocks_no_caller() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?key=canary", listener.local_addr().unwrap());
    let hooks = format!("[alerts]\nwebhook = '{url}'\ncommand = ['sleep', '60']\n");
    let config_with_push =
        |push: &str| format!("{}{push}{hooks}", fake_agent_config("echo", "echo", ""));
    let Err((_, output)) = Setup::new(&config_with_push("")).try_start().await else {
        panic!("it started")
    };
    assert!(output.stderr.contains("alerts.webhook"), "{output:?}");
    let mut service =
        Setup::new(&config_with_push("[push]\nallow = ['127.0.0.1']\n")).start().await;
    raise_request_rate_alert(&service).await;
    let _silent = within_deadline("a caller", listener.accept()).await.unwrap();
    assert_eq!(service.send("echo", "hello").await["status"]["state"], "completed");
    service.send_sigterm();
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
}
