//! Row 9: sequential requests, each with a program of its own, beside thousands of idle connections, and beside
//! gigabytes of memory in the service.

use algonius_gauge::client::KeepAliveClient;
use algonius_gauge::load::{StopCondition, run_load};
use algonius_gauge::process::resident_bytes as process_resident_bytes;
use algonius_gauge::report::{BenchReport, Curve, Goal, ResultRow};
use algonius_gauge::role::is_quick;
use algonius_gauge::round::Rounds;
use algonius_gauge::run::OperationTimes;
use algonius_gauge::service::Service;
use serde_json::json;

use super::PROGRAM;

/// Descriptors for everything except client connections.
const SPARE_DESCRIPTORS: usize = 500;

/// Size in bytes of each waiting request.
const LARGE_REQUEST_BYTES: usize = 4_000_000;

const SERVER_CONFIG: &str = "max_connections = 20000\nheader_timeout = 600\ndrain_timeout = 0\n\
    max_body_bytes = 8_000_000\n";

/// Agent of the measured requests, and an agent that is busy during the whole bench.
const AGENTS_CONFIG: &str = "[limits]\nqueue_depth_max = 20000\nmax_input_bytes_max = 8_000_000\n\
    [agents.cat]\ncommand = \"cat\"\n\
    [agents.held]\ncommand = \"sleep\"\nargs = [\"3000\"]\nmax_concurrent = 1\nqueue_depth = 2000\n\
    timeout = 3600\nmax_input_bytes = 8_000_000\n";

/// Measures row 9.
pub(crate) async fn measure(descriptor_limit: usize, report: &mut BenchReport) {
    let max_connections = descriptor_limit.saturating_sub(SPARE_DESCRIPTORS).min(10_000);
    let connection_counts = [max_connections / 100, max_connections / 10, max_connections];
    let queued_bytes = if is_quick() { 128 << 20 } else { 2_usize << 30 };
    let baseline_service = Service::start(PROGRAM, SERVER_CONFIG, AGENTS_CONFIG).await;
    let many_connections_service = Service::start(PROGRAM, SERVER_CONFIG, AGENTS_CONFIG).await;
    let large_memory_service = Service::start(PROGRAM, SERVER_CONFIG, AGENTS_CONFIG).await;
    queue_large_requests(&large_memory_service, queued_bytes).await;
    let resident_bytes =
        large_memory_service.pids().map(process_resident_bytes).iter().sum::<f64>();
    let (mut rounds, mut idle_clients, mut points) = (Rounds::default(), Vec::new(), Vec::new());
    for connection_count in connection_counts {
        while idle_clients.len() < connection_count {
            idle_clients.push(connect_and_probe(&many_connections_service).await);
        }
        let run = measure_requests(&many_connections_service).await;
        points.push((connection_count as f64, run.quantile_ms(500)));
    }
    for _ in 0..Rounds::count() {
        rounds.add("alone", measure_requests(&baseline_service).await);
        rounds.add("crowded", measure_requests(&many_connections_service).await);
        rounds.add("heavy", measure_requests(&large_memory_service).await);
    }
    let mut alive_count = 0;
    for client in &mut idle_clients {
        alive_count += usize::from(
            client.send_request(probe_request(&many_connections_service).as_bytes()).await.status
                == 200,
        );
    }
    assert_eq!(alive_count, idle_clients.len(), "connections were cut while they stood around");
    let median_ms = |run: &OperationTimes| run.quantile_ms(500);
    let mut add_row = |description: String, kind: &str| {
        report.add_row(ResultRow {
            number: 9,
            description,
            value: rounds.median_ratio(kind, "alone", median_ms),
            unit: "×".to_owned(),
            goal: Goal::AtMost(1.2, 1.05),
            details: format!(
                "{}; alone: {}",
                rounds.merged_run(kind).summary(),
                rounds.merged_run("alone").summary()
            ),
        });
    };
    add_row(format!("p50 with {max_connections} idle connections, against none"), "crowded");
    add_row(format!("p50 with {:.1} GB resident, against little", resident_bytes / 1e9), "heavy");
    report.add_curve(Curve {
        name: "connections".to_owned(),
        x_label: "idle connections".to_owned(),
        y_label: "ms of a request (p50)".to_owned(),
        points,
    });
}

async fn measure_requests(service: &Service) -> OperationTimes {
    let load_request = service.json_rpc_load_request("cat", 64);
    run_load(service.address, &load_request, 1, StopCondition::Elapsed(Rounds::run_duration()))
        .await
}

fn probe_request(service: &Service) -> String {
    service.build_request("GET /api/v1/agents/cat", "", "")
}

/// Returns a connection with one completed request.
async fn connect_and_probe(service: &Service) -> KeepAliveClient {
    let mut client = KeepAliveClient::connect(service.address).await;
    assert_eq!(client.send_request(probe_request(service).as_bytes()).await.status, 200);
    client
}

/// Queues requests of this many bytes together: their inputs stay in memory until they are done, and the programs start
/// meanwhile.
async fn queue_large_requests(service: &Service, bytes: usize) {
    let mut client = KeepAliveClient::connect(service.address).await;
    let text = "what is asked is held in memory, and this is a long question. "
        .repeat(LARGE_REQUEST_BYTES / 62);
    for number in 0..bytes.div_ceil(LARGE_REQUEST_BYTES) {
        let message = json!({
            "kind": "message", "role": "user", "messageId": format!("heavy-{number}"),
            "parts": [{"kind": "text", "text": text}],
        });
        let params = json!({"message": message, "configuration": {"blocking": false}});
        let call = service.json_rpc_request("held", "message/send", &params);
        let answer = client.send_request(call.as_bytes()).await;
        assert!(
            answer.is_ok_and_contains("\"result\""),
            "{:.300}",
            String::from_utf8_lossy(answer.body)
        );
    }
    let resident_bytes: f64 = service.pids().map(process_resident_bytes).iter().sum();
    assert!(
        resident_bytes > bytes as f64 * 0.9,
        "{resident_bytes} bytes are resident, not {bytes}"
    );
}
