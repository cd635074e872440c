//! An agent that takes more of the machine than it may is ended with all that it started, and the
//! others are served.

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, failed_outcome, task_outcome};
use crate::harness::processes::{pids_and_labels, pids_with_env};
use crate::harness::{ServiceProcess, Setup, fake_agent_config, gated_agent_config, poll_until};

const MAX_MEMORY_BYTES: u64 = 100 << 20;

/// The processes of an execution.
fn execution_processes(id: &str) -> Vec<i32> {
    pids_with_env(&format!("ALGONIUS_EXECUTION_ID={id}"))
}

/// What is said of a failed task, after all of it is gone and another agent has answered.
async fn expect_resource_failure(service: &ServiceProcess, agent: &str, id: &str) -> Value {
    assert_eq!(
        task_outcome(&service.send("echo", "hi").await),
        completed_outcome("hi"),
        "others are served"
    );
    let task = service.wait_for_task_end(agent, id).await;
    assert_eq!(task_outcome(&task), failed_outcome("resources-exceeded"));
    poll_until("the end of all", async || execution_processes(id).is_empty().then_some(())).await;
    let record = service.fetch_execution(id).await;
    assert_eq!((&record["attempt"], &record["error"]["category"]), (&json!(1), &json!("agent")));
    record["error"]["message"].clone()
}

#[tokio::test]
async fn a_program_with_too_many_processes_is_killed() {
    let limits = "resources.processes = 10\nresources.group = 'off'";
    let agents =
        [fake_agent_config("crowd", "crowd 50", limits), fake_agent_config("echo", "echo", "")]
            .concat();
    let service = ServiceProcess::start(&agents).await;
    let id = service.start_task("crowd", "go").await;
    let message = expect_resource_failure(&service, "crowd", &id).await;
    let message = message.as_str().unwrap();
    let (usage, limit) = message.split_once(" processes and threads at once; ").unwrap();
    assert!(usage.strip_prefix("had ").unwrap().parse::<u64>().unwrap() > 10, "{message}");
    // A program with more processes than `resources.processes` is killed with all of them,
    // and the service continues to serve other agents
    assert_eq!(limit, "`resources.processes` allows 10");
}

#[tokio::test]
async fn a_program_with_too_much_memory_is_killed() {
    let limits = format!("resources.memory_bytes = {MAX_MEMORY_BYTES}\nresources.group = 'off'");
    let hog_agent = fake_agent_config("hog", &format!("hog {}", 300 << 20), &limits);
    let service =
        ServiceProcess::start(&[hog_agent, fake_agent_config("echo", "echo", "")].concat()).await;
    let id = service.start_task("hog", "go").await;
    let message = expect_resource_failure(&service, "hog", &id).await;
    let message = message.as_str().unwrap();
    let (usage, limit) = message.split_once(" bytes of memory; ").unwrap();
    assert!(
        usage.strip_prefix("took ").unwrap().parse::<u64>().unwrap() > MAX_MEMORY_BYTES,
        "{message}"
    );
    // A program that uses more memory than `resources.memory_bytes` is killed, and the
    // service survives
    assert_eq!(limit, format!("`resources.memory_bytes` allows {MAX_MEMORY_BYTES}"));
}

#[tokio::test]
async fn limits_hold_over_a_restart_and_count_detached_processes() {
    let limits = "resources.processes = 3\nresources.group = 'off'\nsandbox.writable = ['HERE']";
    let script = "until [ -e HERE/go ]; do sleep 0.02; done
        for i in 1 2 3 4; do setsid env -i sleep 600 & done; wait";
    let agent = format!("[agents.late]\ncommand = 'sh'\nargs = ['-c', '''{script}''']\n{limits}\n");
    let mut service =
        ServiceProcess::start(&[agent, fake_agent_config("echo", "echo", "")].concat()).await;
    let id = service.start_task("late", "go").await;
    let pid = poll_until("its start", async || execution_processes(&id).first().copied()).await;
    let label = pids_and_labels().into_iter().find(|(found, _)| *found == pid).unwrap().1;
    service.kill9().await;
    service.start_again().await;
    service.setup.open_gate("go");
    assert!(
        expect_resource_failure(&service, "late", &id).await.as_str().unwrap().contains("allows 3")
    );
    // A restarted service enforces the limits of the programs that it resumes, also for
    // processes in another session
    assert!(pids_and_labels().iter().all(|(_, found)| *found != label), "what hides is left");
}

#[tokio::test]
async fn a_program_within_its_limits_is_not_stopped() {
    let limits = "resources.processes = 64\nresources.memory_bytes = 104857600\n\
                  resources.group = 'off'";
    let service = ServiceProcess::start(&fake_agent_config("calm", "sleep 1.5 done", limits)).await;
    let watched_limit = |limit: u64| json!({"limit": limit, "enforcer": "watch"});
    let expected = json!({"memoryBytes": watched_limit(MAX_MEMORY_BYTES), "processes": watched_limit(64), "controlGroup": false});
    assert_eq!(service.fetch_agent_status("calm").await["resources"], expected);
    assert_eq!(task_outcome(&service.send("calm", "go").await), completed_outcome("done"));
}

#[tokio::test]
async fn expected_memory_delays_agents_until_it_is_free() {
    let pressure_config = "[pressure]\nmode = 'usage'\ncpu_percent = 100\nmemory_percent = 100\n\
                  load = 1_000_000\nmin_disk_free_bytes = 0\nmax_reserved_memory_bytes = 1_000_000_000\n";
    let agents =
        ["one", "two"].map(|id| gated_agent_config(id, "resources.expected_bytes = 600_000_000"));
    let service =
        Setup::from_config_text(&[pressure_config, &agents.concat()].concat()).start().await;
    let first_id = service.start_task("one", "a").await;
    service.setup.wait_for_file_text("log", "start a\n").await;
    let second_id = service.start_task("two", "b").await;
    poll_until("its reason", async || {
        let status = service.get("/status/agents/two").await.body;
        status.contains("insufficient-memory").then_some(())
    })
    .await;
    service.setup.open_gate("go");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &first_id).await),
        completed_outcome("a\n")
    );
    assert_eq!(
        task_outcome(&service.wait_for_task_end("two", &second_id).await),
        completed_outcome("b\n")
    );
    assert_eq!(service.setup.read_file("log"), "start a\nend a\nstart b\nend b\n");
}
