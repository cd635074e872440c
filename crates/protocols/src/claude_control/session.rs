//! Session of the process, and its settings.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::model::ids::SessionKey;

/// Session of the process.
#[derive(Debug)]
pub(super) struct ControlSession {
    pub(super) key: SessionKey,
    pub(super) native_id: String,
    pub(super) pending_settings: VecDeque<(Option<String>, ControlSetting)>,
    pub(super) is_ready: bool,
    pub(super) mode: Option<String>,
    pub(super) model: Option<String>,
}

/// Setting of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ControlSetting {
    Mode(String),
    Model(String),
}

impl ControlSetting {
    pub(super) fn to_request(&self) -> Value {
        match self {
            Self::Mode(mode) => json!({"subtype": "set_permission_mode", "mode": mode}),
            Self::Model(model) => json!({"subtype": "set_model", "model": model}),
        }
    }

    pub(super) fn from_request(request: &Value) -> Option<Self> {
        let string_field =
            |name: &str| request.get(name).and_then(Value::as_str).map(str::to_owned);
        match string_field("subtype")?.as_str() {
            "set_permission_mode" => string_field("mode").map(Self::Mode),
            "set_model" => string_field("model").map(Self::Model),
            _ => None,
        }
    }
}
