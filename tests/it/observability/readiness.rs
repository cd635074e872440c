//! Whether the service says that it can take work.

use serde_json::json;

use crate::harness::{ServiceProcess, gated_agent_config, poll_until};

#[tokio::test]
async fn a_draining_service_is_healthy_but_not_ready() {
    let mut service =
        ServiceProcess::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let probe = async |path: &str| {
        let answer = service.request(&format!("GET {path}"), &[], b"").await;
        (answer.status, answer.json())
    };
    assert_eq!(probe("/ready").await, (200, json!({"status": "ready"})));
    service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.send_sigterm();
    let unready_response = poll_until("the drain", async || {
        let (status, body) = probe("/ready").await;
        (status != 200).then_some((status, body))
    })
    .await;
    assert_eq!(unready_response, (503, json!({"status": "unready", "reasons": ["draining"]})));
    assert_eq!(probe("/health").await.0, 200);
    service.setup.open_gate("go");
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
}
