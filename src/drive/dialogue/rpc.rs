//! One call of JSON-RPC 2.0, with the call that makes the program ready before the first one.

use std::sync::Arc;

use algonius_actors::model::code::Code;
use algonius_actors::model::dialogue::{Call, Notice, NoticeKind, RpcSpec};
use algonius_actors::model::failure::Failure;
use serde_json::{Map, Value, json};

use super::super::events::{Event, Failed, Words};
use super::Step;
use super::fill::fill;
use super::framing::{Frame, Frames, encode};
use crate::template::Values;

/// The number of the method that does not exist, as JSON-RPC has it.
const NO_SUCH_METHOD: i64 = -32601;

const BROKEN: &str = "what it wrote cannot be read as JSON-RPC any more";
const NO_ANSWER: &str = "the answer was not where `json_rpc.result` says";

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The program is made ready.
    Initializing,
    /// It is asked.
    Asking,
    /// It has answered.
    Over,
}

/// A call.
pub(in crate::drive) struct Rpc {
    spec: Arc<RpcSpec>,
    frames: Frames,
    stage: Stage,
    initialize: Option<Call>,
    initialized: Option<Call>,
    ask: Call,
    cancel: Option<Call>,
    /// The id of the call that asks; the one before it has the number before.
    id: u64,
    /// Whether some of the answer was told by notifications.
    has_text: bool,
    was_warned: bool,
}

impl Rpc {
    /// The call of this number of a program.
    pub(super) fn of(spec: &RpcSpec, values: &Values, number: u64) -> Result<Self, Failure> {
        let filled = |call: &Call| {
            let params = fill(&call.params, values)?;
            Ok::<_, Failure>(Call { method: call.method.clone(), params })
        };
        let filled_too = |call: &Option<Call>| call.as_ref().map(filled).transpose();
        let initialize = filled_too(&spec.initialize)?.filter(|_| number == 0);
        let stage = if initialize.is_some() { Stage::Initializing } else { Stage::Asking };
        Ok(Self {
            frames: Frames::new(spec.framing),
            stage,
            initialize,
            initialized: filled_too(&spec.initialized)?,
            ask: filled(&spec.ask)?,
            cancel: filled_too(&spec.cancel)?,
            id: number + 2,
            has_text: false,
            was_warned: false,
            spec: Arc::new(spec.clone()),
        })
    }

    pub(super) fn open(&mut self) -> Vec<u8> {
        match &self.initialize {
            Some(call) => self.write(call, Some(self.id - 1)),
            None => self.write(&self.ask, Some(self.id)),
        }
    }

    pub(super) fn hear(&mut self, bytes: &[u8]) -> Vec<Step> {
        let frames = self.frames.push(bytes);
        frames.into_iter().flat_map(|frame| self.take(frame)).collect()
    }

    /// Where the configuration gives it no parameters, it names the call by its id, as in the Language
    /// Server Protocol.
    pub(super) fn interrupt(&self) -> Option<Vec<u8>> {
        let mut call = self.cancel.clone()?;
        if call.params.is_null() {
            call.params = json!({"id": self.id});
        }
        Some(self.write(&call, None))
    }

    fn take(&mut self, frame: Frame) -> Vec<Step> {
        if self.stage == Stage::Over {
            return Vec::new();
        }
        match frame {
            Frame::Message(Value::Array(messages)) => {
                messages.into_iter().flat_map(|message| self.read(message)).collect()
            }
            Frame::Message(message) => self.read(message),
            Frame::Junk => self.warn(),
            Frame::Broken => self.fail(Failure::new(Code::AnswerMissing, BROKEN)),
        }
    }

    fn read(&mut self, message: Value) -> Vec<Step> {
        let Value::Object(mut message) = message else { return self.warn() };
        let id = message.remove("id").filter(|id| !id.is_null());
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        match (method, id) {
            (Some(method), Some(id)) => self.refuse(&method, &id),
            (Some(method), None) => self.notified(&method, message.remove("params")),
            (None, Some(id)) if self.is_mine(&id) => self.answered(message),
            // An error without an id is about what could not be read: there is one call only.
            (None, None) if message.contains_key("error") => self.answered(message),
            (None, Some(_)) => Vec::new(),
            (None, None) => self.warn(),
        }
    }

    fn is_mine(&self, id: &Value) -> bool {
        let mine = if self.stage == Stage::Initializing { self.id - 1 } else { self.id };
        id.as_u64() == Some(mine) || id.as_str().is_some_and(|id| id == mine.to_string())
    }

