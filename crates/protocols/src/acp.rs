//! Agent Client Protocol, version 1.

mod calls;
mod client_state;
mod opening;
mod prompt;
mod replay;
mod requests;
mod session;
mod sessions;
mod update;
mod wire;

use serde_json::{Value, json};

use self::client_state::{AcpClientState, AcpPending};
use self::opening::{AcpSetting, SessionOpening};
use self::wire::{InitializeResult, OpenResult};
use crate::fault::AgentError;
use crate::model::command::{ClientInfo, Command};
use crate::model::ids::{RequestId, SessionKey};
use crate::model::step::{AgentCapability, AgentInfo, OpenFault, Step};
use crate::protocol::Protocol;
use crate::rpc::RpcFrame;

const PROTOCOL_VERSION: i64 = 1;

/// Connection that speaks ACP.
#[derive(Debug)]
pub(crate) struct AcpConnection {
    client: ClientInfo,
    client_state: AcpClientState,
    agent: InitializeState,
    recorded: replay::RecordedSettings,
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
    pub(crate) fn new(client: ClientInfo) -> Self {
        Self {
            client,
            client_state: AcpClientState::new(),
            agent: InitializeState::New,
            recorded: replay::RecordedSettings::default(),
        }
    }

    fn initialize(&mut self) -> Vec<Step> {
        if !matches!(self.agent, InitializeState::New) {
            return vec![Step::protocol_error("the connection is initialized already")];
        }
        self.agent = InitializeState::Initializing(Vec::new());
        let capabilities = json!({
            "fs": {"readTextFile": false, "writeTextFile": false},
            "terminal": false,
            "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
            "elicitation": {"form": {}},
        });
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": capabilities,
            "clientInfo": {"name": self.client.name, "version": self.client.version},
        });
        let (id, send) = self.client_state.rpc.request("initialize", &params);
        self.client_state.pending.insert(id, AcpPending::Initialize);
        vec![send]
    }

    fn handle_initialize_response(&mut self, outcome: Result<Value, AgentError>) -> Vec<Step> {
        let waiting = match std::mem::replace(&mut self.agent, InitializeState::Failed) {
            InitializeState::Initializing(waiting) => waiting,
            InitializeState::New | InitializeState::Ready(_) | InitializeState::Failed => {
                Vec::new()
            }
        };
        let result = outcome.and_then(|result| {
            let parsed = InitializeResult::read(result);
            let supported =
                parsed.filter(|parsed| parsed.protocol_version == Some(PROTOCOL_VERSION));
            let message = "the agent does not speak version 1 of ACP".to_owned();
            supported.ok_or(AgentError { code: 0, message })
        });
        match result {
            Ok(result) => {
                let info = result.info();
                let mut steps = vec![Step::Initialized(info.clone())];
                self.agent = InitializeState::Ready(info);
                steps.extend(waiting.into_iter().flat_map(|opening| self.open(opening)));
                steps
            }
            Err(error) => {
                let fault = error.fault(false);
                let failed =
                    Step::InitializeFailed { fault: fault.clone(), message: error.message };
                let fail =
                    |opening: SessionOpening| opening.fail(fault.clone(), "initialize failed");
                std::iter::once(failed).chain(waiting.into_iter().map(fail)).collect()
            }
        }
    }

    fn open(&mut self, mut opening: SessionOpening) -> Vec<Step> {
        let pending = self.client_state.pending.values_mut().filter_map(|pending| match pending {
            AcpPending::Open(other) => Some(other),
            _ => None,
        });
        let (same, other_openings): (Vec<_>, Vec<_>) =
            pending.partition(|other| other.session == opening.session);
        if let Some(other) = same.into_iter().next() {
            let is_adopted = other.adopt(&mut opening.settings);
            return if is_adopted { Vec::new() } else { vec![opening.fail_key()] };
        }
        if self.client_state.sessions.has(opening.session) {
            return vec![opening.fail_key()];
        }
        if opening.target.is_some()
            && other_openings.iter().any(|other| other.target == opening.target)
        {
            return vec![opening.fail(OpenFault::Other, "the conversation is being opened")];
        }
        let info = match &mut self.agent {
            InitializeState::Ready(info) => info.clone(),
            InitializeState::Initializing(waiting) => {
                waiting.push(opening);
                return Vec::new();
            }
            InitializeState::New | InitializeState::Failed => {
                return vec![opening.fail(OpenFault::Other, "the connection is not initialized")];
            }
        };
        if opening
            .target
            .as_ref()
            .is_some_and(|native| self.client_state.sessions.key(native).is_some())
        {
            return vec![opening.fail(OpenFault::Other, "the conversation is open already")];
        }
        let Some(method) = opening.method(&info) else {
            return vec![opening.fail(OpenFault::Other, "the agent cannot resume a conversation")];
        };
        let (id, send) = self.client_state.rpc.request(method, &opening.params());
        self.client_state.pending.insert(id, AcpPending::Open(opening));
        vec![send]
    }

    fn handle_open_response(
        &mut self,
        id: i64,
        mut opening: SessionOpening,
        outcome: Result<Value, AgentError>,
    ) -> Vec<Step> {
        let result = match outcome {
            Ok(result) => OpenResult::read(result).unwrap_or_default(),
            Err(error) => {
                return vec![opening.fail(error.fault(opening.target.is_some()), &error.message)];
            }
        };
        let Some(native) = opening.target.clone().or_else(|| result.session_id.clone()) else {
            return vec![opening.fail(OpenFault::Other, "the response has no session id")];
        };
        if self.client_state.sessions.key(&native).is_some() {
            return vec![opening.fail(OpenFault::Other, "the id belongs to another open session")];
        }
        let recorded = self.recorded.take(&native, opening.target.is_some().then_some(id));
        let later_settings = opening.merge(recorded);
        for (id, setting) in
            later_settings.into_iter().filter_map(|(id, setting)| Some((id?, setting)))
        {
            let native = native.clone();
            self.client_state.pending.insert(id, AcpPending::Setting { native, setting });
        }
        let key = opening.session;
        let early_updates = self.client_state.sessions.insert(opening, native, &result);
        let is_codex = self.is_codex();
        for update in early_updates {
            self.client_state.sessions.update(key, &update, is_codex);
        }
        self.advance(key)
    }

    /// Sends the next setting of an opening, or reports the session as open.
    fn advance(&mut self, key: SessionKey) -> Vec<Step> {
        let Some(session) = self.client_state.sessions.find_mut(key) else { return Vec::new() };
        let Some((recorded, setting)) = session.next_setting() else { return session.finish(key) };
        let setting = setting.resolve(session.options().0);
        let native = session.native.clone();
        let request = setting.request(&native, session.options());
        let (id, steps) = match recorded {
            Some(id) => (id, Vec::new()),
            None => {
                let (id, send) = self.client_state.rpc.request(request.0, &request.1);
                (id, vec![send])
            }
        };
        self.client_state.pending.insert(id, AcpPending::Opening { native, setting });
        steps
    }

    fn handle_opening_setting_response(
        &mut self,
        native: &str,
        setting: &AcpSetting,
        outcome: Result<Value, AgentError>,
    ) -> Vec<Step> {
        let Some(key) = self.client_state.sessions.key(native) else { return Vec::new() };
        let Some(session) = self.client_state.sessions.find_mut(key) else { return Vec::new() };
        match outcome.and_then(|result| session.confirm(setting, &result)) {
            Ok(()) => self.advance(key),
            Err(error) => {
                self.client_state.sessions.remove(key);
                let fault = match (setting, error.is_authentication()) {
                    (AcpSetting::Mode(mode), false) => {
                        OpenFault::ModeNotConfirmed { requested: mode.clone() }
                    }
                    _ => error.fault(false),
                };
                vec![Step::OpenFailed { session: key, fault, message: error.message }]
            }
        }
    }

    fn is_codex(&self) -> bool {
        matches!(&self.agent, InitializeState::Ready(info) if info.name.contains("codex"))
    }

    fn handle_response(&mut self, id: &RequestId, outcome: Result<Value, AgentError>) -> Vec<Step> {
        let RequestId::Number(number) = id else {
            return vec![Step::protocol_error(format!("response to unknown request {id}"))];
        };
        match self.client_state.pending.remove(number) {
            None => vec![Step::protocol_error(format!("response to unknown request {id}"))],
            Some(AcpPending::Initialize) => self.handle_initialize_response(outcome),
            Some(AcpPending::Open(opening)) => self.handle_open_response(*number, opening, outcome),
            Some(AcpPending::Opening { native, setting }) => {
                self.handle_opening_setting_response(&native, &setting, outcome)
            }
            Some(AcpPending::Setting { native, setting }) => {
                self.client_state.handle_setting_response(&native, setting, outcome)
            }
            Some(AcpPending::Prompt { native, .. }) => {
                self.client_state.handle_prompt_response(&native, outcome)
            }
            // A session that the agent failed to close is of no use either.
            Some(AcpPending::Close { native, line }) => {
                self.client_state.finish_close(&native, Some(line))
            }
        }
    }

    fn handle_notification(&mut self, method: &str, params: &Value) -> Vec<Step> {
        match method {
            "session/update" => {
                let Some(native) = params.get("sessionId").and_then(Value::as_str) else {
                    return vec![Step::protocol_error("update without a session id")];
                };
                let update = params.get("update").cloned().unwrap_or_default();
                match self.client_state.sessions.key(native) {
                    Some(key) => {
                        let is_codex = self.is_codex();
                        self.client_state.sessions.update(key, &update, is_codex)
                    }
                    None => {
                        self.client_state.sessions.buffer_early_update(native, update);
                        Vec::new()
                    }
                }
            }
            "$/cancel_request" | "$/cancelRequest" => {
                self.client_state.requests.withdraw(params, &mut self.client_state.rpc)
            }
            _ => Vec::new(),
        }
    }
}

