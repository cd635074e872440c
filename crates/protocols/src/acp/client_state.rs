//! Open sessions of an ACP connection: turns, settings and the end of a session.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::opening::{AcpSetting, SessionOpening};
use super::prompt;
use super::requests::AgentRequests;
use super::sessions::AcpSessions;
use crate::fault::AgentError;
use crate::model::command::PromptPart;
use crate::model::ids::SessionKey;
use crate::model::step::{Step, TurnOutcome};
use crate::rpc::RpcWriter;

/// Code of turns that a session cannot start, as agents report an unknown session.
const SESSION_NOT_OPEN: i64 = -32002;

/// State that exists before and after an opening.
#[derive(Debug)]
pub(super) struct AcpClientState {
    pub(super) rpc: RpcWriter,
    /// Requests of the client without a response.
    pub(super) pending: HashMap<i64, AcpPending>,
    pub(super) requests: AgentRequests,
    pub(super) sessions: AcpSessions,
}

/// Request of the client that waits for its response. Sessions are native ids, which a replay knows.
#[derive(Debug)]
pub(super) enum AcpPending {
    Initialize,
    Open(SessionOpening),
    /// Setting of an opening.
    Opening {
        native: String,
        setting: AcpSetting,
    },
    /// Setting of an open session.
    Setting {
        native: String,
        setting: AcpSetting,
    },
    Prompt {
        native: String,
        /// Number of the sent line.
        line: u64,
    },
    Close {
        native: String,
        /// Number of the sent line.
        line: u64,
    },
}

impl AcpPending {
    /// Returns whether the request is the prompt in the sent line with this number.
    fn is_prompt(&self, number: u64) -> bool {
        matches!(self, Self::Prompt { line, .. } if *line == number)
    }
}

impl AcpClientState {
    pub(super) fn new() -> Self {
        Self {
            rpc: RpcWriter::new(true),
            pending: HashMap::new(),
            requests: AgentRequests::default(),
            sessions: AcpSessions::default(),
        }
    }

    pub(super) fn set(&mut self, session: SessionKey, setting: AcpSetting) -> Vec<Step> {
        let Some(open) = self.sessions.ready_mut(session) else {
            return vec![Step::protocol_error("the session is not open")];
        };
        let native = open.native.clone();
        let (method, params) = setting.request(&native, open.options());
        let (id, send) = self.rpc.request(method, &params);
        self.pending.insert(id, AcpPending::Setting { native, setting });
        vec![send]
    }

    pub(super) fn handle_setting_response(
        &mut self,
        native: &str,
        setting: AcpSetting,
        outcome: Result<Value, AgentError>,
    ) -> Vec<Step> {
        let Some(key) = self.sessions.key(native) else { return Vec::new() };
        let Some(session) = self.sessions.find_mut(key) else { return Vec::new() };
        let setting = setting.resolve(session.options().0);
        let changes = match outcome {
            Ok(result) => session.apply_result(setting, &result),
            Err(error) => {
                let text = format!("{} was not set: {}", setting.describe(), error.message);
                return vec![Step::Warning { session: key, text }];
            }
        };
        changes.into_iter().map(|change| change.step(key)).collect()
    }

    pub(super) fn prompt(&mut self, session: SessionKey, parts: &[PromptPart]) -> Vec<Step> {
        let native = self.sessions.ready_mut(session).map(|open| open.native.clone());
        let Some(native) = native.filter(|native| !self.is_closing(native)) else {
            let message = "the session is not open".to_owned();
            let end =
                TurnOutcome::Failed { code: SESSION_NOT_OPEN, message, is_authentication: false };
            return vec![Step::TurnEnded { session, end, usage: None }];
        };
        if self.sessions.turns(&native).is_running() {
            return vec![Step::protocol_error("a turn is in progress")];
        }
        let params = json!({"sessionId": native, "prompt": prompt::blocks(parts)});
        let (id, send) = self.rpc.request("session/prompt", &params);
        let line = self.rpc.line();
        self.sessions.turns(&native).record_prompt(line);
        self.pending.insert(id, AcpPending::Prompt { native, line });
        vec![send]
    }

    pub(super) fn handle_prompt_response(
        &mut self,
        native: &str,
        outcome: Result<Value, AgentError>,
    ) -> Vec<Step> {
        if !self.sessions.turns(native).record_end() {
            return Vec::new();
        }
        let Some(session) = self.sessions.key(native) else { return Vec::new() };
        let mut steps = self.requests.close_session(session, &mut self.rpc);
        if let Some(open) = self.sessions.find_mut(session) {
            open.calls.clear();
        }
        steps.extend(prompt::end(session, outcome));
        steps
    }

    pub(super) fn cancel(&mut self, session: SessionKey) -> Vec<Step> {
        let Some(native) = self.sessions.ready_mut(session).map(|open| open.native.clone()) else {
            return Vec::new();
        };
        if !self.sessions.turns(&native).is_running() {
            return Vec::new();
        }
        self.sessions.turns(&native).record_cancel();
        let mut steps =
            vec![self.rpc.notification("session/cancel", &json!({"sessionId": native}))];
        // The caller cancels and knows it, so only the lines are returned.
        let closed = self.requests.close_session(session, &mut self.rpc).into_iter();
        steps.extend(closed.filter(|step| matches!(step, Step::Send(_))));
        steps
    }

    /// Closes a session. While the agent closes it, the session takes no prompt.
    pub(super) fn close(&mut self, session: SessionKey, can_close: bool) -> Vec<Step> {
        let Some(native) = self.sessions.find_mut(session).map(|open| open.native.clone()) else {
            return vec![Step::Closed { session }];
        };
        if self.is_closing(&native) {
            return Vec::new();
        }
        let mut steps = self.cancel(session);
        if can_close {
            let (id, send) = self.rpc.request("session/close", &json!({"sessionId": native}));
            let line = self.rpc.line();
            self.pending.insert(id, AcpPending::Close { native, line });
            steps.push(send);
        } else {
            steps.extend(self.finish_close(&native, None));
        }
        steps
    }

    fn is_closing(&self, native: &str) -> bool {
        let closes = |it: &AcpPending| matches!(it, AcpPending::Close { native: other, .. } if other == native);
        self.pending.values().any(closes)
    }

    /// Removes a session that the sent line with this number closed. Its turn, if any, has no other end any more.
    pub(super) fn finish_close(&mut self, native: &str, line: Option<u64>) -> Vec<Step> {
        let Some(session) = self.sessions.key(native) else { return Vec::new() };
        let mut steps = self.end_lost_turn(session, native, line);
        self.sessions.remove(session);
        steps.push(Step::Closed { session });
        steps
    }

    /// Ends the turn that was in progress when the line was sent. In a replay, later prompts of the conversation are
    /// known already.
    pub(super) fn end_lost_turn(
        &mut self,
        session: SessionKey,
        native: &str,
        line: Option<u64>,
    ) -> Vec<Step> {
        let mut steps = self.requests.close_session(session, &mut self.rpc);
        if let Some(prompt) = self.sessions.turns(native).record_loss(line) {
            self.pending.retain(|_, pending| !pending.is_prompt(prompt));
            steps.push(Step::TurnEnded { session, end: TurnOutcome::Lost, usage: None });
        }
        steps
    }
}
