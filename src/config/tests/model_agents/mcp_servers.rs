//! MCP servers and their tools: their keys, their names, and faults with positions.

use algonius_actors::model::agent::cognitive::{CognitiveSpec, ToolHandler};
use algonius_actors::model::host::sandbox::IsolationRequirement;
use algonius_actors::model::program::backend_program::BackendRole;
use algonius_actors::model::program::tool_backends::{ServerTool, ToolBackends};

use super::*;

/// Agent with these tools; the next lines begin with line 8.
fn agent_config(tools: &str, lines: &str) -> String {
    format!(
        "[models.p]\nbase_url = \"https://x.org\"\n[agents.a]\nkind = \"cognitive\"\n\
         layer = \"abstract\"\nmodel_id = \"p/m\"\ntools = [{tools}]\n{lines}\n"
    )
}

fn spec_and_backends(tools: &str, lines: &str) -> (Arc<CognitiveSpec>, ToolBackends) {
    let agent = load_settings(&agent_config(tools, lines)).agents.remove(0);
    let spec = Arc::clone(agent.spec.cognitive().unwrap());
    let AgentWorker::Cognitive { tool_backends, .. } = agent.worker else {
        panic!("{:?}", agent.worker)
    };
    (spec, tool_backends)
}

const SERVER: &str = "[mcp.servers.store]\ncommand = \"sort\"\nargs = [\"-r\", \"-n\"]\n";

#[test]
fn a_tool_of_a_server_needs_no_section() {
    let (spec, tool_backends) = spec_and_backends("\"store__read_all\"", SERVER);
    let [tool] = spec.tools.as_slice() else { panic!("{:?}", spec.tools) };
    assert_eq!((tool.name.as_str(), tool.handler), ("store__read_all", ToolHandler::Mcp));
    assert_eq!((&tool.inputs, tool.idempotent, tool.timeout.as_secs()), (&None, false, 60));
    let server_tool = ServerTool { server: "store".to_owned(), name: "read_all".to_owned() };
    assert_eq!(tool_backends.server_tools["store__read_all"], server_tool);
    let server = &tool_backends.servers["store"];
    assert_eq!(
        (server.name.as_str(), &*server.args),
        ("store", &["-r".to_owned(), "-n".to_owned()][..])
    );
    assert_eq!((server.start_timeout.as_secs(), server.idle_timeout.as_secs()), (30, 300));
    let sandbox = &server.program.sandbox;
    assert_eq!(
        (sandbox.is_enforced, sandbox.allows_network, &sandbox.writable),
        (true, false, &None)
    );
    assert_eq!(sandbox.isolation_requirement, IsolationRequirement::Sandbox);
    let backends: Vec<_> = tool_backends.backends().map(|(role, _)| role).collect();
    assert_eq!(backends, [BackendRole::McpServer("store".to_owned())]);
}

#[test]
fn a_section_gives_a_tool_of_a_server_another_name() {
    let lines = format!(
        "{SERVER}idle = 5\nstart_timeout = 2.5\nenv_from = {{ API_KEY = \"MY_KEY\" }}\n\
         [tools.recall]\nsource = \"mcp\"\nserver = \"store\"\nmcp_tool_name = \"search.all\"\n\
         description = \"Searches.\"\nidempotent = true\ntimeout = 7"
    );
    let (spec, tool_backends) = spec_and_backends("\"recall\"", &lines);
    let tool = &spec.tools[0];
    assert_eq!((tool.description.as_str(), tool.idempotent), ("Searches.", true));
    assert_eq!(tool.timeout.as_secs(), 7);
    assert_eq!(tool_backends.server_tools["recall"].name, "search.all");
    let server = &tool_backends.servers["store"];
    assert_eq!((server.start_timeout.as_millis(), server.idle_timeout.as_secs()), (2500, 5));
    assert_eq!(server.program.env["API_KEY"].value, CANARY);
}

/// Checks the faults of the tools of an agent, and of further lines.
fn assert_tool_faults(rows: &[(&str, String, &[&str])]) {
    for (tools, lines, expected) in rows {
        assert_eq!(fault_messages(&agent_config(tools, lines)), *expected, "{lines}");
    }
}

