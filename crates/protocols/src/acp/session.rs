//! Open session: its settings and its tool calls.

use serde_json::Value;

use super::opening::{AcpSetting, SessionOpening, SettingQueue};
use super::tool_calls::ToolCalls;
use super::wire::{ConfigOption, OpenResult};
use crate::agent_error::AgentError;
use crate::model::ids::SessionKey;
use crate::model::step::ProtocolStep;

/// Session of the agent, from the response that opened it.
#[derive(Debug)]
pub(super) struct AcpSession {
    pub(super) native_id: String,
    pub(super) calls: ToolCalls,
    modes: Vec<String>,
    /// True if the session lists modes beside its options.
    has_separate_modes: bool,
    mode: Option<String>,
    model: Option<String>,
    options: Vec<ConfigOption>,
    phase: SessionOpeningPhase,
}

/// Progress of the opening.
#[derive(Debug)]
enum SessionOpeningPhase {
    Opening {
        settings: SettingQueue,
        /// Mode that the agent reported after the request that set it.
        observed_mode: Option<String>,
        /// Steps that follow `SessionOpened`.
        held_steps: Vec<ProtocolStep>,
    },
    Ready,
}

/// Changed setting of a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SettingChange {
    Mode(String),
    Model(String),
}

impl AcpSession {
    pub(super) fn new(native_id: String, opening: SessionOpening, result: &OpenResult) -> Self {
        let modes = result.current_and_available_modes();
        let (has_separate_modes, (mode, modes)) = (modes.is_some(), modes.unwrap_or_default());
        let phase = SessionOpeningPhase::Opening {
            settings: opening.settings,
            observed_mode: None,
            held_steps: Vec::new(),
        };
        let mut session = Self {
            native_id,
            calls: ToolCalls::default(),
            modes,
            has_separate_modes,
            mode,
            model: result.current_model(),
            options: Vec::new(),
            phase,
        };
        session.apply_options(result.options());
        session
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self.phase, SessionOpeningPhase::Ready)
    }

    /// Returns the options, and whether the session lists modes beside them.
    pub(super) fn options_and_has_separate_modes(&self) -> (&[ConfigOption], bool) {
        (&self.options, self.has_separate_modes)
    }

    /// Takes the next setting of the opening, with the id of its request if it was sent before a crash.
    pub(super) fn take_next_setting(&mut self) -> Option<(Option<i64>, AcpSetting)> {
        let SessionOpeningPhase::Opening { settings, observed_mode, .. } = &mut self.phase else {
            return None;
        };
        *observed_mode = None;
        settings.pop_front()
    }

    /// Ends the opening; returns `SessionOpened` and the steps that waited for it.
    pub(super) fn finish_opening(&mut self, key: SessionKey) -> Vec<ProtocolStep> {
        let held_steps = match std::mem::replace(&mut self.phase, SessionOpeningPhase::Ready) {
            SessionOpeningPhase::Opening { held_steps, .. } => held_steps,
            SessionOpeningPhase::Ready => return Vec::new(),
        };
        let opened = ProtocolStep::SessionOpened {
            session: key,
            native_id: self.native_id.clone(),
            modes: self.modes.clone(),
            mode: self.mode.clone(),
            model: self.model.clone(),
        };
        std::iter::once(opened).chain(held_steps).collect()
    }

    /// Returns the steps, or holds them until the opening ends.
    pub(super) fn release_or_hold(&mut self, steps: Vec<ProtocolStep>) -> Vec<ProtocolStep> {
        match &mut self.phase {
            SessionOpeningPhase::Opening { held_steps, .. } => {
                held_steps.extend(steps);
                Vec::new()
            }
            SessionOpeningPhase::Ready => steps,
        }
    }

    /// Checks the response to a setting of the opening.
    ///
    /// Agents confirm a mode by the response, by an update before it, or by both. An update that reports another mode
    /// contradicts the response.
    pub(super) fn apply_opening_setting_response(
        &mut self,
        setting: &AcpSetting,
        result: &Value,
    ) -> Result<(), AgentError> {
        self.apply_options(
            ConfigOption::parse_list(result.get("configOptions")).unwrap_or_default(),
        );
        let observed_mode = match &self.phase {
            SessionOpeningPhase::Opening { observed_mode, .. } => observed_mode.clone(),
            SessionOpeningPhase::Ready => None,
        };
        match (setting, observed_mode) {
            (AcpSetting::Mode(requested), Some(current)) if *requested != current => {
                let message =
                    format!("mode `{requested}` was set, but the agent reports `{current}`");
                return Err(AgentError { code: 0, message });
            }
            (AcpSetting::Mode(requested), _) => self.mode = Some(requested.clone()),
            (AcpSetting::Model(requested), _) => self.model = Some(requested.clone()),
            (AcpSetting::Config(..), _) => {}
        }
        Ok(())
    }

    /// Applies the response to a setting after the opening.
    pub(super) fn apply_setting_response(
        &mut self,
        setting: AcpSetting,
        result: &Value,
    ) -> Vec<SettingChange> {
        let reported_options =
            ConfigOption::parse_list(result.get("configOptions")).unwrap_or_default();
        let mut changes = self.apply_options(reported_options);
        match setting {
            AcpSetting::Mode(mode) => changes.extend(self.apply_mode(mode)),
            AcpSetting::Model(model) => changes.extend(self.apply_model(model)),
            AcpSetting::Config(..) => {}
        }
        changes
    }

    /// Applies the options that the agent reports. An empty list changes nothing.
    pub(super) fn apply_options(
        &mut self,
        reported_options: Vec<ConfigOption>,
    ) -> Vec<SettingChange> {
        let current = |name: &str| {
            let option = reported_options.iter().find(|option| option.has_category(name))?;
            option.current_text_value().map(str::to_owned)
        };
        let (mode, model) = (current("mode"), current("model"));
        if !self.has_separate_modes
            && let Some(option) = reported_options.iter().find(|option| option.has_category("mode"))
        {
            self.modes = option.selectable_values();
        }
        if !reported_options.is_empty() {
            self.options = reported_options;
        }
        let mode = mode.and_then(|mode| self.apply_mode(mode));
        let model = model.and_then(|model| self.apply_model(model));
        mode.into_iter().chain(model).collect()
    }

    /// Records the current mode; returns a change if the session is open and the mode is another one.
    pub(super) fn apply_mode(&mut self, mode: String) -> Option<SettingChange> {
        if let SessionOpeningPhase::Opening { observed_mode, .. } = &mut self.phase {
            *observed_mode = Some(mode.clone());
        }
        let is_new = self.mode.as_ref() != Some(&mode);
        self.mode = Some(mode.clone());
        (is_new && self.is_ready()).then_some(SettingChange::Mode(mode))
    }

    fn apply_model(&mut self, model: String) -> Option<SettingChange> {
        let is_new = self.model.as_ref() != Some(&model);
        self.model = Some(model.clone());
        (is_new && self.is_ready()).then_some(SettingChange::Model(model))
    }
}

impl SettingChange {
    /// Returns the step that reports the change.
    pub(super) fn into_step(self, session: SessionKey) -> ProtocolStep {
        match self {
            Self::Mode(mode) => ProtocolStep::ModeChanged { session, mode },
            Self::Model(model) => ProtocolStep::ModelChanged { session, model },
        }
    }
}
