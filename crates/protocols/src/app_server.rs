//! JSON-RPC of `codex app-server`: threads, turns and items.
//!
//! The mode of a session is the sandbox of its thread (`read-only`, `workspace-write`, `danger-full-access`), which the
//! request that opens the thread sets. The options of the opening are further fields of that request. The protocol has
//! no message that closes a thread, so [`Command::Close`] only forgets it, and mode and model do not change later.

mod items;
mod requests;
mod thread;

use std::collections::HashMap;

use serde_json::{Value, json};

use self::requests::ServerRequests;
use self::thread::{ServerThread, ServerThreads, ThreadOpening};
use crate::fault::AgentError;
use crate::model::command::{ClientInfo, Command, PromptPart};
use crate::model::ids::{RequestId, SessionKey};
use crate::model::step::{AgentCapability, AgentInfo, OpenFault, Step, TurnOutcome};
use crate::protocol::Protocol;
use crate::rpc::{RpcFrame, RpcWriter};

/// Connection that speaks the protocol of `codex app-server`.
#[derive(Debug)]
pub(crate) struct AppServerConnection {
    client: ClientInfo,
    rpc: RpcWriter,
    pending: HashMap<i64, ServerPending>,
    requests: ServerRequests,
    threads: ServerThreads,
    state: ServerInitializeState,
    /// True if the replayed lines contain `initialized`.
    is_acknowledged: bool,
    /// Number of replayed openings.
    replayed: u32,
}

/// State of `initialize`.
#[derive(Debug)]
enum ServerInitializeState {
    New,
    Initializing(Vec<ThreadOpening>),
    Ready,
    Failed,
}

/// Request of the client that waits for its response.
#[derive(Debug)]
enum ServerPending {
    Initialize,
    Open(ThreadOpening),
    Prompt { native: String },
    Interrupt,
}

impl AppServerConnection {
    pub(crate) fn new(client: ClientInfo) -> Self {
        Self {
            client,
            rpc: RpcWriter::new(false),
            pending: HashMap::new(),
            requests: ServerRequests::default(),
            threads: ServerThreads::default(),
            state: ServerInitializeState::New,
            is_acknowledged: false,
            replayed: 0,
        }
    }

    fn initialize(&mut self) -> Vec<Step> {
        if !matches!(self.state, ServerInitializeState::New) {
            return vec![Step::protocol_error("the connection is initialized already")];
        }
        self.state = ServerInitializeState::Initializing(Vec::new());
        let (name, version) = (&self.client.name, &self.client.version);
        let params = json!({"clientInfo": {"name": name, "title": name, "version": version}});
        let (id, send) = self.rpc.request("initialize", &params);
        self.pending.insert(id, ServerPending::Initialize);
        vec![send]
    }

    fn handle_initialize_response(&mut self, outcome: Result<Value, AgentError>) -> Vec<Step> {
        let waiting = match std::mem::replace(&mut self.state, ServerInitializeState::Ready) {
            ServerInitializeState::Initializing(waiting) => waiting,
            ServerInitializeState::New
            | ServerInitializeState::Ready
            | ServerInitializeState::Failed => Vec::new(),
        };
        let result = match outcome {
            Ok(result) => result,
            Err(error) => {
                self.state = ServerInitializeState::Failed;
                let fault = error.fault(false);
                let fail = |it: ThreadOpening| it.fail(fault.clone(), "initialize failed");
                let failed: Vec<_> = waiting.into_iter().map(fail).collect();
                let first = Step::InitializeFailed { fault, message: error.message };
                return std::iter::once(first).chain(failed).collect();
            }
        };
        // The user agent begins with the name of the client and the version of the server.
        let agent = result.get("userAgent").and_then(Value::as_str).unwrap_or_default();
        let version = agent.split('/').nth(1).and_then(|rest| rest.split(' ').next());
        let info = AgentInfo {
            name: "codex".to_owned(),
            version: version.unwrap_or_default().to_owned(),
            capabilities: [AgentCapability::Resume, AgentCapability::Image].into(),
        };
        let mut steps = vec![Step::Initialized(info)];
        if !self.is_acknowledged {
            steps.push(self.rpc.send(&json!({"method": "initialized"})));
        }
        steps.extend(waiting.into_iter().flat_map(|opening| self.open(opening)));
        steps
    }

    fn open(&mut self, opening: ThreadOpening) -> Vec<Step> {
        let pending = self.pending.values_mut().find_map(|pending| match pending {
            ServerPending::Open(other) if other.session == opening.session => Some(other),
            _ => None,
        });
        if let Some(other) = pending {
            // A command that repeats a replayed request; the request has all settings.
            let is_replayed = std::mem::take(&mut other.is_replayed);
            let key = || opening.fail(OpenFault::Other, "the key of the session is in use");
            return if is_replayed { Vec::new() } else { vec![key()] };
        }
        if self.threads.contains(opening.session) {
            return vec![opening.fail(OpenFault::Other, "the key of the session is in use")];
        }
        if opening.target.as_ref().is_some_and(|native| self.threads.key(native).is_some()) {
            return vec![opening.fail(OpenFault::Other, "the conversation is open already")];
        }
        match &mut self.state {
            ServerInitializeState::Initializing(waiting) => {
                waiting.push(opening);
                Vec::new()
            }
            ServerInitializeState::New | ServerInitializeState::Failed => {
                vec![opening.fail(OpenFault::Other, "the connection is not initialized")]
            }
            ServerInitializeState::Ready => {
                let (method, params) = opening.request();
                let (id, send) = self.rpc.request(method, &params);
                self.pending.insert(id, ServerPending::Open(opening));
                vec![send]
            }
        }
    }

