//! The numbers that Prometheus reads.

use serde_json::json;

use super::prometheus_text::PrometheusPage;
use crate::harness::client::{completed, id, outcome};
use crate::harness::{Service, ServiceClient, fake, gated, message, poll_until};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counts tokens, twice.
const COUNTS: &str = r#"
[agents.counts]
command = "sh"
args = ["-c", '''
echo '{"type":"usage","input_tokens":1000,"output_tokens":7}'
echo '{"type":"usage","input_tokens":200}'
''']
output = "events"
"#;

async fn numbers(client: &ServiceClient) -> PrometheusPage {
    let answer = client.get("/metrics").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some(OPENMETRICS)));
    PrometheusPage::read(&answer.body)
}

#[tokio::test]
async fn requests_and_outcomes_are_counted() {
    let agents = [fake("echo", "echo", ""), fake("bad", "exit 3 x", ""), COUNTS.to_owned()];
    let service = Service::start(&agents.concat()).await;
    assert_eq!(outcome(&service.send("echo", "one").await), completed("one"));
    assert_eq!(outcome(&service.send("echo", "two").await), completed("two"));
    assert_eq!(outcome(&service.send("bad", "x").await).0, "failed");
    assert_eq!(outcome(&service.send("counts", "x").await).0, "completed");
    assert_eq!(service.get("/nothing/here").await.status, 404);
    let seen = numbers(&service).await;
    seen.are_cumulative();
    let executions = |label: &str| seen.sum("algonius_executions_total", label);
    assert_eq!(executions("agent=\"echo\""), 2.0);
    assert_eq!((executions("outcome=\"failed\""), executions("agent=\"bad\"")), (1.0, 1.0));
    assert_eq!(seen.sum("algonius_execution_duration_seconds_count", "agent=\"echo\""), 2.0);
    assert_eq!(seen.sum("algonius_attempts_total", "agent=\"counts\""), 1.0);
    let tokens =
        |kind: &str| seen.of(&format!("algonius_tokens_total{{agent=\"counts\",kind=\"{kind}\"}}"));
    assert_eq!((tokens("input"), tokens("output")), (Some(1200.0), Some(7.0)));
    let path = "endpoint=\"/agents/{agent}/v1\"";
    assert_eq!(seen.sum("algonius_requests_total", path), 4.0);
    assert_eq!(seen.sum("algonius_requests_total", "endpoint=\"none\""), 1.0);
    assert_eq!(seen.sum("algonius_requests_total", "status=\"4xx\""), 1.0);
    assert!(seen.of("algonius_ledger_bytes") > Some(1000.0));
    assert!(seen.of("process_resident_memory_bytes") > Some(1e6));
    assert!(seen.of("process_start_time_seconds") > Some(1.5e9));
}

#[tokio::test]
async fn running_and_queued_work_is_in_the_metrics() {
    let service = Service::start(&gated("one", "max_concurrent = 1")).await;
    service.begin("one", "ann").await;
    service.setup.wait_for_text("log", "start ann\n").await;
    let waiting = id(&service.submit("one", message("bob")).await);
    let level = |seen: &PrometheusPage, name: &str| seen.of(&format!("{name}{{agent=\"one\"}}"));
    let both =
        |seen: &PrometheusPage| (level(seen, "algonius_running"), level(seen, "algonius_queued"));
    let seen = numbers(&service).await;
    assert_eq!(both(&seen), (Some(1.0), Some(1.0)));
    assert_eq!(level(&seen, "algonius_agent_quarantined"), Some(0.0));
    service.setup.open("go");
    service.wait_for_end("one", &waiting).await;
    poll_until("an idle agent", async || {
        (both(&numbers(&service).await) == (Some(0.0), Some(0.0))).then_some(())
    })
    .await;
}

#[tokio::test]
async fn metrics_need_a_token_for_all_agents_and_can_be_disabled() {
    let token = "reader-0123456789-0123456789-0123456789";
    let tokens = "[tokens.one]\ntoken_env = 'ONE'\nagents = ['echo']\n";
    let agents = format!("{}{tokens}", fake("echo", "echo", ""));
    let service = crate::harness::Setup::new(&agents).env("ONE", token).start().await;
    assert_eq!(service.request("GET /metrics", &[], b"").await.status, 401);
    let refused = service.with(token).get("/metrics").await;
    assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("forbidden")));
    let off = format!("{}[metrics]\nenabled = false\n", fake("echo", "echo", ""));
    let service = Service::start(&off).await;
    assert_eq!(service.get("/metrics").await.status, 404);
}
