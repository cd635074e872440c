//! `[models.<prefix>]`, `[tools.<name>]`, and the keys of cognitive agents, which name both.

pub(crate) mod cognitive_agent;
mod models;
mod tool_inputs;
mod tool_program;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use algonius_actors::model::agent::AgentKind;
use algonius_actors::model::agent::model_provider::ModelProvider;
use algonius_actors::model::id::AgentId;
use toml::de::DeValue;

use self::tools::ConfiguredTool;
use crate::config::table::{Section, Spanned};

/// Greatest length of the name of a provider or of a tool.
const MAX_NAME_BYTES: usize = 64;

/// Providers of models and tools by their names; an inner `None` if a fault makes one unusable.
#[derive(Debug, Default)]
pub(crate) struct CognitionCatalog {
    models: BTreeMap<String, Option<Arc<ModelProvider>>>,
    tools: BTreeMap<String, Option<ConfiguredTool>>,
}

impl CognitionCatalog {
    /// Reads all providers and tools. `agents` are the sections of all agents: a fault of the machine, such as a
    /// missing key, is an error only if it affects an enabled agent.
    pub(crate) fn read(root: &mut Section<'_>, agents: &[(Spanned<AgentId>, Section<'_>)]) -> Self {
        let enabled: Vec<_> = agents.iter().map(|(_, agent)| agent).filter(is_enabled).collect();
        let prefixes: BTreeSet<&str> = enabled.iter().filter_map(|agent| prefix(agent)).collect();
        let tools: BTreeSet<&str> = enabled.iter().flat_map(|agent| tool_names(agent)).collect();
        Self { models: models::read_all(root, &prefixes), tools: tools::read_all(root, &tools) }
    }
}

/// Returns true for an enabled cognitive agent. The section is not checked yet.
fn is_enabled(agent: &&Section<'_>) -> bool {
    let kind = agent.peek("kind").and_then(DeValue::as_str);
    let is_disabled = agent.peek("enabled").and_then(DeValue::as_bool) == Some(false);
    kind == Some(AgentKind::Cognitive.as_str()) && !is_disabled
}

/// Returns the prefix of the model of a cognitive agent.
fn prefix<'c>(agent: &Section<'c>) -> Option<&'c str> {
    let model = agent.peek("model_id").and_then(DeValue::as_str)?;
    model.split_once('/').map(|(prefix, _)| prefix)
}

/// Returns the names of the tools of a cognitive agent.
fn tool_names<'c>(agent: &Section<'c>) -> impl Iterator<Item = &'c str> + use<'c> {
    let names = agent.peek("tools").and_then(DeValue::as_array);
    names.into_iter().flat_map(|names| names.iter()).filter_map(|name| name.get_ref().as_str())
}

/// Returns true for a name of a provider or of a tool. A wrong name is a fault.
fn check_name(section: &Section<'_>, name: &Spanned<String>) -> bool {
    let is_permitted = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_valid =
        (1..=MAX_NAME_BYTES).contains(&name.value.len()) && name.value.bytes().all(is_permitted);
    if !is_valid {
        let message = format!(
            "`{}` is not a name: 1 to {MAX_NAME_BYTES} of the characters A-Z a-z 0-9 _ -",
            name.value
        );
        section.reader.error(&name.position, message);
    }
    is_valid
}
