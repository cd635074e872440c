//! JSON-RPC of `codex app-server`: threads, turns and items.
//!
//! The mode of a session is the sandbox of its thread (`read-only`, `workspace-write`, `danger-full-access`), which the
//! request that opens the thread sets. The options of the opening are further fields of that request. The protocol has
//! no message that closes a thread, so [`Command::Close`] only forgets it, and mode and model do not change later.

mod items;
mod replay;
mod requests;
mod thread;

use std::collections::HashMap;

use serde_json::{Value, json};

use self::requests::AppServerAgentRequests;
use self::thread::{AppServerThread, AppServerThreads, ThreadOpening};
use crate::agent_error::AgentError;
use crate::model::command::{ClientInfo, Command, PromptPart};
use crate::model::ids::{RequestId, SessionKey};
use crate::model::step::{AgentCapability, AgentInfo, OpenFault, ProtocolStep, TurnOutcome};
use crate::protocol::Protocol;
use crate::rpc::{RpcMessage, RpcWriter};

/// Connection that speaks the protocol of `codex app-server`.
#[derive(Debug)]
pub(crate) struct AppServerConnection {
    client_info: ClientInfo,
    rpc: RpcWriter,
    pending_requests: HashMap<i64, AppServerPendingRequest>,
    agent_requests: AppServerAgentRequests,
    threads: AppServerThreads,
    initialize_state: AppServerInitializeState,
    /// True if the replayed lines contain `initialized`.
    has_replayed_initialized: bool,
    /// Number of replayed openings.
    replayed_opening_count: u32,
}

/// State of `initialize`.
#[derive(Debug)]
enum AppServerInitializeState {
    New,
    Initializing(Vec<ThreadOpening>),
    Ready,
    Failed,
}

/// Request of the client that waits for its response.
#[derive(Debug)]
enum AppServerPendingRequest {
    Initialize,
    Open(ThreadOpening),
    Prompt { native_id: String },
    Interrupt,
}

impl AppServerConnection {
    pub(crate) fn new(client_info: ClientInfo) -> Self {
        Self {
            client_info,
            rpc: RpcWriter::new(false),
            pending_requests: HashMap::new(),
            agent_requests: AppServerAgentRequests::default(),
            threads: AppServerThreads::default(),
            initialize_state: AppServerInitializeState::New,
            has_replayed_initialized: false,
            replayed_opening_count: 0,
        }
    }

    fn initialize(&mut self) -> Vec<ProtocolStep> {
        if !matches!(self.initialize_state, AppServerInitializeState::New) {
            return vec![ProtocolStep::protocol_error("the connection is initialized already")];
        }
        self.initialize_state = AppServerInitializeState::Initializing(Vec::new());
        let (name, version) = (&self.client_info.name, &self.client_info.version);
        let params = json!({"clientInfo": {"name": name, "title": name, "version": version}});
        let (id, step) = self.rpc.request("initialize", &params);
        self.pending_requests.insert(id, AppServerPendingRequest::Initialize);
        vec![step]
    }

    fn handle_init_response(&mut self, outcome: Result<Value, AgentError>) -> Vec<ProtocolStep> {
        let state = std::mem::replace(&mut self.initialize_state, AppServerInitializeState::Ready);
        let waiting_openings = match state {
            AppServerInitializeState::Initializing(waiting_openings) => waiting_openings,
            AppServerInitializeState::New
            | AppServerInitializeState::Ready
            | AppServerInitializeState::Failed => Vec::new(),
        };
        let result = match outcome {
            Ok(result) => result,
            Err(error) => {
                self.initialize_state = AppServerInitializeState::Failed;
                let fault = error.to_open_fault(false);
                let to_failed_step =
                    |it: ThreadOpening| it.open_failed_step(fault.clone(), "initialize failed");
                let failed_steps: Vec<_> =
                    waiting_openings.into_iter().map(to_failed_step).collect();
                let initialize_failed =
                    ProtocolStep::InitializeFailed { fault, message: error.message };
                return std::iter::once(initialize_failed).chain(failed_steps).collect();
            }
        };
        // The user agent begins with the name of the client and the version of the server.
        let user_agent = result.get("userAgent").and_then(Value::as_str).unwrap_or_default();
        let version = user_agent.split('/').nth(1).and_then(|rest| rest.split(' ').next());
        let info = AgentInfo {
            name: "codex".to_owned(),
            version: version.unwrap_or_default().to_owned(),
            capabilities: [AgentCapability::Resume, AgentCapability::Image].into(),
        };
        let mut steps = vec![ProtocolStep::Initialized(info)];
        if !self.has_replayed_initialized {
            steps.push(self.rpc.build_send_step(&json!({"method": "initialized"})));
        }
        steps.extend(waiting_openings.into_iter().flat_map(|opening| self.open_thread(opening)));
        steps
    }

