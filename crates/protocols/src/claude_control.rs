//! Stream of JSON messages with control requests, as Claude Code speaks it.
//!
//! The process has one session. Its working folder, and the conversation that it continues, are arguments of the
//! process, so [`Command::Open`] sends the mode and the model only. The id of a new conversation is known with its
//! first turn ([`ProtocolStep::SessionIdentified`]); until then it is empty. [`Command::Close`] only forgets the
//! session.
//!
//! No line opens the session either. After `replay_sent_lines`, the caller must repeat [`Command::Open`], and the
//! replay returns [`ProtocolStep::SessionOpened`] with the response to `initialize` or to the last setting.

mod messages;
mod replay;
mod requests;
mod session;
mod writer;

use std::collections::{HashMap, VecDeque};

use serde_json::{Value, json};

use self::messages::MessageTranslator;
use self::requests::ControlAgentRequests;
use self::session::{ControlSession, ControlSetting};
use self::writer::ControlWriter;
use crate::agent_error::AgentError;
use crate::model::command::{Command, PromptPart, SessionStart};
use crate::model::ids::SessionKey;
use crate::model::step::{AgentCapability, AgentInfo, OpenFault, ProtocolStep, TurnOutcome};
use crate::protocol::Protocol;
use crate::turns::TurnCounts;

/// Connection that speaks claude-control.
#[derive(Debug, Default)]
pub(crate) struct ControlConnection {
    writer: ControlWriter,
    pending_requests: HashMap<String, ControlPendingRequest>,
    agent_requests: ControlAgentRequests,
    turns: TurnCounts,
    translator: MessageTranslator,
    initialize_state: ControlInitializeState,
    session: Option<ControlSession>,
    /// Settings among the replayed lines before the first prompt, with the ids of their requests.
    recorded_settings: VecDeque<(String, ControlSetting)>,
}

/// State of `initialize`.
#[derive(Debug, Default, PartialEq, Eq)]
enum ControlInitializeState {
    #[default]
    New,
    Initializing,
    Ready,
    Failed,
}

/// Request of the client that waits for its response.
#[derive(Debug)]
enum ControlPendingRequest {
    Initialize,
    OpeningSetting(ControlSetting),
    SessionSetting(ControlSetting),
    Interrupt,
}

impl ControlConnection {
    fn send_request(&mut self, request: &Value, pending: ControlPendingRequest) -> ProtocolStep {
        let (id, step) = self.writer.request(request);
        self.pending_requests.insert(id, pending);
        step
    }

    fn initialize(&mut self) -> Vec<ProtocolStep> {
        if self.initialize_state != ControlInitializeState::New {
            return vec![ProtocolStep::protocol_error("the connection is initialized already")];
        }
        self.initialize_state = ControlInitializeState::Initializing;
        let request = json!({"subtype": "initialize", "hooks": null});
        vec![self.send_request(&request, ControlPendingRequest::Initialize)]
    }

    fn handle_init_response(&mut self, outcome: Result<Value, AgentError>) -> Vec<ProtocolStep> {
        match outcome {
            Ok(response) => {
                self.initialize_state = ControlInitializeState::Ready;
                let version = response.get("claude_code_version").and_then(Value::as_str);
                let info = AgentInfo {
                    name: "claude".to_owned(),
                    version: version.unwrap_or_default().to_owned(),
                    capabilities: [AgentCapability::Image].into(),
                };
                let mode = response.get("current_permission_mode").and_then(Value::as_str);
                if let Some(session) = &mut self.session {
                    session.mode = mode.map(str::to_owned);
                }
                self.translator.mode = mode.map(str::to_owned);
                let mut steps = vec![ProtocolStep::Initialized(info)];
                steps.extend(self.advance_opening());
                steps
            }
            Err(error) => {
                self.initialize_state = ControlInitializeState::Failed;
                let fault = error.to_open_fault(false);
                let initialize_failed =
                    ProtocolStep::InitializeFailed { fault: fault.clone(), message: error.message };
                let open_failed = self.session.take().map(|session| ProtocolStep::OpenFailed {
                    session: session.key,
                    fault,
                    message: "initialize failed".to_owned(),
                });
                std::iter::once(initialize_failed).chain(open_failed).collect()
            }
        }
    }

