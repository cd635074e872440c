//! Threads of the app server: sessions of the caller.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use crate::model::command::SessionStart;
use crate::model::ids::SessionKey;
use crate::model::step::{OpenFault, ProtocolStep, TokenUsage};
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
    pub(super) resume_id: Option<String>,
    params: Map<String, Value>,
    pub(super) is_replay_without_command: bool,
}

impl ThreadOpening {
    pub(super) fn new(session: SessionKey, start: SessionStart, cwd: &str) -> Self {
        let resume_id = start.into_resumed_id();
        let thread_param =
            resume_id.iter().map(|id| ("threadId".to_owned(), Value::from(id.as_str())));
        let fixed_params = [("cwd", cwd), ("approvalPolicy", "on-request")];
        let fixed_params =
            fixed_params.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value)));
        let params = thread_param.chain(fixed_params).collect();
        Self { session, resume_id, params, is_replay_without_command: false }
    }

    pub(super) fn apply_settings(
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
    pub(super) fn from_replay(
        session: SessionKey,
        resume_id: Option<String>,
        params: &Value,
    ) -> Self {
        let params = params.as_object().cloned().unwrap_or_default();
        Self { session, resume_id, params, is_replay_without_command: true }
    }

    pub(super) fn to_request(&self) -> (&'static str, Value) {
        let method = if self.resume_id.is_some() { "thread/resume" } else { "thread/start" };
        (method, Value::Object(self.params.clone()))
    }

    pub(super) fn open_failed_step(&self, fault: OpenFault, message: &str) -> ProtocolStep {
        ProtocolStep::OpenFailed { session: self.session, fault, message: message.to_owned() }
    }

    fn mode(&self) -> Option<&str> {
        self.params.get("sandbox").and_then(Value::as_str)
    }
}

/// Open thread.
#[derive(Debug, Default)]
pub(super) struct AppServerThread {
    native_id: String,
    /// Id of the turn in progress, once reported.
    pub(super) turn_id: Option<String>,
    /// True if an interruption waits for the id of the turn.
    pub(super) is_interrupt_pending: bool,
    /// Messages whose text was streamed.
    pub(super) streamed_message_ids: HashSet<String>,
    /// Tool calls that a step has reported.
    pub(super) reported_call_ids: HashSet<String>,
    /// Changes of the files of a call, for a later request that does not repeat them.
    pub(super) calls: HashMap<String, crate::model::tool_call::ToolCall>,
    pub(super) usage: Option<TokenUsage>,
    /// Error that precedes the end of the turn.
    pub(super) failure: Option<Value>,
    pub(super) model: Option<String>,
}

impl AppServerThread {
    /// Clears what belongs to the turn; returns its usage.
    pub(super) fn take_usage_and_clear_turn(&mut self) -> Option<TokenUsage> {
        let (native_id, model) = (std::mem::take(&mut self.native_id), self.model.take());
        let ended_thread = std::mem::replace(self, Self { native_id, model, ..Self::default() });
        ended_thread.usage
    }
}

/// Threads by key and by native id.
#[derive(Debug, Default)]
pub(super) struct AppServerThreads {
    open_threads: BTreeMap<SessionKey, AppServerThread>,
    keys_by_native_id: HashMap<String, SessionKey>,
    turns_by_native_id: HashMap<String, TurnCounts>,
}

impl AppServerThreads {
    pub(super) fn contains(&self, key: SessionKey) -> bool {
        self.open_threads.contains_key(&key)
    }

    pub(super) fn key(&self, native_id: &str) -> Option<SessionKey> {
        self.keys_by_native_id.get(native_id).copied()
    }

    pub(super) fn native_id(&self, key: SessionKey) -> Option<String> {
        self.open_threads.get(&key).map(|thread| thread.native_id.clone())
    }

    pub(super) fn native_ids(&self) -> Vec<String> {
        self.open_threads.values().map(|thread| thread.native_id.clone()).collect()
    }

    pub(super) fn find_mut(&mut self, key: SessionKey) -> Option<&mut AppServerThread> {
        self.open_threads.get_mut(&key)
    }

    pub(super) fn turns_mut(&mut self, native_id: &str) -> &mut TurnCounts {
        self.turns_by_native_id.entry(native_id.to_owned()).or_default()
    }

    pub(super) fn turns_of(&self, native_id: &str) -> Option<&TurnCounts> {
        self.turns_by_native_id.get(native_id)
    }

    pub(super) fn remove(&mut self, key: SessionKey) {
        if let Some(thread) = self.open_threads.remove(&key) {
            self.keys_by_native_id.remove(&thread.native_id);
        }
    }

    /// Adds a thread, if the response confirms the sandbox of the request.
    pub(super) fn handle_open_response(
        &mut self,
        opening: ThreadOpening,
        result: &Value,
    ) -> ProtocolStep {
        let string_at =
            |path: &str| result.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let Some(native_id) = string_at("/thread/id").or_else(|| opening.resume_id.clone()) else {
            return opening.open_failed_step(OpenFault::Other, "the response has no thread id");
        };
        if self.keys_by_native_id.contains_key(&native_id) {
            return opening
                .open_failed_step(OpenFault::Other, "the id belongs to another open session");
        }
        let sandbox = string_at("/sandbox/type");
        let sandbox_names =
            SANDBOX_NAMES.iter().find(|(_, name)| Some(*name) == sandbox.as_deref());
        let mode = sandbox_names.map(|(name, _)| (*name).to_owned()).or(sandbox);
        if let Some(requested) = opening.mode()
            && mode.as_deref() != Some(requested)
        {
            let message =
                format!("sandbox `{requested}` was requested, but the agent reports {mode:?}");
            let fault = OpenFault::ModeNotConfirmed { requested: requested.to_owned() };
            return opening.open_failed_step(fault, &message);
        }
        let (session, model) = (opening.session, string_at("/model"));
        let thread = AppServerThread {
            native_id: native_id.clone(),
            model: model.clone(),
            ..AppServerThread::default()
        };
        self.keys_by_native_id.insert(native_id.clone(), session);
        self.open_threads.insert(session, thread);
        let modes = SANDBOX_NAMES.iter().map(|(name, _)| (*name).to_owned()).collect();
        ProtocolStep::SessionOpened { session, native_id, modes, mode, model }
    }
}
