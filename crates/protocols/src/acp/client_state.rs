//! Open sessions of an ACP connection: turns, settings and the end of a session.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::opening::{AcpSetting, SessionOpening};
use super::prompt;
use super::requests::AcpAgentRequests;
use super::session_table::AcpSessionTable;
use crate::agent_error::AgentError;
use crate::model::command::PromptPart;
use crate::model::ids::SessionKey;
use crate::model::step::{ProtocolStep, TurnOutcome};
use crate::rpc::RpcWriter;

/// Code of turns that a session cannot start, as agents report an unknown session.
const SESSION_NOT_OPEN: i64 = -32002;

/// State that exists before and after an opening.
#[derive(Debug)]
pub(super) struct AcpClientState {
    pub(super) rpc: RpcWriter,
    /// Requests of the client without a response.
    pub(super) pending_requests: HashMap<i64, AcpPendingRequest>,
    pub(super) agent_requests: AcpAgentRequests,
    pub(super) sessions: AcpSessionTable,
}

/// Request of the client that waits for its response. Sessions are native ids, which a replay knows.
#[derive(Debug)]
pub(super) enum AcpPendingRequest {
    Initialize,
    Open(SessionOpening),
    /// Setting of an opening.
    OpeningSetting {
        native_id: String,
        setting: AcpSetting,
    },
    /// Setting of an open session.
    SessionSetting {
        native_id: String,
        setting: AcpSetting,
    },
    Prompt {
        native_id: String,
        /// Number of the sent line.
        line_number: u64,
    },
    Close {
        native_id: String,
        /// Number of the sent line.
        line_number: u64,
    },
}

impl AcpPendingRequest {
    /// Returns whether the request is the prompt in the sent line with this number.
    fn is_prompt(&self, number: u64) -> bool {
        matches!(self, Self::Prompt { line_number, .. } if *line_number == number)
    }
}

impl AcpClientState {
    pub(super) fn new() -> Self {
        Self {
            rpc: RpcWriter::new(true),
            pending_requests: HashMap::new(),
            agent_requests: AcpAgentRequests::default(),
            sessions: AcpSessionTable::default(),
        }
    }

    pub(super) fn change_setting(
        &mut self,
        session: SessionKey,
        setting: AcpSetting,
    ) -> Vec<ProtocolStep> {
        let Some(open_session) = self.sessions.find_ready_mut(session) else {
            return vec![ProtocolStep::protocol_error("the session is not open")];
        };
        let native_id = open_session.native_id.clone();
        let (method, params) =
            setting.to_request(&native_id, open_session.options_and_has_separate_modes());
        let (id, step) = self.rpc.request(method, &params);
        self.pending_requests.insert(id, AcpPendingRequest::SessionSetting { native_id, setting });
        vec![step]
    }

    pub(super) fn handle_setting_response(
        &mut self,
        native_id: &str,
        setting: AcpSetting,
        outcome: Result<Value, AgentError>,
    ) -> Vec<ProtocolStep> {
        let Some(key) = self.sessions.key(native_id) else { return Vec::new() };
        let Some(session) = self.sessions.find_mut(key) else { return Vec::new() };
        let setting = setting.reclassify_by_category(session.options_and_has_separate_modes().0);
        let changes = match outcome {
            Ok(result) => session.apply_setting_response(setting, &result),
            Err(error) => {
                let text = format!("{} was not set: {}", setting.describe(), error.message);
                return vec![ProtocolStep::Warning { session: key, text }];
            }
        };
        changes.into_iter().map(|change| change.into_step(key)).collect()
    }

    pub(super) fn prompt(
        &mut self,
        session: SessionKey,
        parts: &[PromptPart],
    ) -> Vec<ProtocolStep> {
        let native_id = self
            .sessions
            .find_ready_mut(session)
            .map(|open_session| open_session.native_id.clone());
        let Some(native_id) = native_id.filter(|native_id| !self.is_closing(native_id)) else {
            let message = "the session is not open".to_owned();
            let turn_outcome = TurnOutcome::Failed {
                code: SESSION_NOT_OPEN,
                message,
                is_authentication_error: false,
            };
            return vec![ProtocolStep::TurnEnded { session, outcome: turn_outcome, usage: None }];
        };
        if self.sessions.turns_mut(&native_id).is_running() {
            return vec![ProtocolStep::protocol_error("a turn is in progress")];
        }
        let params = json!({"sessionId": native_id, "prompt": prompt::content_blocks(parts)});
        let (id, step) = self.rpc.request("session/prompt", &params);
        let line_number = self.rpc.last_line_number();
        self.sessions.turns_mut(&native_id).record_prompt(line_number);
        self.pending_requests.insert(id, AcpPendingRequest::Prompt { native_id, line_number });
        vec![step]
    }

