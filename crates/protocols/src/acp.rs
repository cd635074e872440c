//! Agent Client Protocol, version 1.

mod client_state;
mod content_block;
mod opening;
mod prompt;
mod replay;
mod requests;
mod session;
mod session_table;
mod tool_calls;
mod update;
mod wire;

use serde_json::{Value, json};

use self::client_state::{AcpClientState, AcpPendingRequest};
use self::opening::{AcpSetting, SessionOpening};
use self::wire::{InitializeResult, OpenResult};
use crate::agent_error::AgentError;
use crate::model::command::{ClientInfo, Command};
use crate::model::ids::{RequestId, SessionKey};
use crate::model::step::{AgentCapability, AgentInfo, OpenFault, ProtocolStep};
use crate::protocol::Protocol;
use crate::rpc::RpcMessage;

const PROTOCOL_VERSION: i64 = 1;

/// Connection that speaks ACP.
#[derive(Debug)]
pub(crate) struct AcpConnection {
    client_info: ClientInfo,
    client_state: AcpClientState,
    initialize_state: InitializeState,
    replayed_settings: replay::ReplayedSettings,
}

/// State of `initialize`.
#[derive(Debug)]
enum InitializeState {
    New,
    /// Openings wait, since the capabilities of the agent decide about their method.
    Initializing(Vec<SessionOpening>),
    Ready(AgentInfo),
    Failed,
}

impl AcpConnection {
    pub(crate) fn new(client_info: ClientInfo) -> Self {
        Self {
            client_info,
            client_state: AcpClientState::new(),
            initialize_state: InitializeState::New,
            replayed_settings: replay::ReplayedSettings::default(),
        }
    }

