//! Threads of the app server: sessions of the caller.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use crate::model::command::SessionStart;
use crate::model::ids::SessionKey;
use crate::model::step::{OpenFault, Step, TokenUsage};
use crate::turns::TurnCounts;

/// Names of sandboxes in requests and in responses.
const SANDBOX_NAMES: &[(&str, &str)] = &[
    ("read-only", "readOnly"),
    ("workspace-write", "workspaceWrite"),
    ("danger-full-access", "dangerFullAccess"),
];

/// Thread that is being opened.
#[derive(Debug)]
pub(super) struct ThreadOpening {
    pub(super) session: SessionKey,
    pub(super) target: Option<String>,
    params: Map<String, Value>,
    pub(super) is_replayed: bool,
}

impl ThreadOpening {
    pub(super) fn new(session: SessionKey, start: SessionStart, cwd: &str) -> Self {
        let target = match start {
            SessionStart::New => None,
            SessionStart::Resume { id } => Some(id),
        };
        let thread = target.iter().map(|id| ("threadId".to_owned(), Value::from(id.as_str())));
        let fixed = [("cwd", cwd), ("approvalPolicy", "on-request")];
        let fixed = fixed.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value)));
        let params = thread.chain(fixed).collect();
        Self { session, target, params, is_replayed: false }
    }

    pub(super) fn set(
        &mut self,
        mode: Option<String>,
        model: Option<String>,
        options: Vec<(String, String)>,
    ) {
        let mode = mode.map(|mode| ("sandbox".to_owned(), mode));
        let model = model.map(|model| ("model".to_owned(), model));
        let all = mode.into_iter().chain(model).chain(options);
        self.params.extend(all.map(|(name, value)| (name, Value::from(value))));
    }

    /// Returns the opening of a replayed request.
    pub(super) fn replayed(session: SessionKey, target: Option<String>, params: &Value) -> Self {
        let params = params.as_object().cloned().unwrap_or_default();
        Self { session, target, params, is_replayed: true }
    }

    pub(super) fn request(&self) -> (&'static str, Value) {
        let method = if self.target.is_some() { "thread/resume" } else { "thread/start" };
        (method, Value::Object(self.params.clone()))
    }

    pub(super) fn fail(&self, fault: OpenFault, message: &str) -> Step {
        Step::OpenFailed { session: self.session, fault, message: message.to_owned() }
    }

    fn mode(&self) -> Option<&str> {
        self.params.get("sandbox").and_then(Value::as_str)
    }
}

/// Open thread.
#[derive(Debug, Default)]
pub(super) struct ServerThread {
    native: String,
    /// Id of the turn in progress, once reported.
    pub(super) turn: Option<String>,
    /// True if an interruption waits for the id of the turn.
    pub(super) is_interrupted: bool,
    /// Messages whose text was streamed.
    pub(super) streamed: HashSet<String>,
    /// Tool calls that a step has reported.
    pub(super) reported: HashSet<String>,
    /// Changes of the files of a call, for a later request that does not repeat them.
    pub(super) calls: HashMap<String, crate::model::tool_call::ToolCall>,
    pub(super) usage: Option<TokenUsage>,
    /// Error that precedes the end of the turn.
    pub(super) failure: Option<Value>,
    pub(super) model: Option<String>,
}

impl ServerThread {
    /// Clears what belongs to the turn; returns its usage.
    pub(super) fn end_turn(&mut self) -> Option<TokenUsage> {
        let (native, model) = (std::mem::take(&mut self.native), self.model.take());
        let ended = std::mem::replace(self, Self { native, model, ..Self::default() });
        ended.usage
    }
}

/// Threads by key and by native id.
#[derive(Debug, Default)]
pub(super) struct ServerThreads {
    open: BTreeMap<SessionKey, ServerThread>,
    keys: HashMap<String, SessionKey>,
    turns: HashMap<String, TurnCounts>,
}

impl ServerThreads {
    pub(super) fn contains(&self, key: SessionKey) -> bool {
        self.open.contains_key(&key)
    }

    pub(super) fn key(&self, native: &str) -> Option<SessionKey> {
        self.keys.get(native).copied()
    }

    pub(super) fn native(&self, key: SessionKey) -> Option<String> {
        self.open.get(&key).map(|thread| thread.native.clone())
    }

    pub(super) fn natives(&self) -> Vec<String> {
        self.open.values().map(|thread| thread.native.clone()).collect()
    }

    pub(super) fn find_mut(&mut self, key: SessionKey) -> Option<&mut ServerThread> {
        self.open.get_mut(&key)
    }

    pub(super) fn turns(&mut self, native: &str) -> &mut TurnCounts {
        self.turns.entry(native.to_owned()).or_default()
    }

    pub(super) fn turns_of(&self, native: &str) -> Option<&TurnCounts> {
        self.turns.get(native)
    }

    pub(super) fn remove(&mut self, key: SessionKey) {
        if let Some(thread) = self.open.remove(&key) {
            self.keys.remove(&thread.native);
        }
    }

    /// Adds a thread, if the response confirms the sandbox of the request.
    pub(super) fn handle_open_response(&mut self, opening: ThreadOpening, result: &Value) -> Step {
        let text = |path: &str| result.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let Some(native) = text("/thread/id").or_else(|| opening.target.clone()) else {
            return opening.fail(OpenFault::Other, "the response has no thread id");
        };
        if self.keys.contains_key(&native) {
            return opening.fail(OpenFault::Other, "the id belongs to another open session");
        }
        let sandbox = text("/sandbox/type");
        let known = SANDBOX_NAMES.iter().find(|(_, name)| Some(*name) == sandbox.as_deref());
        let mode = known.map(|(name, _)| (*name).to_owned()).or(sandbox);
        if let Some(requested) = opening.mode()
            && mode.as_deref() != Some(requested)
        {
            let message =
                format!("sandbox `{requested}` was requested, but the agent reports {mode:?}");
            let fault = OpenFault::ModeNotConfirmed { requested: requested.to_owned() };
            return opening.fail(fault, &message);
        }
        let (session, model) = (opening.session, text("/model"));
        let thread = ServerThread {
            native: native.clone(),
            model: model.clone(),
            ..ServerThread::default()
        };
        self.keys.insert(native.clone(), session);
        self.open.insert(session, thread);
        let modes = SANDBOX_NAMES.iter().map(|(name, _)| (*name).to_owned()).collect();
        Step::Opened { session, id: native, modes, mode, model }
    }
}
