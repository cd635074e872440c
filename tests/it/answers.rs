//! What goes well: input reaches the program, and what it makes comes back.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::client::{
    completed_outcome, failed_outcome, task_id, task_outcome, task_state,
};
use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, gated_agent_config, message_params, poll_until,
};

const PARAMETERS_EXTENSION_URI: &str = "https://algonius.dev/a2a/ext/parameters/v1";

fn message_with_parameters(text: &str, parameters: &Value) -> Value {
    let mut params = message_params(text);
    params["message"]["metadata"] = json!({PARAMETERS_EXTENSION_URI: parameters});
    params
}

#[tokio::test]
async fn the_shipped_agents_answer_with_the_shipped_configuration() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/supervisor.toml");
    let service = Setup::from_config_file(&shipped).start().await;
    for (agent, text, answer) in [
        ("echo", "hello\nworld", "hello\nworld"),
        ("sort", "b\nc\na\n", "a\nb\nc\n"),
        ("greet", "Ann", "Hello, Ann!\n"),
        ("word-count", "three small words", "3\n"),
    ] {
        assert_eq!(
            task_outcome(&service.send(agent, text).await),
            completed_outcome(answer),
            "{agent}"
        );
    }
    let params = message_with_parameters("Ann", &json!({"greeting": "Good day"}));
    let task = service.expect_result("greet", "message/send", &params).await;
    assert_eq!(task_outcome(&task), completed_outcome("Good day, Ann!\n"));
}

#[tokio::test]
async fn a_task_that_was_not_waited_for_is_polled_until_it_completes() {
    let service = ServiceProcess::start(&gated_agent_config("one", "")).await;
    let task = service.submit("one", message_params("ann")).await;
    assert!(["submitted", "working"].contains(&task_state(&task).as_str()), "{task}");
    assert_eq!((&task["kind"], &task["artifacts"]), (&json!("task"), &json!([])));
    service.setup.wait_for_file_text("log", "start ann\n").await;
    poll_until("work", async || {
        (task_state(&service.fetch_task("one", &task_id(&task)).await) == "working").then_some(())
    })
    .await;
    service.setup.open_gate("go");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &task_id(&task)).await),
        completed_outcome("ann\n")
    );
}

#[tokio::test]
async fn a_waiting_caller_gets_the_output_and_the_request() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let task = service.send("echo", "grüße\tan alle\n").await;
    assert_eq!(task_outcome(&task), completed_outcome("grüße\tan alle\n"));
    assert_eq!(task["history"][0]["parts"][0]["text"], "grüße\tan alle\n");
    assert_eq!(task["history"][0]["role"], "user");
    let without_history = json!({"id": task["id"], "historyLength": 0});
    assert_eq!(
        service.expect_result("echo", "tasks/get", &without_history).await["history"],
        json!([])
    );
}

