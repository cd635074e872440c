//! Replay of the lines that a connection sent before a crash of the caller.

use serde_json::Value;

use super::thread::ThreadOpening;
use super::{AppServerConnection, AppServerInitializeState, AppServerPendingRequest};
use crate::model::ids::{RequestId, SessionKey};
use crate::rpc::RpcMessage;

/// Records a sent line.
pub(super) fn replay_sent_line(connection: &mut AppServerConnection, line: &[u8]) {
    let Some(message) = RpcMessage::parse_sent(line) else { return };
    match message {
        RpcMessage::Request { id: RequestId::Number(id), method, params } => {
            connection.rpc.record_replayed_line(Some(id));
            if let Some(pending) = replay_request(connection, &method, &params) {
                connection.pending_requests.insert(id, pending);
            }
        }
        RpcMessage::Request { .. } => connection.rpc.record_replayed_line(None),
        RpcMessage::Notification { method, .. } => {
            connection.rpc.record_replayed_line(None);
            connection.has_replayed_initialized |= method == "initialized";
        }
        RpcMessage::Response { id, outcome } => {
            connection.rpc.record_replayed_line(None);
            let rejects_reused_id = RpcMessage::rejects_reused_id(&outcome);
            let answer = (rejects_reused_id, outcome.unwrap_or_default());
            connection.agent_requests.record_answer(id, connection.rpc.last_line_number(), answer);
        }
    }
}

/// Records a request among the replayed lines.
fn replay_request(
    connection: &mut AppServerConnection,
    method: &str,
    params: &Value,
) -> Option<AppServerPendingRequest> {
    let native_id = params.get("threadId").and_then(Value::as_str).map(str::to_owned);
    match method {
        "initialize" => {
            connection.initialize_state = AppServerInitializeState::Initializing(Vec::new());
            Some(AppServerPendingRequest::Initialize)
        }
        "thread/start" | "thread/resume" => {
            let session = SessionKey(connection.replayed_opening_count);
            connection.replayed_opening_count += 1;
            let opening = ThreadOpening::from_replay(session, native_id, params);
            Some(AppServerPendingRequest::Open(opening))
        }
        "turn/start" => {
            let native_id = native_id?;
            let line_number = connection.rpc.last_line_number();
            connection.threads.turns_mut(&native_id).record_prompt(line_number);
            Some(AppServerPendingRequest::Prompt { native_id })
        }
        "turn/interrupt" => {
            connection.threads.turns_mut(&native_id?).record_cancel();
            Some(AppServerPendingRequest::Interrupt)
        }
        _ => None,
    }
}
