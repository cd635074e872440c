//! Kills of the service, the process holder or both while an agent works: the work continues or ends exactly once, and
//! no byte of it is lost.

use serde_json::Value;

use crate::harness::client::{completed_outcome, failed_outcome, task_outcome, task_state};
use crate::harness::processes::{is_alive, kill9, pids_with_env};
use crate::harness::{ServiceProcess, Setup, fake_agent_config, gated_agent_config, poll_until};

/// Numbered lines, with gates between their parts.
const LINES_AGENT: &str = r#"
[agents.lines]
command = "sh"
sandbox.writable = ["HERE"]
args = ["-c", '''
echo start >> HERE/log
for part in 1 2 3 4; do
  seq $((part * 250000 - 249999)) $((part * 250000))
  echo $part >> HERE/parts
  until [ -e HERE/go-$part ] || [ -e HERE/go ]; do sleep 0.02; done
done
echo end >> HERE/log
''']
"#;

/// The processes of an execution.
fn execution_processes(id: &str) -> Vec<i32> {
    pids_with_env(&format!("ALGONIUS_EXECUTION_ID={id}"))
}

fn answer_text(task: &Value) -> &str {
    task["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_million_lines_survive_four_kills_of_the_service() {
    let mut service = ServiceProcess::start(LINES_AGENT).await;
    let id = service.start_task("lines", "go").await;
    let mut parts = String::new();
    for part in 1..=4 {
        parts.push_str(&format!("{part}\n"));
        service.setup.wait_for_file_text("parts", &parts).await;
        service.kill9().await;
        service.setup.open_gate(&format!("go-{part}")); // The program continues while no service runs.
        service.start_again().await;
    }
    let task = service.wait_for_task_end("lines", &id).await;
    let expected: String = (1..=1_000_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(task_state(&task), "completed");
    // R-11: Output is complete even if the service is killed while the program writes it
    assert!(
        answer_text(&task) == expected,
        "{} bytes of {}",
        answer_text(&task).len(),
        expected.len()
    );
    assert_eq!(service.setup.read_file("log"), "start\nend\n", "it was run once");
    let execution = service.get(&format!("/api/v1/executions/{id}")).await.json();
    assert_eq!(execution["state"], "completed", "{execution}");
    assert!(execution_processes(&id).is_empty());
}

#[tokio::test]
async fn work_that_ended_offline_keeps_its_outcome() {
    let agents =
        [gated_agent_config("one", ""), fake_agent_config("bad", "exit 3 sorry", "")].concat();
    let mut service = ServiceProcess::start(&agents).await;
    let id = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.kill9().await;
    service.setup.open_gate("go");
    service.setup.wait_for_file_text("log", "start ann\nend ann\n").await;
    poll_until("the end", async || execution_processes(&id).is_empty().then_some(())).await;
    service.start_again().await;
    // R-37: Work that ended while the service was down keeps its outcome, also if its deadline has
    // passed since
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &id).await),
        completed_outcome("ann\n")
    );
    let next_task = service.send("one", "bob").await;
    assert_eq!(task_outcome(&next_task), completed_outcome("bob\n"), "and the service goes on");
}

#[tokio::test]
async fn a_reattached_task_is_cancelled_with_all_its_processes() {
    let mut service =
        ServiceProcess::start(&fake_agent_config("tree", "stubborn", "stop_grace = 0.2")).await;
    let id = service.start_task("tree", "x").await;
    poll_until("its child", async || (execution_processes(&id).len() == 2).then_some(())).await;
    service.kill9().await;
    service.start_again().await;
    assert_eq!(task_state(&service.cancel("tree", &id).await), "canceled");
    // R-38: Resumed work can be cancelled with all that it started
    poll_until("the end of all", async || execution_processes(&id).is_empty().then_some(())).await;
}

#[tokio::test]
async fn events_reported_before_a_kill_are_not_repeated() {
    let agent = "
[agents.talker]
command = 'sh'
args = ['-c', '''
echo \"{\\\"type\\\":\\\"text\\\",\\\"text\\\":\\\"one \\\"}\"
echo \"{\\\"type\\\":\\\"artifact\\\",\\\"id\\\":\\\"a\\\",\\\"text\\\":\\\"made\\\"}\"
until [ -e HERE/go ]; do sleep 0.02; done
echo \"{\\\"type\\\":\\\"text\\\",\\\"text\\\":\\\"two\\\"}\"
''']
output = 'events'
";
    let mut service = ServiceProcess::start(agent).await;
    let id = service.start_task("talker", "x").await;
    poll_until("the artifact", async || {
        let task = service.fetch_task("talker", &id).await;
        task["artifacts"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["artifactId"] == "a"))
            .then_some(())
    })
    .await;
    service.kill9().await;
    service.start_again().await;
    service.setup.open_gate("go");
    let task = service.wait_for_task_end("talker", &id).await;
    let mut artifact_texts: Vec<String> = Vec::new();
    for artifact in task["artifacts"].as_array().unwrap() {
        let parts = artifact["parts"].as_array().unwrap().iter();
        artifact_texts.push(parts.map(|part| part["text"].as_str().unwrap()).collect());
    }
    artifact_texts.sort();
    // R-12: The service delivers no event a second time after a kill
    assert_eq!(artifact_texts, ["made", "one two"], "{task}");
}

