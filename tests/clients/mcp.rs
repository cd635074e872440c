//! Official MCP servers as tools of a cognitive agent with a simulated model.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use algonius_skips::skip;

use crate::sdk::{ClientPackages, has_node};
use crate::service::Service;
use crate::{STRANGER_TOKEN, assert_report_and_stop, clients_are_enabled_or_skip};

/// Simulated model. It is killed when it is dropped.
struct MockModel {
    child: Child,
    address: String,
}

impl MockModel {
    fn start() -> Self {
        let test = std::env::current_exe().expect("the path of the test");
        let mut command = Command::new(algonius_fakes::mock_model_path(&test));
        command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the model");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let address = lines
            .find_map(|line| line.ok()?.strip_prefix("listening on ").map(str::to_owned))
            .expect("the address of the model");
        Self { child, address }
    }
}

impl Drop for MockModel {
    fn drop(&mut self) {
        _ = self.child.kill(); // It may have ended.
        _ = self.child.wait();
    }
}

/// Returns the configuration with these servers: their names, their executables and the names of their tools. The
/// server `memory` stores its graph in the folder `memory`.
fn service_config(
    model: &MockModel,
    servers: &[(&str, &Path, &[&str])],
    memory_folder: &Path,
) -> String {
    let mut text = format!(
        "[models.local]\nbase_url = \"http://{}/v1\"\nrequests_per_minute = 100000\n",
        model.address
    );
    let mut tools = Vec::new();
    for (name, command, names) in servers {
        text += &format!("[mcp.servers.{name}]\ncommand = {command:?}\n");
        if *name == "memory" {
            text += &format!("sandbox = {{ writable = [{memory_folder:?}] }}\n");
            text += &format!(
                "env = {{ MEMORY_FILE_PATH = {:?} }}\n",
                memory_folder.join("memory.json")
            );
        }
        tools.extend(names.iter().map(|tool| format!("{name}__{tool}")));
    }
    text + &format!(
        "[agents.worker]\nkind = \"cognitive\"\nlayer = \"abstract\"\nmodel_id = \"local/mock-1\"\n\
         tools = {tools:?}\n"
    )
}

#[test]
fn official_mcp_servers_answer_calls_of_a_run() {
    if !clients_are_enabled_or_skip() {
        return;
    }
    if !has_node() {
        skip("node or npm is not installed");
        return;
    }
    let packages = [ClientPackages::McpPython, ClientPackages::McpJavaScript];
    let (python, javascript) = match packages.map(|packages| packages.ensure_installed()) {
        [Ok(python), Ok(javascript)] => (python, javascript),
        [Err(reason), _] | [_, Err(reason)] => return skip(&reason),
    };
    let model = MockModel::start();
    let binaries = javascript.join("node_modules/.bin");
    let servers: [(&str, &Path, &[&str]); 3] = [
        // It speaks only the generation without a handshake; the others need one.
        ("time", &python.join("bin/mcp-server-time"), &["get_current_time", "convert_time"]),
        ("memory", &binaries.join("mcp-server-memory"), &["create_entities", "search_nodes"]),
        ("everything", &binaries.join("mcp-server-everything"), &["get-sum", "get-tiny-image"]),
    ];
    let memory_folder = tempfile::tempdir().expect("a folder");
    let service =
        Service::start(&service_config(&model, &servers, memory_folder.path()), STRANGER_TOKEN);
    let report = ClientPackages::McpPython.run_script("mcp.py", &[service.url(), service.token()]);
    assert_report_and_stop(report, 6, service);
    let graph = fs::read_to_string(memory_folder.path().join("memory.json")).expect("the graph");
    assert!(graph.contains("lamp"), "{graph}");
}
