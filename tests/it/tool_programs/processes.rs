//! Processes of tools: each way in which they end, and nothing that they leave.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{TOOL_AGENT_CONFIG, setup_with_model, shell_call, start_with_model};
use crate::harness::client::{completed_outcome, task_id, task_outcome, task_state};
use crate::harness::mock_model::{
    MockModel, final_answer_turn, prompt_with_turns, turn_with_calls,
};
use crate::harness::processes::{kill9, pids_with_env};
use crate::harness::steps::fetch_steps;
use crate::harness::{ServiceProcess, Setup, poll_until};

/// Waits for the program of a run, and returns its process id.
async fn wait_for_program_pid(run_id: &str) -> i32 {
    let entry = format!("A2A_TASK_ID={run_id}");
    poll_until("the program", async || pids_with_env(&entry).first().copied()).await
}

async fn wait_for_no_program(run_id: &str) {
    poll_until("the end of the program", async || have_programs_exited(run_id).then_some(())).await;
}

/// Returns true if no process of the run's tools is alive.
fn have_programs_exited(run_id: &str) -> bool {
    pids_with_env(&format!("A2A_TASK_ID={run_id}")).is_empty()
}

/// Returns the folders of calls, and the files in scratch slots.
fn files_of_calls(service: &ServiceProcess) -> Vec<PathBuf> {
    let runtime = service.setup.test_folder().join("run/algonius");
    let is_call_folder = |path: &PathBuf| path.to_string_lossy().ends_with("-1-1");
    let paths_in = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let slots = paths_in(&runtime.join("scratch"));
    let slot_files = slots.iter().flat_map(|slot| paths_in(&slot.join("own")));
    paths_in(&runtime).into_iter().filter(is_call_folder).chain(slot_files).collect()
}

/// Checks that neither a process nor a file of the tools of a run is left.
pub(super) fn expect_nothing_left(service: &ServiceProcess, run_id: &str) {
    assert!(have_programs_exited(run_id), "a process is left");
    assert_eq!(files_of_calls(service), Vec::<PathBuf>::new());
}

/// Script that starts a process in a session of its own, and waits.
const LONG_RUNNING_SCRIPT: &str = "trap '' TERM; echo x > left-over; \
                    setsid sh -c 'echo x > HERE/writable/ready; exec sleep 600' & sleep 600";

/// Returns the long script, and the file that it creates when its processes run.
fn long_running_script(setup: &Setup) -> (String, PathBuf) {
    let folder = setup.test_folder();
    (
        LONG_RUNNING_SCRIPT.replace("HERE", &folder.display().to_string()),
        folder.join("writable/ready"),
    )
}

async fn wait_for_complete_line(file: &Path) {
    poll_until("a text in a file", async || {
        fs::read_to_string(file).ok().filter(|text| text.ends_with('\n')).map(drop)
    })
    .await;
}

#[tokio::test]
async fn a_killed_program_ends_its_call_and_not_the_run() {
    let (_model, service) = start_with_model().await;
    let turns = [turn_with_calls(&[shell_call("exec sleep 600")]), final_answer_turn("done")];
    let run_id = service.start_task("worker", &prompt_with_turns("go", &turns)).await;
    kill9(wait_for_program_pid(&run_id).await);
    let task = service.wait_for_task_end("worker", &run_id).await;
    assert_eq!(task_outcome(&task), completed_outcome("done"));
    let steps = fetch_steps(&service, &run_id).await;
    assert_eq!(steps[1]["text"], "signal 9 ended the program");
}

#[tokio::test]
async fn a_cancelled_run_ends_its_programs() {
    let (_model, service) = start_with_model().await;
    let (script_text, ready_file) = long_running_script(&service.setup);
    let turns = [turn_with_calls(&[shell_call(&script_text)]), final_answer_turn("done")];
    let run_id = service.start_task("worker", &prompt_with_turns("go", &turns)).await;
    wait_for_complete_line(&ready_file).await;
    // Otherwise the check at the end could not fail.
    assert!(!have_programs_exited(&run_id) && !files_of_calls(&service).is_empty());
    assert_eq!(task_state(&service.cancel("worker", &run_id).await), "canceled");
    expect_nothing_left(&service, &run_id);
}