    fn handle_open_response(
        &mut self,
        opening: ThreadOpening,
        outcome: Result<Value, AgentError>,
    ) -> Vec<Step> {
        match outcome {
            Err(error) => {
                vec![opening.fail(error.fault(opening.target.is_some()), &error.message)]
            }
            Ok(result) => vec![self.threads.handle_open_response(opening, &result)],
        }
    }

    fn prompt(&mut self, session: SessionKey, parts: &[PromptPart]) -> Vec<Step> {
        let Some(native) = self.threads.native(session) else {
            let message = "the session is not open".to_owned();
            let end = TurnOutcome::Failed { code: 0, message, is_authentication: false };
            return vec![Step::TurnEnded { session, end, usage: None }];
        };
        if self.threads.turns(&native).is_running() {
            return vec![Step::protocol_error("a turn is in progress")];
        }
        let input: Vec<_> = parts.iter().map(items::input).collect();
        let params = json!({"threadId": native, "input": input});
        let (id, send) = self.rpc.request("turn/start", &params);
        self.threads.turns(&native).record_prompt(self.rpc.line());
        self.pending.insert(id, ServerPending::Prompt { native });
        vec![send]
    }

    fn handle_prompt_response(
        &mut self,
        native: &str,
        outcome: Result<Value, AgentError>,
    ) -> Vec<Step> {
        match outcome {
            Ok(result) => {
                let turn = result.pointer("/turn/id").and_then(Value::as_str);
                turn.map_or_else(Vec::new, |turn| self.record_turn_id(native, turn))
            }
            Err(error) => {
                let is_authentication = error.is_authentication();
                let AgentError { code, message } = error;
                let end = TurnOutcome::Failed { code, message, is_authentication };
                self.end_turn(native, end)
            }
        }
    }

    /// Records the id of the turn, and sends an interruption that waits for it.
    fn record_turn_id(&mut self, native: &str, turn: &str) -> Vec<Step> {
        let Some(session) = self.threads.key(native) else { return Vec::new() };
        let Some(thread) = self.threads.find_mut(session) else { return Vec::new() };
        thread.turn = Some(turn.to_owned());
        if std::mem::take(&mut thread.is_interrupted) {
            self.interrupt(native, turn)
        } else {
            Vec::new()
        }
    }

    fn interrupt(&mut self, native: &str, turn: &str) -> Vec<Step> {
        let params = json!({"threadId": native, "turnId": turn});
        let (id, send) = self.rpc.request("turn/interrupt", &params);
        self.pending.insert(id, ServerPending::Interrupt);
        vec![send]
    }

    fn end_turn(&mut self, native: &str, end: TurnOutcome) -> Vec<Step> {
        let Some(session) = self.threads.key(native) else { return Vec::new() };
        if !self.threads.turns(native).record_end() {
            return Vec::new();
        }
        let mut steps = self.requests.close_session(session, &mut self.rpc);
        let usage = self.threads.find_mut(session).and_then(ServerThread::end_turn);
        steps.push(Step::TurnEnded { session, end, usage });
        steps
    }

    fn cancel(&mut self, session: SessionKey) -> Vec<Step> {
        let Some(native) = self.threads.native(session) else { return Vec::new() };
        if !self.threads.turns(&native).is_running() {
            return Vec::new();
        }
        self.threads.turns(&native).record_cancel();
        let turn = self.threads.find_mut(session).and_then(|thread| {
            thread.is_interrupted = thread.turn.is_none();
            thread.turn.clone()
        });
        let mut steps = turn.map_or_else(Vec::new, |turn| self.interrupt(&native, &turn));
        let closed = self.requests.close_session(session, &mut self.rpc).into_iter();
        steps.extend(closed.filter(|step| matches!(step, Step::Send(_))));
        steps
    }

    fn close(&mut self, session: SessionKey) -> Vec<Step> {
        let mut steps = self.cancel(session);
        if let Some(native) = self.threads.native(session) {
            steps.extend(self.end_turn(&native, TurnOutcome::Lost));
        }
        self.threads.remove(session);
        steps.push(Step::Closed { session });
        steps
    }

