//! Lines of the client, with their numbers and the ids of its requests.

use serde_json::{Value, json};

use crate::model::step::Step;

/// Prefix of the ids of requests of the client.
pub(super) const REQUEST_ID_PREFIX: &str = "client-";

/// Builder of lines, with the number in the latest request id and the number of sent lines.
#[derive(Debug, Default)]
pub(super) struct ControlSender {
    pub(super) last_request_number: u64,
    pub(super) sent_lines: u64,
}

impl ControlSender {
    pub(super) fn send_line(&mut self, message: &Value) -> Step {
        self.sent_lines += 1;
        Step::Send(format!("{message}\n").into_bytes())
    }

    pub(super) fn request(&mut self, request: &Value) -> (String, Step) {
        self.last_request_number += 1;
        let id = format!("{REQUEST_ID_PREFIX}{}", self.last_request_number);
        let message = json!({"type": "control_request", "request_id": id, "request": request});
        (id, self.send_line(&message))
    }
}
