//! The ledger's disk is full: a waiting caller gets an answer in time, and a new one a
//! refusal that names the disk.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::harness::client::{completed_outcome, task_id, task_outcome, task_state};
use crate::harness::disk::SmallDisk;
use crate::harness::processes::pids_with_env;
use crate::harness::{
    ServiceProcess, Setup, TestResponse, fake_agent_config, gated_agent_config, message_params,
    message_params_with_id, poll_until,
};

/// Longest time from the end of the work to the answer of a caller who waits.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A caller that waits for the end, with a message id of its own.
fn spawn_waiting_caller(service: &ServiceProcess, agent: &'static str) -> JoinHandle<TestResponse> {
    let client = service.client.clone();
    let params = message_params_with_id(agent, "ann");
    tokio::spawn(async move { client.call(agent, "message/send", &params).await })
}

/// Returns the content of a refusal: the HTTP status, the code, and whether it names the disk.
fn refusal_content(answer: &TestResponse) -> (u16, String, bool) {
    let document = answer.json();
    let error = &document["error"];
    let code = error["data"][0]["metadata"]["code"].as_str().unwrap_or_default().to_owned();
    let names_disk = error["message"].as_str().is_some_and(|message| message.contains("disk"));
    (answer.status, code, names_disk)
}

/// Sends requests until the ledger accepts none, because its write-ahead log still has room for some.
async fn send_until_refused(service: &ServiceProcess) -> TestResponse {
    poll_until("a refusal", async || {
        let answer = service.call("echo", "message/send", &message_params("new")).await;
        (answer.status != 200).then_some(answer)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_gives_waiting_callers_ledger_unavailable() {
    let Some(refusals) = fetch_refusals_on_full_disk("gate", "").await else { return };
    // New work is refused with a reason that names the disk, and a caller who waits for an
    // end that cannot be recorded gets an answer within 30 seconds of that end
    assert_eq!(refusals, [disk_refusal(), disk_refusal()]);
}

/// The member of a team ends on a full disk.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_gives_callers_of_a_team_ledger_unavailable() {
    let crew = "[agents.crew]\nkind = 'team'\nteam.steps = ['gate']\n";
    let Some(refusals) = fetch_refusals_on_full_disk("crew", crew).await else { return };
    // A caller of a team or of a cognitive agent learns within 30 seconds that a step cannot be recorded
    assert_eq!(refusals, [disk_refusal(), disk_refusal()]);
}

fn disk_refusal() -> (u16, String, bool) {
    (503, "ledger-unavailable".to_owned(), true)
}

/// Fills the disk while the program of the agent `gate` works for this agent. Returns the refusal of new work and the
/// one that the waiting caller gets in time; the work ends once there is space.
async fn fetch_refusals_on_full_disk(
    agent: &'static str,
    agent_config: &str,
) -> Option<[(u16, String, bool); 2]> {
    let agents = [fake_agent_config("echo", "echo", ""), gated_agent_config("gate", "")].concat();
    let setup = Setup::new(&format!("{agents}{agent_config}\n[pressure]\nenabled = false\n"));
    let disk = SmallDisk::mount_for_ledger_or_skip(setup.test_folder(), 16)?;
    let (service, disk) = (setup.start().await, disk);
    let caller = spawn_waiting_caller(&service, agent);
    service.setup.wait_for_file_text("log", "start ann\n").await;
    disk.fill();
    let new_work_refusal = refusal_content(&send_until_refused(&service).await);

    service.setup.open_gate("go");
    service.setup.wait_for_file_text("log", "start ann\nend ann\n").await;
    let answer = timeout(ANSWER_TIMEOUT, caller).await.unwrap().unwrap();
    // It did not crash, and is still read.
    assert_eq!(service.fetch_agent_status(agent).await["health"], "alive");

    disk.remove_filler();
    // The same message finds the same task. Its output is stored, or its end reports that storing it failed.
    let task = resend(&service, agent).await;
    assert!(["completed", "failed"].contains(&task_state(&task).as_str()), "{task}");
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\n", "it ran once");
    assert_eq!(task_outcome(&service.send("echo", "next").await), completed_outcome("next"));
    assert_eq!(task_id(&task), task_id(&resend(&service, agent).await));
    Some([new_work_refusal, refusal_content(&answer)])
}

/// Returns the task of a message whose caller had no answer, once the ledger can be written.
async fn resend(service: &ServiceProcess, agent: &'static str) -> Value {
    let task = poll_until("room in the ledger", async || {
        let answer =
            service.call(agent, "message/send", &message_params_with_id(agent, "ann")).await;
        (answer.status == 200).then(|| answer.json()["result"].clone())
    })
    .await;
    assert_ne!(task, json!(null));
    task
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_on_a_full_disk_survives_a_crash() {
    let agents = [fake_agent_config("echo", "echo", ""), gated_agent_config("gate", "")].concat();
    let setup = Setup::new(&format!("{agents}\n[pressure]\nenabled = false\n"));
    let Some(disk) = SmallDisk::mount_for_ledger_or_skip(setup.test_folder(), 16) else { return };
    let (mut service, disk) = (setup.start().await, disk);
    let id = service.start_task("gate", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let processes = || pids_with_env(&format!("ALGONIUS_EXECUTION_ID={id}"));
    assert!(!processes().is_empty(), "the program runs");
    disk.fill();
    send_until_refused(&service).await;
    service.setup.open_gate("go");
    poll_until("the end of the program", async || processes().is_empty().then_some(())).await;
    let is_refused = |line: &str| line.contains("write failed, retrying") && line.contains(&id);
    poll_until("a refused record", async || {
        service.stderr_text().lines().any(is_refused).then_some(())
    })
    .await;
    service.kill9().await;
    disk.remove_filler();
    service.start_again().await;
    // The end that an attempt reports is recorded before the service removes what a process instance after a
    // crash would continue with, unless the ledger accepts no record for ten seconds
    assert_eq!(
        task_outcome(&service.wait_for_task_end("gate", &id).await),
        completed_outcome("ann\n")
    );
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\n", "it ran once");
}
