//! A machine that is short of something, and a disk that is full: new work stays out in words, what
//! is there goes on, and it mends by itself.

use std::ops::Deref;
use std::sync::Arc;

use algonius_actors::model::host::pressure::{HostReading, StallReading};
use algonius_actors::ports::host_metrics::HostMetrics;
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::harness::client::{completed_outcome, failed_outcome, task_id, task_outcome};
use crate::harness::disk::SmallDisk;
use crate::harness::{
    EmbeddedService, ServiceClient, ServiceProcess, Setup, TestResponse, fake_agent_config,
    gated_agent_config, message_params, poll_until,
};

/// Gauges that the story turns.
#[derive(Default)]
struct AdjustableMetrics(watch::Sender<HostReading>);

#[async_trait]
impl HostMetrics for AdjustableMetrics {
    async fn read(&self) -> HostReading {
        *self.0.borrow()
    }
}

/// A service within the test, on a machine whose gauges the story turns.
struct PressureFixture {
    setup: Setup,
    metrics: Arc<AdjustableMetrics>,
    embedded: EmbeddedService,
}

impl Deref for PressureFixture {
    type Target = EmbeddedService;

    fn deref(&self) -> &EmbeddedService {
        &self.embedded
    }
}

impl PressureFixture {
    async fn start(setup: Setup) -> Self {
        let metrics = Arc::new(AdjustableMetrics::default());
        let embedded =
            EmbeddedService::start_with_host_metrics(&setup, Arc::clone(&metrics) as _).await;
        Self { setup, metrics, embedded }
    }

    /// Turns the gauges, and waits until that is judged.
    async fn set_stalls_and_wait(&self, stalls: StallReading, expected_shortages: Value) {
        let reading = HostReading { cores: 2, stalls: Some(stalls), ..HostReading::default() };
        self.metrics.0.send_replace(reading);
        wait_for_shortages(&self.client, &expected_shortages).await;
    }

    async fn stop(self) {
        self.embedded.stop(&self.setup).await;
    }
}

/// Waits until this is what the machine is found to be short of.
async fn wait_for_shortages(client: &ServiceClient, shortages: &Value) {
    poll_until(&format!("a shortage of {shortages}"), async || {
        let status = client.get("/status").await.json();
        (status["pressure"]["short"] == *shortages).then_some(())
    })
    .await;
}

/// Asks for new work.
async fn request_work(client: &ServiceClient, agent: &str) -> TestResponse {
    client.call(agent, "message/send", &message_params("new")).await
}

