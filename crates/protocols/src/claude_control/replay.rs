//! Replay of the lines that a connection sent before a crash of the caller.

use serde_json::Value;

use super::requests;
use super::session::ControlSetting;
use super::writer::REQUEST_ID_PREFIX;
use super::{ControlConnection, ControlInitializeState, ControlPendingRequest};
use crate::model::ids::RequestId;

/// Records a sent line.
pub(super) fn replay_sent_line(connection: &mut ControlConnection, line: &[u8]) {
    let Ok(message) = serde_json::from_slice::<Value>(line) else { return };
    connection.writer.sent_line_count += 1;
    let string_at = |path: &str| message.pointer(path).and_then(Value::as_str);
    match string_at("/type") {
        Some("user") => connection.turns.record_prompt(connection.writer.sent_line_count),
        Some("control_response") => {
            if let Some(id) = string_at("/response/request_id") {
                let rejects_reused_id = requests::rejects_reused_id(&message);
                let id = RequestId::Text(id.to_owned());
                let result = message.pointer("/response/response").cloned().unwrap_or_default();
                let answer = (rejects_reused_id, result);
                connection.agent_requests.record_answer(
                    id,
                    connection.writer.sent_line_count,
                    answer,
                );
            }
        }
        _ => replay_request(connection, &message),
    }
}

fn replay_request(connection: &mut ControlConnection, message: &Value) {
    let string_at = |path: &str| message.pointer(path).and_then(Value::as_str);
    let Some(id) = string_at("/request_id").map(str::to_owned) else { return };
    let request_number =
        id.strip_prefix(REQUEST_ID_PREFIX).and_then(|request_number| request_number.parse().ok());
    connection.writer.last_request_number =
        connection.writer.last_request_number.max(request_number.unwrap_or_default());
    let request = message.get("request").cloned().unwrap_or_default();
    match string_at("/request/subtype") {
        Some("initialize") => {
            connection.initialize_state = ControlInitializeState::Initializing;
            connection.pending_requests.insert(id, ControlPendingRequest::Initialize);
        }
        Some("interrupt") => {
            connection.turns.record_cancel();
            connection.pending_requests.insert(id, ControlPendingRequest::Interrupt);
        }
        _ => {
            let Some(setting) = ControlSetting::from_request(&request) else { return };
            if connection.turns.is_running() {
                connection
                    .pending_requests
                    .insert(id, ControlPendingRequest::SessionSetting(setting));
            } else {
                connection.recorded_settings.push_back((id, setting));
            }
        }
    }
}