    fn open_thread(&mut self, opening: ThreadOpening) -> Vec<ProtocolStep> {
        let mut pending_requests = self.pending_requests.values_mut();
        let pending_opening = pending_requests.find_map(|pending| match pending {
            AppServerPendingRequest::Open(other) if other.session == opening.session => Some(other),
            _ => None,
        });
        if let Some(pending_opening) = pending_opening {
            // A command that repeats a replayed request; the request has all settings.
            let is_replayed = std::mem::take(&mut pending_opening.is_replay_without_command);
            let key_in_use_step =
                || opening.open_failed_step(OpenFault::Other, "the key of the session is in use");
            return if is_replayed { Vec::new() } else { vec![key_in_use_step()] };
        }
        if self.threads.contains(opening.session) {
            return vec![
                opening.open_failed_step(OpenFault::Other, "the key of the session is in use"),
            ];
        }
        if opening.resume_id.as_ref().is_some_and(|id| self.threads.key(id).is_some()) {
            return vec![
                opening.open_failed_step(OpenFault::Other, "the conversation is open already"),
            ];
        }
        match &mut self.initialize_state {
            AppServerInitializeState::Initializing(waiting_openings) => {
                waiting_openings.push(opening);
                Vec::new()
            }
            AppServerInitializeState::New | AppServerInitializeState::Failed => {
                vec![
                    opening.open_failed_step(OpenFault::Other, "the connection is not initialized"),
                ]
            }
            AppServerInitializeState::Ready => {
                let (method, params) = opening.to_request();
                let (id, step) = self.rpc.request(method, &params);
                self.pending_requests.insert(id, AppServerPendingRequest::Open(opening));
                vec![step]
            }
        }
    }

    fn handle_open_response(
        &mut self,
        opening: ThreadOpening,
        outcome: Result<Value, AgentError>,
    ) -> Vec<ProtocolStep> {
        match outcome {
            Err(error) => {
                let fault = error.to_open_fault(opening.resume_id.is_some());
                vec![opening.open_failed_step(fault, &error.message)]
            }
            Ok(result) => vec![self.threads.handle_open_response(opening, &result)],
        }
    }

    fn prompt(&mut self, session: SessionKey, parts: &[PromptPart]) -> Vec<ProtocolStep> {
        let Some(native_id) = self.threads.native_id(session) else {
            let message = "the session is not open".to_owned();
            let turn_outcome =
                TurnOutcome::Failed { code: 0, message, is_authentication_error: false };
            return vec![ProtocolStep::TurnEnded { session, outcome: turn_outcome, usage: None }];
        };
        if self.threads.turns_mut(&native_id).is_running() {
            return vec![ProtocolStep::protocol_error("a turn is in progress")];
        }
        let input: Vec<_> = parts.iter().map(items::input_part).collect();
        let params = json!({"threadId": native_id, "input": input});
        let (id, step) = self.rpc.request("turn/start", &params);
        self.threads.turns_mut(&native_id).record_prompt(self.rpc.last_line_number());
        self.pending_requests.insert(id, AppServerPendingRequest::Prompt { native_id });
        vec![step]
    }

    fn handle_prompt_response(
        &mut self,
        native_id: &str,
        outcome: Result<Value, AgentError>,
    ) -> Vec<ProtocolStep> {
        match outcome {
            Ok(result) => {
                let turn_id = result.pointer("/turn/id").and_then(Value::as_str);
                turn_id.map_or_else(Vec::new, |turn_id| self.handle_turn_id(native_id, turn_id))
            }
            Err(error) => {
                let is_authentication_error = error.is_authentication_error();
                let AgentError { code, message } = error;
                let turn_outcome = TurnOutcome::Failed { code, message, is_authentication_error };
                self.end_turn(native_id, turn_outcome)
            }
        }
    }

    /// Records the id of the turn, and sends an interruption that waits for it.
    fn handle_turn_id(&mut self, native_id: &str, turn_id: &str) -> Vec<ProtocolStep> {
        let Some(session) = self.threads.key(native_id) else { return Vec::new() };
        let Some(thread) = self.threads.find_mut(session) else { return Vec::new() };
        thread.turn_id = Some(turn_id.to_owned());
        if std::mem::take(&mut thread.is_interrupt_pending) {
            self.interrupt(native_id, turn_id)
        } else {
            Vec::new()
        }
    }

    fn interrupt(&mut self, native_id: &str, turn_id: &str) -> Vec<ProtocolStep> {
        let params = json!({"threadId": native_id, "turnId": turn_id});
        let (id, step) = self.rpc.request("turn/interrupt", &params);
        self.pending_requests.insert(id, AppServerPendingRequest::Interrupt);
        vec![step]
    }

    fn end_turn(&mut self, native_id: &str, turn_outcome: TurnOutcome) -> Vec<ProtocolStep> {
        let Some(session) = self.threads.key(native_id) else { return Vec::new() };
        if !self.threads.turns_mut(native_id).try_end_turn() {
            return Vec::new();
        }
        let mut steps = self.agent_requests.cancel_all(session, &mut self.rpc);
        let usage =
            self.threads.find_mut(session).and_then(AppServerThread::take_usage_and_clear_turn);
        steps.push(ProtocolStep::TurnEnded { session, outcome: turn_outcome, usage });
        steps
    }

