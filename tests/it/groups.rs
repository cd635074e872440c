//! Control groups of a real kernel, as far as the machine lets a service have them.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::door::{failed, outcome, state};
use crate::harness::processes::marked;
use crate::harness::{Service, Setup, fake, until};

/// What the service would find here.
async fn rungs() -> Value {
    let setup = Setup::new(&fake("echo", "echo", ""));
    let config = setup.write().display().to_string();
    let output = setup.run(&["doctor", &config, "--json"], "").await;
    serde_json::from_str::<Value>(&output.stdout).unwrap()["rungs"].clone()
}

/// Whether there are no groups here, which is said aloud.
async fn skips() -> bool {
    let found = rungs().await;
    if found["cgroup"] != "usable" {
        println!("SKIPPED: no control group of version 2 can be made here: {found}");
    }
    found["cgroup"] != "usable"
}

/// The processes of an execution.
fn of(id: &str) -> Vec<i32> {
    marked(&format!("ALGONIUS_EXECUTION_ID={id}"))
}

/// The group of an execution, from one of its processes.
fn group_of(id: &str, pid: i32) -> Option<PathBuf> {
    let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?;
    path.contains(&id.replace('-', "")).then(|| PathBuf::from(format!("{mount}{path}")))
}

/// All of an execution, in its group.
async fn grouped(id: &str, processes: usize) -> PathBuf {
    until("all in one group", async || {
        let all: Vec<_> = of(id).into_iter().map(|pid| group_of(id, pid)).collect();
        let group = all.first().cloned().flatten();
        (all.len() == processes && all.iter().all(|one| *one == group)).then_some(group).flatten()
    })
    .await
}

#[tokio::test]
async fn an_agent_with_limits_has_a_group_for_each_attempt_also_over_a_restart() {
    if skips().await {
        return;
    }
    let agent = fake("tree", "stubborn", "resources.processes = 50\nstop_grace = 0.2");
    let mut service = Service::start(&agent).await;
    let resources = service.agent("tree").await["resources"].clone();
    assert_eq!((&resources["group"], &resources["processes"]["most"]), (&json!(true), &json!(50)));
    let shown = service.command(&["status"], "").await.stdout;
    assert!(shown.contains("at most 50 processes and threads"), "{shown}");
    let id = service.begin("tree", "x").await;
    let group = grouped(&id, 2).await;
    service.kill9().await;
    service.restart().await;
    assert_eq!(grouped(&id, 2).await, group, "it is left as it was");
    assert_eq!(state(&service.cancel("tree", &id).await), "canceled");
    until("the end of all", async || of(&id).is_empty().then_some(())).await;
    until("the end of its group", async || (!group.exists()).then_some(())).await;
}

#[tokio::test]
async fn what_forks_again_and_again_dies_with_its_group() {
    if skips().await {
        return;
    }
    // Beside what sleeps, each process starts another and ends, so that nobody can keep a list of
    // them. They end by themselves after a while: this is a test.
    let script = "f() { [ $1 = 0 ] || f $(($1 - 1)) & }
        for i in 1 2 3 4 5 6 7 8; do f 2000; sleep 600 & done; wait";
    let bomb = format!(
        "[agents.bomb]\ncommand = 'sh'\nargs = ['-c', '''{script}''']\nresources.processes = 6\n"
    );
    let service = Service::start(&format!("{bomb}{}", fake("echo", "echo", ""))).await;
    let id = service.begin("bomb", "x").await;
    let task = service.ended("bomb", &id).await;
    assert_eq!(outcome(&task), failed("resources-exceeded"));
    until("the end of all", async || of(&id).is_empty().then_some(())).await;
    assert_eq!(state(&service.send("echo", "hi").await), "completed");
}

#[tokio::test]
async fn a_group_that_is_required_and_cannot_be_had_keeps_the_service_from_starting() {
    let found = rungs().await;
    let holds = |name: &str| found["cgroup"] == "usable" && found["controllers"][name] == true;
    for (limit, name) in [("memory_bytes = 100_000_000", "memory"), ("processes = 50", "pids")] {
        if holds(name) {
            println!("SKIPPED: groups have the controller `{name}` here");
            continue;
        }
        let settings = format!("resources = {{ {limit}, group = 'required' }}");
        let setup = Setup::new(&fake("tool", "echo", &settings));
        let config = setup.write().display().to_string();
        let words = ["serve", "--config", &config, "--listen", "127.0.0.1:0"];
        let output = setup.run(&words, "").await;
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains("the agent `tool` requires a control group"), "{output:?}");
        let examined = setup.run(&["doctor", &config], "").await.stdout;
        assert!(examined.contains("warning  agent tool: runs "), "{examined}");
        assert!(examined.contains("; requires a control group, and from here "), "{examined}");
    }
}

#[tokio::test]
async fn who_requires_nothing_but_a_group_gets_one_without_limits() {
    if skips().await {
        return;
    }
    let service =
        Service::start(&fake("tree", "stubborn", "resources.group = 'required'\nstop_grace = 0.2"))
            .await;
    assert_eq!(service.agent("tree").await["resources"], json!({"group": true}));
    let id = service.begin("tree", "x").await;
    let group = grouped(&id, 2).await;
    service.cancel("tree", &id).await;
    until("the end of its group", async || (!group.exists()).then_some(())).await;
}
