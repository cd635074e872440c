//! Control requests of the agent: permissions for tools.

use serde_json::{Value, json};

use super::messages::Transcription;
use super::sender::ControlSender;
use crate::asks::{AskTable, IdClaim, OpenAsk};
use crate::model::command::Answer;
use crate::model::ids::{RequestId, SessionKey};
use crate::model::step::{
    AnsweredCall, Ask, AskKind, PermissionOption, PermissionOptionKind, Step,
};
use crate::turns::Turns;

/// Text of the error that rejects a reused id. A replay recognizes it.
const ID_IN_USE: &str = "the id of the request is already in use";

/// Requests of the agent that are open, with the input of their tools.
#[derive(Debug, Default)]
pub(super) struct ControlRequests {
    asks: AskTable<Value>,
}

/// Returns whether a sent response rejects a request with a reused id.
pub(super) fn is_conflict(message: &Value) -> bool {
    message.pointer("/response/error").and_then(Value::as_str) == Some(ID_IN_USE)
}

impl ControlRequests {
    pub(super) fn record_answer(&mut self, id: RequestId, line: u64, answer: (bool, Value)) {
        self.asks.record_answer(id, line, answer);
    }

    pub(super) fn receive(
        &mut self,
        message: &Value,
        (session, turns, transcription): (Option<SessionKey>, &Turns, &mut Transcription),
        sender: &mut ControlSender,
    ) -> Vec<Step> {
        let text = |path: &str| message.pointer(path).and_then(Value::as_str);
        let Some(id) = text("/request_id").map(|id| RequestId::Text(id.to_owned())) else {
            return vec![Step::protocol_error("control request without an id")];
        };
        if let IdClaim::Reused(open) = self.asks.claim(&id) {
            let withdrawn = open.map(|ask| withdrawn(&ask));
            let reply = self.reply(&id, &Err(ID_IN_USE), sender);
            let report = Step::protocol_error(format!("the agent used the request id {id} again"));
            return withdrawn.into_iter().chain(reply).chain([report]).collect();
        }
        if text("/request/subtype") != Some("can_use_tool") {
            let reply = self.reply(&id, &Err("the client does not offer this request"), sender);
            return reply.into_iter().collect();
        }
        let recorded = self.asks.recorded_line(&id);
        let in_turn = turns.contains_request(recorded);
        let Some(session) = session.filter(|_| in_turn) else {
            let reply = self.reply(&id, &Ok(cancelled()), sender);
            let report = Step::protocol_error(format!("request {id} outside of a turn"));
            return reply.into_iter().chain([report]).collect();
        };
        let input = message.pointer("/request/input").cloned().unwrap_or_default();
        let tool = text("/request/tool_name").unwrap_or_default();
        let mut call =
            transcription.call(text("/request/tool_use_id").unwrap_or_default(), tool, &input);
        call.title = text("/request/description").map(str::to_owned);
        let is_cancelling = turns.is_cancelling() && !self.asks.is_recorded_as_open(&id);
        if recorded.is_some() || is_cancelling {
            let result = self.asks.recorded_result(&id);
            let is_allowed = result.is_some_and(|it| it.get("behavior") == Some(&json!("allow")));
            let call = Some(AnsweredCall { id: call.id, is_allowed });
            let reply = self.reply(&id, &Ok(cancelled()), sender);
            let answered = Step::Answered { session, request: id, call };
            return reply.into_iter().chain([answered]).collect();
        }
        let option = |id: &str, name: &str, kind| PermissionOption {
            id: id.to_owned(),
            name: name.to_owned(),
            kind,
        };
        let options = vec![
            option("allow", "Allow", PermissionOptionKind::AllowOnce),
            option("deny", "Deny", PermissionOptionKind::RejectOnce),
        ];
        let kind = AskKind::Permission { call, options };
        self.asks.open(OpenAsk { id: id.clone(), session, form: input });
        vec![Step::Ask { session, ask: Box::new(Ask { request: id, kind }) }]
    }

    /// Answers a request, unless a replayed line answers it.
    fn reply(
        &mut self,
        id: &RequestId,
        response: &Result<Value, &str>,
        sender: &mut ControlSender,
    ) -> Option<Step> {
        (!self.asks.take_recorded(id)).then(|| respond(id, response, sender))
    }

    pub(super) fn answer(
        &mut self,
        (session, id): (SessionKey, &RequestId),
        answer: Answer,
        sender: &mut ControlSender,
    ) -> Vec<Step> {
        let Some(open) = self.asks.find(id) else { return Vec::new() };
        if open.session != session {
            return vec![Step::protocol_error("the request belongs to another session")];
        }
        let response = match answer {
            Answer::Allow => json!({"behavior": "allow", "updatedInput": open.form}),
            Answer::Deny { message } => {
                json!({"behavior": "deny", "message": message.as_deref().unwrap_or("denied")})
            }
            Answer::Cancelled => cancelled(),
            Answer::Form { .. } => {
                return vec![Step::protocol_error("the answer does not fit the request")];
            }
        };
        self.asks.close(id);
        vec![respond(id, &Ok(response), sender)]
    }

    pub(super) fn withdraw(&mut self, message: &Value, sender: &mut ControlSender) -> Vec<Step> {
        let id = message.get("request_id").and_then(RequestId::read);
        let Some(open) = id.and_then(|id| self.asks.close(&id)) else { return Vec::new() };
        vec![respond(&open.id, &Ok(cancelled()), sender), withdrawn(&open)]
    }

    pub(super) fn close_all(
        &mut self,
        session: SessionKey,
        sender: &mut ControlSender,
    ) -> Vec<Step> {
        let closed = self.asks.close_session(session).into_iter();
        closed
            .flat_map(|open| [respond(&open.id, &Ok(cancelled()), sender), withdrawn(&open)])
            .collect()
    }
}

fn respond(id: &RequestId, response: &Result<Value, &str>, sender: &mut ControlSender) -> Step {
    let id = id.json();
    let response = match response {
        Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
        Err(error) => json!({"subtype": "error", "request_id": id, "error": error}),
    };
    sender.line(&json!({"type": "control_response", "response": response}))
}

fn withdrawn(open: &OpenAsk<Value>) -> Step {
    Step::Withdraw { session: open.session, request: open.id.clone() }
}

fn cancelled() -> Value {
    json!({"behavior": "deny", "message": "the request was cancelled"})
}
