//! Tools of MCP servers: a scripted server in its sandbox, called by a simulated model.

mod processes;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use self::processes::fetch_server_pid_and_call_count;
use crate::harness::mock_model::MockModel;
use crate::harness::processes::kill9;
use crate::harness::steps::{error_step, observation_step, run_tool_calls};
use crate::harness::{ServiceProcess, Setup, poll_until};
use crate::read_only::skip_without_requirement;

/// Servers, and agents with their tools. `MODEL` is the address of the model.
const MCP_CONFIG: &str = r#"
[models.local]
base_url = "MODEL"
requests_per_minute = 100000
[mcp.servers.store]
command = "FAKE"
args = ["mcp", "--end", "HERE/writable/end"]
env_from = { TOOL_KEY = "TOOL_KEY" }
sandbox = { writable = ["HERE/writable"] }
[mcp.servers.old]
command = "FAKE"
args = ["mcp", "--old", "--noise"]
[mcp.servers.broken]
command = "FAKE"
args = ["mcp", "--fail"]
env_from = { TOOL_KEY = "TOOL_KEY" }
[mcp.servers.silent]
command = "FAKE"
args = ["mcp", "--silent"]
start_timeout = 1
[mcp.servers.absent]
command = "no-such-program"
[tools.slow]
source = "mcp"
server = "store"
mcp_tool_name = "hang"
description = "Takes long."
timeout = 1
[agents.worker]
kind = "cognitive"
layer = "perceptual"
model_id = "local/mock-1"
max_steps = 20
tools = ["store__echo", "store__count", "store__cancelled", "store__env", "store__write", "store__structured",
  "store__refuse", "store__reject", "store__mark", "store__grow", "store__hang", "store__many", "store__long", "store__crash", "store__flood", "store__none", "slow", "old__echo"]
[agents.other]
kind = "cognitive"
layer = "perceptual"
model_id = "local/mock-1"
tools = ["store__count", "broken__echo", "silent__echo", "absent__echo"]
"#;

const START_TIMEOUT_ERROR: &str = "the MCP server did not list its tools within 1 s (`start_timeout`); a command that installs it first needs the \
                    network";

const TOOL_KEY: &str = "tool-key-1234567890-abcdefghijklmnopqrstuvwxyz";

fn mcp_setup(config: &str) -> Setup {
    let setup = Setup::new(config).env("TOOL_KEY", TOOL_KEY);
    fs::create_dir(setup.test_folder().join("writable")).unwrap();
    setup
}

async fn start_with_mock_model() -> (MockModel, ServiceProcess) {
    let model = MockModel::start(&[]);
    let service = mcp_setup(&MCP_CONFIG.replace("MODEL", &model.base_url())).start().await;
    (model, service)
}

#[tokio::test]
async fn a_server_answers_calls_of_its_tools() {
    let (model, service) = start_with_mock_model().await;
    let tool_calls = [
        ("store__env", json!({ "name": "TOOL_KEY" })),
        ("store__echo", json!({ "text": "it's {{ word }}" })),
        ("store__structured", json!({})),
        ("old__echo", json!({ "text": "with a handshake" })),
        ("store__refuse", json!({ "text": "no room" })),
        ("store__reject", json!({})),
        ("store__echo", json!({ "text": 5 })),
        ("store__long", json!({})),
        ("store__none", json!({})),
    ];
    let results = run_tool_calls(&service, "worker", &tool_calls).await;
    let names = "`append`, `cancelled`, `count`, `crash`, `echo`, `env`, `flood`, `grow`, `hang`, `long`, `many`, `mark`, `refuse`, \
                 `reject`, `structured`, `write`";
    let expected = [
        observation_step("***"),
        observation_step("it's {{ word }}"),
        observation_step("{\"n\":[1,2]}"),
        observation_step("with a handshake"),
        error_step("no room"),
        error_step("the MCP server refused the request with the code -32602: not possible here"),
        observation_step(""),
        error_step(
            "the result of the MCP server has more than 1 MiB; the call may have had its effect",
        ),
        error_step(format!("the MCP server `store` has no tool `none`; it has {names}")),
    ];
    assert_eq!(results, expected);
    let requests = json!(model.fetch_requests().await).to_string();
    assert!(!requests.contains(TOOL_KEY), "{requests}");
}

