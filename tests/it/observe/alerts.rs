//! Who is told that they should look.

use serde_json::{Value, json};

use crate::harness::{Door, Service, fake, until};

/// The alerts that are open.
async fn open(door: &Door) -> Vec<Value> {
    let status = door.get("/status").await.json();
    status["alerts"].as_array().cloned().unwrap_or_default()
}

/// How often something was told in the log.
fn told(service: &Service, message: &str, cause: &str) -> usize {
    let said = service.said();
    let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["message"] == message && line["cause"] == cause).count()
}

#[tokio::test]
async fn a_hundred_and_one_requests_within_a_minute_are_answered_and_told_once() {
    let service = Service::start(&fake("echo", "echo", "")).await;
    let ask = async || service.get("/agents").await.status;
    for _ in 0..100 {
        assert_eq!(ask().await, 200);
    }
    assert_eq!(open(&service).await, Vec::<Value>::new());
    for _ in 0..30 {
        assert_eq!(ask().await, 200);
    }
    let alerts = open(&service).await;
    let [alert] = alerts.as_slice() else { panic!("{alerts:?}") };
    assert_eq!((&alert["cause"], &alert["subject"]), (&json!("request-rate"), &json!("/agents")));
    assert_eq!((&alert["value"], &alert["limit"]), (&json!(101), &json!(100)));
    until("the line", async || (told(&service, "alert", "request-rate") > 0).then_some(())).await;
    assert_eq!(told(&service, "alert", "request-rate"), 1);
    let metrics = service.get("/metrics").await.body;
    assert!(metrics.contains("algonius_alerts_open{cause=\"request-rate\"} 1.0\n"), "{metrics}");
    assert!(metrics.contains("algonius_alerts_total{cause=\"request-rate\"} 1\n"), "{metrics}");
}

#[tokio::test]
async fn failures_in_a_row_are_told_until_the_agent_works_again() {
    let agent = r#"
[agents.moody]
command = "sh"
args = ["-c", 'test -e HERE/good && echo well']
[alerts]
failure_streak = 3
"#;
    let service = Service::start(agent).await;
    for open_after in [0, 0, 1, 1] {
        service.send("moody", "x").await;
        assert_eq!(open(&service).await.len(), open_after);
    }
    assert_eq!(open(&service).await[0]["subject"], "moody");
    service.setup.open("good");
    service.send("moody", "x").await;
    assert_eq!(open(&service).await, Vec::<Value>::new());
    until("the line", async || (told(&service, "alert over", "failure-streak") == 1).then_some(()))
        .await;
}
