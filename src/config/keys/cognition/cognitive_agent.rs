//! Keys of cognitive agents: their layer, their model and their tools.

use std::num::NonZeroU32;
use std::sync::Arc;

use algonius_actors::model::agent::AgentKind;
use algonius_actors::model::agent::cognitive::{
    CognitiveLayer, CognitiveSpec, ModelReference, ToolSpec,
};
use algonius_actors::model::agent::model_provider::ModelProvider;
use algonius_actors::model::program::tool_backends::ToolBackends;
use toml::de::DeValue;

use super::CognitionCatalog;
use super::configured_tool::{ConfiguredTool, ToolPerformer};
use super::mcp_servers::SERVER_TOOL_SEPARATOR;
use super::server_tools;
use crate::config::diagnostics::new_diagnostic;
use crate::config::keys::limits::AgentSettingBounds;
use crate::config::table::{Positioned, RangeWithDefault, Section};

/// Keys that only cognitive agents have.
pub(crate) const COGNITIVE_KEYS: [&str; 7] =
    ["agent_type", "instructions", "layer", "max_steps", "model_id", "temperature", "tools"];

/// Default time limit of a run in seconds: a run has several calls of the model.
const DEFAULT_RUN_SECONDS: f64 = 600.0;

/// Bounds of the temperature.
const TEMPERATURE_BOUNDS: RangeWithDefault<f64> =
    RangeWithDefault::new(0.0, CognitiveSpec::MAX_TEMPERATURE, CognitiveSpec::DEFAULT_TEMPERATURE);
/// Bounds of the number of model turns.
const STEP_BOUNDS: RangeWithDefault<u64> = RangeWithDefault::new(
    1,
    CognitiveSpec::MAX_STEPS as u64,
    CognitiveSpec::DEFAULT_MAX_STEPS as u64,
);

/// Cognitive agent as it was read.
pub(crate) struct ConfiguredCognition {
    pub(crate) spec: Arc<CognitiveSpec>,
    pub(crate) provider: Arc<ModelProvider>,
    /// Programs behind its tools.
    pub(crate) tool_backends: ToolBackends,
}

/// Returns the bounds of the settings of a cognitive agent.
pub(crate) fn bounds(mut bounds: AgentSettingBounds) -> AgentSettingBounds {
    let RangeWithDefault { min, max, .. } = bounds.timeout;
    bounds.timeout.default = DEFAULT_RUN_SECONDS.clamp(min, max);
    bounds
}

/// Reads the keys of a cognitive agent. In an agent of another kind, each of them is a fault.
pub(crate) fn read(
    agent: &mut Section<'_>,
    kind: AgentKind,
    catalog: &CognitionCatalog,
) -> Option<ConfiguredCognition> {
    let is_cognitive = kind == AgentKind::Cognitive;
    if !is_cognitive && has_refused_cognitive_keys(agent) {
        return None;
    }
    let words = CognitiveLayer::ALL.iter().map(|layer| (layer.as_str(), *layer));
    let layer = agent.keyword("layer", &words.collect::<Vec<_>>());
    agent.supported_keyword("agent_type", &[("tool_calling_agent", ())], &["code_agent"]);
    let model = read_model(agent, catalog);
    let instructions = agent.text("instructions").map(|text| text.value).unwrap_or_default();
    let temperature = agent.number("temperature", TEMPERATURE_BOUNDS);
    let max_steps = agent.count("max_steps", STEP_BOUNDS);
    let (tools, tool_backends) = read_tools(agent, catalog);
    if !is_cognitive {
        return None;
    }
    agent.report_if_missing("layer");
    agent.report_if_missing("model_id");
    let (model, provider) = model?;
    let max_steps = u32::try_from(max_steps).ok().and_then(NonZeroU32::new)?;
    let layer = layer?.value;
    let spec = CognitiveSpec {
        layer,
        model,
        instructions,
        temperature,
        max_steps,
        tools,
        backends: Vec::new(),
    };
    Some(ConfiguredCognition { spec: Arc::new(spec), provider, tool_backends })
}

