//! The service, the warden or both are killed while an agent works: what it does goes on or ends,
//! in one way, and no byte of it is lost.

use serde_json::Value;

use crate::harness::client::{completed, failed, outcome, state};
use crate::harness::processes::{is_alive, kill9, marked};
use crate::harness::{Service, Setup, fake, gated, until};

/// Numbered lines, with gates between their parts.
const LINES: &str = r#"
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
fn of(id: &str) -> Vec<i32> {
    marked(&format!("ALGONIUS_EXECUTION_ID={id}"))
}

fn text(task: &Value) -> &str {
    task["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_million_lines_survive_four_kills_of_the_service() {
    let mut service = Service::start(LINES).await;
    let id = service.begin("lines", "go").await;
    let mut parts = String::new();
    for part in 1..=4 {
        parts.push_str(&format!("{part}\n"));
        service.setup.written("parts", &parts).await;
        service.kill9().await;
        service.setup.open(&format!("go-{part}")); // It goes on while nobody is there.
        service.restart().await;
    }
    let task = service.ended("lines", &id).await;
    let whole: String = (1..=1_000_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(state(&task), "completed");
    // R-11: Output is complete even if the service is killed while the program writes it
    assert!(text(&task) == whole, "{} bytes of {}", text(&task).len(), whole.len());
    assert_eq!(service.setup.read("log"), "start\nend\n", "it was run once");
    let events = service.get(&format!("/api/v1/executions/{id}")).await.json();
    assert_eq!(events["state"], "completed", "{events}");
    assert!(of(&id).is_empty());
}

#[tokio::test]
async fn work_that_ended_offline_keeps_its_outcome() {
    let agents = [gated("one", ""), fake("bad", "exit 3 sorry", "")].concat();
    let mut service = Service::start(&agents).await;
    let id = service.begin("one", "ann").await;
    service.setup.written("log", "start ann\n").await;
    service.kill9().await;
    service.setup.open("go");
    service.setup.written("log", "start ann\nend ann\n").await;
    until("the end", async || of(&id).is_empty().then_some(())).await;
    service.restart().await;
    // R-37: Work that ended while the service was down keeps its outcome, also if its deadline has
    // passed since
    assert_eq!(outcome(&service.ended("one", &id).await), completed("ann\n"));
    let again = service.send("one", "bob").await;
    assert_eq!(outcome(&again), completed("bob\n"), "and the service goes on");
}

#[tokio::test]
async fn a_reattached_task_is_cancelled_with_all_its_processes() {
    let mut service = Service::start(&fake("tree", "stubborn", "stop_grace = 0.2")).await;
    let id = service.begin("tree", "x").await;
    until("its child", async || (of(&id).len() == 2).then_some(())).await;
    service.kill9().await;
    service.restart().await;
    assert_eq!(state(&service.cancel("tree", &id).await), "canceled");
    // R-38: Resumed work can be cancelled with all that it started
    until("the end of all", async || of(&id).is_empty().then_some(())).await;
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
    let mut service = Service::start(agent).await;
    let id = service.begin("talker", "x").await;
    until("the artifact", async || {
        let task = service.task("talker", &id).await;
        task["artifacts"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["artifactId"] == "a"))
            .then_some(())
    })
    .await;
    service.kill9().await;
    service.restart().await;
    service.setup.open("go");
    let task = service.ended("talker", &id).await;
    let mut texts: Vec<String> = Vec::new();
    for artifact in task["artifacts"].as_array().unwrap() {
        let parts = artifact["parts"].as_array().unwrap().iter();
        texts.push(parts.map(|part| part["text"].as_str().unwrap()).collect());
    }
    texts.sort();
    // R-12: The service delivers no event a second time after a kill
    assert_eq!(texts, ["made", "one two"], "{task}");
}

#[tokio::test]
async fn a_killed_warden_leaves_the_service_running() {
    let service = Service::start(&gated("one", "access = 'read-write'")).await;
    let id = service.begin("one", "ann").await;
    let waiting = service.begin("one", "bob").await;
    service.setup.written("log", "start ann\n").await;
    kill9(service.warden());
    // R-50: Programs of a killed warden end as `interrupted`, and the service continues
    assert_eq!(outcome(&service.ended("one", &id).await), failed("interrupted"));
    assert!(of(&id).is_empty(), "its program lives on");
    service.setup.open("go");
    assert_eq!(outcome(&service.ended("one", &waiting).await), completed("bob\n"));
    assert_eq!(service.setup.read("log"), "start ann\nstart bob\nend bob\n");
}

#[tokio::test]
async fn a_kill_of_both_processes_ends_programs_at_the_next_start() {
    let mut service = Service::start(&gated("one", "access = 'read-write'")).await;
    let id = service.begin("one", "ann").await;
    service.setup.written("log", "start ann\n").await;
    let left = of(&id);
    service.kill9_both().await;
    service.restart().await;
    // R-52: If the service and its warden are killed, the next start ends the running programs
    // before it starts any other
    assert!(left.iter().all(|pid| !is_alive(*pid)), "what ran was not swept");
    assert_eq!(outcome(&service.ended("one", &id).await), failed("interrupted"));
}

#[tokio::test]
async fn a_reattached_warden_can_be_killed_too() {
    let mut service = Service::start(&gated("one", "")).await;
    let id = service.begin("one", "ann").await;
    service.setup.written("log", "start ann\n").await;
    let first = service.warden();
    service.kill9().await;
    service.restart().await;
    until("it runs", async || (service.execution(&id).await["state"] == "running").then_some(()))
        .await;
    kill9(first);
    // R-51: Programs of a killed warden end as `interrupted`, also if the warden belonged to an
    // earlier instance of the service
    assert_eq!(outcome(&service.ended("one", &id).await), failed("interrupted"));
    assert!(of(&id).is_empty(), "its program lives on");
}

#[tokio::test]
async fn kills_in_quick_succession_run_no_task_twice() {
    let mut service = Service::start(&gated("one", "access = 'read-write'")).await;
    let id = service.begin("one", "ann").await;
    service.setup.written("log", "start ann\n").await;
    for _ in 0..5 {
        service.kill9().await;
        service.restart().await;
    }
    service.setup.open("go");
    assert_eq!(outcome(&service.ended("one", &id).await), completed("ann\n"));
    // R-36: Running work continues while the service is down, and the next start resumes it
    assert_eq!(service.setup.read("log"), "start ann\nend ann\n");
}

#[tokio::test]
async fn a_program_without_its_service_ends_after_the_grace() {
    let setup = Setup::server("reattach_grace = 0.3", &gated("one", ""));
    let mut service = setup.start().await;
    let id = service.begin("one", "ann").await;
    service.setup.written("log", "start ann\n").await;
    service.kill9().await;
    // R-39: If no service returns within `reattach_grace`, running programs are ended
    until("the end of its program", async || of(&id).is_empty().then_some(())).await;
    service.restart().await;
    assert_eq!(outcome(&service.ended("one", &id).await), failed("interrupted"));
}

#[tokio::test]
async fn orphans_end_before_other_work_uses_their_folder() {
    let shared = "access = 'read-write'\nworking_dir = 'HERE'";
    let agents = [gated("one", shared), gated("two", shared)].concat();
    let mut service = Service::start(&agents).await;
    let id = service.begin("one", "ann").await;
    service.setup.written("log", "start ann\n").await;
    let waiting = service.begin("two", "bob").await;
    service.kill9().await;
    service.setup.rewrite(&format!("[limits]\ntimeout_min = 0.1\n{}", gated("two", shared)));
    service.restart().await;
    until("the next one", async || service.setup.read("log").contains("bob").then_some(())).await;
    // R-40: Work that no agent resumes ends before other work starts in its folder
    assert!(of(&id).is_empty(), "two programs work in one folder");
    service.setup.open("go");
    assert_eq!(outcome(&service.ended("two", &waiting).await), completed("bob\n"));
}

#[tokio::test]
async fn an_agent_bound_to_its_service_ends_with_it() {
    let agent = gated("one", "on_supervisor_loss = 'kill'");
    let mut service = Service::start(&agent).await;
    let id = service.begin("one", "ann").await;
    service.setup.written("log", "start ann\n").await;
    service.kill9().await;
    // R-41: With `on_supervisor_loss = "kill"`, an agent ends with its service
    until("the end of its program", async || of(&id).is_empty().then_some(())).await;
    service.restart().await;
    assert_eq!(outcome(&service.ended("one", &id).await), failed("interrupted"));
}