#[tokio::test]
async fn the_model_receives_the_definitions_of_the_server() {
    let (model, service) = start_with_mock_model().await;
    run_tool_calls(&service, "worker", &[]).await;
    run_tool_calls(&service, "other", &[]).await;
    let requests = model.fetch_requests().await;
    let tool_definition = |request: usize, name: &str| {
        let tools = requests[request]["toolDefinitions"].as_array().unwrap();
        tools.iter().map(|tool| &tool["function"]).find(|it| it["name"] == name).unwrap().clone()
    };
    let parameters_schema =
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let expected = json!({"name": "store__echo", "description": "Tool echo.***", "parameters": parameters_schema});
    assert_eq!(tool_definition(0, "store__echo"), expected);
    assert_eq!(tool_definition(0, "slow")["description"], "Takes long.");
    // The library would log texts of the servers.
    assert!(!service.stderr_text().contains("rmcp"), "{}", service.stderr_text());
    let unavailable_definition = |reason: &str| {
        let description = format!("The definition of this tool is not available: {reason}.");
        (description, json!({"type": "object"}))
    };
    for (request, name, reason) in [
        (0, "store__none", "the MCP server `store` has no tool `none`"),
        (1, "broken__echo", "the MCP server ended with exit code 3"),
        (1, "silent__echo", START_TIMEOUT_ERROR),
        (1, "absent__echo", "the program `no-such-program` of the MCP server is not installed"),
    ] {
        let tool = tool_definition(request, name);
        let (description, parameters) = unavailable_definition(reason);
        assert_eq!((&tool["description"], &tool["parameters"]), (&json!(description), &parameters));
    }
}

#[tokio::test]
async fn a_server_that_does_not_start_is_an_error_of_the_call() {
    let (model, service) = start_with_mock_model().await;
    let tool_names = ["broken__echo", "silent__echo", "absent__echo", "store__count"];
    let tool_calls = tool_names.map(|name| (name, json!({ "text": "x" })));
    let results = run_tool_calls(&service, "other", &tool_calls).await;
    let (kind, text) = &results[0];
    let expected_prefix = "the MCP server ended with exit code 3: ";
    assert!(
        kind == "error" && text.starts_with(expected_prefix) && text.contains("cannot start"),
        "{text}"
    );
    assert!(text.contains("TOOL_KEY="), "{text}");
    let requests = json!(model.fetch_requests().await).to_string();
    assert!(requests.contains("TOOL_KEY=") && !requests.contains(TOOL_KEY), "{requests}");
    assert_eq!(results[1], error_step(START_TIMEOUT_ERROR));
    let missing = "the program `no-such-program` of the MCP server is not installed";
    assert_eq!(results[2], error_step(missing));
    assert_eq!(results[3].0, "observation", "{results:?}");
    let log = service.stderr_text();
    assert!(log.contains("MCP server did not start") && !log.contains("cannot start:"), "{log}");
    drop(model);
}

#[tokio::test]
async fn a_server_is_confined() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let model = MockModel::start(&[]);
    let setup = mcp_setup(&MCP_CONFIG.replace("MODEL", &model.base_url())).without_bubblewrap();
    let service = setup.start().await;
    let temporary_folder = expect_confined_server(&service).await;
    assert!(temporary_folder.is_dir(), "{temporary_folder:?}");
    // The folder is removed with the process.
    let (pid, _) = fetch_server_pid_and_call_count(&service, "worker").await;
    kill9(pid);
    poll_until("the end of the folder", async || (!temporary_folder.exists()).then_some(())).await;
}