    fn handle_response(&mut self, id: &RequestId, outcome: Result<Value, AgentError>) -> Vec<Step> {
        let pending = match id {
            RequestId::Number(number) => self.pending.remove(number),
            RequestId::Text(_) => None,
        };
        match pending {
            None => vec![Step::protocol_error(format!("response to unknown request {id}"))],
            Some(ServerPending::Initialize) => self.handle_initialize_response(outcome),
            Some(ServerPending::Open(opening)) => self.handle_open_response(opening, outcome),
            Some(ServerPending::Prompt { native }) => self.handle_prompt_response(&native, outcome),
            Some(ServerPending::Interrupt) => Vec::new(),
        }
    }

    fn handle_notification(&mut self, method: &str, params: &Value) -> Vec<Step> {
        let Some(native) = params.get("threadId").and_then(Value::as_str) else {
            return Vec::new();
        };
        let Some(session) = self.threads.key(native) else { return Vec::new() };
        let turn = params.pointer("/turn/id").and_then(Value::as_str);
        match (method, turn) {
            ("turn/started", Some(turn)) => self.record_turn_id(native, turn),
            ("turn/completed", _) => {
                let turn = params.get("turn").cloned().unwrap_or_default();
                let failure = self.threads.find_mut(session).and_then(|it| it.failure.take());
                self.end_turn(native, items::end(&turn, failure))
            }
            ("serverRequest/resolved", _) => self.requests.handle_resolved(params, &mut self.rpc),
            _ => match self.threads.find_mut(session) {
                Some(thread) => items::steps(thread, session, method, params),
                None => Vec::new(),
            },
        }
    }

    /// Records a request among the replayed lines.
    fn record_request(&mut self, method: &str, params: &Value) -> Option<ServerPending> {
        let native = params.get("threadId").and_then(Value::as_str).map(str::to_owned);
        match method {
            "initialize" => {
                self.state = ServerInitializeState::Initializing(Vec::new());
                Some(ServerPending::Initialize)
            }
            "thread/start" | "thread/resume" => {
                let session = SessionKey(self.replayed);
                self.replayed += 1;
                Some(ServerPending::Open(ThreadOpening::replayed(session, native, params)))
            }
            "turn/start" => {
                let native = native?;
                self.threads.turns(&native).record_prompt(self.rpc.line());
                Some(ServerPending::Prompt { native })
            }
            "turn/interrupt" => {
                self.threads.turns(&native?).record_cancel();
                Some(ServerPending::Interrupt)
            }
            _ => None,
        }
    }
}

impl Protocol for AppServerConnection {
    fn receive(&mut self, line: &[u8]) -> Vec<Step> {
        match RpcFrame::read(line) {
            Ok(RpcFrame::Request { id, method, params }) => {
                let (requests, threads) = (&mut self.requests, &mut self.threads);
                requests.receive(&id, (&method, &params), threads, &mut self.rpc)
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
                let mut opening = ThreadOpening::new(session, start, &cwd);
                opening.set(mode, model, options);
                self.open(opening)
            }
            Command::Prompt { session, parts } => self.prompt(session, &parts),
            Command::Answer { session, request, answer } => {
                self.requests.answer((session, &request), answer, &mut self.rpc)
            }
            Command::Cancel { session } => self.cancel(session),
            Command::SetMode { .. } | Command::SetModel { .. } => {
                vec![Step::protocol_error("mode and model are set when the session opens")]
            }
            Command::Close { session } => self.close(session),
        }
    }

    fn record_sent(&mut self, line: &[u8]) {
        let Ok(frame) = RpcFrame::read(line) else { return };
        match frame {
            RpcFrame::Request { id: RequestId::Number(id), method, params } => {
                self.rpc.record(Some(id));
                if let Some(pending) = self.record_request(&method, &params) {
                    self.pending.insert(id, pending);
                }
            }
            RpcFrame::Request { .. } => self.rpc.record(None),
            RpcFrame::Notification { method, .. } => {
                self.rpc.record(None);
                self.is_acknowledged |= method == "initialized";
            }
            RpcFrame::Response { id, outcome } => {
                self.rpc.record(None);
                let is_conflict = RpcFrame::is_conflict(&outcome);
                let answer = (is_conflict, outcome.unwrap_or_default());
                self.requests.record_answer(id, self.rpc.line(), answer);
            }
        }
    }

    fn end(&mut self) -> Vec<Step> {
        let message = "the process has ended";
        let mut steps = Vec::new();
        let mut openings = Vec::new();
        if let ServerInitializeState::Initializing(waiting) = &mut self.state {
            openings.append(waiting);
            let fault = OpenFault::Other;
            steps.push(Step::InitializeFailed { fault, message: message.to_owned() });
        }
        openings.extend(self.pending.drain().filter_map(|(_, pending)| match pending {
            ServerPending::Open(opening) => Some(opening),
            _ => None,
        }));
        openings.sort_by_key(|opening| opening.session);
        steps.extend(openings.iter().map(|opening| opening.fail(OpenFault::Other, message)));
        for native in self.threads.natives() {
            steps.extend(self.end_turn(&native, TurnOutcome::Lost));
        }
        steps.retain(|step| !matches!(step, Step::Send(_)));
        steps
    }
}
