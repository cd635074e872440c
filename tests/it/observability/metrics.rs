//! The numbers that Prometheus reads.

use serde_json::json;

use super::prometheus_text::PrometheusPage;
use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::{
    ServiceClient, ServiceProcess, fake_agent_config, gated_agent_config, message_params,
    poll_until,
};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counts tokens, twice.
const COUNTING_AGENT: &str = r#"
[agents.counts]
command = "sh"
args = ["-c", '''
echo '{"type":"usage","input_tokens":1000,"output_tokens":7}'
echo '{"type":"usage","input_tokens":200}'
''']
output = "events"
"#;

async fn fetch_metrics(client: &ServiceClient) -> PrometheusPage {
    let answer = client.get("/metrics").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some(OPENMETRICS)));
    PrometheusPage::parse(&answer.body)
}

#[tokio::test]
async fn requests_and_outcomes_are_counted() {
    let agents = [
        fake_agent_config("echo", "echo", ""),
        fake_agent_config("bad", "exit 3 x", ""),
        COUNTING_AGENT.to_owned(),
    ];
    let service = ServiceProcess::start(&agents.concat()).await;
    assert_eq!(task_outcome(&service.send("echo", "one").await), completed_outcome("one"));
    assert_eq!(task_outcome(&service.send("echo", "two").await), completed_outcome("two"));
    assert_eq!(task_outcome(&service.send("bad", "x").await).0, "failed");
    assert_eq!(task_outcome(&service.send("counts", "x").await).0, "completed");
    assert_eq!(service.get("/nothing/here").await.status, 404);
    let metrics = fetch_metrics(&service).await;
    metrics.assert_cumulative_buckets();
    let executions = |label: &str| metrics.sum_with_label("algonius_executions_total", label);
    assert_eq!(executions("agent=\"echo\""), 2.0);
    assert_eq!((executions("outcome=\"failed\""), executions("agent=\"bad\"")), (1.0, 1.0));
    assert_eq!(
        metrics.sum_with_label("algonius_execution_duration_seconds_count", "agent=\"echo\""),
        2.0
    );
    assert_eq!(metrics.sum_with_label("algonius_attempts_total", "agent=\"counts\""), 1.0);
    let tokens = |kind: &str| {
        metrics.value_of(&format!("algonius_tokens_total{{agent=\"counts\",kind=\"{kind}\"}}"))
    };
    assert_eq!((tokens("input"), tokens("output")), (Some(1200.0), Some(7.0)));
    let endpoint_label = "endpoint=\"/agents/{agent}/v1\"";
    assert_eq!(metrics.sum_with_label("algonius_requests_total", endpoint_label), 4.0);
    assert_eq!(metrics.sum_with_label("algonius_requests_total", "endpoint=\"none\""), 1.0);
    assert_eq!(metrics.sum_with_label("algonius_requests_total", "status=\"4xx\""), 1.0);
    assert!(metrics.value_of("algonius_ledger_bytes") > Some(1000.0));
    assert!(metrics.value_of("process_resident_memory_bytes") > Some(1e6));
    assert!(metrics.value_of("process_start_time_seconds") > Some(1.5e9));
}

#[tokio::test]
async fn running_and_queued_work_is_in_the_metrics() {
    let service = ServiceProcess::start(&gated_agent_config("one", "max_concurrent = 1")).await;
    service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let waiting_id = task_id(&service.submit("one", message_params("bob")).await);
    let gauge_value = |metrics: &PrometheusPage, name: &str| {
        metrics.value_of(&format!("{name}{{agent=\"one\"}}"))
    };
    let running_and_queued = |metrics: &PrometheusPage| {
        (gauge_value(metrics, "algonius_running"), gauge_value(metrics, "algonius_queued"))
    };
    let metrics = fetch_metrics(&service).await;
    assert_eq!(running_and_queued(&metrics), (Some(1.0), Some(1.0)));
    assert_eq!(gauge_value(&metrics, "algonius_agent_quarantined"), Some(0.0));
    service.setup.open_gate("go");
    service.wait_for_task_end("one", &waiting_id).await;
    poll_until("an idle agent", async || {
        (running_and_queued(&fetch_metrics(&service).await) == (Some(0.0), Some(0.0))).then_some(())
    })
    .await;
}

#[tokio::test]
async fn metrics_need_a_token_for_all_agents_and_can_be_disabled() {
    let token = "reader-0123456789-0123456789-0123456789";
    let tokens = "[tokens.one]\ntoken_env = 'ONE'\nagents = ['echo']\n";
    let agents = format!("{}{tokens}", fake_agent_config("echo", "echo", ""));
    let service = crate::harness::Setup::new(&agents).env("ONE", token).start().await;
    assert_eq!(service.request("GET /metrics", &[], b"").await.status, 401);
    let refused_response = service.client_with_token(token).get("/metrics").await;
    assert_eq!(
        (refused_response.status, &refused_response.json()["code"]),
        (403, &json!("forbidden"))
    );
    let config_without_metrics =
        format!("{}[metrics]\nenabled = false\n", fake_agent_config("echo", "echo", ""));
    let service = ServiceProcess::start(&config_without_metrics).await;
    assert_eq!(service.get("/metrics").await.status, 404);
}
