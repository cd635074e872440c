//! One JSON-RPC 2.0 call, preceded by the initialization of the program before its first call.

use std::sync::Arc;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::stdio_protocol::{
    NotificationKind, NotificationRule, RpcCall, RpcSpec,
};
use serde_json::{Map, Value, json};

use super::StdioAction;
use super::document_template::render_document;
use super::framing::{Frame, FrameDecoder, encode};
use super::notified_text::{NotifiedShare, NotifiedText};
use crate::drivers::adapters::event_line::{EventContent, ProgramEvent};
use crate::drivers::adapters::failure::ReportedFailure;
use crate::platform::template::ExecutionValues;

/// JSON-RPC error code for an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;

const INVALID_OUTPUT_MESSAGE: &str = "its output is no longer valid JSON-RPC";
const UNKNOWN_RESPONSE_WARNING: &str = "the agent answered another call than the present one";
const MISSING_ANSWER_MESSAGE: &str = "the answer was not where `json_rpc.result` says";

/// Progress of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RpcPhase {
    /// The program is being initialized.
    Initializing,
    /// The request was sent.
    Calling,
    /// The program has answered.
    Over,
}

/// JSON-RPC call to a program.
pub(in crate::drivers) struct RpcTurn {
    spec: Arc<RpcSpec>,
    decoder: FrameDecoder,
    phase: RpcPhase,
    initialize: Option<RpcCall>,
    initialized_notification: Option<RpcCall>,
    request: RpcCall,
    cancel: Option<RpcCall>,
    /// Id of the request; the initialization has the previous number.
    request_id: u64,
    /// Text of notifications, which is the answer.
    notified_text: NotifiedText,
    has_warned_of_non_rpc_output: bool,
    has_warned_of_unknown_response: bool,
}

impl RpcTurn {
    /// Returns the call with this number of a program.
    pub(super) fn new(
        spec: &RpcSpec,
        values: &ExecutionValues,
        call_number: u64,
        max_message_bytes: usize,
    ) -> Result<Self, Failure> {
        let render_call = |call: &RpcCall| {
            let params = render_document(&call.params, values)?;
            Ok::<_, Failure>(RpcCall { method: call.method.clone(), params })
        };
        let render_optional_call =
            |call: &Option<RpcCall>| call.as_ref().map(render_call).transpose();
        let initialize = render_optional_call(&spec.initialize)?.filter(|_| call_number == 0);
        let phase = if initialize.is_some() { RpcPhase::Initializing } else { RpcPhase::Calling };
        Ok(Self {
            decoder: FrameDecoder::new(spec.framing, max_message_bytes),
            phase,
            initialize,
            initialized_notification: render_optional_call(&spec.initialized)?,
            request: render_call(&spec.submit)?,
            cancel: render_optional_call(&spec.cancel)?,
            request_id: call_number + 2,
            notified_text: NotifiedText::new(max_message_bytes),
            has_warned_of_non_rpc_output: false,
            has_warned_of_unknown_response: false,
            spec: Arc::new(spec.clone()),
        })
    }

    pub(super) fn take_first_bytes(&mut self) -> Vec<u8> {
        match &self.initialize {
            Some(call) => self.encode_call(call, Some(self.request_id - 1)),
            None => self.encode_call(&self.request, Some(self.request_id)),
        }
    }

    pub(super) fn receive(&mut self, bytes: &[u8]) -> Vec<StdioAction> {
        let frames = self.decoder.push(bytes);
        self.handle_frames(frames)
    }

    pub(super) fn handle_end_of_output(&mut self) -> Vec<StdioAction> {
        let frames = self.decoder.finish();
        self.handle_frames(frames)
    }

    fn handle_frames(&mut self, frames: Vec<Frame>) -> Vec<StdioAction> {
        frames.into_iter().flat_map(|frame| self.handle_frame(frame)).collect()
    }

    /// Returns the cancel message. Without configured parameters it names the call by its id, as the Language Server
    /// Protocol does.
    pub(super) fn interrupt_bytes(&self) -> Option<Vec<u8>> {
        let mut call = self.cancel.clone()?;
        if call.params.is_null() {
            call.params = json!({"id": self.request_id});
        }
        Some(self.encode_call(&call, None))
    }

