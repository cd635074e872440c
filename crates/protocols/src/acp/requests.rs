//! Requests of an ACP agent: permissions and forms.

use serde_json::{Value, json};

use super::session_table::AcpSessionTable;
use super::wire::{ElicitationParams, PermissionOptionParams, PermissionParams};
use crate::agent_requests::{AgentRequestTable, IdRegistration, UnansweredRequest};
use crate::model::command::{FormAction, RequestAnswer};
use crate::model::ids::{RequestId, SessionKey};
use crate::model::step::{
    AgentRequest, AgentRequestKind, AnsweredCall, PermissionOption, PermissionOptionKind,
    ProtocolStep,
};
use crate::rpc::{INVALID_PARAMS, METHOD_NOT_FOUND, RpcWriter};

/// Format of the answer to an open request.
#[derive(Debug, Clone)]
pub(super) enum AnswerFormat {
    Permission(Vec<PermissionOption>),
    Elicitation,
}

/// Request that belongs to a session, before it is checked against the turn.
struct ParsedAgentRequest {
    native_id: String,
    answer_format: AnswerFormat,
    kind: AgentRequestKind,
}

/// Requests of the agent that are open.
#[derive(Debug, Default)]
pub(super) struct AcpAgentRequests {
    table: AgentRequestTable<AnswerFormat>,
}

impl AcpAgentRequests {
    /// Records an answer of a replay.
    pub(super) fn record_answer(&mut self, id: RequestId, line_number: u64, answer: (bool, Value)) {
        self.table.record_answer(id, line_number, answer);
    }

    /// Handles a request of the agent.
    pub(super) fn receive(
        &mut self,
        id: &RequestId,
        method: &str,
        params: &Value,
        (sessions, rpc): (&mut AcpSessionTable, &mut RpcWriter),
    ) -> Vec<ProtocolStep> {
        if let IdRegistration::Reused(earlier_request) = self.table.register_id(id) {
            let withdrawal = earlier_request.map(|request| withdrawal_step(&request));
            let reply = self.reply_unless_recorded(id, |rpc| rpc.reused_id_response(id), rpc);
            let error_step =
                ProtocolStep::protocol_error(format!("the agent used the request id {id} again"));
            return withdrawal.into_iter().chain(reply).chain([error_step]).collect();
        }
        let request = match method {
            "session/request_permission" => parse_permission_and_merge_call(params, sessions),
            "elicitation/create" => parse_elicitation(params),
            _ => {
                let reject = |rpc: &mut RpcWriter| {
                    rpc.error_response(
                        id,
                        METHOD_NOT_FOUND,
                        "the client does not offer this method",
                    )
                };
                return self.reply_unless_recorded(id, reject, rpc).into_iter().collect();
            }
        };
        match request {
            Some(request) => self.open_or_answer_request(id, request, sessions, rpc),
            None => {
                let reject = |rpc: &mut RpcWriter| {
                    rpc.error_response(id, INVALID_PARAMS, "the parameters are incomplete")
                };
                let reply = self.reply_unless_recorded(id, reject, rpc);
                let error_step =
                    ProtocolStep::protocol_error(format!("request {id} has invalid parameters"));
                reply.into_iter().chain([error_step]).collect()
            }
        }
    }

