//! A collector of OpenTelemetry: what it is sent, and that nobody waits for it.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::prometheus_text::PrometheusPage;
use crate::harness::client::{task_id, task_outcome};
use crate::harness::{Setup, fake_agent_config, message_params, poll_until, within_deadline};

/// A collector on loopback, and what it was sent: the head and the JSON of each request.
struct MockCollector {
    address: SocketAddr,
    requests: mpsc::UnboundedReceiver<(String, Value)>,
    spans: Vec<Value>,
    log_records: Vec<Value>,
    request_heads: String,
}

impl MockCollector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let sender = sender.clone();
                tokio::spawn(async move {
                    receive_and_acknowledge(stream).await.map(|request| sender.send(request))
                });
            }
        });
        Self {
            address,
            requests,
            spans: Vec::new(),
            log_records: Vec::new(),
            request_heads: String::new(),
        }
    }

    fn settings(&self) -> String {
        format!("[telemetry]\notlp_endpoint = 'http://{}'\n", self.address)
    }

    /// Takes the next request, and checks its shape.
    async fn receive_next(&mut self) {
        let (head, body) = within_deadline("a request", self.requests.recv()).await.unwrap();
        let (path, resources, scopes, items, collected_items) =
            if head.starts_with("POST /v1/traces ") {
                ("/v1/traces", "resourceSpans", "scopeSpans", "spans", &mut self.spans)
            } else {
                ("/v1/logs", "resourceLogs", "scopeLogs", "logRecords", &mut self.log_records)
            };
        assert!(head.contains(path) && head.contains("content-type: application/json"), "{head}");
        let resource = &body[resources][0];
        assert_eq!(attribute_text(&resource["resource"], "service.name"), "algonius-supervisor");
        collected_items.extend(resource[scopes][0][items].as_array().unwrap().iter().cloned());
        self.request_heads += &head;
    }

    /// The first span for which this is so.
    async fn wait_for_span(&mut self, is_match: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Some(span) = self.spans.iter().find(|span| is_match(span)) {
                return span.clone();
            }
            self.receive_next().await;
        }
    }
}