#[tokio::test]
async fn a_server_in_bubblewrap_is_confined() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let model = MockModel::start(&[]);
    let config = MCP_CONFIG.replace("MODEL", &model.base_url());
    let sandbox = "sandbox = { isolation = \"bubblewrap\", writable";
    let mut service = mcp_setup(&config.replace("sandbox = { writable", sandbox)).start().await;
    expect_confined_server(&service).await;
    service.send_sigterm();
    service.wait_for_exit().await;
    assert_eq!(service.setup.read_file("writable/end"), "ended\n");
}

/// Checks that the server changes only what its sandbox names, and returns its folder for temporary files.
async fn expect_confined_server(service: &ServiceProcess) -> PathBuf {
    let folder = service.setup.test_folder();
    let write = |path: &Path| ("store__write", json!({ "path": path, "text": "x" }));
    let inside = folder.join("writable/file");
    let tool_calls = [
        write(&inside),
        write(&folder.join("outside")),
        ("store__env", json!({ "name": "TMPDIR" })),
    ];
    let results = run_tool_calls(service, "worker", &tool_calls).await;
    assert_eq!(results[0], observation_step("written"));
    assert_eq!(fs::read_to_string(inside).unwrap(), "x");
    assert!(results[1].0 == "error" && !folder.join("outside").exists(), "{results:?}");
    PathBuf::from(&results[2].1)
}

#[tokio::test]
async fn the_doctor_reports_servers() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let model = MockModel::start(&[]);
    let setup = mcp_setup(&MCP_CONFIG.replace("MODEL", &model.base_url())).without_bubblewrap();
    let config = setup.write_config().display().to_string();
    let report = setup.run_command(&["doctor", &config], "").await.stdout;
    let line = |server: &str| {
        let line = report.lines().find(|line| line.contains(&format!("MCP server {server}: ")));
        line.unwrap_or_else(|| panic!("{report}")).to_owned()
    };
    assert!(line("store").contains("sandbox enforced by landlock; boundary landlock"), "{report}");
    assert!(line("absent").contains("the program no-such-program is not installed"), "{report}");
    let check_output = setup.run_command(&["check", &config], "").await;
    assert!(check_output.stderr.contains("calls of its tools fail until then"), "{check_output:?}");
}

#[tokio::test]
async fn a_server_that_can_change_the_configuration_is_reported() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let model = MockModel::start(&[]);
    let setup_with_writable_config = |settings: &str| {
        let writable = format!("writable = [\"HERE/../service\"]{settings}");
        let config = MCP_CONFIG.replace("MODEL", &model.base_url());
        mcp_setup(&config.replace("writable = [\"HERE/writable\"]", &writable)).without_bubblewrap()
    };
    let Err((_, output)) = setup_with_writable_config("").try_start().await else {
        panic!("it started")
    };
    let refusal = "cannot enforce the sandbox of the MCP server `store` of the agent";
    assert!(output.stderr.contains(refusal), "{output:?}");
    assert!(
        output.stderr.contains("`mcp.servers.store.sandbox.required = false` starts the service"),
        "{output:?}"
    );
    let Ok(service) = setup_with_writable_config(", required = false").try_start().await else {
        panic!("no start")
    };
    let stderr = service.stderr_text();
    assert!(stderr.contains("backend program is not isolated from the service"), "{stderr}");
    assert!(stderr.contains("the MCP server `store` can change the configuration"), "{stderr}");
    let statuses = service.get("/status").await.json()["agents"].clone();
    let backends = statuses.as_array().unwrap().iter().find_map(|agent| agent.get("backends"));
    let server = backends
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["section"] == "mcp.servers.store");
    assert_eq!(server.unwrap()["boundary"]["gaps"][1], "configuration", "{statuses}");
    let output = service.run_command(&["status"], "").await.stdout;
    assert!(
        output.contains("mcp.servers.store: boundary none (open: service-files, configuration"),
        "{output}"
    );
}