    fn cancel(&mut self, session: SessionKey) -> Vec<ProtocolStep> {
        let Some(native_id) = self.threads.native_id(session) else { return Vec::new() };
        if !self.threads.turns_mut(&native_id).is_running() {
            return Vec::new();
        }
        self.threads.turns_mut(&native_id).record_cancel();
        let turn_id = self.threads.find_mut(session).and_then(|thread| {
            thread.is_interrupt_pending = thread.turn_id.is_none();
            thread.turn_id.clone()
        });
        let mut steps =
            turn_id.map_or_else(Vec::new, |turn_id| self.interrupt(&native_id, &turn_id));
        let cancel_steps = self.agent_requests.cancel_all(session, &mut self.rpc).into_iter();
        steps.extend(cancel_steps.filter(|step| matches!(step, ProtocolStep::Send(_))));
        steps
    }

    fn close(&mut self, session: SessionKey) -> Vec<ProtocolStep> {
        let mut steps = self.cancel(session);
        if let Some(native_id) = self.threads.native_id(session) {
            steps.extend(self.end_turn(&native_id, TurnOutcome::Lost));
        }
        self.threads.remove(session);
        steps.push(ProtocolStep::SessionClosed { session });
        steps
    }

    fn handle_response(
        &mut self,
        id: &RequestId,
        outcome: Result<Value, AgentError>,
    ) -> Vec<ProtocolStep> {
        let pending = match id {
            RequestId::Number(number) => self.pending_requests.remove(number),
            RequestId::Text(_) => None,
        };
        match pending {
            None => vec![ProtocolStep::protocol_error(format!("response to unknown request {id}"))],
            Some(AppServerPendingRequest::Initialize) => self.handle_init_response(outcome),
            Some(AppServerPendingRequest::Open(opening)) => {
                self.handle_open_response(opening, outcome)
            }
            Some(AppServerPendingRequest::Prompt { native_id }) => {
                self.handle_prompt_response(&native_id, outcome)
            }
            Some(AppServerPendingRequest::Interrupt) => Vec::new(),
        }
    }

    fn handle_notification(&mut self, method: &str, params: &Value) -> Vec<ProtocolStep> {
        let Some(native_id) = params.get("threadId").and_then(Value::as_str) else {
            return Vec::new();
        };
        let Some(session) = self.threads.key(native_id) else { return Vec::new() };
        let turn_id = params.pointer("/turn/id").and_then(Value::as_str);
        match (method, turn_id) {
            ("turn/started", Some(turn_id)) => self.handle_turn_id(native_id, turn_id),
            ("turn/completed", _) => {
                let turn = params.get("turn").cloned().unwrap_or_default();
                let failure = self.threads.find_mut(session).and_then(|it| it.failure.take());
                self.end_turn(native_id, items::turn_outcome(&turn, failure))
            }
            ("serverRequest/resolved", _) => {
                self.agent_requests.handle_resolved(params, &mut self.rpc)
            }
            _ => match self.threads.find_mut(session) {
                Some(thread) => items::apply_notification(thread, session, method, params),
                None => Vec::new(),
            },
        }
    }
}

impl Protocol for AppServerConnection {
    fn receive(&mut self, message: Value) -> Vec<ProtocolStep> {
        match RpcMessage::from_json(message) {
            Ok(RpcMessage::Request { id, method, params }) => {
                let (requests, threads) = (&mut self.agent_requests, &mut self.threads);
                requests.receive(&id, (&method, &params), threads, &mut self.rpc)
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
                let mut opening = ThreadOpening::new(session, start, &cwd);
                opening.apply_settings(mode, model, options);
                self.open_thread(opening)
            }
            Command::Prompt { session, parts } => self.prompt(session, &parts),
            Command::Answer { session, request_id, answer } => {
                self.agent_requests.answer((session, &request_id), answer, &mut self.rpc)
            }
            Command::Cancel { session } => self.cancel(session),
            Command::SetMode { .. } | Command::SetModel { .. } => {
                vec![ProtocolStep::protocol_error("mode and model are set when the session opens")]
            }
            Command::Close { session } => self.close(session),
        }
    }

    fn replay_sent_line(&mut self, line: &[u8]) {
        replay::replay_sent_line(self, line);
    }

    fn handle_end_of_output(&mut self) -> Vec<ProtocolStep> {
        let message = "the process has ended";
        let mut steps = Vec::new();
        let mut openings = Vec::new();
        if let AppServerInitializeState::Initializing(waiting_openings) = &mut self.initialize_state
        {
            openings.append(waiting_openings);
            let fault = OpenFault::Other;
            steps.push(ProtocolStep::InitializeFailed { fault, message: message.to_owned() });
        }
        openings.extend(self.pending_requests.drain().filter_map(|(_, pending)| match pending {
            AppServerPendingRequest::Open(opening) => Some(opening),
            _ => None,
        }));
        openings.sort_by_key(|opening| opening.session);
        steps.extend(
            openings.iter().map(|opening| opening.open_failed_step(OpenFault::Other, message)),
        );
        for native_id in self.threads.native_ids() {
            steps.extend(self.end_turn(&native_id, TurnOutcome::Lost));
        }
        steps.retain(|step| !matches!(step, ProtocolStep::Send(_)));
        steps
    }
}