    fn open_session(
        &mut self,
        key: SessionKey,
        start: SessionStart,
        settings: impl Iterator<Item = ControlSetting>,
    ) -> Vec<ProtocolStep> {
        let failed_steps = |message: &str| {
            let (fault, message) = (OpenFault::Other, message.to_owned());
            vec![ProtocolStep::OpenFailed { session: key, fault, message }]
        };
        if self.session.is_some() {
            return failed_steps("the process has a session already");
        }
        let state = &self.initialize_state;
        if matches!(state, ControlInitializeState::New | ControlInitializeState::Failed) {
            return failed_steps("the connection is not initialized");
        }
        let id = start.into_resumed_id().unwrap_or_default();
        let mut recorded_settings = std::mem::take(&mut self.recorded_settings).into_iter();
        let pending_settings =
            settings.map(|setting| (recorded_settings.next().map(|(id, _)| id), setting)).collect();
        for (id, setting) in recorded_settings {
            self.pending_requests.insert(id, ControlPendingRequest::SessionSetting(setting));
        }
        let (mode, model) = (self.translator.mode.clone(), None);
        let session =
            ControlSession { key, native_id: id, pending_settings, is_ready: false, mode, model };
        self.session = Some(session);
        let is_initialized = self.initialize_state == ControlInitializeState::Ready;
        if is_initialized { self.advance_opening() } else { Vec::new() }
    }

    /// Sends the next setting of the opening, or reports the session as open.
    fn advance_opening(&mut self) -> Vec<ProtocolStep> {
        let Some(session) = &mut self.session else { return Vec::new() };
        match session.pending_settings.pop_front() {
            Some((Some(id), setting)) => {
                self.pending_requests.insert(id, ControlPendingRequest::OpeningSetting(setting));
                Vec::new()
            }
            Some((None, setting)) => {
                let request = setting.to_request();
                vec![self.send_request(&request, ControlPendingRequest::OpeningSetting(setting))]
            }
            None => {
                session.is_ready = true;
                vec![ProtocolStep::SessionOpened {
                    session: session.key,
                    native_id: session.native_id.clone(),
                    modes: Vec::new(),
                    mode: session.mode.clone(),
                    model: session.model.clone(),
                }]
            }
        }
    }

    fn handle_opening_setting_response(
        &mut self,
        setting: ControlSetting,
        outcome: Result<Value, AgentError>,
    ) -> Vec<ProtocolStep> {
        let Some(session) = &mut self.session else { return Vec::new() };
        let error = match outcome {
            Ok(response) => {
                let current = response.get("mode").and_then(Value::as_str);
                match setting {
                    ControlSetting::Mode(mode) if current.is_none_or(|it| it == mode) => {
                        session.mode = Some(mode.clone());
                        self.translator.mode = Some(mode);
                        return self.advance_opening();
                    }
                    ControlSetting::Model(model) => {
                        session.model = Some(model);
                        return self.advance_opening();
                    }
                    ControlSetting::Mode(_) => {
                        AgentError { code: 0, message: "the agent reports another mode".to_owned() }
                    }
                }
            }
            Err(error) => error,
        };
        let fault = match setting {
            ControlSetting::Mode(mode) => OpenFault::ModeNotConfirmed { requested: mode },
            ControlSetting::Model(_) => OpenFault::Other,
        };
        let session = session.key;
        self.session = None;
        vec![ProtocolStep::OpenFailed { session, fault, message: error.message }]
    }

    fn is_ready(&self, key: SessionKey) -> bool {
        self.session.as_ref().is_some_and(|session| session.key == key && session.is_ready)
    }

