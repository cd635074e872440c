//! Tools that run programs: real programs in their sandboxes, called by a simulated model.

mod isolation;
mod processes;
mod resources;

use std::fs;

use serde_json::{Value, json};

use crate::harness::client::task_id;
use crate::harness::mock_model::{
    MockModel, final_answer_turn, prompt_with_turns, turn_with_calls,
};
use crate::harness::steps::{error_step, fetch_steps, observation_step, run_tool_calls};
use crate::harness::{ServiceProcess, Setup};

/// Tools, and an agent with them. `MODEL` is the address of the model.
const TOOL_AGENT_CONFIG: &str = r#"
[models.local]
base_url = "MODEL"
requests_per_minute = 100000
[tools.shell]
source = "handler"
description = "Runs a script."
timeout = 60
inputs.script = { type = "string" }
inputs.word = { type = "string", optional = true }
inputs.data = { type = "any", optional = true }
[tools.shell.handler]
kind = "command"
command = "sh"
args = ["-c", "{{ script }}", "sh", "--word={{ word }}", "last"]
stdin = "{{ data }}"
env_from = { TOOL_KEY = "TOOL_KEY" }
sandbox = { writable = ["HERE/writable"] }
[tools.sorted]
source = "handler"
description = "Sorts lines."
idempotent = true
inputs.lines = { type = "array" }
handler = { kind = "command", command = "sort", args = ["-r"], stdin = "{{ arguments }}" }
[tools.echo]
source = "handler"
description = "Repeats a text."
inputs.text = { type = "string" }
handler = { kind = "command", command = "echo", args = ["{{ text }}"] }
[tools.options]
source = "handler"
description = "Repeats its arguments."
inputs.max = { type = "integer", optional = true }
inputs.is_loud = { type = "boolean", optional = true }
inputs.text = { type = "string" }
[tools.options.handler]
kind = "command"
command = "echo"
args = ["{% if is_loud %}--loud{% endif %}", "--max", "{{ max }}", "--", "{{ text }}"]
[tools.absent]
source = "handler"
description = "Is not installed."
handler = { kind = "command", command = "no-such-program" }
[agents.worker]
kind = "cognitive"
layer = "perceptual"
model_id = "local/mock-1"
max_steps = 20
tools = ["shell", "sorted", "echo", "options", "absent"]
"#;

/// Secret of the tool: 137 bytes.
const TOOL_KEY: &str = "tool-key-1234567890-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ-\
                   98765432101234567890-zyxwvutsrqponmlkjihgfedcba-end-of-tool-key";

fn setup_with_model(model: &MockModel) -> Setup {
    let setup = Setup::new(&TOOL_AGENT_CONFIG.replace("MODEL", &model.base_url()))
        .env("TOOL_KEY", TOOL_KEY);
    fs::create_dir(setup.test_folder().join("writable")).unwrap();
    setup
}

async fn start_with_model() -> (MockModel, ServiceProcess) {
    let model = MockModel::start(&[]);
    let service = setup_with_model(&model).start().await;
    (model, service)
}

fn shell_call(script: &str) -> (&'static str, Value) {
    ("shell", json!({ "script": script }))
}

#[tokio::test]
async fn a_tool_passes_arguments_to_its_program() {
    let (_model, service) = start_with_model().await;
    let arguments_with_word =
        json!({ "script": "echo $# $*; cat", "word": "a b", "data": { "n": [1, 2] } });
    let tool_calls = [
        shell_call("echo $# $*; cat"),
        ("shell", arguments_with_word),
        ("sorted", json!({ "lines": ["x"] })),
        ("echo", json!({ "text": "it's {{ word }} $HOME" })),
        shell_call("printf 'a\\nb'"),
        shell_call("true"),
    ];
    let expected_results = [
        observation_step("1 last\n"),
        observation_step("2 --word=a b last\n{\"n\":[1,2]}"),
        observation_step("{\"lines\":[\"x\"]}\n"),
        observation_step("it's {{ word }} $HOME\n"),
        observation_step("a\nb"),
        observation_step(""),
    ];
    assert_eq!(run_tool_calls(&service, "worker", &tool_calls).await, expected_results);
}

#[tokio::test]
async fn a_call_has_an_empty_folder_and_the_ids_of_its_run() {
    let (_model, service) = start_with_model().await;
    let inspect_script = "ls -A; pwd > here; cat here; touch $TMPDIR/x && ls -A $TMPDIR; \
                echo $ALGONIUS_AGENT_ID $A2A_TASK_ID $ALGONIUS_CALL_ID";
    let turns = [
        turn_with_calls(&[shell_call(inspect_script), shell_call(inspect_script)]),
        final_answer_turn("done"),
    ];
    let task = service.send("worker", &prompt_with_turns("go", &turns)).await;
    let steps = fetch_steps(&service, &task_id(&task)).await;
    for step in &steps[2..4] {
        let text = step["text"].as_str().unwrap();
        let lines: Vec<_> = text.lines().collect();
        let [temporary, folder, file, ids] = lines[..] else { panic!("{step}") };
        assert_eq!((temporary, file), (".tmp", "x"), "{step}");
        let task = task_id(&task);
        assert_eq!(ids, format!("worker {task} {task}-{}", step["call"]));
        let remaining_file_count = fs::read_dir(folder).map(Iterator::count).unwrap_or_default();
        assert_eq!(remaining_file_count, 0, "{folder} has the files of an earlier call");
    }
}

