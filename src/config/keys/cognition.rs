//! `[models.<prefix>]`, `[tools.<name>]`, `[mcp.servers.<name>]`, and the keys of cognitive agents, which name them.

mod backend_program;
pub(crate) mod cognitive_agent;
mod configured_tool;
mod mcp_servers;
mod models;
mod server_tools;
mod tool_inputs;
mod tool_program;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use algonius_actors::model::agent::AgentKind;
use algonius_actors::model::agent::model_provider::ModelProvider;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::mcp_server::McpServer;
use toml::de::DeValue;

use self::configured_tool::ConfiguredTool;
use crate::config::table::{Positioned, Section};

/// Greatest length of the name of a provider, of a tool or of a server.
const MAX_NAME_BYTES: usize = 64;

/// Providers of models, tools and MCP servers by their names; an inner `None` if a fault makes one unusable.
#[derive(Debug, Default)]
pub(crate) struct CognitionCatalog {
    providers: BTreeMap<String, Option<Arc<ModelProvider>>>,
    tools: BTreeMap<String, Option<ConfiguredTool>>,
    servers: McpServerCatalog,
}

/// MCP servers by their names; an inner `None` if a fault makes one unusable.
type McpServerCatalog = BTreeMap<String, Option<Arc<McpServer>>>;

impl CognitionCatalog {
    /// Reads all providers, tools and MCP servers. `agents` are the sections of all agents: a fault of the machine,
    /// such as a missing key, is an error only if it affects an enabled agent.
    pub(crate) fn read(
        root: &mut Section<'_>,
        agents: &[(Positioned<AgentId>, Section<'_>)],
    ) -> Self {
        let enabled_agents: Vec<_> =
            agents.iter().map(|(_, agent)| agent).filter(is_enabled_cognitive_agent).collect();
        let prefixes: BTreeSet<&str> =
            enabled_agents.iter().filter_map(|agent| model_prefix(agent)).collect();
        let used_tools: BTreeSet<&str> =
            enabled_agents.iter().flat_map(|agent| tool_names(agent)).collect();
        let servers = mcp_servers::read_all(root, &server_names(root, &used_tools));
        let tools = tools::read_all(root, &used_tools, &servers);
        Self { providers: models::read_all(root, &prefixes), tools, servers }
    }
}

/// Returns true for an enabled cognitive agent. The section is not checked yet.
fn is_enabled_cognitive_agent(agent: &&Section<'_>) -> bool {
    let kind = agent.peek("kind").and_then(DeValue::as_str);
    let is_disabled = agent.peek("enabled").and_then(DeValue::as_bool) == Some(false);
    kind == Some(AgentKind::Cognitive.as_str()) && !is_disabled
}

/// Returns the prefix of the model of a cognitive agent.
fn model_prefix<'c>(agent: &Section<'c>) -> Option<&'c str> {
    let model = agent.peek("model_id").and_then(DeValue::as_str)?;
    model.split_once('/').map(|(prefix, _)| prefix)
}

/// Returns the names of the tools of a cognitive agent.
fn tool_names<'c>(agent: &Section<'c>) -> impl Iterator<Item = &'c str> + use<'c> {
    let names = agent.peek("tools").and_then(DeValue::as_array);
    names.into_iter().flat_map(|names| names.iter()).filter_map(|name| name.get_ref().as_str())
}

/// Returns the names of the servers of these tools.
fn server_names<'c>(root: &Section<'c>, tools: &BTreeSet<&'c str>) -> BTreeSet<&'c str> {
    let sections = root.peek("tools").and_then(DeValue::as_table);
    let configured = |tool: &str| sections?.get(tool)?.get_ref().as_table()?.get("server");
    let server = |tool: &&'c str| match configured(tool) {
        Some(server) => server.get_ref().as_str(),
        None => tool.split_once(mcp_servers::SERVER_TOOL_SEPARATOR).map(|(server, _)| server),
    };
    tools.iter().filter_map(server).collect()
}

/// Returns true for a name of a provider, of a tool or of a server. A wrong name is a fault.
fn check_name(section: &Section<'_>, name: &Positioned<String>) -> bool {
    let is_valid = is_valid_name(&name.value);
    if !is_valid {
        let message = format!(
            "`{}` is not a name: 1 to {MAX_NAME_BYTES} of the characters A-Z a-z 0-9 _ -",
            name.value
        );
        section.reader.report_error(&name.position, message);
    }
    is_valid
}

fn is_valid_name(name: &str) -> bool {
    let is_permitted = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_permitted)
}