    fn initialize(&mut self) -> Vec<ProtocolStep> {
        if !matches!(self.initialize_state, InitializeState::New) {
            return vec![ProtocolStep::protocol_error("the connection is initialized already")];
        }
        self.initialize_state = InitializeState::Initializing(Vec::new());
        let capabilities = json!({
            "fs": {"readTextFile": false, "writeTextFile": false},
            "terminal": false,
            "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
            "elicitation": {"form": {}},
        });
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": capabilities,
            "clientInfo": {"name": self.client_info.name, "version": self.client_info.version},
        });
        let (id, step) = self.client_state.rpc.request("initialize", &params);
        self.client_state.pending_requests.insert(id, AcpPendingRequest::Initialize);
        vec![step]
    }

    fn handle_init_response(&mut self, outcome: Result<Value, AgentError>) -> Vec<ProtocolStep> {
        let waiting_openings =
            match std::mem::replace(&mut self.initialize_state, InitializeState::Failed) {
                InitializeState::Initializing(waiting_openings) => waiting_openings,
                InitializeState::New | InitializeState::Ready(_) | InitializeState::Failed => {
                    Vec::new()
                }
            };
        let result = outcome.and_then(|result| {
            let parsed = InitializeResult::from_json(result);
            let supported =
                parsed.filter(|parsed| parsed.protocol_version == Some(PROTOCOL_VERSION));
            let message = "the agent does not speak version 1 of ACP".to_owned();
            supported.ok_or(AgentError { code: 0, message })
        });
        match result {
            Ok(result) => {
                let agent_info = result.to_agent_info();
                let mut steps = vec![ProtocolStep::Initialized(agent_info.clone())];
                self.initialize_state = InitializeState::Ready(agent_info);
                steps.extend(waiting_openings.into_iter().flat_map(|it| self.open_session(it)));
                steps
            }
            Err(error) => {
                let fault = error.to_open_fault(false);
                let initialize_failed =
                    ProtocolStep::InitializeFailed { fault: fault.clone(), message: error.message };
                let to_failed_step = |opening: SessionOpening| {
                    opening.open_failed_step(fault.clone(), "initialize failed")
                };
                std::iter::once(initialize_failed)
                    .chain(waiting_openings.into_iter().map(to_failed_step))
                    .collect()
            }
        }
    }

    fn open_session(&mut self, mut opening: SessionOpening) -> Vec<ProtocolStep> {
        let pending_openings =
            self.client_state.pending_requests.values_mut().filter_map(|pending| match pending {
                AcpPendingRequest::Open(other) => Some(other),
                _ => None,
            });
        let (same_session_openings, other_openings): (Vec<_>, Vec<_>) =
            pending_openings.partition(|other| other.session == opening.session);
        if let Some(pending_opening) = same_session_openings.into_iter().next() {
            let has_adopted_settings =
                pending_opening.attach_command_if_replayed(&mut opening.settings);
            return if has_adopted_settings { Vec::new() } else { vec![opening.key_in_use_step()] };
        }
        if self.client_state.sessions.contains(opening.session) {
            return vec![opening.key_in_use_step()];
        }
        let failed_steps =
            |message: &str| vec![opening.open_failed_step(OpenFault::Other, message)];
        if opening.resume_id.is_some()
            && other_openings.iter().any(|other| other.resume_id == opening.resume_id)
        {
            return failed_steps("the conversation is being opened");
        }
        let agent_info = match &mut self.initialize_state {
            InitializeState::Ready(agent_info) => agent_info.clone(),
            InitializeState::Initializing(waiting_openings) => {
                waiting_openings.push(opening);
                return Vec::new();
            }
            InitializeState::New | InitializeState::Failed => {
                return failed_steps("the connection is not initialized");
            }
        };
        if opening
            .resume_id
            .as_ref()
            .is_some_and(|native_id| self.client_state.sessions.key(native_id).is_some())
        {
            return failed_steps("the conversation is open already");
        }
        let Some(method) = opening.method(&agent_info) else {
            return failed_steps("the agent cannot resume a conversation");
        };
        let (id, step) = self.client_state.rpc.request(method, &opening.params());
        self.client_state.pending_requests.insert(id, AcpPendingRequest::Open(opening));
        vec![step]
    }

    fn handle_open_response(
        &mut self,
        request_id: i64,
        mut opening: SessionOpening,
        outcome: Result<Value, AgentError>,
    ) -> Vec<ProtocolStep> {
        let result = match outcome {
            Ok(result) => OpenResult::from_json(result).unwrap_or_default(),
            Err(error) => {
                return vec![opening.open_failed_step(
                    error.to_open_fault(opening.resume_id.is_some()),
                    &error.message,
                )];
            }
        };
        let Some(native_id) = opening.resume_id.clone().or_else(|| result.session_id.clone())
        else {
            return vec![
                opening.open_failed_step(OpenFault::Other, "the response has no session id"),
            ];
        };
        if self.client_state.sessions.key(&native_id).is_some() {
            return vec![
                opening
                    .open_failed_step(OpenFault::Other, "the id belongs to another open session"),
            ];
        }
        let replayed_settings = self
            .replayed_settings
            .take_settings(&native_id, opening.resume_id.is_some().then_some(request_id));
        let settings_sent_after_opening = opening.assign_replayed_settings(replayed_settings);
        for (id, setting) in
            settings_sent_after_opening.into_iter().filter_map(|(id, setting)| Some((id?, setting)))
        {
            let native_id = native_id.clone();
            self.client_state
                .pending_requests
                .insert(id, AcpPendingRequest::SessionSetting { native_id, setting });
        }
        let key = opening.session;
        let early_updates = self.client_state.sessions.insert(opening, native_id, &result);
        let is_codex = self.is_codex();
        for update in early_updates {
            self.client_state.sessions.handle_update(key, &update, is_codex);
        }
        self.advance_opening(key)
    }

    /// Sends the next setting of an opening, or reports the session as open.
    fn advance_opening(&mut self, key: SessionKey) -> Vec<ProtocolStep> {
        let Some(session) = self.client_state.sessions.find_mut(key) else { return Vec::new() };
        let Some((replayed_request_id, setting)) = session.take_next_setting() else {
            return session.finish_opening(key);
        };
        let setting = setting.reclassify_by_category(session.options_and_has_separate_modes().0);
        let native_id = session.native_id.clone();
        let request = setting.to_request(&native_id, session.options_and_has_separate_modes());
        let (id, steps) = match replayed_request_id {
            Some(id) => (id, Vec::new()),
            None => {
                let (id, step) = self.client_state.rpc.request(request.0, &request.1);
                (id, vec![step])
            }
        };
        self.client_state
            .pending_requests
            .insert(id, AcpPendingRequest::OpeningSetting { native_id, setting });
        steps
    }

    fn handle_opening_setting_response(
        &mut self,
        native_id: &str,
        setting: &AcpSetting,
        outcome: Result<Value, AgentError>,
    ) -> Vec<ProtocolStep> {
        let Some(key) = self.client_state.sessions.key(native_id) else { return Vec::new() };
        let Some(session) = self.client_state.sessions.find_mut(key) else { return Vec::new() };
        match outcome.and_then(|result| session.apply_opening_setting_response(setting, &result)) {
            Ok(()) => self.advance_opening(key),
            Err(error) => {
                self.client_state.sessions.remove(key);
                let fault = match (setting, error.is_authentication_error()) {
                    (AcpSetting::Mode(mode), false) => {
                        OpenFault::ModeNotConfirmed { requested: mode.clone() }
                    }
                    _ => error.to_open_fault(false),
                };
                vec![ProtocolStep::OpenFailed { session: key, fault, message: error.message }]
            }
        }
    }

    fn is_codex(&self) -> bool {
        matches!(&self.initialize_state, InitializeState::Ready(agent_info) if agent_info.name.contains("codex"))
    }

    fn handle_response(
        &mut self,
        id: &RequestId,
        outcome: Result<Value, AgentError>,
    ) -> Vec<ProtocolStep> {
        let RequestId::Number(number) = id else {
            return vec![ProtocolStep::protocol_error(format!("response to unknown request {id}"))];
        };
        match self.client_state.pending_requests.remove(number) {
            None => vec![ProtocolStep::protocol_error(format!("response to unknown request {id}"))],
            Some(AcpPendingRequest::Initialize) => self.handle_init_response(outcome),
            Some(AcpPendingRequest::Open(opening)) => {
                self.handle_open_response(*number, opening, outcome)
            }
            Some(AcpPendingRequest::OpeningSetting { native_id, setting }) => {
                self.handle_opening_setting_response(&native_id, &setting, outcome)
            }
            Some(AcpPendingRequest::SessionSetting { native_id, setting }) => {
                self.client_state.handle_setting_response(&native_id, setting, outcome)
            }
            Some(AcpPendingRequest::Prompt { native_id, .. }) => {
                self.client_state.handle_prompt_response(&native_id, outcome)
            }
            // A session that the agent failed to close is of no use either.
            Some(AcpPendingRequest::Close { native_id, line_number }) => {
                self.client_state.finish_close(&native_id, Some(line_number))
            }
        }
    }

    fn handle_notification(&mut self, method: &str, params: &Value) -> Vec<ProtocolStep> {
        match method {
            "session/update" => {
                let Some(native_id) = params.get("sessionId").and_then(Value::as_str) else {
                    return vec![ProtocolStep::protocol_error("update without a session id")];
                };
                let update = params.get("update").cloned().unwrap_or_default();
                match self.client_state.sessions.key(native_id) {
                    Some(key) => {
                        let is_codex = self.is_codex();
                        self.client_state.sessions.handle_update(key, &update, is_codex)
                    }
                    // The history of a conversation that is being resumed.
                    None if self.client_state.is_being_resumed(native_id) => Vec::new(),
                    None if self.client_state.sessions.buffer_or_drop_update(native_id, update) => {
                        Vec::new()
                    }
                    None => vec![ProtocolStep::protocol_error(
                        "too many updates of a session that is not open yet",
                    )],
                }
            }
            "$/cancel_request" | "$/cancelRequest" => self
                .client_state
                .agent_requests
                .handle_withdrawal(params, &mut self.client_state.rpc),
            _ => Vec::new(),
        }
    }
}

