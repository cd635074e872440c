//! `[mcp.servers.<name>]`: MCP servers, whose tools models call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use algonius_actors::model::program::mcp_server::McpServer;

use super::backend_program::{self, BackendReadContext};
use super::check_name;
use crate::config::diagnostics::Severity;
use crate::config::keys::programs::command::MissingProgramReport;
use crate::config::table::{RangeWithDefault, Section};

/// Text between the name of a server and the name of its tool, in the name of a tool without a section of its own.
pub(super) const SERVER_TOOL_SEPARATOR: &str = "__";

/// Keys of a server that are not supported yet.
const UNSUPPORTED_KEYS: [&str; 3] = ["auth", "drift", "url"];

/// Bounds of the time limit of a start in seconds.
const START_TIMEOUT_BOUNDS: RangeWithDefault<f64> = RangeWithDefault::new(1.0, 600.0, 30.0);

/// Bounds of the time without a use in seconds.
const IDLE_BOUNDS: RangeWithDefault<f64> = RangeWithDefault::new(1.0, 86_400.0, 300.0);

/// Reads every server. `used_servers` are the names of the servers of enabled agents: a fault of the machine is an
/// error only if such an agent needs the server.
pub(super) fn read_all(
    root: &mut Section<'_>,
    used_servers: &BTreeSet<&str>,
) -> BTreeMap<String, Option<Arc<McpServer>>> {
    let mut section = root.section("mcp");
    let mut servers = BTreeMap::new();
    for (name, server) in section.sections("servers") {
        let is_ambiguous = name.value.contains(SERVER_TOOL_SEPARATOR) || name.value.ends_with('_');
        if is_ambiguous {
            let message = format!(
                "must not contain `{SERVER_TOOL_SEPARATOR}` or end with `_`: `{SERVER_TOOL_SEPARATOR}` separates the name of a server from its \
                 tools"
            );
            server.reader.report_error(&name.position, message);
        }
        let is_valid = check_name(&server, &name) && !is_ambiguous;
        let is_used = used_servers.contains(name.value.as_str());
        let machine_fault_severity =
            if is_used { Severity::Error } else { Severity::WarningWhileDisabled };
        let server = read(server, &name.value, machine_fault_severity).filter(|_| is_valid);
        servers.insert(name.value, server.map(Arc::new));
    }
    section.report_unknown_keys();
    servers
}

fn read(
    mut server: Section<'_>,
    name: &str,
    machine_fault_severity: Severity,
) -> Option<McpServer> {
    let table = &mut server;
    // Its own message is clearer than that about the missing command.
    let has_url = table.has_key("url");
    let context = BackendReadContext {
        noun: "an MCP server",
        missing_report: MissingProgramReport::MCP_SERVER,
        machine_fault_severity,
    };
    let program = match has_url && !table.has_key("command") {
        true => None,
        false => backend_program::read(table, &context),
    };
    let args = table.text_list("args").unwrap_or_default();
    let start_timeout = table.duration("start_timeout", START_TIMEOUT_BOUNDS);
    let idle_timeout = table.duration("idle", IDLE_BOUNDS);
    table.refuse_unsupported_keys(&UNSUPPORTED_KEYS);
    server.report_unknown_keys();
    let args = args.into_iter().map(|argument| argument.value).collect();
    Some(McpServer { name: name.to_owned(), program: program?, args, start_timeout, idle_timeout })
}