#[test]
fn faults_of_tools_of_servers_have_a_position() {
    let tool = |keys: &str| format!("{SERVER}[tools.t]\nsource = \"mcp\"\n{keys}");
    let rows: [(&str, String, &[&str]); 7] = [
        (
            "\"x\"",
            SERVER.to_owned(),
            &["c:7:10: error: agents.a.tools[0] = \"x\": there is no section `[tools.x]`"],
        ),
        (
            "\"stor__x\"",
            SERVER.to_owned(),
            &[
                "c:7:10: error: agents.a.tools[0] = \"stor__x\": there is no section `[mcp.servers.stor]`; did \
                 you mean `store`?",
            ],
        ),
        (
            "\"store__a.b\"",
            SERVER.to_owned(),
            &[
                "c:7:10: error: agents.a.tools[0] = \"store__a.b\": is no name for a model: 1 to 64 of \
             A-Z a-z 0-9 _ -; write a section `[tools.<name>]` with `source = \"mcp\"` and \
             `mcp_tool_name`",
            ],
        ),
        (
            "\"t\"",
            tool("server = \"stor\"\nmcp_tool_name = \"x\""),
            &[
                "c:13:10: error: tools.t.server = \"stor\": there is no section `[mcp.servers.stor]`; did \
             you mean `store`?",
            ],
        ),
        (
            "\"t\"",
            tool(""),
            &[
                "c:11:1: error: tools.t.server: is needed",
                "c:11:1: error: tools.t.mcp_tool_name: is needed",
            ],
        ),
        (
            "\"t\"",
            tool(
                "server = \"store\"\nmcp_tool_name = \"x\"\nhandler = { kind = \"clock\" }\n\
                        inputs.a = { type = \"any\" }",
            ),
            &[
                "c:15:11: error: tools.t.handler: has a meaning with `source = \"handler\"` only",
                "c:16:1: error: tools.t.inputs: has a meaning with `source = \"handler\"` only",
            ],
        ),
        (
            "\"t\"",
            "[tools.t]\nsource = \"handler\"\nserver = \"s\"\nhandler = { kind = \"clock\" }"
                .to_owned(),
            &["c:10:10: error: tools.t.server: has a meaning with `source = \"mcp\"` only"],
        ),
    ];
    assert_tool_faults(&rows);
}

#[test]
fn faults_of_servers_have_a_position() {
    let rows: [(&str, String, &[&str]); 5] = [
        (
            "",
            "[mcp.servers.a__b]\ncommand = \"sort\"".to_owned(),
            &[
                "c:8:14: error: mcp.servers.a__b: must not contain `__` or end with `_`: `__` separates the name of a server \
                 from its tools",
            ],
        ),
        (
            "",
            "[mcp.servers.s]\nurl = \"https://x.org\"".to_owned(),
            &["c:9:7: error: mcp.servers.s.url: is not supported yet"],
        ),
        (
            "",
            "[mcp.servers.s]\nargs = []".to_owned(),
            &["c:8:1: error: mcp.servers.s.command: is needed"],
        ),
        (
            "",
            "[mcp.servers.s]\ncommand = \"sort\"\nidle = 0\nstart_timeout = 601".to_owned(),
            &[
                "c:10:8: error: mcp.servers.s.idle = 0: must be 1 to 86400 seconds",
                "c:11:17: error: mcp.servers.s.start_timeout = 601: must be 1 to 600 seconds",
            ],
        ),
        (
            "\"s__x\"",
            "[mcp.servers.s]\ncommand = \"no-such-program\"\nsandbox.nested = true".to_owned(),
            &[
                "c:8:1: error: mcp.servers.s.sandbox.nested: is not supported for an MCP server",
                "c:9:11: warning: mcp.servers.s.command = \"no-such-program\": no such program on the \
             PATH; install it, and run `algonius reload`; calls of its tools fail until then",
            ],
        ),
    ];
    assert_tool_faults(&rows);
}
