//! Resource limits of tools: the call fails, and the run continues.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::processes::expect_nothing_left;
use super::{TOOL_AGENT_CONFIG, setup_with_model, shell_call};
use crate::cgroups::{control_group_mount, query_host_capabilities, skip_without_control_groups};
use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::mock_model::{
    MockModel, final_answer_turn, prompt_with_turns, turn_with_calls,
};
use crate::harness::steps::fetch_steps;
use crate::harness::{ServiceProcess, Setup, poll_until};

/// Limits of the tool; a harmless call needs less.
const MAX_MEMORY_BYTES: u64 = 64 << 20;
const MAX_PROCESSES: u64 = 8;

const MANY_PROCESSES_SCRIPT: &str =
    "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 600 & done; wait";
const MUCH_MEMORY_SCRIPT: &str = "exec perl -e '$x = \"x\" x (200 << 20); sleep 600'";

/// Returns a setup in which the tool `shell` has both limits.
fn setup_with_tool_limits(model: &MockModel, group_mode: &str) -> Setup {
    let mut setup = setup_with_model(model);
    let sandbox = "sandbox = { writable = [\"HERE/writable\"] }\n";
    let limits = format!(
        "resources = {{ memory_bytes = {MAX_MEMORY_BYTES}, processes = {MAX_PROCESSES}, group = '{group_mode}' }}\n"
    );
    let config = TOOL_AGENT_CONFIG.replace("MODEL", &model.base_url());
    setup.set_config_text(&config.replace(sandbox, &format!("{sandbox}{limits}")));
    setup
}

/// Runs a script, and then a harmless one in the same run. Returns the error of the first.
async fn run_failing_script(service: &ServiceProcess, script: &str) -> String {
    let turns = [
        turn_with_calls(&[shell_call(script)]),
        turn_with_calls(&[shell_call("echo fine")]),
        final_answer_turn("done"),
    ];
    let task = service.send("worker", &prompt_with_turns("go", &turns)).await;
    assert_eq!(task_outcome(&task), completed_outcome("done"), "{task}");
    let steps = fetch_steps(service, &task_id(&task)).await;
    assert_eq!((&steps[1]["stepType"], &steps[3]["text"]), (&json!("error"), &json!("fine\n")));
    expect_nothing_left(service, &task_id(&task));
    steps[1]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_tool_beyond_its_limits_is_killed_and_the_run_continues() {
    let model = MockModel::start(&[]);
    let service = setup_with_tool_limits(&model, "off").start().await;
    // A program of a tool that exceeds its resource limits fails its call and leaves no process, and the run continues
    let failure = run_failing_script(&service, MANY_PROCESSES_SCRIPT).await;
    let expected_end =
        format!("`resources.processes` allows {MAX_PROCESSES}, and the service killed it");
    assert!(
        failure.starts_with("the program had ") && failure.ends_with(&expected_end),
        "{failure}"
    );
    let failure = run_failing_script(&service, MUCH_MEMORY_SCRIPT).await;
    let expected_end =
        format!("`resources.memory_bytes` allows {MAX_MEMORY_BYTES}, and the service killed it");
    assert!(
        failure.starts_with("the program took ") && failure.ends_with(&expected_end),
        "{failure}"
    );
}

/// Returns the control group in the result of a call that prints it.
fn parse_control_group(text: &Value) -> PathBuf {
    let path = text.as_str().unwrap().lines().find_map(|line| line.strip_prefix("0::")).unwrap();
    control_group_mount().join(path.trim_start_matches('/'))
}

#[tokio::test]
async fn each_call_of_a_tool_with_limits_has_a_group() {
    if skip_without_control_groups().await {
        return;
    }
    let model = MockModel::start(&[]);
    let service = setup_with_tool_limits(&model, "auto").start().await;
    let controllers = query_host_capabilities().await["controllers"].clone();
    // A program of a tool that exceeds its resource limits fails its call and leaves no process, and the run continues
    let failure = run_failing_script(&service, MANY_PROCESSES_SCRIPT).await;
    // Without the controller of processes the service measures, and the group only ends them.
    let expected_text = match controllers["pids"] == true {
        true => format!("more processes and threads than the {MAX_PROCESSES} of `resources."),
        false => format!("`resources.processes` allows {MAX_PROCESSES}, and the service killed it"),
    };
    assert!(failure.contains(&expected_text), "{failure}");
    let failure = run_failing_script(&service, MUCH_MEMORY_SCRIPT).await;
    let expected_text = match controllers["memory"] == true {
        true => {
            format!("more memory than the {MAX_MEMORY_BYTES} bytes of `resources.memory_bytes`")
        }
        false => {
            format!("`resources.memory_bytes` allows {MAX_MEMORY_BYTES}, and the service killed it")
        }
    };
    assert!(failure.contains(&expected_text), "{failure}");
    let print_group_script = "cat /proc/self/cgroup";
    let turns = [
        turn_with_calls(&[shell_call(print_group_script)]),
        turn_with_calls(&[shell_call(print_group_script)]),
        final_answer_turn("done"),
    ];
    let task = service.send("worker", &prompt_with_turns("go", &turns)).await;
    let steps = fetch_steps(&service, &task_id(&task)).await;
    let groups = [1, 3].map(|step: usize| parse_control_group(&steps[step]["text"]));
    assert_ne!(groups[0], groups[1]);
    for group in groups {
        assert!(group.parent().unwrap().is_dir(), "{group:?}");
        poll_until("the end of the group", async || (!group.exists()).then_some(())).await;
    }
}

#[tokio::test]
async fn a_tool_without_its_required_group_stops_the_start() {
    let host = query_host_capabilities().await;
    let has_controller = |controller: &str| host["controllers"][controller] == true;
    if host["cgroup"] == "usable" && has_controller("memory") && has_controller("pids") {
        algonius_skips::skip("control groups enforce both limits here, so requiring them succeeds");
        return;
    }
    let model = MockModel::start(&[]);
    let setup = setup_with_tool_limits(&model, "required");
    let config = setup.write_config().display().to_string();
    let report = setup.run_command(&["doctor", &config], "").await.stdout;
    let line = report.lines().find(|line| line.contains("tool shell: ")).unwrap();
    assert!(line.starts_with("warning") && line.contains("; requires a control group"), "{line}");
    let optional_setup = setup_with_tool_limits(&model, "auto");
    let config = optional_setup.write_config().display().to_string();
    let report = optional_setup.run_command(&["doctor", &config], "").await.stdout;
    let line = report.lines().find(|line| line.contains("tool shell: ")).unwrap();
    let expected_limit = format!("at most {MAX_PROCESSES} processes and threads (held by the ");
    assert!(line.starts_with("good") && line.contains(&expected_limit), "{line}");
    let Err((_, output)) = setup.try_start().await else { panic!("it started") };
    let refusal = "the tool `shell` of the agent `worker` requires a control group, and ";
    assert!(output.stderr.contains(refusal), "{output:?}");
}