#[tokio::test]
async fn a_value_of_the_model_is_no_option() {
    let (_model, service) = start_with_model().await;
    let tool_calls = [
        ("options", json!({ "text": "-x", "max": 1 })),
        ("options", json!({ "text": "x-", "is_loud": true })),
        ("options", json!({ "text": "x", "is_loud": false })),
        // Without a value, `--max` would take `--`.
        ("options", json!({ "text": "-x" })),
        ("options", json!({ "text": "x", "max": -1 })),
        ("echo", json!({ "text": "-n" })),
    ];
    let refusal = |value: &str| {
        error_step(format!(
            "`{value}` starts with `-`, so that the program would read it as an option"
        ))
    };
    let expected_results = [
        observation_step("--max 1 -- -x\n"),
        observation_step("--loud --max -- x-\n"),
        observation_step("--max -- x\n"),
        refusal("-x"),
        refusal("-1"),
        refusal("-n"),
    ];
    assert_eq!(run_tool_calls(&service, "worker", &tool_calls).await, expected_results);
}

#[tokio::test]
async fn a_failed_program_is_an_error_that_the_model_reads() {
    let (model, service) = start_with_model().await;
    let tool_calls = [
        shell_call("echo out; echo why >&2; exit 3"),
        shell_call("echo why; exit 4"),
        shell_call("kill -9 $$"),
        ("absent", json!({})),
        ("echo", json!({ "text": "a\u{0}b" })),
        shell_call("yes"),
        shell_call("yes why | head -c 100000 >&2; exit 1"),
        shell_call("echo after"),
    ];
    let mut results = run_tool_calls(&service, "worker", &tool_calls).await;
    let (kind, long_error) = results.remove(6);
    let error_prefix = "the program ended with exit code 1: ";
    assert!(
        kind == "error" && long_error.starts_with(error_prefix) && long_error.ends_with("why"),
        "{long_error}"
    );
    assert!((2000..2100).contains(&long_error.len()), "{} bytes", long_error.len());
    let expected_results = [
        error_step("the program ended with exit code 3: why"),
        error_step("the program ended with exit code 4: why"),
        error_step("signal 9 ended the program"),
        error_step("the program `no-such-program` of the tool is not installed"),
        error_step(
            "argument 1 of the program: the template cannot be filled in: no argument of a program \
             contains a zero byte",
        ),
        error_step("the standard output exceeded 1 MiB, and the service killed the program"),
        observation_step("after\n"),
    ];
    assert_eq!(results, expected_results);
    let requests = Value::from(model.fetch_requests().await).to_string();
    assert!(requests.contains("the program ended with exit code 3: why"), "{requests}");
}

#[tokio::test]
async fn the_model_receives_no_secret_of_a_tool() {
    let (model, service) = start_with_model().await;
    let tool_calls = [
        shell_call("echo key $TOOL_KEY"),
        shell_call("echo key $TOOL_KEY >&2; exit 1"),
        shell_call("test $TOOL_KEY && echo set"),
        // The kept end of this output starts in the middle of a key.
        shell_call("for i in $(seq 200); do printf %s $TOOL_KEY; done >&2; exit 1"),
    ];
    let results = run_tool_calls(&service, "worker", &tool_calls).await;
    assert_eq!((16 << 10) % TOOL_KEY.len(), 81, "the part of the key at the cut");
    assert_eq!(results[3], error_step("the program ended with exit code 1"));
    let (requests, results_text) =
        (Value::from(model.fetch_requests().await).to_string(), format!("{results:?}"));
    assert!(results_text.contains("key ") && results_text.contains("set"), "{results_text}");
    let (_, end_of_key) = TOOL_KEY.split_at(TOOL_KEY.len() - 16);
    assert!(
        !results_text.contains(end_of_key) && !requests.contains(end_of_key),
        "{results_text} {requests}"
    );
    let ledger = service.setup.read_ledger_files();
    assert!(!ledger.windows(TOOL_KEY.len()).any(|bytes| bytes == TOOL_KEY.as_bytes()));
}

#[tokio::test]
async fn a_reload_replaces_the_program_of_a_tool() {
    let (model, service) = start_with_model().await;
    let unchanged_output = service.run_command(&["reload"], "").await;
    assert_eq!(unchanged_output.exit_code, Some(0), "{unchanged_output:?}");
    assert!(unchanged_output.stdout.contains("nothing has changed"), "{unchanged_output:?}");
    let config_path = service.setup.write_config();
    let changed_config =
        fs::read_to_string(config_path).unwrap().replace("\"last\"", "\"changed\"");
    fs::write(config_path, changed_config).unwrap();
    let reload_output = service.run_command(&["reload"], "").await;
    assert!(reload_output.stdout.contains("worker"), "{reload_output:?}");
    let results = run_tool_calls(&service, "worker", &[shell_call("echo $1")]).await;
    assert_eq!(results, [observation_step("changed\n")]);
    drop(model);
}
