//! Replay of the lines that a connection sent before a crash of the caller.

use std::collections::HashMap;

use serde_json::Value;

use super::client_state::AcpPending;
use super::opening::{AcpSetting, SessionOpening, SettingQueue};
use super::{AcpConnection, InitializeState};
use crate::model::ids::{RequestId, SessionKey};
use crate::rpc::RpcFrame;

/// Settings of openings among the replayed lines, by native id.
#[derive(Debug, Default)]
pub(super) struct RecordedSettings {
    openings: HashMap<String, Vec<OpeningRecord>>,
    opened: u32,
}

/// Settings after one request that opens a conversation.
#[derive(Debug, Default)]
struct OpeningRecord {
    /// Id of a request that names the conversation; `None` for `session/new`, whose response names it.
    request: Option<i64>,
    settings: SettingQueue,
    /// True if a prompt followed: later settings do not belong to the opening.
    is_complete: bool,
}

impl RecordedSettings {
    /// Takes the settings of an opening of the conversation.
    pub(super) fn take(&mut self, native: &str, request: Option<i64>) -> SettingQueue {
        let Some(records) = self.openings.get_mut(native) else { return SettingQueue::new() };
        let index = records.iter().position(|record| record.request == request);
        index.map(|index| records.remove(index).settings).unwrap_or_default()
    }

    /// Returns the latest opening of the conversation. Without a request that names the conversation, the response to
    /// `session/new` named it.
    fn latest(&mut self, native: &str) -> Option<&mut OpeningRecord> {
        let records = self.openings.entry(native.to_owned()).or_default();
        if records.is_empty() {
            records.push(OpeningRecord::default());
        }
        records.last_mut()
    }

    fn next_key(&mut self) -> SessionKey {
        let key = SessionKey(self.opened);
        self.opened += 1;
        key
    }
}

/// Records a sent line.
pub(super) fn record(connection: &mut AcpConnection, line: &[u8]) {
    let Ok(frame) = RpcFrame::read(line) else { return };
    let number = match &frame {
        RpcFrame::Request { id: RequestId::Number(id), .. } => Some(*id),
        RpcFrame::Request { .. } | RpcFrame::Notification { .. } | RpcFrame::Response { .. } => {
            None
        }
    };
    connection.client_state.rpc.record(number);
    match frame {
        RpcFrame::Request { method, params, .. } => {
            if let Some(pending) = request(connection, &method, &params, number)
                && let Some(id) = number
            {
                connection.client_state.pending.insert(id, pending);
            }
        }
        RpcFrame::Notification { method, params } if method == "session/cancel" => {
            if let Some(native) = native(&params) {
                connection.client_state.sessions.turns(&native).record_cancel();
            }
        }
        RpcFrame::Notification { .. } => {}
        RpcFrame::Response { id, outcome } => {
            let line = connection.client_state.rpc.line();
            let is_conflict = RpcFrame::is_conflict(&outcome);
            let answer = (is_conflict, outcome.unwrap_or_default());
            connection.client_state.requests.record_answer(id, line, answer);
        }
    }
}

/// Returns what the response to a sent request completes; `None` for a setting that its opening completes.
fn request(
    connection: &mut AcpConnection,
    method: &str,
    params: &Value,
    id: Option<i64>,
) -> Option<AcpPending> {
    let recorded = &mut connection.recorded;
    match method {
        "initialize" => {
            connection.agent = InitializeState::Initializing(Vec::new());
            Some(AcpPending::Initialize)
        }
        "session/new" => {
            Some(AcpPending::Open(SessionOpening::replayed(recorded.next_key(), None)))
        }
        "session/load" | "session/resume" => {
            let target = native(params)?;
            let records = recorded.openings.entry(target.clone()).or_default();
            records.push(OpeningRecord { request: id, ..OpeningRecord::default() });
            Some(AcpPending::Open(SessionOpening::replayed(recorded.next_key(), Some(target))))
        }
        "session/prompt" => {
            let native = native(params)?;
            recorded.latest(&native)?.is_complete = true;
            let line = connection.client_state.rpc.line();
            connection.client_state.sessions.turns(&native).record_prompt(line);
            Some(AcpPending::Prompt { native, line })
        }
        "session/close" => {
            let line = connection.client_state.rpc.line();
            native(params).map(|native| AcpPending::Close { native, line })
        }
        _ => {
            let setting = AcpSetting::read(method, params)?;
            let native = native(params)?;
            let record = recorded.latest(&native)?;
            if record.is_complete {
                return Some(AcpPending::Setting { native, setting });
            }
            record.settings.push_back((id, setting));
            None
        }
    }
}

fn native(params: &Value) -> Option<String> {
    params.get("sessionId").and_then(Value::as_str).map(str::to_owned)
}