    fn change_setting(&mut self, key: SessionKey, setting: ControlSetting) -> Vec<ProtocolStep> {
        if !self.is_ready(key) {
            return vec![ProtocolStep::protocol_error("the session is not open")];
        }
        let request = setting.to_request();
        vec![self.send_request(&request, ControlPendingRequest::SessionSetting(setting))]
    }

    fn handle_setting_response(
        &mut self,
        setting: ControlSetting,
        outcome: &Result<Value, AgentError>,
    ) -> Vec<ProtocolStep> {
        let Some(session) = self.session.as_ref().map(|it| it.key) else { return Vec::new() };
        if let Err(error) = outcome {
            let text = format!("not set: {}", error.message);
            return vec![ProtocolStep::Warning { session, text }];
        }
        match setting {
            ControlSetting::Mode(mode) => {
                self.translator.change_mode(session, &mode).into_iter().collect()
            }
            ControlSetting::Model(model) => vec![ProtocolStep::ModelChanged { session, model }],
        }
    }

    fn prompt(&mut self, session: SessionKey, parts: &[PromptPart]) -> Vec<ProtocolStep> {
        if !self.is_ready(session) {
            let message = "the session is not open".to_owned();
            let turn_outcome =
                TurnOutcome::Failed { code: 0, message, is_authentication_error: false };
            return vec![ProtocolStep::TurnEnded { session, outcome: turn_outcome, usage: None }];
        }
        if self.turns.is_running() {
            return vec![ProtocolStep::protocol_error("a turn is in progress")];
        }
        let content: Vec<_> = parts.iter().map(messages::content_block).collect();
        let message = json!({"type": "user", "message": {"role": "user", "content": content}});
        let step = self.writer.build_send_step(&message);
        self.turns.record_prompt(self.writer.sent_line_count);
        vec![step]
    }

    fn cancel(&mut self, session: SessionKey) -> Vec<ProtocolStep> {
        if !self.is_ready(session) || !self.turns.is_running() {
            return Vec::new();
        }
        self.turns.record_cancel();
        let request = json!({"subtype": "interrupt"});
        let mut steps = vec![self.send_request(&request, ControlPendingRequest::Interrupt)];
        let cancel_steps = self.agent_requests.cancel_all(session, &mut self.writer).into_iter();
        steps.extend(cancel_steps.filter(|step| matches!(step, ProtocolStep::Send(_))));
        steps
    }

    fn end_turn(&mut self, end_step: impl FnOnce(bool) -> ProtocolStep) -> Vec<ProtocolStep> {
        let is_cancelling = self.turns.is_cancelling();
        let Some(session) = self.session.as_ref().map(|it| it.key) else { return Vec::new() };
        if !self.turns.try_end_turn() {
            return Vec::new();
        }
        self.translator.end_turn();
        let mut steps = self.agent_requests.cancel_all(session, &mut self.writer);
        steps.push(end_step(is_cancelling));
        steps
    }

    fn end_lost_turn(&mut self) -> Vec<ProtocolStep> {
        let session = self.session.as_ref().map_or(SessionKey(0), |session| session.key);
        let outcome = TurnOutcome::Lost;
        self.end_turn(|_| ProtocolStep::TurnEnded { session, outcome, usage: None })
    }

    fn close(&mut self, session: SessionKey) -> Vec<ProtocolStep> {
        let mut steps = self.cancel(session);
        if self.session.as_ref().is_some_and(|open_session| open_session.key == session) {
            steps.extend(self.end_lost_turn());
            self.session = None;
        }
        steps.push(ProtocolStep::SessionClosed { session });
        steps
    }