    pub(super) fn handle_prompt_response(
        &mut self,
        native_id: &str,
        outcome: Result<Value, AgentError>,
    ) -> Vec<ProtocolStep> {
        if !self.sessions.turns_mut(native_id).try_end_turn() {
            return Vec::new();
        }
        let Some(session) = self.sessions.key(native_id) else { return Vec::new() };
        let mut steps = self.agent_requests.cancel_all(session, &mut self.rpc);
        if let Some(open_session) = self.sessions.find_mut(session) {
            open_session.calls.clear();
        }
        steps.extend(prompt::turn_end_steps(session, outcome));
        steps
    }

    pub(super) fn cancel(&mut self, session: SessionKey) -> Vec<ProtocolStep> {
        let Some(native_id) = self
            .sessions
            .find_ready_mut(session)
            .map(|open_session| open_session.native_id.clone())
        else {
            return Vec::new();
        };
        if !self.sessions.turns_mut(&native_id).is_running() {
            return Vec::new();
        }
        self.sessions.turns_mut(&native_id).record_cancel();
        let mut steps =
            vec![self.rpc.notification("session/cancel", &json!({"sessionId": native_id}))];
        // The caller cancels and knows it, so only the lines are returned.
        let cancel_steps = self.agent_requests.cancel_all(session, &mut self.rpc).into_iter();
        steps.extend(cancel_steps.filter(|step| matches!(step, ProtocolStep::Send(_))));
        steps
    }

    /// Closes a session. While the agent closes it, the session takes no prompt.
    pub(super) fn close(
        &mut self,
        session: SessionKey,
        has_close_capability: bool,
    ) -> Vec<ProtocolStep> {
        let Some(native_id) =
            self.sessions.find_mut(session).map(|open_session| open_session.native_id.clone())
        else {
            return vec![ProtocolStep::SessionClosed { session }];
        };
        if self.is_closing(&native_id) {
            return Vec::new();
        }
        let mut steps = self.cancel(session);
        if has_close_capability {
            let (id, step) = self.rpc.request("session/close", &json!({"sessionId": native_id}));
            let line_number = self.rpc.last_line_number();
            self.pending_requests.insert(id, AcpPendingRequest::Close { native_id, line_number });
            steps.push(step);
        } else {
            steps.extend(self.finish_close(&native_id, None));
        }
        steps
    }

    /// Returns true if the conversation is being resumed: what the agent sends of it is its history.
    pub(super) fn is_being_resumed(&self, native_id: &str) -> bool {
        self.pending_requests.values().any(|pending| match pending {
            AcpPendingRequest::Open(opening) => opening.resume_id.as_deref() == Some(native_id),
            _ => false,
        })
    }

    fn is_closing(&self, native_id: &str) -> bool {
        let closes = |it: &AcpPendingRequest| matches!(it, AcpPendingRequest::Close { native_id: other, .. } if other == native_id);
        self.pending_requests.values().any(closes)
    }

    /// Removes a session that the sent line with this number closed. Its turn, if any, has no other end any more.
    pub(super) fn finish_close(
        &mut self,
        native_id: &str,
        line_number: Option<u64>,
    ) -> Vec<ProtocolStep> {
        let Some(session) = self.sessions.key(native_id) else { return Vec::new() };
        let mut steps = self.end_lost_turn(session, native_id, line_number);
        self.sessions.remove(session);
        steps.push(ProtocolStep::SessionClosed { session });
        steps
    }

    /// Ends the turn that was in progress when the line was sent. In a replay, later prompts of the conversation are
    /// known already.
    pub(super) fn end_lost_turn(
        &mut self,
        session: SessionKey,
        native_id: &str,
        line_number: Option<u64>,
    ) -> Vec<ProtocolStep> {
        let mut steps = self.agent_requests.cancel_all(session, &mut self.rpc);
        if let Some(prompt_line) = self.sessions.turns_mut(native_id).end_turn_at_line(line_number)
        {
            self.pending_requests.retain(|_, pending| !pending.is_prompt(prompt_line));
            steps.push(ProtocolStep::TurnEnded {
                session,
                outcome: TurnOutcome::Lost,
                usage: None,
            });
        }
        steps
    }
}
