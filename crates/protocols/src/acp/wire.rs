//! Messages of ACP, as far as the connection reads them. Unknown fields are ignored.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::model::step::{
    AgentCapability, AgentInfo, PermissionOption, PermissionOptionKind, TokenUsage, UsageCost,
};

/// Reads a value; a value of another shape is `None`.
fn parse_value<T: DeserializeOwned>(value: Value) -> Option<T> {
    T::deserialize(value).ok()
}

/// Reads a value that is part of a message; a missing value, `null` or another shape gives the default.
pub(super) fn parse_or_default<T: DeserializeOwned + Default>(value: Option<&Value>) -> T {
    value.and_then(|value| T::deserialize(value).ok()).unwrap_or_default()
}

/// Result of `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InitializeResult {
    pub(super) protocol_version: Option<i64>,
    agent_info: Option<Value>,
    agent_capabilities: Option<Value>,
}

impl InitializeResult {
    pub(super) fn from_json(result: Value) -> Option<Self> {
        parse_value(result)
    }

    pub(super) fn to_agent_info(&self) -> AgentInfo {
        let string_field = |name: &str| {
            let value = self.agent_info.as_ref().and_then(|info| info.get(name));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let is_declared = |path: &str| {
            let value = self.agent_capabilities.as_ref().and_then(|all| all.pointer(path));
            // A capability is an object, or a flag.
            value.is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
        };
        let capabilities = [
            (AgentCapability::Load, "/loadSession"),
            (AgentCapability::Resume, "/sessionCapabilities/resume"),
            (AgentCapability::Close, "/sessionCapabilities/close"),
            (AgentCapability::EmbeddedContext, "/promptCapabilities/embeddedContext"),
            (AgentCapability::Image, "/promptCapabilities/image"),
            (AgentCapability::Audio, "/promptCapabilities/audio"),
        ];
        let capabilities = capabilities.into_iter().filter(|(_, path)| is_declared(path));
        AgentInfo {
            name: string_field("name"),
            version: string_field("version"),
            capabilities: capabilities.map(|(capability, _)| capability).collect(),
        }
    }
}

/// Result of a request that opens a session.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenResult {
    pub(super) session_id: Option<String>,
    modes: Option<Value>,
    models: Option<Value>,
    config_options: Option<Value>,
}

impl OpenResult {
    pub(super) fn from_json(result: Value) -> Option<Self> {
        parse_value(result)
    }

    /// Returns the current mode and the modes, if the session lists modes beside its options.
    pub(super) fn current_and_available_modes(&self) -> Option<(Option<String>, Vec<String>)> {
        let modes = self.modes.as_ref().filter(|modes| modes.is_object())?;
        let available: Vec<Value> = parse_or_default(modes.get("availableModes"));
        let ids = available.iter().filter_map(|mode| mode.get("id")?.as_str().map(str::to_owned));
        Some((parse_or_default(modes.get("currentModeId")), ids.collect()))
    }

    pub(super) fn current_model(&self) -> Option<String> {
        parse_or_default(self.models.as_ref()?.get("currentModelId"))
    }

    pub(super) fn options(&self) -> Vec<ConfigOption> {
        ConfigOption::parse_list(self.config_options.as_ref()).unwrap_or_default()
    }
}

/// Option of a session.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConfigOption {
    pub(super) id: String,
    category: Option<String>,
    r#type: Option<String>,
    current_value: Option<Value>,
    options: Option<Value>,
}

impl ConfigOption {
    /// Returns the options of a list, without entries of another shape.
    pub(super) fn parse_list(list: Option<&Value>) -> Option<Vec<Self>> {
        let list = list?.as_array()?;
        Some(list.iter().filter_map(|option| Self::deserialize(option).ok()).collect())
    }

    pub(super) fn has_category(&self, name: &str) -> bool {
        // The category is optional; some agents use its name as the id only.
        self.category.as_deref().unwrap_or(&self.id) == name
    }

    pub(super) fn is_boolean(&self) -> bool {
        self.r#type.as_deref() == Some("boolean")
    }

    pub(super) fn current_text_value(&self) -> Option<&str> {
        self.current_value.as_ref()?.as_str()
    }

    /// Returns the values to choose from.
    pub(super) fn selectable_values(&self) -> Vec<String> {
        let all: Vec<Value> = parse_or_default(self.options.as_ref());
        all.iter().filter_map(|value| value.get("value")?.as_str().map(str::to_owned)).collect()
    }
}

/// Parameters of `session/request_permission`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionParams {
    pub(super) session_id: String,
    pub(super) tool_call: Value,
    pub(super) options: Vec<PermissionOptionParams>,
}

impl PermissionParams {
    pub(super) fn from_json(params: &Value) -> Option<Self> {
        Self::deserialize(params).ok()
    }
}

/// Option of a permission request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionOptionParams {
    option_id: String,
    name: Option<String>,
    kind: Option<String>,
}

impl PermissionOptionParams {
    pub(super) fn into_permission_option(self) -> PermissionOption {
        let kind = match self.kind.as_deref() {
            Some("allow_once") => PermissionOptionKind::AllowOnce,
            Some("allow_always") => PermissionOptionKind::AllowAlways,
            Some("reject_once") => PermissionOptionKind::RejectOnce,
            Some("reject_always") => PermissionOptionKind::RejectAlways,
            _ => PermissionOptionKind::Unknown,
        };
        PermissionOption { id: self.option_id, name: self.name.unwrap_or_default(), kind }
    }
}

/// Parameters of `elicitation/create`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ElicitationParams {
    pub(super) session_id: String,
    pub(super) mode: Option<String>,
    pub(super) message: Option<String>,
    pub(super) requested_schema: Option<Value>,
    pub(super) tool_call_id: Option<String>,
}

impl ElicitationParams {
    pub(super) fn from_json(params: &Value) -> Option<Self> {
        Self::deserialize(params).ok()
    }
}

/// Reads token counts, in the spelling of ACP or in that of `_meta.quota.token_count`.
pub(super) fn parse_token_usage(value: &Value) -> Option<TokenUsage> {
    let number = |names: &[&str]| names.iter().find_map(|name| value.get(name)?.as_u64());
    let usage = TokenUsage {
        input: number(&["inputTokens", "input_tokens"]),
        output: number(&["outputTokens", "output_tokens"]),
        cached: number(&["cachedReadTokens", "cachedInputTokens"]),
        reasoning: number(&["thoughtTokens", "reasoningOutputTokens"]),
        ..TokenUsage::default()
    };
    usage.into_non_empty()
}

/// Reads a `usage_update`, which reports the context window and the cost.
pub(super) fn parse_context_usage(update: &Value) -> Option<TokenUsage> {
    let cost = update.get("cost").and_then(|cost| {
        let currency = cost.get("currency").and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(UsageCost { amount: cost.get("amount")?.as_f64()?, currency })
    });
    let number = |name: &str| update.get(name).and_then(Value::as_u64);
    let usage = TokenUsage {
        context: number("used"),
        context_size: number("size"),
        cost,
        ..TokenUsage::default()
    };
    usage.into_non_empty()
}
