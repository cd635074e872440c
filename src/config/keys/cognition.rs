//! `[models.<prefix>]`, `[tools.<name>]`, and the keys of cognitive agents, which name both.

pub(crate) mod cognitive_agent;
mod models;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use algonius_actors::model::agent::AgentKind;
use algonius_actors::model::agent::cognitive::ToolSpec;
use algonius_actors::model::agent::model_provider::ModelProvider;
use algonius_actors::model::id::AgentId;
use toml::de::DeValue;

use crate::config::table::{Section, Spanned};

/// Greatest length of the name of a provider or of a tool.
const MAX_NAME_BYTES: usize = 64;

/// Providers of models and tools by their names; an inner `None` if a fault makes one unusable.
#[derive(Debug, Default)]
pub(crate) struct CognitionCatalog {
    models: BTreeMap<String, Option<Arc<ModelProvider>>>,
    tools: BTreeMap<String, Option<Arc<ToolSpec>>>,
}

impl CognitionCatalog {
    /// Reads all providers and tools. `agents` are the sections of all agents: a missing key is an error only if an
    /// enabled agent needs it.
    pub(crate) fn read(root: &mut Section<'_>, agents: &[(Spanned<AgentId>, Section<'_>)]) -> Self {
        let enabled_prefixes = agents.iter().filter_map(|(_, agent)| enabled_prefix(agent));
        let enabled_prefixes: BTreeSet<&str> = enabled_prefixes.collect();
        Self { models: models::read_all(root, &enabled_prefixes), tools: tools::read_all(root) }
    }
}

/// Returns the prefix of the model of an enabled cognitive agent. The section is not checked yet.
fn enabled_prefix<'c>(agent: &Section<'c>) -> Option<&'c str> {
    let kind = agent.peek("kind").and_then(DeValue::as_str);
    let is_disabled = agent.peek("enabled").and_then(DeValue::as_bool) == Some(false);
    let model = agent.peek("model_id").and_then(DeValue::as_str)?;
    let (prefix, _) = model.split_once('/')?;
    (kind == Some(AgentKind::Cognitive.as_str()) && !is_disabled).then_some(prefix)
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
