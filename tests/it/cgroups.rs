//! Control groups of a real kernel, as far as the machine lets a service have them.

use std::fs;
use std::path::PathBuf;

use algonius_skips::skip;
use serde_json::{Value, json};

use crate::harness::client::{failed_outcome, task_outcome, task_state};
use crate::harness::processes::pids_with_env;
use crate::harness::{ServiceProcess, Setup, fake_agent_config, poll_until};

/// What the service would find here.
pub(crate) async fn query_host_capabilities() -> Value {
    let setup = Setup::new(&fake_agent_config("echo", "echo", ""));
    let config = setup.write_config().display().to_string();
    let output = setup.run_command(&["doctor", &config, "--json"], "").await;
    serde_json::from_str::<Value>(&output.stdout).unwrap()["rungs"].clone()
}

/// Returns whether this machine has no control groups; records the skip then.
pub(crate) async fn skip_without_control_groups() -> bool {
    let capabilities = query_host_capabilities().await;
    if capabilities["cgroup"] != "usable" {
        skip(&format!("no control group of version 2 can be made here: {capabilities}"));
    }
    capabilities["cgroup"] != "usable"
}

/// The processes of an execution.
fn execution_pids(id: &str) -> Vec<i32> {
    pids_with_env(&format!("ALGONIUS_EXECUTION_ID={id}"))
}

/// The group of an execution, from one of its processes.
fn control_group(id: &str, pid: i32) -> Option<PathBuf> {
    let cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    let is_own = path.contains(&id.replace('-', ""));
    is_own.then(|| control_group_mount().join(path.trim_start_matches('/')))
}

/// The folder in which all control groups of version 2 are.
pub(crate) fn control_group_mount() -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 ")).unwrap();
    PathBuf::from(mount.split(' ').nth(4).unwrap())
}

/// All of an execution, in its group.
async fn wait_for_group(id: &str, process_count: usize) -> PathBuf {
    poll_until("all in one group", async || {
        let groups: Vec<_> =
            execution_pids(id).into_iter().map(|pid| control_group(id, pid)).collect();
        let group = groups.first().cloned().flatten();
        (groups.len() == process_count && groups.iter().all(|member| *member == group))
            .then_some(group)
            .flatten()
    })
    .await
}

#[tokio::test]
async fn an_agent_with_limits_has_one_group_per_attempt() {
    if skip_without_control_groups().await {
        return;
    }
    let agent = fake_agent_config("tree", "stubborn", "resources.processes = 50\nstop_grace = 0.2");
    let mut service = ServiceProcess::start(&agent).await;
    let resources = service.fetch_agent_status("tree").await["resources"].clone();
    assert_eq!(
        (&resources["controlGroup"], &resources["processes"]["limit"]),
        (&json!(true), &json!(50))
    );
    let status = service.run_command(&["status"], "").await.stdout;
    assert!(status.contains("at most 50 processes and threads"), "{status}");
    let id = service.start_task("tree", "x").await;
    let group = wait_for_group(&id, 2).await;
    service.kill9().await;
    service.start_again().await;
    // If the system provides control groups, each attempt of an agent with limits has its own
    // group, which survives a restart and disappears with the attempt
    assert_eq!(wait_for_group(&id, 2).await, group, "it is left as it was");
    assert_eq!(task_state(&service.cancel("tree", &id).await), "canceled");
    poll_until("the end of all", async || execution_pids(&id).is_empty().then_some(())).await;
    poll_until("the end of its group", async || (!group.exists()).then_some(())).await;
}

#[tokio::test]
async fn a_fork_bomb_dies_with_its_group() {
    if skip_without_control_groups().await {
        return;
    }
    // Beside what sleeps, each process starts another and ends, so that nobody can keep a list of
    // them. They end by themselves after a while: this is a test.
    let script = "f() { [ $1 = 0 ] || f $(($1 - 1)) & }
        for i in 1 2 3 4 5 6 7 8; do f 2000; sleep 600 & done; wait";
    let bomb = format!(
        "[agents.bomb]\ncommand = 'sh'\nargs = ['-c', '''{script}''']\nresources.processes = 6\n"
    );
    let service =
        ServiceProcess::start(&format!("{bomb}{}", fake_agent_config("echo", "echo", ""))).await;
    let id = service.start_task("bomb", "x").await;
    let task = service.wait_for_task_end("bomb", &id).await;
    assert_eq!(task_outcome(&task), failed_outcome("resources-exceeded"));
    // A program that forks faster than the service polls dies with its group
    poll_until("the end of all", async || execution_pids(&id).is_empty().then_some(())).await;
    assert_eq!(task_state(&service.send("echo", "hi").await), "completed");
}

#[tokio::test]
async fn a_required_but_missing_group_stops_the_start() {
    let capabilities = query_host_capabilities().await;
    let has_controller = |name: &str| {
        capabilities["cgroup"] == "usable" && capabilities["controllers"][name] == true
    };
    for (limit, name) in [("memory_bytes = 100_000_000", "memory"), ("processes = 50", "pids")] {
        if has_controller(name) {
            skip(&format!(
                "control groups have the controller `{name}` here, so requiring it does not fail"
            ));
            continue;
        }
        let settings = format!("resources = {{ {limit}, group = 'required' }}");
        let setup = Setup::new(&fake_agent_config("tool", "echo", &settings));
        let config = setup.write_config().display().to_string();
        let args = ["serve", "--config", &config, "--listen", "127.0.0.1:0"];
        let output = setup.run_command(&args, "").await;
        // A service that does not get the group that an agent requires does not start
        assert_eq!(output.exit_code, Some(1), "{output:?}");
        assert!(output.stderr.contains("the agent `tool` requires a control group"), "{output:?}");
        let report = setup.run_command(&["doctor", &config], "").await.stdout;
        assert!(report.contains("warning  agent tool: runs "), "{report}");
        assert!(report.contains("; requires a control group, and from here "), "{report}");
    }
}

#[tokio::test]
async fn a_required_group_may_have_no_limits() {
    if skip_without_control_groups().await {
        return;
    }
    let service = ServiceProcess::start(&fake_agent_config(
        "tree",
        "stubborn",
        "resources.group = 'required'\nstop_grace = 0.2",
    ))
    .await;
    assert_eq!(
        service.fetch_agent_status("tree").await["resources"],
        json!({"controlGroup": true})
    );
    let id = service.start_task("tree", "x").await;
    let group = wait_for_group(&id, 2).await;
    service.cancel("tree", &id).await;
    poll_until("the end of its group", async || (!group.exists()).then_some(())).await;
}