    fn handle_frame(&mut self, frame: Frame) -> Vec<StdioAction> {
        if self.phase == RpcPhase::Over {
            return Vec::new();
        }
        match frame {
            Frame::Message(Value::Array(messages)) => {
                messages.into_iter().flat_map(|message| self.handle_message(message)).collect()
            }
            Frame::Message(message) => self.handle_message(message),
            Frame::NonMessage => self.warn_of_non_rpc_output_once(),
            Frame::Unreadable(message) => {
                self.phase = RpcPhase::Over; // It may have been the answer, for which the call would wait.
                vec![StdioAction::UnreadableMessage(message)]
            }
            Frame::Desynchronized => {
                self.phase = RpcPhase::Over;
                let failure = Failure::new(Code::OutputUnreadable, INVALID_OUTPUT_MESSAGE);
                vec![StdioAction::Desynchronized(failure)]
            }
        }
    }

    fn handle_message(&mut self, message: Value) -> Vec<StdioAction> {
        let Value::Object(mut message) = message else { return self.warn_of_non_rpc_output_once() };
        let id = message.remove("id").filter(|id| !id.is_null());
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        match (method, id) {
            (Some(method), Some(id)) => self.refuse_request(&method, &id),
            (Some(method), None) => self.handle_notification(&method, message.remove("params")),
            (None, Some(id)) if self.is_current_call_id(&id) => self.handle_response(message),
            // An error without an id is about a message that could not be read; there is only one call.
            (None, None) if message.contains_key("error") => self.handle_response(message),
            (None, Some(_)) => {
                let is_first = !std::mem::replace(&mut self.has_warned_of_unknown_response, true);
                let warning =
                    is_first.then(|| StdioAction::Warn(UNKNOWN_RESPONSE_WARNING.to_owned()));
                warning.into_iter().collect()
            }
            (None, None) => self.warn_of_non_rpc_output_once(),
        }
    }

    fn is_current_call_id(&self, id: &Value) -> bool {
        let current_id = if self.phase == RpcPhase::Initializing {
            self.request_id - 1
        } else {
            self.request_id
        };
        let id = match id {
            Value::String(id) => id.clone(),
            // Some libraries write every number with a fraction.
            id => id.as_f64().map(|id| id.to_string()).unwrap_or_default(),
        };
        id == current_id.to_string()
    }

    /// Answers a request of the program with an error: the service offers no methods.
    fn refuse_request(&self, method: &str, id: &Value) -> Vec<StdioAction> {
        // The program may wait for an answer, so it gets one.
        let error = json!({"code": METHOD_NOT_FOUND, "message": "method not found"});
        let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
        let warning = format!("the agent called `{method}`, which the service does not offer");
        vec![StdioAction::Write(encode(self.spec.framing, &answer)), StdioAction::Warn(warning)]
    }

    fn handle_notification(&mut self, method: &str, params: Option<Value>) -> Vec<StdioAction> {
        let Some(NotificationRule { kind, pointer }) = self.spec.notifications.get(method) else {
            return Vec::new();
        };
        let params = params.unwrap_or_default();
        let value = params.pointer(pointer).filter(|value| !value.is_null());
        let Some(value) = value else {
            if *kind == NotificationKind::Text {
                self.notified_text.record_missing_text(method);
            }
            return Vec::new();
        };
        let event = match kind {
            NotificationKind::Text => to_text(value).map(|text| ProgramEvent::Text { text }),
            NotificationKind::Status => to_text(value).map(status_event),
            NotificationKind::Usage => usage_event(value),
            NotificationKind::Session => to_text(value).map(|id| ProgramEvent::Session { id }),
        };
        if let Some(ProgramEvent::Text { text }) = &event {
            self.notified_text.push(text);
        }
        event.map(StdioAction::Event).into_iter().collect()
    }

    fn handle_response(&mut self, mut message: Map<String, Value>) -> Vec<StdioAction> {
        if let Some(error) = message.get("error").filter(|error| !error.is_null()) {
            let event = StdioAction::Event(self.failure_event(error));
            return [event].into_iter().chain(self.end_call(None)).collect();
        }
        let result = message.remove("result").unwrap_or_default();
        let session = self
            .spec
            .session_pointer
            .as_ref()
            .and_then(|pointer| result.pointer(pointer))
            .and_then(to_text);
        let session = session.map(|id| StdioAction::Event(ProgramEvent::Session { id }));
        let next_actions = match self.phase {
            RpcPhase::Initializing => self.send_request(),
            RpcPhase::Calling | RpcPhase::Over => self.handle_result(&result),
        };
        session.into_iter().chain(next_actions).collect()
    }

