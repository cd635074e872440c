//! Whether the service says that it can take work.

use serde_json::json;

use crate::harness::{Service, gated, until};

#[tokio::test]
async fn a_draining_service_is_healthy_but_not_ready() {
    let mut service = Service::start(&gated("one", "access = 'read-write'")).await;
    let ask = async |path: &str| {
        let answer = service.request(&format!("GET {path}"), &[], b"").await;
        (answer.status, answer.json())
    };
    assert_eq!(ask("/ready").await, (200, json!({"status": "ready"})));
    service.begin("one", "ann").await;
    service.setup.written("log", "start ann\n").await;
    service.sigterm();
    let unready = until("the drain", async || {
        let (status, body) = ask("/ready").await;
        (status != 200).then_some((status, body))
    })
    .await;
    assert_eq!(unready, (503, json!({"status": "unready", "reasons": ["draining"]})));
    assert_eq!(ask("/health").await.0, 200);
    service.setup.open("go");
    assert_eq!(service.exit().await.code(), Some(0));
}
