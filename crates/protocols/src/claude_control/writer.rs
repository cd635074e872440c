//! Lines of the client, with their numbers and the ids of its requests.

use serde_json::{Value, json};

use crate::model::step::ProtocolStep;

/// Prefix of the ids of requests of the client.
pub(super) const REQUEST_ID_PREFIX: &str = "client-";

/// Builder of lines, with the number in the latest request id and the number of sent lines.
#[derive(Debug, Default)]
pub(super) struct ControlWriter {
    pub(super) last_request_number: u64,
    pub(super) sent_line_count: u64,
}

impl ControlWriter {
    pub(super) fn build_send_step(&mut self, message: &Value) -> ProtocolStep {
        self.sent_line_count += 1;
        ProtocolStep::Send(format!("{message}\n").into_bytes())
    }

    pub(super) fn request(&mut self, request: &Value) -> (String, ProtocolStep) {
        self.last_request_number += 1;
        let id = format!("{REQUEST_ID_PREFIX}{}", self.last_request_number);
        let message = json!({"type": "control_request", "request_id": id, "request": request});
        (id, self.build_send_step(&message))
    }
}
