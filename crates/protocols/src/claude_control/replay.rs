//! Replay of the lines that a connection sent before a crash of the caller.

use serde_json::Value;

use super::requests;
use super::sender::REQUEST_ID_PREFIX;
use super::session::ControlSetting;
use super::{ControlConnection, ControlInitializeState, ControlPending};
use crate::model::ids::RequestId;

/// Records a sent line.
pub(super) fn record(connection: &mut ControlConnection, line: &[u8]) {
    let Ok(message) = serde_json::from_slice::<Value>(line) else { return };
    connection.sender.lines += 1;
    let text = |path: &str| message.pointer(path).and_then(Value::as_str);
    match text("/type") {
        Some("user") => connection.turns.record_prompt(connection.sender.lines),
        Some("control_response") => {
            if let Some(id) = text("/response/request_id") {
                let is_conflict = requests::is_conflict(&message);
                let id = RequestId::Text(id.to_owned());
                let result = message.pointer("/response/response").cloned().unwrap_or_default();
                let answer = (is_conflict, result);
                connection.requests.record_answer(id, connection.sender.lines, answer);
            }
        }
        _ => request(connection, &message),
    }
}

fn request(connection: &mut ControlConnection, message: &Value) {
    let text = |path: &str| message.pointer(path).and_then(Value::as_str);
    let Some(id) = text("/request_id").map(str::to_owned) else { return };
    let number = id.strip_prefix(REQUEST_ID_PREFIX).and_then(|number| number.parse().ok());
    connection.sender.next = connection.sender.next.max(number.unwrap_or_default());
    let request = message.get("request").cloned().unwrap_or_default();
    match text("/request/subtype") {
        Some("initialize") => {
            connection.initialized = ControlInitializeState::Waiting;
            connection.pending.insert(id, ControlPending::Initialize);
        }
        Some("interrupt") => {
            connection.turns.record_cancel();
            connection.pending.insert(id, ControlPending::Interrupt);
        }
        _ => {
            let Some(setting) = ControlSetting::read(&request) else { return };
            if connection.turns.is_running() {
                connection.pending.insert(id, ControlPending::Setting(setting));
            } else {
                connection.recorded.push_back((id, setting));
            }
        }
    }
}
