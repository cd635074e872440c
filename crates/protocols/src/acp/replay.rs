//! Replay of the lines that a connection sent before a crash of the caller.

use std::collections::HashMap;

use serde_json::Value;

use super::client_state::AcpPendingRequest;
use super::opening::{AcpSetting, SessionOpening, SettingQueue};
use super::{AcpConnection, InitializeState};
use crate::model::ids::{RequestId, SessionKey};
use crate::rpc::RpcMessage;

/// Settings of openings among the replayed lines, by native id.
#[derive(Debug, Default)]
pub(super) struct ReplayedSettings {
    openings: HashMap<String, Vec<OpeningRecord>>,
    assigned_key_count: u32,
}

/// Settings after one request that opens a conversation.
#[derive(Debug, Default)]
struct OpeningRecord {
    /// Id of a request that names the conversation; `None` for `session/new`, whose response names it.
    request_id: Option<i64>,
    settings: SettingQueue,
    /// True if a prompt followed: later settings do not belong to the opening.
    is_followed_by_prompt: bool,
}

impl ReplayedSettings {
    /// Takes the settings of an opening of the conversation.
    pub(super) fn take_settings(
        &mut self,
        native_id: &str,
        request_id: Option<i64>,
    ) -> SettingQueue {
        let Some(records) = self.openings.get_mut(native_id) else { return SettingQueue::new() };
        let index = records.iter().position(|record| record.request_id == request_id);
        index.map(|index| records.remove(index).settings).unwrap_or_default()
    }

    /// Returns the latest opening of the conversation. Without a request that names the conversation, the response to
    /// `session/new` named it.
    fn latest_or_insert(&mut self, native_id: &str) -> Option<&mut OpeningRecord> {
        let records = self.openings.entry(native_id.to_owned()).or_default();
        if records.is_empty() {
            records.push(OpeningRecord::default());
        }
        records.last_mut()
    }

    fn next_key(&mut self) -> SessionKey {
        let key = SessionKey(self.assigned_key_count);
        self.assigned_key_count += 1;
        key
    }
}

/// Records a sent line.
pub(super) fn replay_sent_line(connection: &mut AcpConnection, line: &[u8]) {
    let Some(message) = RpcMessage::parse_sent(line) else { return };
    let request_id = match &message {
        RpcMessage::Request { id: RequestId::Number(id), .. } => Some(*id),
        RpcMessage::Request { .. }
        | RpcMessage::Notification { .. }
        | RpcMessage::Response { .. } => None,
    };
    connection.client_state.rpc.record_replayed_line(request_id);
    match message {
        RpcMessage::Request { method, params, .. } => {
            if let Some(pending) = replay_request(connection, &method, &params, request_id)
                && let Some(id) = request_id
            {
                connection.client_state.pending_requests.insert(id, pending);
            }
        }
        RpcMessage::Notification { method, params } if method == "session/cancel" => {
            if let Some(native_id) = parse_native_id(&params) {
                connection.client_state.sessions.turns_mut(&native_id).record_cancel();
            }
        }
        RpcMessage::Notification { .. } => {}
        RpcMessage::Response { id, outcome } => {
            let line_number = connection.client_state.rpc.last_line_number();
            let rejects_reused_id = RpcMessage::rejects_reused_id(&outcome);
            let answer = (rejects_reused_id, outcome.unwrap_or_default());
            connection.client_state.agent_requests.record_answer(id, line_number, answer);
        }
    }
}

/// Returns what the response to a sent request completes; `None` for a setting that its opening completes.
fn replay_request(
    connection: &mut AcpConnection,
    method: &str,
    params: &Value,
    request_id: Option<i64>,
) -> Option<AcpPendingRequest> {
    let recorded_settings = &mut connection.replayed_settings;
    match method {
        "initialize" => {
            connection.initialize_state = InitializeState::Initializing(Vec::new());
            Some(AcpPendingRequest::Initialize)
        }
        "session/new" => Some(AcpPendingRequest::Open(SessionOpening::from_replay(
            recorded_settings.next_key(),
            None,
        ))),
        "session/load" | "session/resume" => {
            let resume_id = parse_native_id(params)?;
            let records = recorded_settings.openings.entry(resume_id.clone()).or_default();
            records.push(OpeningRecord { request_id, ..OpeningRecord::default() });
            Some(AcpPendingRequest::Open(SessionOpening::from_replay(
                recorded_settings.next_key(),
                Some(resume_id),
            )))
        }
        "session/prompt" => {
            let native_id = parse_native_id(params)?;
            recorded_settings.latest_or_insert(&native_id)?.is_followed_by_prompt = true;
            let line_number = connection.client_state.rpc.last_line_number();
            connection.client_state.sessions.turns_mut(&native_id).record_prompt(line_number);
            Some(AcpPendingRequest::Prompt { native_id, line_number })
        }
        "session/close" => {
            let line_number = connection.client_state.rpc.last_line_number();
            parse_native_id(params)
                .map(|native_id| AcpPendingRequest::Close { native_id, line_number })
        }
        _ => {
            let setting = AcpSetting::from_request(method, params)?;
            let native_id = parse_native_id(params)?;
            let record = recorded_settings.latest_or_insert(&native_id)?;
            if record.is_followed_by_prompt {
                return Some(AcpPendingRequest::SessionSetting { native_id, setting });
            }
            record.settings.push_back((request_id, setting));
            None
        }
    }
}

fn parse_native_id(params: &Value) -> Option<String> {
    params.get("sessionId").and_then(Value::as_str).map(str::to_owned)
}