    fn open_or_answer_request(
        &mut self,
        id: &RequestId,
        request: ParsedAgentRequest,
        sessions: &mut AcpSessionTable,
        rpc: &mut RpcWriter,
    ) -> Vec<ProtocolStep> {
        let ParsedAgentRequest { native_id, answer_format, kind } = request;
        let answer_line = self.table.recorded_answer_line(id);
        let key = sessions.key(&native_id);
        let ready_key = key.filter(|key| sessions.find_ready_mut(*key).is_some());
        let turns = sessions.turns_of(&native_id);
        let is_in_turn = turns.is_some_and(|turns| turns.is_turn_open_at_line(answer_line));
        let Some(session) = ready_key.filter(|_| is_in_turn) else {
            let cause = if key.is_some() { "outside of a turn" } else { "for an unknown session" };
            let reply = self.cancel_unless_recorded(id, &answer_format, rpc);
            let error_step = ProtocolStep::protocol_error(format!("request {id} {cause}"));
            return reply.into_iter().chain([error_step]).collect();
        };
        let is_cancelling = turns.is_some_and(crate::turns::TurnCounts::is_cancelling)
            && !self.table.has_recorded_id_rejection(id);
        if answer_line.is_some() || is_cancelling {
            let is_allowed = self
                .table
                .recorded_result(id)
                .is_some_and(|it| is_allowing_result(&answer_format, it));
            let call = AnsweredCall::from_request_kind(&kind, is_allowed);
            let reply = self.cancel_unless_recorded(id, &answer_format, rpc);
            let answered = ProtocolStep::RequestAnswered { session, request_id: id.clone(), call };
            return reply.into_iter().chain([answered]).collect();
        }
        self.table.insert(UnansweredRequest {
            id: id.clone(),
            session,
            answer_context: answer_format,
        });
        vec![ProtocolStep::Request {
            session,
            request: Box::new(AgentRequest { id: id.clone(), kind }),
        }]
    }

    /// Answers a request with `cancelled`, unless a replayed line answers it.
    fn cancel_unless_recorded(
        &mut self,
        id: &RequestId,
        answer_format: &AnswerFormat,
        rpc: &mut RpcWriter,
    ) -> Option<ProtocolStep> {
        let result = cancelled_result(answer_format);
        self.reply_unless_recorded(id, |rpc| rpc.result_response(id, &result), rpc)
    }

    fn reply_unless_recorded(
        &mut self,
        id: &RequestId,
        build: impl FnOnce(&mut RpcWriter) -> ProtocolStep,
        rpc: &mut RpcWriter,
    ) -> Option<ProtocolStep> {
        (!self.table.consume_recorded_answer(id)).then(|| build(rpc))
    }

    /// Answers a request for the caller. An answer that does not fit the request leaves it open.
    pub(super) fn answer(
        &mut self,
        (session, id): (SessionKey, &RequestId),
        answer: RequestAnswer,
        rpc: &mut RpcWriter,
    ) -> Vec<ProtocolStep> {
        let Some(request) = self.table.find(id) else { return Vec::new() };
        if request.session != session {
            return vec![ProtocolStep::protocol_error("the request belongs to another session")];
        }
        let Some(result) = answer_result(&request.answer_context, answer) else {
            return vec![ProtocolStep::protocol_error("the answer does not fit the request")];
        };
        self.table.remove_request(id);
        vec![rpc.result_response(id, &result)]
    }

    /// Handles the withdrawal of a request by the agent.
    pub(super) fn handle_withdrawal(
        &mut self,
        params: &Value,
        rpc: &mut RpcWriter,
    ) -> Vec<ProtocolStep> {
        let id =
            params.get("requestId").or_else(|| params.get("id")).and_then(RequestId::from_json);
        let Some(request) = id.and_then(|id| self.table.remove_request(&id)) else {
            return Vec::new();
        };
        vec![
            rpc.result_response(&request.id, &cancelled_result(&request.answer_context)),
            withdrawal_step(&request),
        ]
    }

    /// Answers all open requests of a session with `cancelled`.
    pub(super) fn cancel_all(
        &mut self,
        session: SessionKey,
        rpc: &mut RpcWriter,
    ) -> Vec<ProtocolStep> {
        let cancelled_requests = self.table.remove_requests_of(session).into_iter();
        cancelled_requests
            .flat_map(|request| {
                [
                    rpc.result_response(&request.id, &cancelled_result(&request.answer_context)),
                    withdrawal_step(&request),
                ]
            })
            .collect()
    }
}

fn withdrawal_step(request: &UnansweredRequest<AnswerFormat>) -> ProtocolStep {
    ProtocolStep::RequestWithdrawn { session: request.session, request_id: request.id.clone() }
}