#[tokio::test]
async fn only_the_named_agent_runs_and_agents_run_in_parallel() {
    let service = ServiceProcess::start(
        &[gated_agent_config("one", ""), gated_agent_config("two", "")].concat(),
    )
    .await;
    let first = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let second = service.start_task("two", "bob").await;
    service.setup.wait_for_file_text("log", "start ann\nstart bob\n").await;
    service.setup.open_gate("go");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &first).await),
        completed_outcome("ann\n")
    );
    assert_eq!(
        task_outcome(&service.wait_for_task_end("two", &second).await),
        completed_outcome("bob\n")
    );
    let list = service.get("/api/v1/executions?agent=two").await.json();
    assert_eq!(list["executions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn half_a_megabyte_goes_in_and_three_come_out() {
    let agents =
        [fake_agent_config("echo", "echo", ""), fake_agent_config("flood", "flood 3000000", "")]
            .concat();
    let service = ServiceProcess::start(&agents).await;
    let text: String = (0..).map(|line| format!("line {line} of many\n")).take(30_000).collect();
    assert!(text.len() > 500_000);
    assert_eq!(task_outcome(&service.send("echo", &text).await), completed_outcome(&text));
    let (state, answer) = task_outcome(&service.send("flood", "").await);
    assert_eq!((state.as_str(), answer.len()), ("completed", 3_000_000));
    assert!(answer.bytes().all(|byte| byte == b'x' || byte == b'\n'));
}

#[tokio::test]
async fn an_input_argument_is_one_argument_for_any_text() {
    let settings = "input = 'args'";
    let service =
        ServiceProcess::start(&fake_agent_config("args", "args {{input}} --", settings)).await;
    let text = "a \"b\" $HOME; rm -rf ~ 'c'\n{{ input }}";
    let answer = format!("{}\n\"--\"\n", json!(text));
    assert_eq!(task_outcome(&service.send("args", text).await), completed_outcome(&answer));
    assert_eq!(
        task_outcome(&service.send("args", "nul\0byte").await),
        failed_outcome("input-rejected")
    );
}

#[tokio::test]
async fn input_and_answer_files_are_removed_afterwards() {
    let agent = r#"
[agents.file]
command = "sh"
args = ["-c", 'printf "%s|%s|" "$1" "$2" > HERE/names; cp "$1" "$2"', "copy", "{{ input_file }}", "{{ output_file }}"]
input = "file"
output = "file"
sandbox.writable = ['HERE']
input_file = "{{ execution_id }}.md"
output_file = "answer to {{ agent_id }}.md"
"#;
    let service = ServiceProcess::start(agent).await;
    let task = service.send("file", "some text").await;
    assert_eq!(task_outcome(&task), completed_outcome("some text"));
    let names = service.setup.read_file("names");
    let (input, output) = names.split_once('|').unwrap();
    let output = output.trim_end_matches('|');
    assert!(input.ends_with(&format!("/{}.md", task_id(&task))), "{names}");
    assert!(output.ends_with("/answer to file.md"), "{names}");
    poll_until("an empty place", async || (!Path::new(input).exists()).then_some(())).await;
    assert!(!Path::new(output).exists());
}

#[tokio::test]
async fn a_program_gets_its_folder_and_its_variables_only() {
    let working_dir = "working_dir = 'HERE/home'\n";
    let env = "[agents.env.env]\nCOLOUR = 'blue ${SHADE}'\n";
    let agents =
        [fake_agent_config("cwd", "cwd", working_dir), fake_agent_config("env", "env", env)]
            .concat();
    let setup = Setup::new(&agents).env("SHADE", "dark").env("PRIVATE", "of the service");
    let service = setup.start().await;
    let home = service.setup.test_folder().join("home").canonicalize().unwrap();
    let answer = format!("{}\n", home.display());
    assert_eq!(task_outcome(&service.send("cwd", "").await), completed_outcome(&answer));
    let task = service.send("env", "").await;
    let (_, output) = task_outcome(&task);
    for line in ["COLOUR=blue dark", "ALGONIUS_AGENT_ID=env", "ALGONIUS_ATTEMPT=1"] {
        assert!(output.lines().any(|entry| entry == line), "{line} is not in {output}");
    }
    assert!(output.contains(&format!("ALGONIUS_EXECUTION_ID={}\n", task_id(&task))));
    for name in ["PRIVATE", "SHADE", "XDG_STATE_HOME"] {
        assert!(!output.contains(name), "{name} is in {output}");
    }
}

#[tokio::test]
async fn events_of_the_program_form_the_answer() {
    let output = "output = 'events'";
    let service =
        ServiceProcess::start(&fake_agent_config("events", "events one unknown two", output)).await;
    assert_eq!(task_outcome(&service.send("events", "").await), completed_outcome("onetwo"));
}

#[tokio::test]
async fn text_parts_are_joined_and_files_are_refused() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let mut params = message_params("first");
    let parts = json!([{"kind": "text", "text": "a"}, {"kind": "data", "data": {"b": 1}}]);
    params["message"]["parts"] = parts;
    let task = service.expect_result("echo", "message/send", &params).await;
    assert_eq!(task_outcome(&task), completed_outcome("a\n{\"b\":1}"));
    let mut params = message_params("second");
    params["message"]["parts"] = json!([{"kind": "file", "file": {"bytes": "aGk="}}]);
    let refused = service.expect_refusal("echo", "message/send", params).await;
    assert_eq!(refused, (-32005, "content-type-unsupported".to_owned()));
}