/// What a refusal says, wherever it stands.
fn refusal_content(answer: &TestResponse) -> (u16, String, String) {
    let document = answer.json();
    let error = &document["error"];
    let code = error["data"][0]["metadata"]["code"].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        error["data"][0]["metadata"]["category"],
        if code == "pressure" { "transient" } else { "system" }
    );
    assert!(answer.header("retry-after").is_some_and(|wait| wait.parse::<u32>().is_ok()));
    (answer.status, code, error["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn pressure_refuses_new_work_and_keeps_running_work() {
    let agent = gated_agent_config("one", "max_concurrent = 1");
    let fixture =
        PressureFixture::start(Setup::new(&format!("{agent}\n[pressure]\ninterval = 0.02\n")))
            .await;
    let running_id = fixture.client.start_task("one", "ann").await;
    fixture.setup.wait_for_file_text("log", "start ann\n").await;
    let waiting_id = fixture.client.start_task("one", "bob").await;
    fixture
        .set_stalls_and_wait(
            StallReading { memory_percent: 50.0, ..StallReading::default() },
            json!(["memory"]),
        )
        .await;
    let refusal_response = request_work(&fixture.client, "one").await;
    let expected_message = "the machine is short of memory".to_owned();
    assert_eq!(refusal_content(&refusal_response), (503, "pressure".to_owned(), expected_message));
    assert_eq!(refusal_response.json()["error"]["code"], -32061);
    fixture.setup.open_gate("go");
    assert_eq!(
        task_outcome(&fixture.client.wait_for_task_end("one", &running_id).await),
        completed_outcome("ann\n")
    );
    let queued_id = poll_until("a free slot", async || {
        let agent = fixture.client.fetch_agent_status("one").await;
        (agent["running"] == json!([])).then(|| agent["queued"][0]["id"].clone())
    })
    .await;
    assert_eq!(queued_id, json!(waiting_id));
    assert_eq!(fixture.setup.read_file("log"), "start ann\nend ann\n");
    fixture.set_stalls_and_wait(StallReading::default(), json!([])).await;
    assert_eq!(
        task_outcome(&fixture.client.wait_for_task_end("one", &waiting_id).await),
        completed_outcome("bob\n")
    );
    assert_eq!(task_outcome(&fixture.client.send("one", "cid").await), completed_outcome("cid\n"));
    fixture.stop().await;
}

#[tokio::test]
async fn a_disk_below_its_floor_refuses_the_first_request() {
    let pressure_config = "[pressure]\nmin_disk_free_bytes = 1_000_000_000_000_000_000\n";
    let service = ServiceProcess::start(&format!(
        "{}{pressure_config}",
        fake_agent_config("echo", "echo", "")
    ))
    .await;
    let expected_message = "the machine is short of disk space".to_owned();
    let refusal = (503, "pressure".to_owned(), expected_message);
    assert_eq!(refusal_content(&request_work(&service, "echo").await), refusal);
    let status = service.get("/status").await.json();
    assert_eq!(status["pressure"]["short"], json!(["disk"]));
    assert!(status["pressure"]["reading"]["diskFreeBytes"].as_u64() > Some(0), "{status}");
    assert_eq!(status["monitor"]["health"], "alive");
    let status_text = service.run_command(&["status"], "").await.stdout;
    assert!(status_text.contains("short of disk space"), "{status_text}");
    let send_output = service.run_command(&["send", "echo", "hello"], "").await;
    assert!(
        send_output.exit_code == Some(1) && send_output.stderr.contains("(pressure)"),
        "{send_output:?}"
    );
}

#[tokio::test]
async fn a_full_disk_refuses_new_work_until_it_has_space() {
    let pressure_config = "[pressure]\nmin_disk_free_bytes = 2_000_000\ninterval = 0.02\n";
    let setup = Setup::new(&format!("{}{pressure_config}", fake_agent_config("echo", "echo", "")));
    let Some(disk) = SmallDisk::mount_for_ledger_or_skip(setup.test_folder(), 16) else { return };
    let (service, disk) = (setup.start().await, disk);
    let task_before = service.send("echo", "hello").await;
    disk.fill();
    wait_for_shortages(&service, &json!(["disk"])).await;
    assert_eq!(refusal_content(&request_work(&service, "echo").await).1, "pressure");
    assert_eq!(service.fetch_task("echo", &task_id(&task_before)).await, task_before);
    disk.remove_filler();
    wait_for_shortages(&service, &json!([])).await;
    assert_eq!(task_outcome(&service.send("echo", "again").await), completed_outcome("again"));
}

/// Nobody looks at the disk here: the ledger itself has no room.
#[tokio::test]
async fn a_full_ledger_is_readable_and_recovers() {
    let agents = [fake_agent_config("echo", "echo", ""), gated_agent_config("gate", "")].concat();
    let setup = Setup::new(&format!("{agents}\n[pressure]\nenabled = false\n"));
    let Some(disk) = SmallDisk::mount_for_ledger_or_skip(setup.test_folder(), 16) else { return };
    let (service, disk) = (setup.start().await, disk);
    let task_before = service.send("echo", "hello").await;
    let running_id = service.start_task("gate", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    disk.fill();
    let refusal_response = poll_until("a refusal", async || {
        // What the write-ahead log has room for is taken still.
        let answer = request_work(&service, "echo").await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    let expected_message =
        "the request was not recorded, because the disk of the ledger is full or cannot be written";
    assert_eq!(
        refusal_content(&refusal_response),
        (503, "ledger-unavailable".to_owned(), expected_message.to_owned())
    );
    // Reads work while the disk is full, and the ledger accepts writes again when there is
    // space
    assert_eq!(service.fetch_task("echo", &task_id(&task_before)).await, task_before);
    assert_eq!(service.get("/api/v1/executions").await.status, 200);
    service.setup.open_gate("go");
    service.setup.wait_for_file_text("log", "start ann\nend ann\n").await;
    disk.remove_filler();
    let accepted_task = poll_until("room in the ledger", async || {
        let answer = request_work(&service, "echo").await;
        (answer.status == 200).then(|| answer.json()["result"].clone())
    })
    .await;
    assert_eq!(task_outcome(&accepted_task), completed_outcome("new"));
    // What it said is kept, or it is told that it could not be: it is settled either way.
    let gate_outcome = task_outcome(&service.wait_for_task_end("gate", &running_id).await);
    assert!(
        [completed_outcome("ann\n"), failed_outcome("ledger-unavailable")].contains(&gate_outcome),
        "{gate_outcome:?}"
    );
}