impl Protocol for AcpConnection {
    fn receive(&mut self, line: &[u8]) -> Vec<Step> {
        match RpcFrame::read(line) {
            Ok(RpcFrame::Request { id, method, params }) => {
                let (requests, sessions) =
                    (&mut self.client_state.requests, &mut self.client_state.sessions);
                requests.receive(&id, &method, &params, (sessions, &mut self.client_state.rpc))
            }
            Ok(RpcFrame::Notification { method, params }) => {
                self.handle_notification(&method, &params)
            }
            Ok(RpcFrame::Response { id, outcome }) => self.handle_response(&id, outcome),
            Err(message) => vec![Step::protocol_error(message)],
        }
    }

    fn command(&mut self, command: Command) -> Vec<Step> {
        match command {
            Command::Initialize => self.initialize(),
            Command::Open { session, start, cwd, mode, model, options } => {
                let settings = opening::settings(mode, model, options);
                self.open(SessionOpening::new(session, start, cwd, settings))
            }
            Command::Prompt { session, parts } => self.client_state.prompt(session, &parts),
            Command::Answer { session, request, answer } => self.client_state.requests.answer(
                (session, &request),
                answer,
                &mut self.client_state.rpc,
            ),
            Command::Cancel { session } => self.client_state.cancel(session),
            Command::SetMode { session, mode } => {
                self.client_state.set(session, AcpSetting::Mode(mode))
            }
            Command::SetModel { session, model } => {
                self.client_state.set(session, AcpSetting::Model(model))
            }
            Command::Close { session } => {
                let can_close = matches!(&self.agent, InitializeState::Ready(info) if info.has_capability(AgentCapability::Close));
                self.client_state.close(session, can_close)
            }
        }
    }

    fn record_sent(&mut self, line: &[u8]) {
        replay::record(self, line);
    }

    fn end(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        let message = "the process has ended";
        if let InitializeState::Initializing(waiting) = &mut self.agent {
            let waiting = std::mem::take(waiting);
            let fault = OpenFault::Other;
            steps.push(Step::InitializeFailed { fault, message: message.to_owned() });
            steps.extend(waiting.iter().map(|opening| opening.fail(OpenFault::Other, message)));
        }
        let mut opening: Vec<_> = self.client_state.pending.drain().collect();
        opening.sort_by_key(|(id, _)| *id);
        steps.extend(opening.iter().filter_map(|(_, pending)| match pending {
            AcpPending::Open(opening) => Some(opening.fail(OpenFault::Other, message)),
            _ => None,
        }));
        for (session, native, is_ready) in self.client_state.sessions.all() {
            if is_ready {
                steps.extend(self.client_state.end_lost_turn(session, &native, None));
            } else {
                let (fault, message) = (OpenFault::Other, message.to_owned());
                steps.push(Step::OpenFailed { session, fault, message });
            }
        }
        steps.retain(|step| !matches!(step, Step::Send(_)));
        steps
    }
}