#[tokio::test]
async fn a_killed_warden_leaves_the_service_running() {
    let service = ServiceProcess::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let id = service.start_task("one", "ann").await;
    let waiting_id = service.start_task("one", "bob").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    kill9(service.holder_pid());
    // R-50: Programs of a killed warden end as `interrupted`, and the service continues
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &id).await),
        failed_outcome("interrupted")
    );
    assert!(execution_processes(&id).is_empty(), "its program lives on");
    service.setup.open_gate("go");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &waiting_id).await),
        completed_outcome("bob\n")
    );
    assert_eq!(service.setup.read_file("log"), "start ann\nstart bob\nend bob\n");
}

#[tokio::test]
async fn a_kill_of_both_processes_ends_programs_at_the_next_start() {
    let mut service =
        ServiceProcess::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let id = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let pids = execution_processes(&id);
    service.kill9_with_holder().await;
    service.start_again().await;
    // R-52: If the service and its warden are killed, the next start ends the running programs
    // before it starts any other
    assert!(pids.iter().all(|pid| !is_alive(*pid)), "what ran was not swept");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &id).await),
        failed_outcome("interrupted")
    );
}

#[tokio::test]
async fn a_reattached_warden_can_be_killed_too() {
    let mut service = ServiceProcess::start(&gated_agent_config("one", "")).await;
    let id = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let first_holder_pid = service.holder_pid();
    service.kill9().await;
    service.start_again().await;
    poll_until("it runs", async || {
        (service.fetch_execution(&id).await["state"] == "running").then_some(())
    })
    .await;
    kill9(first_holder_pid);
    // R-51: Programs of a killed warden end as `interrupted`, also if the warden belonged to an
    // earlier instance of the service
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &id).await),
        failed_outcome("interrupted")
    );
    assert!(execution_processes(&id).is_empty(), "its program lives on");
}

#[tokio::test]
async fn kills_in_quick_succession_run_no_task_twice() {
    let mut service =
        ServiceProcess::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let id = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    for _ in 0..5 {
        service.kill9().await;
        service.start_again().await;
    }
    service.setup.open_gate("go");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &id).await),
        completed_outcome("ann\n")
    );
    // R-36: Running work continues while the service is down, and the next start resumes it
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\n");
}

#[tokio::test]
async fn a_program_without_its_service_ends_after_the_grace() {
    let setup = Setup::with_server_settings("reattach_grace = 0.3", &gated_agent_config("one", ""));
    let mut service = setup.start().await;
    let id = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.kill9().await;
    // R-39: If no service returns within `reattach_grace`, running programs are ended
    poll_until("the end of its program", async || {
        execution_processes(&id).is_empty().then_some(())
    })
    .await;
    service.start_again().await;
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &id).await),
        failed_outcome("interrupted")
    );
}

#[tokio::test]
async fn orphans_end_before_other_work_uses_their_folder() {
    let shared_settings = "access = 'read-write'\nworking_dir = 'HERE'";
    let agents =
        [gated_agent_config("one", shared_settings), gated_agent_config("two", shared_settings)]
            .concat();
    let mut service = ServiceProcess::start(&agents).await;
    let id = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let waiting_id = service.start_task("two", "bob").await;
    service.kill9().await;
    service.setup.set_config_text(&format!(
        "[limits]\ntimeout_min = 0.1\n{}",
        gated_agent_config("two", shared_settings)
    ));
    service.start_again().await;
    poll_until("the next one", async || {
        service.setup.read_file("log").contains("bob").then_some(())
    })
    .await;
    // R-40: Work that no agent resumes ends before other work starts in its folder
    assert!(execution_processes(&id).is_empty(), "two programs work in one folder");
    service.setup.open_gate("go");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("two", &waiting_id).await),
        completed_outcome("bob\n")
    );
}

#[tokio::test]
async fn an_agent_bound_to_its_service_ends_with_it() {
    let agent = gated_agent_config("one", "on_supervisor_loss = 'kill'");
    let mut service = ServiceProcess::start(&agent).await;
    let id = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.kill9().await;
    // R-41: With `on_supervisor_loss = "kill"`, an agent ends with its service
    poll_until("the end of its program", async || {
        execution_processes(&id).is_empty().then_some(())
    })
    .await;
    service.start_again().await;
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &id).await),
        failed_outcome("interrupted")
    );
}