#[tokio::test]
async fn the_record_of_an_execution_is_complete() {
    let agent = gated_agent_config("one", "")
        .replace("echo \"$word\"\n'''", "echo aside >&2; echo $word\n'''");
    let service = ServiceProcess::start(&agent).await;
    let mut params = message_params("ann");
    params["message"]["contextId"] = json!("talk-1");
    let id = task_id(&service.submit("one", params.clone()).await);
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let running = service.fetch_execution(&id).await;
    for absent in ["endedAt", "outcome", "exitCode", "durationUs", "output"] {
        assert!(running.get(absent).is_none(), "{absent} in {running}");
    }
    service.setup.open_gate("go");
    service.wait_for_task_end("one", &id).await;
    let record = service.fetch_execution(&id).await;
    for (name, value) in [
        ("id", json!(id)),
        ("agent", json!("one")),
        ("contextId", json!("talk-1")),
        ("messageId", params["message"]["messageId"].clone()),
        ("state", json!("completed")),
        ("outcome", json!("completed")),
        ("attempt", json!(1)),
        ("exitCode", json!(0)),
        ("input", json!("ann")),
        ("output", json!("ann\n")),
        ("stderr", json!("aside\n")),
    ] {
        assert_eq!(record[name], value, "{name} of {record}");
    }
    let times = ["acceptedAt", "startedAt", "endedAt"].map(|name| record[name].as_str().unwrap());
    assert!(times.is_sorted(), "{times:?}");
    assert!(record["durationUs"].as_i64().unwrap() > 0);
    let events = record["events"].as_array().unwrap();
    let transitions =
        events.iter().map(|event| &event["data"]).filter(|data| data["kind"] == "state-changed");
    let transitions: Vec<_> =
        transitions.map(|data| format!("{} {}", data["from"], data["to"])).collect();
    let states = ["idle", "starting", "running", "completed", "cleanup", "idle"];
    let expected: Vec<_> =
        states.windows(2).map(|pair| format!("{:?} {:?}", pair[0], pair[1])).collect();
    assert!(expected.starts_with(&transitions) && transitions.len() >= 3, "{transitions:?}");
    assert!(events.iter().any(|event| event["data"]["pid"].as_u64().is_some()));
}

#[tokio::test]
async fn executions_are_listed_newest_first_over_http() {
    let agents = [fake_agent_config("echo", "echo", ""), gated_agent_config("one", "")].concat();
    let service = ServiceProcess::start(&agents).await;
    let mut ids = Vec::new();
    for text in ["a", "b", "c"] {
        ids.insert(0, task_id(&service.send("echo", text).await));
    }
    let unfinished = service.start_task("one", "ann").await;
    let list_executions = async |query: &str| {
        let page = service.get(&format!("/api/v1/executions?{query}")).await.json();
        let entries = page["executions"].as_array().unwrap().clone();
        let ids = entries.iter().map(|entry| entry["id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<_>>(), page["next"].as_str().map(str::to_owned))
    };
    assert_eq!(list_executions("unfinished=true").await, (vec![unfinished], None));
    let (first_page, next_cursor) = list_executions("agent=echo&limit=2").await;
    assert_eq!(first_page, ids[..2]);
    let second_page =
        list_executions(&format!("agent=echo&limit=2&cursor={}", next_cursor.unwrap())).await;
    assert_eq!(second_page, (vec![ids[2].clone()], None));
}