    /// Sends the request, because the program is initialized.
    fn send_request(&mut self) -> Vec<StdioAction> {
        self.phase = RpcPhase::Calling;
        let initialized =
            self.initialized_notification.as_ref().map(|call| self.encode_call(call, None));
        let request = self.encode_call(&self.request, Some(self.request_id));
        initialized.into_iter().chain([request]).map(StdioAction::Write).collect()
    }

    /// Handles the result. Text from notifications is the answer; the text of the result is the answer only without
    /// them.
    fn handle_result(&mut self, result: &Value) -> Vec<StdioAction> {
        let usage = self
            .spec
            .usage_pointer
            .as_ref()
            .and_then(|pointer| result.pointer(pointer))
            .and_then(usage_event);
        let answer_text = result.pointer(&self.spec.result_pointer).and_then(to_text);
        let is_text_result =
            result.pointer(&self.spec.result_pointer).is_some_and(Value::is_string);
        let has_notified_text = !self.notified_text.is_empty();
        let mut warning = None;
        let failure = match &answer_text {
            None if !has_notified_text => {
                Some(Failure::new(Code::AnswerMissing, MISSING_ANSWER_MESSAGE))
            }
            // A value of another form is not the text of an answer.
            Some(text) if has_notified_text && is_text_result => {
                match self.notified_text.compare(text) {
                    NotifiedShare::Whole => None,
                    NotifiedShare::Part { textless_method: method } => {
                        let message = format!(
                            "a notification `{method}` has no text at its `pointer`, and the result has more text"
                        );
                        Some(Failure::new(Code::OutputUnreadable, message))
                    }
                    NotifiedShare::DifferentText { textless_method: method } => {
                        let message = format!(
                            "a notification `{method}` has no text at its `pointer`; the answer is the text of the others"
                        );
                        warning = Some(StdioAction::Warn(message));
                        None
                    }
                }
            }
            None | Some(_) => None,
        };
        let answer =
            answer_text.filter(|_| !has_notified_text).map(|text| ProgramEvent::Text { text });
        let events = [usage, answer].into_iter().flatten().map(StdioAction::Event);
        events.chain(warning).chain(self.end_call(failure)).collect()
    }

    fn failure_event(&self, error: &Value) -> ProgramEvent {
        let code = error.get("code").and_then(Value::as_i64);
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        let is_transient = code.is_some_and(|code| self.spec.transient_codes.contains(&code));
        let code_text = code.map(|code| format!(" (error {code})")).unwrap_or_default();
        let category = if is_transient { "transient" } else { "" };
        let (message, category) = (format!("{message}{code_text}"), category.to_owned());
        ProgramEvent::Failed(ReportedFailure { message, category, ..ReportedFailure::default() })
    }

    fn end_call(&mut self, failure: Option<Failure>) -> Option<StdioAction> {
        self.phase = RpcPhase::Over;
        Some(StdioAction::End(failure))
    }

    fn warn_of_non_rpc_output_once(&mut self) -> Vec<StdioAction> {
        // A program may write much that is no JSON-RPC, and one warning is enough.
        if std::mem::replace(&mut self.has_warned_of_non_rpc_output, true) {
            return Vec::new();
        }
        let message = "a part of the agent's output is not JSON-RPC; it is kept as text";
        vec![StdioAction::Warn(message.to_owned())]
    }

    fn encode_call(&self, call: &RpcCall, id: Option<u64>) -> Vec<u8> {
        let mut message = json!({"jsonrpc": "2.0", "method": call.method});
        if let Value::Object(members) = &mut message {
            members.extend(id.map(|id| ("id".to_owned(), id.into())));
            let params = Some(call.params.clone()).filter(|params| !params.is_null());
            members.extend(params.map(|params| ("params".to_owned(), params)));
        }
        encode(self.spec.framing, &message)
    }
}

/// Returns a string as it is, anything else as compact JSON, and `None` for null.
fn to_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn status_event(text: String) -> ProgramEvent {
    ProgramEvent::Status { state: String::new(), content: Some(EventContent::text(text)) }
}

/// Returns an event with numbers by name.
fn usage_event(value: &Value) -> Option<ProgramEvent> {
    let fields = value.as_object()?.clone();
    Some(ProgramEvent::Usage { fields, cumulative: false })
}

#[cfg(test)]
mod tests;
