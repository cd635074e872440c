//! Opening of a session, and the settings that follow it.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::wire::ConfigOption;
use crate::model::command::SessionStart;
use crate::model::ids::SessionKey;
use crate::model::step::{AgentCapability, AgentInfo, OpenFault, ProtocolStep};

/// Settings in their order. A setting of a replay has the id of its request, which is not sent again.
pub(super) type SettingQueue = VecDeque<(Option<i64>, AcpSetting)>;

/// Session that is being opened.
#[derive(Debug)]
pub(super) struct SessionOpening {
    pub(super) session: SessionKey,
    /// Native id of the conversation to continue.
    pub(super) resume_id: Option<String>,
    cwd: String,
    pub(super) settings: SettingQueue,
    pub(super) origin: OpeningOrigin,
}

/// Source of the request of an opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpeningOrigin {
    /// Command of the caller.
    Command,
    /// Replayed line. The settings are those that follow it among the replayed lines.
    Replay,
    /// Replayed line, whose settings a command of the caller repeats.
    ReplayWithCommand,
}

impl SessionOpening {
    pub(super) fn new(
        session: SessionKey,
        start: SessionStart,
        cwd: String,
        settings: SettingQueue,
    ) -> Self {
        let resume_id = start.into_resumed_id();
        Self { session, resume_id, cwd, settings, origin: OpeningOrigin::Command }
    }

    /// Returns the opening of a replayed request.
    pub(super) fn from_replay(session: SessionKey, resume_id: Option<String>) -> Self {
        let settings = SettingQueue::new();
        Self { session, resume_id, cwd: String::new(), settings, origin: OpeningOrigin::Replay }
    }

    /// Returns the method of the request; `None` if the agent cannot continue conversations.
    pub(super) fn method(&self, agent: &AgentInfo) -> Option<&'static str> {
        match &self.resume_id {
            None => Some("session/new"),
            // The response to `load` repeats the complete history first.
            Some(_) if agent.has_capability(AgentCapability::Resume) => Some("session/resume"),
            Some(_) if agent.has_capability(AgentCapability::Load) => Some("session/load"),
            Some(_) => None,
        }
    }

    /// Gives the settings of a command to a replayed opening; returns true if the opening is replayed.
    pub(super) fn attach_command_if_replayed(&mut self, settings: &mut SettingQueue) -> bool {
        let is_replayed = self.origin == OpeningOrigin::Replay;
        if is_replayed {
            self.origin = OpeningOrigin::ReplayWithCommand;
            self.settings = std::mem::take(settings);
        }
        is_replayed
    }

    /// Assigns the replayed settings to the opening; returns those that were sent after it.
    pub(super) fn assign_replayed_settings(
        &mut self,
        mut replayed_settings: SettingQueue,
    ) -> SettingQueue {
        match self.origin {
            OpeningOrigin::Command => {}
            OpeningOrigin::Replay => self.settings = std::mem::take(&mut replayed_settings),
            OpeningOrigin::ReplayWithCommand => {
                for (setting, replayed_setting) in
                    self.settings.iter_mut().zip(replayed_settings.iter())
                {
                    setting.0 = replayed_setting.0;
                }
                replayed_settings.drain(..self.settings.len().min(replayed_settings.len()));
            }
        }
        replayed_settings
    }

    pub(super) fn params(&self) -> Value {
        let mut params = json!({"cwd": self.cwd, "mcpServers": []});
        if let (Some(native_id), Some(params)) = (&self.resume_id, params.as_object_mut()) {
            params.insert("sessionId".to_owned(), native_id.as_str().into());
        }
        params
    }

    pub(super) fn key_in_use_step(&self) -> ProtocolStep {
        self.open_failed_step(OpenFault::Other, "the key of the session is in use")
    }

    pub(super) fn open_failed_step(&self, fault: OpenFault, message: &str) -> ProtocolStep {
        ProtocolStep::OpenFailed { session: self.session, fault, message: message.to_owned() }
    }
}

/// Setting of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AcpSetting {
    /// Id of a mode.
    Mode(String),
    /// Id of a model.
    Model(String),
    /// Id and value of an option.
    Config(String, String),
}

/// Returns the settings of an opening in their order.
pub(super) fn initial_settings(
    mode: Option<String>,
    model: Option<String>,
    options: Vec<(String, String)>,
) -> SettingQueue {
    let mode = mode.map(AcpSetting::Mode);
    let model = model.map(AcpSetting::Model);
    let options = options.into_iter().map(|(id, value)| AcpSetting::Config(id, value));
    mode.into_iter().chain(model).chain(options).map(|setting| (None, setting)).collect()
}

impl AcpSetting {
    /// Returns the method and the parameters of the request. `has_separate_modes` is whether the session lists modes
    /// beside its options.
    pub(super) fn to_request(
        &self,
        native_id: &str,
        (options, has_separate_modes): (&[ConfigOption], bool),
    ) -> (&'static str, Value) {
        let by_category = |name| options.iter().find(|option| option.has_category(name));
        match self {
            Self::Mode(mode) => match by_category("mode").filter(|_| !has_separate_modes) {
                Some(option) => config_option_request(native_id, &option.id, mode.as_str().into()),
                None => ("session/set_mode", json!({"sessionId": native_id, "modeId": mode})),
            },
            Self::Model(model) => match by_category("model") {
                Some(option) => config_option_request(native_id, &option.id, model.as_str().into()),
                None => ("session/set_model", json!({"sessionId": native_id, "modelId": model})),
            },
            Self::Config(id, value) => {
                let option = options.iter().find(|option| option.id == *id);
                match (value.parse::<bool>(), option.is_some_and(ConfigOption::is_boolean)) {
                    (Ok(value), true) => {
                        let (method, mut params) =
                            config_option_request(native_id, id, value.into());
                        if let Some(params) = params.as_object_mut() {
                            params.insert("type".to_owned(), "boolean".into());
                        }
                        (method, params)
                    }
                    _ => config_option_request(native_id, id, value.as_str().into()),
                }
            }
        }
    }

    /// Returns the mode or the model that an option stands for; any other setting as it is. A sent line does not show
    /// the category of its option.
    pub(super) fn reclassify_by_category(self, options: &[ConfigOption]) -> Self {
        let Self::Config(id, value) = self else { return self };
        match options.iter().find(|option| option.id == id) {
            Some(option) if option.has_category("mode") => Self::Mode(value),
            Some(option) if option.has_category("model") => Self::Model(value),
            _ => Self::Config(id, value),
        }
    }

    /// Reads the setting of a sent request.
    pub(super) fn from_request(method: &str, params: &Value) -> Option<Self> {
        let string_field = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
        match method {
            "session/set_mode" => string_field("modeId").map(Self::Mode),
            "session/set_model" => string_field("modelId").map(Self::Model),
            "session/set_config_option" => {
                let value = params.get("value")?;
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                Some(Self::Config(string_field("configId")?, value))
            }
            _ => None,
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Self::Mode(mode) => format!("mode `{mode}`"),
            Self::Model(model) => format!("model `{model}`"),
            Self::Config(id, _) => format!("option `{id}`"),
        }
    }
}

fn config_option_request(native_id: &str, id: &str, value: Value) -> (&'static str, Value) {
    let params = json!({"sessionId": native_id, "configId": id, "value": value});
    ("session/set_config_option", params)
}