    /// Nothing is offered to the program that it could ask for.
    fn refuse(&self, method: &str, id: &Value) -> Vec<Step> {
        let error = json!({"code": NO_SUCH_METHOD, "message": "method not found"});
        let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
        let warning = format!("the agent asked for `{method}`, which is not offered to it");
        vec![Step::Write(encode(self.spec.framing, &answer)), Step::Warn(warning)]
    }

    fn notified(&mut self, method: &str, params: Option<Value>) -> Vec<Step> {
        let Some(Notice { kind, pointer }) = self.spec.notices.get(method) else {
            return Vec::new();
        };
        let params = params.unwrap_or_default();
        let Some(value) = params.pointer(pointer) else { return Vec::new() };
        let event = match kind {
            NoticeKind::Text => text(value).map(|text| Event::Text { text }),
            NoticeKind::Status => text(value).map(status),
            NoticeKind::Usage => usage(value),
            NoticeKind::Session => text(value).map(|id| Event::Session { id }),
        };
        self.has_text |= matches!(event, Some(Event::Text { .. }));
        event.map(Step::Tell).into_iter().collect()
    }

    fn answered(&mut self, mut message: Map<String, Value>) -> Vec<Step> {
        if let Some(error) = message.get("error").filter(|error| !error.is_null()) {
            let told = Step::Tell(self.failed(error));
            return [told].into_iter().chain(self.end(None)).collect();
        }
        let result = message.remove("result").unwrap_or_default();
        let session = self.spec.session.as_ref().and_then(|at| result.pointer(at)).and_then(text);
        let session = session.map(|id| Step::Tell(Event::Session { id }));
        let rest = match self.stage {
            Stage::Initializing => self.ready(),
            Stage::Asking | Stage::Over => self.result(&result),
        };
        session.into_iter().chain(rest).collect()
    }

    /// The program is ready, and is asked.
    fn ready(&mut self) -> Vec<Step> {
        self.stage = Stage::Asking;
        let initialized = self.initialized.as_ref().map(|call| self.write(call, None));
        let ask = self.write(&self.ask, Some(self.id));
        initialized.into_iter().chain([ask]).map(Step::Write).collect()
    }

    /// The text that notifications told is the answer; what the result says is, where there is none.
    fn result(&mut self, result: &Value) -> Vec<Step> {
        let used = self.spec.usage.as_ref().and_then(|at| result.pointer(at)).and_then(usage);
        let told = result.pointer(&self.spec.result).and_then(text);
        let failure = match (&told, self.has_text) {
            (None, false) => Some(Failure::new(Code::AnswerMissing, NO_ANSWER)),
            _ => None,
        };
        let answer = told.filter(|_| !self.has_text).map(|text| Event::Text { text });
        let told = [used, answer].into_iter().flatten().map(Step::Tell);
        told.chain(self.end(failure)).collect()
    }

    fn failed(&self, error: &Value) -> Event {
        let code = error.get("code").and_then(Value::as_i64);
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        let is_transient = code.is_some_and(|code| self.spec.transient_codes.contains(&code));
        let number = code.map(|code| format!(" (error {code})")).unwrap_or_default();
        let category = if is_transient { "transient" } else { "" };
        let (message, category) = (format!("{message}{number}"), category.to_owned());
        Event::Failed(Failed { message, category, ..Failed::default() })
    }

    fn end(&mut self, failure: Option<Failure>) -> Option<Step> {
        self.stage = Stage::Over;
        Some(Step::End(failure))
    }

    fn fail(&mut self, failure: Failure) -> Vec<Step> {
        self.end(Some(failure)).into_iter().collect()
    }

    fn warn(&mut self) -> Vec<Step> {
        if std::mem::replace(&mut self.was_warned, true) {
            return Vec::new();
        }
        let message = "something that the agent wrote is no JSON-RPC; it was kept as text";
        vec![Step::Warn(message.to_owned())]
    }

    fn write(&self, call: &Call, id: Option<u64>) -> Vec<u8> {
        let mut message = json!({"jsonrpc": "2.0", "method": call.method});
        if let Value::Object(members) = &mut message {
            members.extend(id.map(|id| ("id".to_owned(), id.into())));
            let params = Some(call.params.clone()).filter(|params| !params.is_null());
            members.extend(params.map(|params| ("params".to_owned(), params)));
        }
        encode(self.spec.framing, &message)
    }
}

/// A text as it is, anything else as compact JSON; nothing of a null.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn status(text: String) -> Event {
    Event::Status { state: String::new(), words: Some(Words::text(text)) }
}

/// Numbers by their names.
fn usage(value: &Value) -> Option<Event> {
    let fields = value.as_object()?.clone();
    Some(Event::Usage { fields, cumulative: false })
}

#[cfg(test)]
mod tests;
