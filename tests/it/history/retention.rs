//! How long history is kept, and what is left when a sweep is cut off.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{list_execution_ids, status_and_code};
use crate::harness::client::task_id;
use crate::harness::{
    Setup, fake_agent_config, gated_agent_config, message_params, message_params_with_id,
    poll_until,
};

fn setup_with_bounds(bounds: &str, agents: &str) -> Setup {
    Setup::new(&format!("{agents}\n[retention]\n{bounds}\n"))
}

#[tokio::test]
async fn excess_executions_are_removed_oldest_first() {
    let agents = [fake_agent_config("echo", "echo", ""), gated_agent_config("one", "")].concat();
    let bounds = "max_executions = 4\nmin_age = 0\ninterval = 0.1";
    let service = setup_with_bounds(bounds, &agents).start().await;
    let running_id = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let mut ids = Vec::new();
    for number in 0..8 {
        let params = message_params_with_id(&format!("m-{number}"), &number.to_string());
        ids.insert(0, task_id(&service.expect_result("echo", "message/send", &params).await));
    }
    let remaining_within_bound = async || {
        let remaining = list_execution_ids(&service, "").await;
        (remaining.len() == 4).then_some(remaining)
    };
    let remaining = poll_until("a sweep", remaining_within_bound).await;
    // Retention bounds ended executions and keeps running ones
    assert_eq!(remaining, [&ids[..3], std::slice::from_ref(&running_id)].concat());
    assert_eq!(service.fetch_execution(&ids[7]).await["code"], "execution-unknown");
    // The id of a message means the same task for as long as that is kept.
    let duplicate =
        service.expect_result("echo", "message/send", &message_params_with_id("m-7", "7")).await;
    assert_eq!(task_id(&duplicate), ids[0]);
    let new_task =
        service.expect_result("echo", "message/send", &message_params_with_id("m-0", "0")).await;
    assert!(!ids.contains(&task_id(&new_task)), "{new_task}");
    let status_after_pass = async || {
        let status = service.get("/status").await.json();
        let has_pass = status["retention"]["lastPass"]["at"].is_string();
        (has_pass && status["ledger"]["executions"] == 4).then_some(status)
    };
    let status = poll_until("the status", status_after_pass).await;
    assert!(status["ledger"]["bytes"].as_u64() > Some(0) && status["ledger"]["oldest"].is_string());
    let output = service.run_command(&["status"], "").await.stdout;
    assert!(output.contains("ledger 4 executions in "), "{output}");
    service.setup.open_gate("go");
}

#[tokio::test]
async fn an_owner_deletes_ended_but_not_running_executions() {
    let service = super::start_with_ann(
        &[fake_agent_config("echo", "echo", ""), gated_agent_config("one", "")].concat(),
    )
    .await;
    let ann = service.client_with_token(super::ANN_TOKEN);
    let (ann_id, operator_id) =
        (task_id(&ann.send("echo", "a").await), task_id(&service.send("echo", "b").await));
    let running_id = service.start_task("one", "ann").await;
    let delete = async |client: &crate::harness::ServiceClient, id: &str| {
        let bearer = format!("Authorization: Bearer {}", client.token);
        client.request(&format!("DELETE /api/v1/executions/{id}"), &[bearer], b"").await
    };
    assert_eq!(
        status_and_code(&delete(&ann, &operator_id).await),
        (404, "execution-unknown".to_owned())
    );
    assert_eq!(
        status_and_code(&delete(&service, &running_id).await),
        (409, "execution-unfinished".to_owned())
    );
    assert_eq!(delete(&ann, &ann_id).await.status, 204);
    assert_eq!(delete(&service, &operator_id).await.status, 204);
    assert_eq!(list_execution_ids(&service, "").await, [running_id]);
    service.setup.open_gate("go");
}

/// Killed again and again while it removes what others bring.
#[tokio::test]
async fn a_kill_during_a_sweep_leaves_a_consistent_history() {
    let bounds = "max_executions = 20\nmin_age = 0\ninterval = 0.05";
    let agents = fake_agent_config("echo", "echo", "max_concurrent = 8\nqueue_depth = 100");
    let mut service = setup_with_bounds(bounds, &agents).start().await;
    for round in 0..4 {
        for number in 0..15 {
            let text = format!("{round}-{number} {}", "word ".repeat(5000));
            service.expect_result("echo", "message/send", &message_params(&text)).await;
        }
        service.kill9().await;
        service.start_again().await;
        for id in list_execution_ids(&service, "limit=1000").await {
            let detail = service.fetch_execution(&id).await;
            if detail["code"] == "execution-unknown" {
                continue; // It was removed meanwhile.
            }
            // A kill during retention leaves each execution complete or absent
            expect_complete_execution(&detail);
        }
    }
    let is_within_bound =
        async || (list_execution_ids(&service, "").await.len() <= 20).then_some(());
    poll_until("the last sweep", is_within_bound).await;
}

/// All that belongs to it is there.
fn expect_complete_execution(detail: &Value) {
    let numbers: Vec<_> =
        detail["events"].as_array().unwrap().iter().map(|entry| entry["number"].as_u64()).collect();
    let expected: Vec<_> = (1..=numbers.len() as u64).map(Some).collect();
    assert_eq!(numbers, expected, "{detail}");
    let input = detail["input"].as_str().unwrap();
    assert!(input.len() > 20_000, "{detail}");
    if detail["outcome"] == "completed" {
        assert_eq!(detail["output"], json!(input), "{detail}");
    }
    let texts: BTreeSet<_> =
        detail["texts"].as_array().unwrap().iter().map(|entry| entry["channel"].as_str()).collect();
    assert!(texts.contains(&Some("input")), "{detail}");
}