/// Reads a request as long as its head says, and says yes.
async fn receive_and_acknowledge(mut stream: TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
            if bytes.len() - end - 4 == length.parse::<usize>().ok()? {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.ok()?;
                return Some((head, serde_json::from_slice(&bytes[end + 4..]).ok()?));
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// The value of an attribute, as text.
fn attribute_text(item: &Value, key: &str) -> String {
    let attributes = item["attributes"].as_array().unwrap();
    let attribute_value =
        attributes.iter().find(|entry| entry["key"] == key).map(|entry| &entry["value"]);
    let value =
        attribute_value.and_then(|value| value.as_object()).and_then(|kinds| kinds.values().next());
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn is_hex(value: &Value, digits: usize) -> bool {
    let is_lower_hex = |char: char| char.is_ascii_digit() || ('a'..='f').contains(&char);
    value.as_str().is_some_and(|text| text.len() == digits && text.chars().all(is_lower_hex))
}

/// Prints its place in the trace, and counts tokens.
const TRACED_AGENT: &str = r#"
[agents.thinks]
command = "sh"
args = ["-c", '''
echo '{"type":"usage","input_tokens":12,"output_tokens":3}'
echo "{\"type\":\"artifact\",\"text\":\"$TRACEPARENT\"}"
''']
output = "events"
params.key = "none"
overrides.params = ["key"]
"#;

#[tokio::test]
async fn request_execution_and_attempt_form_one_trace() {
    let mut collector = MockCollector::start().await;
    let headers = "otlp_headers_file = 'HERE/headers'\n";
    let setup = Setup::new(&format!("{TRACED_AGENT}{}{headers}", collector.settings()));
    let setup = setup.with_executable("headers", "Authorization: Bearer of-the-collector\n");
    let service = setup.start().await;
    let canary = "canary-of-the-input";
    let task = service.send("thinks", canary).await;
    let (execution_id, traceparent) = (task_id(&task), task_outcome(&task).1);
    let invocation = collector.wait_for_span(|span| span["name"] == "invoke_agent thinks").await;
    let attempt = collector.wait_for_span(|span| span["name"] == "attempt thinks").await;
    let request_span =
        collector.wait_for_span(|span| span["name"] == "POST /agents/{agent}/v1").await;
    for span in [&request_span, &invocation, &attempt] {
        assert!(is_hex(&span["traceId"], 32) && is_hex(&span["spanId"], 16), "{span}");
        assert_eq!(span["traceId"], request_span["traceId"]);
        let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
    assert_eq!(invocation["parentSpanId"], request_span["spanId"]);
    assert_eq!(attempt["parentSpanId"], invocation["spanId"]);
    let (trace_id, span_id) = (&attempt["traceId"], &attempt["spanId"]);
    let expected_traceparent =
        format!("00-{}-{}-01", trace_id.as_str().unwrap(), span_id.as_str().unwrap());
    assert_eq!(traceparent, expected_traceparent);
    assert_eq!(attribute_text(&invocation, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(attribute_text(&invocation, "gen_ai.agent.id"), "thinks");
    assert_eq!(attribute_text(&invocation, "gen_ai.usage.input_tokens"), "12");
    assert_eq!(attribute_text(&invocation, "gen_ai.usage.output_tokens"), "3");
    assert_eq!(attribute_text(&invocation, "algonius.execution.id"), execution_id);
    assert_eq!(attribute_text(&request_span, "http.response.status_code"), "200");
    let is_end = |line: &&Value| line["body"]["stringValue"] == "ended";
    while !collector.log_records.iter().any(|line| is_end(&line)) {
        collector.receive_next().await;
    }
    let end_record = collector.log_records.iter().find(is_end).unwrap();
    assert_eq!((&end_record["traceId"], &end_record["severityText"]), (trace_id, &"INFO".into()));
    assert_eq!(attribute_text(end_record, "execution"), execution_id);
    assert!(collector.request_heads.contains("authorization: Bearer of-the-collector"));
    let exported_text = format!("{:?}{:?}", collector.spans, collector.log_records);
    assert!(
        !exported_text.contains(canary) && !service.stderr_text().contains("of-the-collector"),
        "{exported_text}"
    );
}

#[tokio::test]
async fn unsampled_traces_are_not_exported() {
    let mut collector = MockCollector::start().await;
    let service =
        Setup::new(&format!("{TRACED_AGENT}{}logs = false\n", collector.settings())).start().await;
    let unsampled_header = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    let sampled_header = unsampled_header.replace("4bf9", "5bf9").replace("b7-00", "b7-01");
    for line in [unsampled_header, &sampled_header] {
        let call = ("message/send", &message_params("x"));
        assert_eq!(service.call_with_headers("thinks", &[line], call).await.status, 200);
    }
    let span = collector.wait_for_span(|span| span["name"] == "invoke_agent thinks").await;
    assert_eq!(span["traceId"], "5bf92f3577b34da6a3ce929d0e0e4736");
    let request_span =
        collector.wait_for_span(|span| span["name"] == "POST /agents/{agent}/v1").await;
    assert_eq!(request_span["parentSpanId"], "00f067aa0ba902b7");
    let is_unsampled = |span: &Value| span["traceId"].as_str().unwrap().starts_with("4bf9");
    assert!(!collector.spans.iter().any(is_unsampled) && collector.log_records.is_empty());
}

#[tokio::test]
async fn an_unreachable_collector_loses_only_telemetry() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let setup = Setup::new(&fake_agent_config("echo", "echo", ""))
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint);
    let mut service = setup.start().await;
    assert_eq!(task_outcome(&service.send("echo", "hello").await).1, "hello");
    poll_until("what was dropped", async || {
        let metrics = PrometheusPage::parse(&service.get("/metrics").await.body);
        (metrics.value_of("algonius_dropped_total{what=\"spans\"}") >= Some(2.0)).then_some(())
    })
    .await;
    let failure_count = service.stderr_text().matches("failed to export telemetry").count();
    assert_eq!(failure_count, 1, "{}", service.stderr_text());
    service.send_sigterm();
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
}

#[tokio::test]
async fn a_secret_is_in_no_log_line_span_or_metric() {
    let mut collector = MockCollector::start().await;
    let setup = Setup::new(&format!("{TRACED_AGENT}{}", collector.settings()));
    let service = setup.env("RUST_LOG", "trace").start().await;
    let canary = format!("{}{}", "gh", "p_q7Rk2vXw9TzLm4Bn8Hs3Jd6Fg1Pc5Ye0aB1c");
    let mut params = message_params(&format!("use {canary}"));
    params["message"]["metadata"] =
        serde_json::json!({"https://algonius.dev/a2a/ext/parameters/v1": {"key": canary}});
    let tracestate_header = format!("tracestate: key={canary}");
    let traceparent_header = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answer = service
        .call_with_headers(
            "thinks",
            &[traceparent_header, &tracestate_header],
            ("message/send", &params),
        )
        .await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let invocation = collector.wait_for_span(|span| span["name"] == "invoke_agent thinks").await;
    let attempt = collector.wait_for_span(|span| span["name"] == "attempt thinks").await;
    let metrics_text = service.get("/metrics").await.body;
    for text in [service.stderr_text(), metrics_text, invocation.to_string(), attempt.to_string()] {
        assert!(text.len() > 100 && !text.contains(&canary), "{text}");
    }
    let ledger = service.setup.read_ledger_files();
    assert!(!ledger.windows(canary.len()).any(|window| window == canary.as_bytes()));
    let lines = format!("{:?}", collector.log_records);
    assert!(!lines.contains(&canary), "{lines}");
}
