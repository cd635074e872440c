//! Control requests of the agent: permissions for tools.

use serde_json::{Value, json};

use super::messages::MessageTranslator;
use super::writer::ControlWriter;
use crate::agent_requests::{AgentRequestTable, IdRegistration, UnansweredRequest};
use crate::model::command::RequestAnswer;
use crate::model::ids::{RequestId, SessionKey};
use crate::model::step::{
    AgentRequest, AgentRequestKind, AnsweredCall, PermissionOption, PermissionOptionKind,
    ProtocolStep,
};
use crate::turns::TurnCounts;

/// Text of the error that rejects a reused id. A replay recognizes it.
const ID_IN_USE_MESSAGE: &str = "the id of the request is already in use";

/// Requests of the agent that are open, with the input of their tools.
#[derive(Debug, Default)]
pub(super) struct ControlAgentRequests {
    table: AgentRequestTable<Value>,
}

/// Returns whether a sent response rejects a request with a reused id.
pub(super) fn rejects_reused_id(message: &Value) -> bool {
    message.pointer("/response/error").and_then(Value::as_str) == Some(ID_IN_USE_MESSAGE)
}

impl ControlAgentRequests {
    pub(super) fn record_answer(&mut self, id: RequestId, line_number: u64, answer: (bool, Value)) {
        self.table.record_answer(id, line_number, answer);
    }

    pub(super) fn receive(
        &mut self,
        message: &Value,
        (session, turns, translator): (Option<SessionKey>, &TurnCounts, &mut MessageTranslator),
        writer: &mut ControlWriter,
    ) -> Vec<ProtocolStep> {
        let string_at = |path: &str| message.pointer(path).and_then(Value::as_str);
        let Some(id) = string_at("/request_id").map(|id| RequestId::Text(id.to_owned())) else {
            return vec![ProtocolStep::protocol_error("control request without an id")];
        };
        if let IdRegistration::Reused(earlier_request) = self.table.register_id(&id) {
            let withdrawal = earlier_request.map(|request| withdrawal_step(&request));
            let reply = self.reply_unless_recorded(&id, &Err(ID_IN_USE_MESSAGE), writer);
            let error_step =
                ProtocolStep::protocol_error(format!("the agent used the request id {id} again"));
            return withdrawal.into_iter().chain(reply).chain([error_step]).collect();
        }
        if string_at("/request/subtype") != Some("can_use_tool") {
            let reply = self.reply_unless_recorded(
                &id,
                &Err("the client does not offer this request"),
                writer,
            );
            return reply.into_iter().collect();
        }
        let answer_line = self.table.recorded_answer_line(&id);
        let is_in_turn = turns.is_turn_open_at_line(answer_line);
        let Some(session) = session.filter(|_| is_in_turn) else {
            let reply = self.reply_unless_recorded(&id, &Ok(cancelled_result()), writer);
            let error_step =
                ProtocolStep::protocol_error(format!("request {id} outside of a turn"));
            return reply.into_iter().chain([error_step]).collect();
        };
        let input = message.pointer("/request/input").cloned().unwrap_or_default();
        let tool_name = string_at("/request/tool_name").unwrap_or_default();
        let mut call = translator.record_call(
            string_at("/request/tool_use_id").unwrap_or_default(),
            tool_name,
            &input,
        );
        call.title = string_at("/request/description").map(str::to_owned);
        let is_cancelling = turns.is_cancelling() && !self.table.has_recorded_id_rejection(&id);
        if answer_line.is_some() || is_cancelling {
            let result = self.table.recorded_result(&id);
            let is_allowed = result.is_some_and(|it| it.get("behavior") == Some(&json!("allow")));
            let call = Some(AnsweredCall { id: call.id, is_allowed });
            let reply = self.reply_unless_recorded(&id, &Ok(cancelled_result()), writer);
            let answered = ProtocolStep::RequestAnswered { session, request_id: id, call };
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
        let kind = AgentRequestKind::Permission { call, options };
        self.table.insert(UnansweredRequest { id: id.clone(), session, answer_context: input });
        vec![ProtocolStep::Request { session, request: Box::new(AgentRequest { id, kind }) }]
    }

    /// Answers a request, unless a replayed line answers it.
    fn reply_unless_recorded(
        &mut self,
        id: &RequestId,
        response: &Result<Value, &str>,
        writer: &mut ControlWriter,
    ) -> Option<ProtocolStep> {
        (!self.table.consume_recorded_answer(id)).then(|| response_step(id, response, writer))
    }

    pub(super) fn answer(
        &mut self,
        (session, id): (SessionKey, &RequestId),
        answer: RequestAnswer,
        writer: &mut ControlWriter,
    ) -> Vec<ProtocolStep> {
        let Some(request) = self.table.find(id) else { return Vec::new() };
        if request.session != session {
            return vec![ProtocolStep::protocol_error("the request belongs to another session")];
        }
        let response = match answer {
            RequestAnswer::Allow => {
                json!({"behavior": "allow", "updatedInput": request.answer_context})
            }
            RequestAnswer::Deny { message } => {
                json!({"behavior": "deny", "message": message.as_deref().unwrap_or("denied")})
            }
            RequestAnswer::Cancel => cancelled_result(),
            RequestAnswer::Form { .. } => {
                return vec![ProtocolStep::protocol_error("the answer does not fit the request")];
            }
        };
        self.table.remove_request(id);
        vec![response_step(id, &Ok(response), writer)]
    }

    pub(super) fn handle_withdrawal(
        &mut self,
        message: &Value,
        writer: &mut ControlWriter,
    ) -> Vec<ProtocolStep> {
        let id = message.get("request_id").and_then(RequestId::from_json);
        let Some(request) = id.and_then(|id| self.table.remove_request(&id)) else {
            return Vec::new();
        };
        vec![response_step(&request.id, &Ok(cancelled_result()), writer), withdrawal_step(&request)]
    }

    pub(super) fn cancel_all(
        &mut self,
        session: SessionKey,
        writer: &mut ControlWriter,
    ) -> Vec<ProtocolStep> {
        let cancelled_requests = self.table.remove_requests_of(session).into_iter();
        cancelled_requests
            .flat_map(|request| {
                [
                    response_step(&request.id, &Ok(cancelled_result()), writer),
                    withdrawal_step(&request),
                ]
            })
            .collect()
    }
}

fn response_step(
    id: &RequestId,
    response: &Result<Value, &str>,
    writer: &mut ControlWriter,
) -> ProtocolStep {
    let id = id.to_json();
    let response = match response {
        Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
        Err(error) => json!({"subtype": "error", "request_id": id, "error": error}),
    };
    writer.build_send_step(&json!({"type": "control_response", "response": response}))
}

fn withdrawal_step(request: &UnansweredRequest<Value>) -> ProtocolStep {
    ProtocolStep::RequestWithdrawn { session: request.session, request_id: request.id.clone() }
}

fn cancelled_result() -> Value {
    json!({"behavior": "deny", "message": "the request was cancelled"})
}