#[tokio::test]
async fn a_call_that_takes_too_long_ends_its_programs() {
    let model = MockModel::start(&[]);
    let mut setup = setup_with_model(&model);
    let config = TOOL_AGENT_CONFIG
        .replace("MODEL", &model.base_url())
        .replace("timeout = 60", "timeout = 8");
    setup.set_config_text(&config);
    let service = setup.start().await;
    let (script_text, ready_file) = long_running_script(&service.setup);
    let turns = [turn_with_calls(&[shell_call(&script_text)]), final_answer_turn("done")];
    let task = service.send("worker", &prompt_with_turns("go", &turns)).await;
    assert_eq!(task_outcome(&task), completed_outcome("done"));
    expect_nothing_left(&service, &task_id(&task));
    assert!(ready_file.exists(), "the program did not start");
    let steps = fetch_steps(&service, &task_id(&task)).await;
    let text = steps[1]["text"].as_str().unwrap();
    assert!(text.starts_with("the tool gave no result within 8 s"), "{text}");
}

/// The call may be repeated, so the stop does not wait for its program.
#[tokio::test]
async fn a_stop_ends_the_program_of_a_call_that_can_be_repeated() {
    let model = MockModel::start(&[]);
    let mut setup = setup_with_model(&model);
    let config = TOOL_AGENT_CONFIG.replace("MODEL", &model.base_url());
    setup.set_config_text(&config.replace("timeout = 60", "timeout = 600\nidempotent = true"));
    let mut service = setup.start().await;
    let (script_text, ready_file) = long_running_script(&service.setup);
    let turns = [turn_with_calls(&[shell_call(&script_text)]), final_answer_turn("done")];
    let run_id = service.start_task("worker", &prompt_with_turns("go", &turns)).await;
    wait_for_complete_line(&ready_file).await;
    service.send_sigterm();
    assert!(service.wait_for_exit().await.success());
    expect_nothing_left(&service, &run_id);
    fs::remove_file(&ready_file).unwrap();
    service.start_again().await;
    wait_for_complete_line(&ready_file).await;
    assert_eq!(task_state(&service.cancel("worker", &run_id).await), "canceled");
}

#[tokio::test]
async fn a_call_ends_and_kills_its_background_process() {
    let (_model, service) = start_with_model().await;
    let turns =
        [turn_with_calls(&[shell_call("sleep 600 & echo started")]), final_answer_turn("done")];
    let task = service.send("worker", &prompt_with_turns("go", &turns)).await;
    assert_eq!(task_outcome(&task), completed_outcome("done"));
    let steps = fetch_steps(&service, &task_id(&task)).await;
    assert_eq!(steps[1]["text"], "started\n");
    expect_nothing_left(&service, &task_id(&task));
}

/// The first call writes a line, and must not be repeated. The second one waits at its first call, and is repeated.
#[tokio::test]
async fn a_killed_service_repeats_only_calls_that_permit_it() {
    let model = MockModel::start(&[]);
    let mut setup = setup_with_model(&model);
    let wait_program_path = "HERE/wait";
    let config = TOOL_AGENT_CONFIG.replace("MODEL", &model.base_url()).replace(
        "command = \"sort\", args = [\"-r\"]",
        &format!(
            "command = \"{wait_program_path}\", working_dir = \"HERE/writable\", \
             sandbox = {{ writable = [\"HERE/writable\"] }}"
        ),
    );
    setup.set_config_text(&config);
    let setup = setup.with_executable(
        "wait",
        "#!/bin/sh\necho x >> starts\n[ -e open ] || exec sleep 600\necho sorted\n",
    );
    let mut service = setup.start().await;
    let folder = service.setup.test_folder().join("writable");
    let append_script = format!("echo x >> {}/lines; exec sleep 600", folder.display());
    let turns = [
        turn_with_calls(&[shell_call(&append_script)]),
        turn_with_calls(&[("sorted", json!({"lines": []}))]),
        final_answer_turn("done"),
    ];
    let run_id = service.start_task("worker", &prompt_with_turns("go", &turns)).await;
    for file in ["lines", "starts"] {
        wait_for_complete_line(&folder.join(file)).await;
        service.kill9().await;
        // The program of a tool ends with the service that waits for it
        wait_for_no_program(&run_id).await;
        if file == "starts" {
            fs::write(folder.join("open"), "").unwrap();
        }
        service.start_again().await;
    }
    let task = service.wait_for_task_end("worker", &run_id).await;
    assert_eq!(task_outcome(&task), completed_outcome("done"));
    let steps = fetch_steps(&service, &run_id).await;
    assert_eq!((&steps[0]["state"], &steps[1]["stepType"]), (&json!("unknown"), &json!("error")));
    assert_eq!((&steps[2]["state"], &steps[3]["text"]), (&json!("done"), &json!("sorted\n")));
    let line_count = |file: &str| fs::read_to_string(folder.join(file)).unwrap().lines().count();
    assert_eq!((line_count("lines"), line_count("starts")), (1, 2));
}