    fn handle_response(&mut self, message: &Value) -> Vec<ProtocolStep> {
        let response = message.get("response").cloned().unwrap_or_default();
        let string_field = |name: &str| response.get(name).and_then(Value::as_str);
        let pending = string_field("request_id").and_then(|id| self.pending_requests.remove(id));
        let outcome = match string_field("subtype") {
            Some("success") => Ok(response.get("response").cloned().unwrap_or_default()),
            _ => {
                let message = string_field("error").unwrap_or_default().to_owned();
                Err(AgentError { code: 0, message })
            }
        };
        match pending {
            None => vec![ProtocolStep::protocol_error("response to an unknown request")],
            Some(ControlPendingRequest::Initialize) => self.handle_init_response(outcome),
            Some(ControlPendingRequest::OpeningSetting(setting)) => {
                self.handle_opening_setting_response(setting, outcome)
            }
            Some(ControlPendingRequest::SessionSetting(setting)) => {
                self.handle_setting_response(setting, &outcome)
            }
            Some(ControlPendingRequest::Interrupt) => Vec::new(),
        }
    }

    fn handle_message(&mut self, kind: &str, message: &Value) -> Vec<ProtocolStep> {
        let Some(session) = &mut self.session else { return Vec::new() };
        let key = session.key;
        let mut steps = Vec::new();
        let id = message.get("session_id").and_then(Value::as_str).unwrap_or_default();
        if !id.is_empty() && id != session.native_id {
            id.clone_into(&mut session.native_id);
            steps.push(ProtocolStep::SessionIdentified { session: key, native_id: id.to_owned() });
        }
        if kind == "result" {
            let answer = self.translator.result_text_step(key, message);
            let end_step = |is_cancelling| messages::turn_ended_step(key, message, is_cancelling);
            let end_steps = self.end_turn(end_step);
            steps.extend(answer.filter(|_| !end_steps.is_empty()));
            steps.extend(end_steps);
        } else {
            steps.extend(self.translator.translate_message(key, kind, message));
        }
        steps
    }
}

impl Protocol for ControlConnection {
    fn receive(&mut self, message: Value) -> Vec<ProtocolStep> {
        let Some(kind) = message.get("type").and_then(Value::as_str) else {
            return vec![ProtocolStep::protocol_error("message has no type")];
        };
        match kind {
            "control_response" => self.handle_response(&message),
            "control_request" => {
                let key = self.session.as_ref().map(|session| session.key);
                let state = (key, &self.turns, &mut self.translator);
                self.agent_requests.receive(&message, state, &mut self.writer)
            }
            "control_cancel_request" => {
                self.agent_requests.handle_withdrawal(&message, &mut self.writer)
            }
            kind => self.handle_message(kind, &message),
        }
    }

    fn handle_command(&mut self, command: Command) -> Vec<ProtocolStep> {
        match command {
            Command::Initialize => self.initialize(),
            Command::Open { session, start, mode, model, .. } => {
                let mode = mode.map(ControlSetting::Mode);
                let model = model.map(ControlSetting::Model);
                self.open_session(session, start, mode.into_iter().chain(model))
            }
            Command::Prompt { session, parts } => self.prompt(session, &parts),
            Command::Answer { session, request_id, answer } => {
                self.agent_requests.answer((session, &request_id), answer, &mut self.writer)
            }
            Command::Cancel { session } => self.cancel(session),
            Command::SetMode { session, mode } => {
                self.change_setting(session, ControlSetting::Mode(mode))
            }
            Command::SetModel { session, model } => {
                self.change_setting(session, ControlSetting::Model(model))
            }
            Command::Close { session } => self.close(session),
        }
    }

    fn replay_sent_line(&mut self, line: &[u8]) {
        replay::replay_sent_line(self, line);
    }

    fn handle_end_of_output(&mut self) -> Vec<ProtocolStep> {
        let (fault, message) = (OpenFault::Other, "the process has ended".to_owned());
        let mut steps = Vec::new();
        if self.initialize_state == ControlInitializeState::Initializing {
            let (fault, message) = (fault.clone(), message.clone());
            steps.push(ProtocolStep::InitializeFailed { fault, message });
        }
        if let Some(session) = self.session.take_if(|session| !session.is_ready) {
            steps.push(ProtocolStep::OpenFailed { session: session.key, fault, message });
        }
        steps.extend(self.end_lost_turn());
        steps.retain(|step| !matches!(step, ProtocolStep::Send(_)));
        steps
    }
}
