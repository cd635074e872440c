//! Tools that run programs: real programs in their sandboxes, called by a simulated model.

mod isolation;
mod processes;
mod resources;

use std::fs;

use serde_json::{Value, json};

use crate::harness::client::id;
use crate::harness::mock_model::{MockModel, calls, directed, final_answer};
use crate::harness::steps::{ends_of_calls, error, observation, steps};
use crate::harness::{Service, Setup};

/// Tools, and an agent with them. `MODEL` is the address of the model.
const AGENTS: &str = r#"
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
const KEY: &str = "tool-key-1234567890-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ-\
                   98765432101234567890-zyxwvutsrqponmlkjihgfedcba-end-of-tool-key";

fn setup(model: &MockModel) -> Setup {
    let setup = Setup::new(&AGENTS.replace("MODEL", &model.base_url())).env("TOOL_KEY", KEY);
    fs::create_dir(setup.test_folder().join("writable")).unwrap();
    setup
}

async fn start() -> (MockModel, Service) {
    let model = MockModel::start(&[]);
    let service = setup(&model).start().await;
    (model, service)
}

fn script(text: &str) -> (&'static str, Value) {
    ("shell", json!({ "script": text }))
}

#[tokio::test]
async fn a_tool_passes_arguments_to_its_program() {
    let (_model, service) = start().await;
    let with_word = json!({ "script": "echo $# $*; cat", "word": "a b", "data": { "n": [1, 2] } });
    let list = [
        script("echo $# $*; cat"),
        ("shell", with_word),
        ("sorted", json!({ "lines": ["x"] })),
        ("echo", json!({ "text": "it's {{ word }} $HOME" })),
        script("printf 'a\\nb'"),
        script("true"),
    ];
    let expected = [
        observation("1 last\n"),
        observation("2 --word=a b last\n{\"n\":[1,2]}"),
        observation("{\"lines\":[\"x\"]}\n"),
        observation("it's {{ word }} $HOME\n"),
        observation("a\nb"),
        observation(""),
    ];
    assert_eq!(ends_of_calls(&service, "worker", &list).await, expected);
}

#[tokio::test]
async fn a_call_has_an_empty_folder_and_the_ids_of_its_run() {
    let (_model, service) = start().await;
    let look = "ls -A; pwd > here; cat here; touch $TMPDIR/x && ls -A $TMPDIR; \
                echo $ALGONIUS_AGENT_ID $A2A_TASK_ID $ALGONIUS_CALL_ID";
    let turns = [calls(&[script(look), script(look)]), final_answer("done")];
    let task = service.send("worker", &directed("go", &turns)).await;
    let steps = steps(&service, &id(&task)).await;
    for step in &steps[2..4] {
        let text = step["text"].as_str().unwrap();
        let lines: Vec<_> = text.lines().collect();
        let [temporary, folder, file, ids] = lines[..] else { panic!("{step}") };
        assert_eq!((temporary, file), (".tmp", "x"), "{step}");
        let task = id(&task);
        assert_eq!(ids, format!("worker {task} {task}-{}", step["call"]));
        let left = fs::read_dir(folder).map(Iterator::count).unwrap_or_default();
        assert_eq!(left, 0, "{folder} has the files of an earlier call");
    }
}

#[tokio::test]
async fn a_value_of_the_model_is_no_option() {
    let (_model, service) = start().await;
    let list = [
        ("options", json!({ "text": "-x", "max": 1 })),
        ("options", json!({ "text": "x-", "is_loud": true })),
        ("options", json!({ "text": "x", "is_loud": false })),
        // Without a value, `--max` would take `--`.
        ("options", json!({ "text": "-x" })),
        ("options", json!({ "text": "x", "max": -1 })),
        ("echo", json!({ "text": "-n" })),
    ];
    let refusal = |value: &str| {
        error(format!("`{value}` starts with `-`, so that the program would read it as an option"))
    };
    let expected = [
        observation("--max 1 -- -x\n"),
        observation("--loud --max -- x-\n"),
        observation("--max -- x\n"),
        refusal("-x"),
        refusal("-1"),
        refusal("-n"),
    ];
    assert_eq!(ends_of_calls(&service, "worker", &list).await, expected);
}

#[tokio::test]
async fn a_failed_program_is_an_error_that_the_model_reads() {
    let (model, service) = start().await;
    let list = [
        script("echo out; echo why >&2; exit 3"),
        script("echo why; exit 4"),
        script("kill -9 $$"),
        ("absent", json!({})),
        ("echo", json!({ "text": "a\u{0}b" })),
        script("yes"),
        script("yes why | head -c 100000 >&2; exit 1"),
        script("echo after"),
    ];
    let mut ends = ends_of_calls(&service, "worker", &list).await;
    let (kind, long) = ends.remove(6);
    let start = "the program ended with exit code 1: ";
    assert!(kind == "error" && long.starts_with(start) && long.ends_with("why"), "{long}");
    assert!((2000..2100).contains(&long.len()), "{} bytes", long.len());
    let expected = [
        error("the program ended with exit code 3: why"),
        error("the program ended with exit code 4: why"),
        error("signal 9 ended the program"),
        error("the program `no-such-program` of the tool is not installed"),
        error(
            "argument 1 of the program: the template cannot be filled in: no argument of a program \
             contains a zero byte",
        ),
        error("the standard output exceeded 1 MiB, and the service killed the program"),
        observation("after\n"),
    ];
    assert_eq!(ends, expected);
    let requests = Value::from(model.requests().await).to_string();
    assert!(requests.contains("the program ended with exit code 3: why"), "{requests}");
}

#[tokio::test]
async fn the_model_receives_no_secret_of_a_tool() {
    let (model, service) = start().await;
    let list = [
        script("echo key $TOOL_KEY"),
        script("echo key $TOOL_KEY >&2; exit 1"),
        script("test $TOOL_KEY && echo set"),
        // The kept end of this output starts in the middle of a key.
        script("for i in $(seq 200); do printf %s $TOOL_KEY; done >&2; exit 1"),
    ];
    let ends = ends_of_calls(&service, "worker", &list).await;
    assert_eq!((16 << 10) % KEY.len(), 81, "the part of the key at the cut");
    assert_eq!(ends[3], error("the program ended with exit code 1"));
    let (requests, ends) = (Value::from(model.requests().await).to_string(), format!("{ends:?}"));
    assert!(ends.contains("key ") && ends.contains("set"), "{ends}");
    let (_, end_of_key) = KEY.split_at(KEY.len() - 16);
    assert!(!ends.contains(end_of_key) && !requests.contains(end_of_key), "{ends} {requests}");
    let ledger = service.setup.ledger_bytes();
    assert!(!ledger.windows(KEY.len()).any(|bytes| bytes == KEY.as_bytes()));
}

#[tokio::test]
async fn a_reload_replaces_the_program_of_a_tool() {
    let (model, service) = start().await;
    let unchanged = service.command(&["reload"], "").await;
    assert_eq!(unchanged.exit_code, Some(0), "{unchanged:?}");
    assert!(unchanged.stdout.contains("nothing has changed"), "{unchanged:?}");
    let text = service.setup.write_config();
    let changed = fs::read_to_string(text).unwrap().replace("\"last\"", "\"changed\"");
    fs::write(text, changed).unwrap();
    let reloaded = service.command(&["reload"], "").await;
    assert!(reloaded.stdout.contains("worker"), "{reloaded:?}");
    let ends = ends_of_calls(&service, "worker", &[script("echo $1")]).await;
    assert_eq!(ends, [observation("changed\n")]);
    drop(model);
}