/// Reports each key of cognitive agents; returns true if there is one.
fn has_refused_cognitive_keys(agent: &mut Section<'_>) -> bool {
    let has_keys = COGNITIVE_KEYS.iter().any(|key| agent.has_key(key));
    for key in COGNITIVE_KEYS {
        if let Some(entry) = agent.entry(key) {
            let message = "has a meaning with `kind = \"cognitive\"` only";
            agent.reader.report_error(&entry.position.without_excerpt(), message);
        }
    }
    has_keys
}

/// Reads the model, and finds its provider.
fn read_model(
    agent: &mut Section<'_>,
    catalog: &CognitionCatalog,
) -> Option<(ModelReference, Arc<ModelProvider>)> {
    let reader = agent.reader;
    if agent.peek("model_id").is_some_and(DeValue::is_array) {
        let diagnostic = new_diagnostic("is not supported yet").with_hint("name one model");
        let position = agent.entry("model_id")?.position;
        reader.report_error(&position.without_excerpt(), diagnostic);
        return None;
    }
    let text = agent.nonblank_text("model_id")?;
    let has_space = text.value.chars().any(char::is_whitespace);
    let parts = text.value.split_once('/').filter(|(_, name)| !name.is_empty() && !has_space);
    let Some((prefix, name)) = parts else {
        let message = "must be the prefix of a provider and the name of a model, such as \
                       \"local/qwen3\"";
        reader.report_error(&text.position, message);
        return None;
    };
    let Some(provider) = catalog.providers.get(prefix) else {
        let diagnostic = new_diagnostic(format!("there is no section `[models.{prefix}]`"));
        let known = catalog.providers.keys().map(String::as_str);
        reader.report_error(&text.position, diagnostic.suggest_from(prefix, known));
        return None;
    };
    let reference = ModelReference { provider: prefix.to_owned(), name: name.to_owned() };
    Some((reference, Arc::clone(provider.as_ref()?)))
}

/// Reads the tools in their order, and the programs behind them.
fn read_tools(
    agent: &mut Section<'_>,
    catalog: &CognitionCatalog,
) -> (Vec<Arc<ToolSpec>>, ToolBackends) {
    let reader = agent.reader;
    let names = agent.text_list("tools").unwrap_or_default();
    if names.len() > CognitiveSpec::MAX_TOOLS
        && let Some(list) = agent.entry("tools")
    {
        let message = format!("must name {} tools at most", CognitiveSpec::MAX_TOOLS);
        reader.report_error(&list.position.without_excerpt(), message);
    }
    let (mut tools, mut tool_backends) = (Vec::new(), ToolBackends::default());
    let mut seen_names: Vec<&str> = Vec::new();
    for Positioned { value: name, position } in &names {
        if seen_names.contains(&name.as_str()) {
            reader.report_error(position, "is named twice");
            continue;
        }
        seen_names.push(name);
        let tool = match catalog.tools.get(name) {
            // The faults of the tool have been reported.
            Some(tool) => tool.clone(),
            None if name.contains(SERVER_TOOL_SEPARATOR) => {
                server_tools::read_qualified_tool(agent, (name, position), &catalog.servers)
            }
            None => {
                let diagnostic = new_diagnostic(format!("there is no section `[tools.{name}]`"));
                let known = catalog.tools.keys().map(String::as_str);
                reader.report_error(position, diagnostic.suggest_from(name, known));
                None
            }
        };
        if let Some(ConfiguredTool { spec, performer }) = tool {
            tools.push(spec);
            add_backend(&mut tool_backends, name, performer);
        }
    }
    (tools, tool_backends)
}

/// Adds what performs the calls of a tool.
fn add_backend(tool_backends: &mut ToolBackends, name: &str, performer: ToolPerformer) {
    match performer {
        ToolPerformer::Service => {}
        ToolPerformer::Program(program) => {
            tool_backends.programs.insert(name.to_owned(), program);
        }
        ToolPerformer::Server(tool, server) => {
            tool_backends.server_tools.insert(name.to_owned(), tool);
            tool_backends.servers.insert(server.name.clone(), server);
        }
    }
}