fn parse_permission_and_merge_call(
    params: &Value,
    sessions: &mut AcpSessionTable,
) -> Option<ParsedAgentRequest> {
    let params = PermissionParams::from_json(params)?;
    let options: Vec<_> =
        params.options.into_iter().map(PermissionOptionParams::into_permission_option).collect();
    let key = sessions.key(&params.session_id);
    let call = match key.and_then(|key| sessions.find_mut(key)) {
        Some(session) => session.calls.merge_report(&params.tool_call)?,
        None => Default::default(),
    };
    let kind = AgentRequestKind::Permission { call, options: options.clone() };
    let answer_format = AnswerFormat::Permission(options);
    Some(ParsedAgentRequest { native_id: params.session_id, answer_format, kind })
}

fn parse_elicitation(params: &Value) -> Option<ParsedAgentRequest> {
    let params = ElicitationParams::from_json(params)?;
    // The client declares forms only; an address to open is no form.
    if params.mode.as_deref().is_some_and(|mode| mode != "form") {
        return None;
    }
    let kind = AgentRequestKind::Form {
        message: params.message.unwrap_or_default(),
        schema: params.requested_schema.unwrap_or_default(),
        call_id: params.tool_call_id,
    };
    Some(ParsedAgentRequest {
        native_id: params.session_id,
        answer_format: AnswerFormat::Elicitation,
        kind,
    })
}

fn cancelled_result(answer_format: &AnswerFormat) -> Value {
    match answer_format {
        AnswerFormat::Permission(_) => json!({"outcome": {"outcome": "cancelled"}}),
        AnswerFormat::Elicitation => json!({"action": "cancel"}),
    }
}

/// Returns the result that expresses the answer; `None` if the answer does not fit.
fn answer_result(answer_format: &AnswerFormat, answer: RequestAnswer) -> Option<Value> {
    match (answer_format, answer) {
        (AnswerFormat::Permission(options), RequestAnswer::Allow) => Some(
            selected_result(options, PermissionOptionKind::AllowOnce)
                .unwrap_or_else(|| denied_result(options)),
        ),
        (AnswerFormat::Permission(options), RequestAnswer::Deny { .. }) => {
            Some(denied_result(options))
        }
        (answer_format, RequestAnswer::Cancel) => Some(cancelled_result(answer_format)),
        (AnswerFormat::Permission(_), RequestAnswer::Form { .. }) => None,
        (AnswerFormat::Elicitation, RequestAnswer::Allow) => None,
        (AnswerFormat::Elicitation, RequestAnswer::Deny { .. }) => {
            Some(json!({"action": "decline"}))
        }
        (AnswerFormat::Elicitation, RequestAnswer::Form { action }) => Some(match action {
            FormAction::Accept(values) => json!({"action": "accept", "content": values}),
            FormAction::Decline => json!({"action": "decline"}),
            FormAction::Cancel => json!({"action": "cancel"}),
        }),
    }
}

/// Returns true if a recorded result allows the tool call of the request.
fn is_allowing_result(answer_format: &AnswerFormat, result: &Value) -> bool {
    match answer_format {
        AnswerFormat::Permission(options) => {
            selected_result(options, PermissionOptionKind::AllowOnce)
                .is_some_and(|allow| allow == *result)
        }
        AnswerFormat::Elicitation => false,
    }
}

fn denied_result(options: &[PermissionOption]) -> Value {
    selected_result(options, PermissionOptionKind::RejectOnce)
        .unwrap_or_else(|| json!({"outcome": {"outcome": "cancelled"}}))
}

/// Selects the first option of a kind. An id that also belongs to an option of another kind is not selected: the agent
/// could take it for the other one.
fn selected_result(options: &[PermissionOption], kind: PermissionOptionKind) -> Option<Value> {
    let is_unique = |candidate: &&PermissionOption| {
        options.iter().all(|option| option.id != candidate.id || option.kind == kind)
    };
    let option = options.iter().filter(|option| option.kind == kind).find(is_unique)?;
    Some(json!({"outcome": {"outcome": "selected", "optionId": option.id}}))
}
