//! Many followers of one execution.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use algonius_gauge::a2a_requests::request_builder;
use algonius_gauge::client::KeepAliveClient;
use algonius_gauge::load::unique_number;
use algonius_gauge::report::{BenchReport, Curve};
use algonius_gauge::role::is_quick;
use algonius_gauge::run::median;
use algonius_gauge::service::Service;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio::time::{Instant, timeout};

use super::PROGRAM;

/// Agent that writes a hundred events after the file named in its input exists.
const AGENT_CONFIG: &str = r#"[agents.teller]
command = "sh"
args = ["-c", '''
read gate
until [ -e "$gate" ]; do sleep 0.01; done
i=0
while [ $i -lt 100 ]; do echo "{\"type\":\"text\",\"text\":\"thing number $i. \"}"; i=$((i + 1)); done
''']
output = "events"
"#;

/// Time limit for all followers to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Measures how the time until all followers have received everything grows with their number.
pub(crate) async fn measure(descriptor_limit: usize, report: &mut BenchReport) {
    let service = Service::start(PROGRAM, "max_connections = 5000", AGENT_CONFIG).await;
    let max_followers = descriptor_limit.saturating_sub(200).min(1000);
    let mut points = Vec::new();
    for follower_count in [1, 10, 100, max_followers] {
        let mut times = Vec::new();
        for round in 0..if is_quick() { 1 } else { 3 } {
            let gate = format!("gate-{follower_count}-{round}");
            times.push(delivery_time(&service, &gate, follower_count).await.as_secs_f64() * 1e3);
        }
        points.push((follower_count as f64, median(times)));
    }
    for (followers, time) in &points {
        println!("    {followers:>5} who follow have heard 100 events after {time:.1} ms");
    }
    report.add_curve(Curve {
        name: "subscribers".to_owned(),
        x_label: "who follow one execution".to_owned(),
        y_label: "until all have heard 100 events, ms".to_owned(),
        points,
    });
}

/// Barrier that counts the connected followers.
#[derive(Default)]
struct FollowerBarrier {
    arrived_count: Cell<usize>,
    all_arrived: Notify,
}

impl FollowerBarrier {
    fn arrive(&self, follower_count: usize) {
        self.arrived_count.set(self.arrived_count.get() + 1);
        if self.arrived_count.get() == follower_count {
            self.all_arrived.notify_one();
        }
    }
}

/// Returns the time from the first event until all followers have received the last.
async fn delivery_time(service: &Service, gate: &str, follower_count: usize) -> Duration {
    let gate_file = service.home().join(gate);
    let task_id = start_execution(service, &gate_file.display().to_string()).await;
    let request = service.json_rpc_request("teller", "tasks/resubscribe", &json!({"id": task_id}));
    let (barrier, tasks) = (Rc::new(FollowerBarrier::default()), LocalSet::new());
    for _ in 0..follower_count {
        let (mut client, request) =
            (KeepAliveClient::connect(service.address).await, request.clone());
        let barrier = Rc::clone(&barrier);
        tasks.spawn_local(async move {
            let mut has_arrived = false;
            let on_piece = |_: &[u8]| {
                if !std::mem::replace(&mut has_arrived, true) {
                    barrier.arrive(follower_count);
                }
            };
            let answer = client.send_streaming_request(request.as_bytes(), on_piece).await;
            assert!(
                answer.is_ok_and_contains("thing number 99")
                    && answer.is_ok_and_contains("\"final\":true")
            );
        });
    }
    let arrival = timeout(CONNECT_TIMEOUT, tasks.run_until(barrier.all_arrived.notified())).await;
    assert!(arrival.is_ok(), "{} of {follower_count} have come", barrier.arrived_count.get());
    let started_at = Instant::now();
    std::fs::write(gate_file, "").expect("a gate");
    tasks.await;
    started_at.elapsed()
}

/// Starts an execution that waits for this file, and returns its task.
async fn start_execution(service: &Service, gate: &str) -> Value {
    let message = json!({"kind": "message", "role": "user",
        "messageId": algonius_gauge::a2a_requests::NUMBER_PLACEHOLDER, "parts": [{"kind": "text", "text": gate}]});
    let params = json!({"message": message, "configuration": {"blocking": false}});
    let request = request_builder(&service.json_rpc_request("teller", "message/send", &params))(
        unique_number(),
    );
    let mut client = KeepAliveClient::connect(service.address).await;
    let answer = client.send_request(&request).await;
    let answer: Value = serde_json::from_slice(answer.body).expect("JSON");
    answer.pointer("/result/id").cloned().expect("a task")
}