impl Protocol for AcpConnection {
    fn receive(&mut self, message: Value) -> Vec<ProtocolStep> {
        match RpcMessage::from_json(message) {
            Ok(RpcMessage::Request { id, method, params }) => {
                let (requests, sessions) =
                    (&mut self.client_state.agent_requests, &mut self.client_state.sessions);
                requests.receive(&id, &method, &params, (sessions, &mut self.client_state.rpc))
            }
            Ok(RpcMessage::Notification { method, params }) => {
                self.handle_notification(&method, &params)
            }
            Ok(RpcMessage::Response { id, outcome }) => self.handle_response(&id, outcome),
            Err(message) => vec![ProtocolStep::protocol_error(message)],
        }
    }

    fn handle_command(&mut self, command: Command) -> Vec<ProtocolStep> {
        match command {
            Command::Initialize => self.initialize(),
            Command::Open { session, start, cwd, mode, model, options } => {
                let settings = opening::initial_settings(mode, model, options);
                self.open_session(SessionOpening::new(session, start, cwd, settings))
            }
            Command::Prompt { session, parts } => self.client_state.prompt(session, &parts),
            Command::Answer { session, request_id, answer } => self
                .client_state
                .agent_requests
                .answer((session, &request_id), answer, &mut self.client_state.rpc),
            Command::Cancel { session } => self.client_state.cancel(session),
            Command::SetMode { session, mode } => {
                self.client_state.change_setting(session, AcpSetting::Mode(mode))
            }
            Command::SetModel { session, model } => {
                self.client_state.change_setting(session, AcpSetting::Model(model))
            }
            Command::Close { session } => {
                let has_close_capability = matches!(&self.initialize_state, InitializeState::Ready(agent_info) if agent_info.has_capability(AgentCapability::Close));
                self.client_state.close(session, has_close_capability)
            }
        }
    }

    fn replay_sent_line(&mut self, line: &[u8]) {
        replay::replay_sent_line(self, line);
    }

    fn handle_end_of_output(&mut self) -> Vec<ProtocolStep> {
        let mut steps = Vec::new();
        let message = "the process has ended";
        if let InitializeState::Initializing(waiting_openings) = &mut self.initialize_state {
            let waiting_openings = std::mem::take(waiting_openings);
            let fault = OpenFault::Other;
            steps.push(ProtocolStep::InitializeFailed { fault, message: message.to_owned() });
            steps.extend(
                waiting_openings
                    .iter()
                    .map(|opening| opening.open_failed_step(OpenFault::Other, message)),
            );
        }
        let mut pending_requests: Vec<_> = self.client_state.pending_requests.drain().collect();
        pending_requests.sort_by_key(|(id, _)| *id);
        steps.extend(pending_requests.iter().filter_map(|(_, pending)| match pending {
            AcpPendingRequest::Open(opening) => {
                Some(opening.open_failed_step(OpenFault::Other, message))
            }
            _ => None,
        }));
        for (session, native_id, is_ready) in self.client_state.sessions.session_summaries() {
            if is_ready {
                steps.extend(self.client_state.end_lost_turn(session, &native_id, None));
            } else {
                let (fault, message) = (OpenFault::Other, message.to_owned());
                steps.push(ProtocolStep::OpenFailed { session, fault, message });
            }
        }
        steps.retain(|step| !matches!(step, ProtocolStep::Send(_)));
        steps
    }
}
