//! Requests of an ACP agent: permissions and forms.

use serde_json::{Value, json};

use super::sessions::AcpSessions;
use super::wire::{ElicitationParams, OptionParams, PermissionParams};
use crate::agent_requests::{AgentRequestTable, IdClaim, UnansweredRequest};
use crate::model::command::{FormAction, RequestAnswer};
use crate::model::ids::{RequestId, SessionKey};
use crate::model::step::{
    AgentRequest, AgentRequestKind, AnsweredCall, PermissionOption, PermissionOptionKind, Step,
};
use crate::rpc::{INVALID_PARAMS, METHOD_NOT_FOUND, RpcWriter};

/// Form of the answer to an open request.
#[derive(Debug, Clone)]
pub(super) enum AnswerForm {
    Permission(Vec<PermissionOption>),
    Elicitation,
}

/// Request that belongs to a session, before it is checked against the turn.
struct SessionRequest {
    native: String,
    form: AnswerForm,
    kind: AgentRequestKind,
}

/// Requests of the agent that are open.
#[derive(Debug, Default)]
pub(super) struct AgentRequests {
    table: AgentRequestTable<AnswerForm>,
}

impl AgentRequests {
    /// Records an answer of a replay.
    pub(super) fn record_answer(&mut self, id: RequestId, line: u64, answer: (bool, Value)) {
        self.table.record_answer(id, line, answer);
    }

    /// Handles a request of the agent.
    pub(super) fn receive(
        &mut self,
        id: &RequestId,
        method: &str,
        params: &Value,
        (sessions, rpc): (&mut AcpSessions, &mut RpcWriter),
    ) -> Vec<Step> {
        if let IdClaim::Reused(open) = self.table.claim(id) {
            let withdrawn = open.map(|request| withdrawal_step(&request));
            let reply = self.reply(id, |rpc| rpc.conflict(id), rpc);
            let report = Step::protocol_error(format!("the agent used the request id {id} again"));
            return withdrawn.into_iter().chain(reply).chain([report]).collect();
        }
        let request = match method {
            "session/request_permission" => permission(params, sessions),
            "elicitation/create" => elicitation(params),
            _ => {
                let reject = |rpc: &mut RpcWriter| {
                    rpc.error(id, METHOD_NOT_FOUND, "the client does not offer this method")
                };
                return self.reply(id, reject, rpc).into_iter().collect();
            }
        };
        match request {
            Some(request) => self.open_request(id, request, sessions, rpc),
            None => {
                let reject = |rpc: &mut RpcWriter| {
                    rpc.error(id, INVALID_PARAMS, "the parameters are incomplete")
                };
                let reply = self.reply(id, reject, rpc);
                let report = Step::protocol_error(format!("request {id} has invalid parameters"));
                reply.into_iter().chain([report]).collect()
            }
        }
    }

    fn open_request(
        &mut self,
        id: &RequestId,
        request: SessionRequest,
        sessions: &mut AcpSessions,
        rpc: &mut RpcWriter,
    ) -> Vec<Step> {
        let SessionRequest { native, form, kind } = request;
        let recorded = self.table.recorded_line(id);
        let key = sessions.key(&native);
        let ready = key.filter(|key| sessions.ready_mut(*key).is_some());
        let turns = sessions.turns_of(&native);
        let in_turn = turns.is_some_and(|turns| turns.contains_request(recorded));
        let Some(session) = ready.filter(|_| in_turn) else {
            let cause = if key.is_some() { "outside of a turn" } else { "for an unknown session" };
            let reply = self.cancel(id, &form, rpc);
            let report = Step::protocol_error(format!("request {id} {cause}"));
            return reply.into_iter().chain([report]).collect();
        };
        let is_cancelling = turns.is_some_and(crate::turns::TurnCounts::is_cancelling)
            && !self.table.is_recorded_as_open(id);
        if recorded.is_some() || is_cancelling {
            let is_allowed = self.table.recorded_result(id).is_some_and(|it| allows(&form, it));
            let call = AnsweredCall::of(&kind, is_allowed);
            let reply = self.cancel(id, &form, rpc);
            let answered = Step::Answered { session, request: id.clone(), call };
            return reply.into_iter().chain([answered]).collect();
        }
        self.table.open(UnansweredRequest { id: id.clone(), session, form });
        vec![Step::Request {
            session,
            request: Box::new(AgentRequest { request: id.clone(), kind }),
        }]
    }

    /// Answers a request with `cancelled`, unless a replayed line answers it.
    fn cancel(&mut self, id: &RequestId, form: &AnswerForm, rpc: &mut RpcWriter) -> Option<Step> {
        let result = cancelled(form);
        self.reply(id, |rpc| rpc.result(id, &result), rpc)
    }

    fn reply(
        &mut self,
        id: &RequestId,
        build: impl FnOnce(&mut RpcWriter) -> Step,
        rpc: &mut RpcWriter,
    ) -> Option<Step> {
        (!self.table.take_recorded(id)).then(|| build(rpc))
    }

    /// Answers a request for the caller. An answer that does not fit the request leaves it open.
    pub(super) fn answer(
        &mut self,
        (session, id): (SessionKey, &RequestId),
        answer: RequestAnswer,
        rpc: &mut RpcWriter,
    ) -> Vec<Step> {
        let Some(open) = self.table.find(id) else { return Vec::new() };
        if open.session != session {
            return vec![Step::protocol_error("the request belongs to another session")];
        }
        let Some(result) = result(&open.form, answer) else {
            return vec![Step::protocol_error("the answer does not fit the request")];
        };
        self.table.close(id);
        vec![rpc.result(id, &result)]
    }

    /// Handles the withdrawal of a request by the agent.
    pub(super) fn withdraw(&mut self, params: &Value, rpc: &mut RpcWriter) -> Vec<Step> {
        let id = params.get("requestId").or_else(|| params.get("id")).and_then(RequestId::read);
        let Some(open) = id.and_then(|id| self.table.close(&id)) else { return Vec::new() };
        vec![rpc.result(&open.id, &cancelled(&open.form)), withdrawal_step(&open)]
    }

    /// Answers all open requests of a session with `cancelled`.
    pub(super) fn close_session(&mut self, session: SessionKey, rpc: &mut RpcWriter) -> Vec<Step> {
        let closed = self.table.close_session(session).into_iter();
        closed
            .flat_map(|open| [rpc.result(&open.id, &cancelled(&open.form)), withdrawal_step(&open)])
            .collect()
    }
}

fn withdrawal_step(open: &UnansweredRequest<AnswerForm>) -> Step {
    Step::Withdraw { session: open.session, request: open.id.clone() }
}

fn permission(params: &Value, sessions: &mut AcpSessions) -> Option<SessionRequest> {
    let params = PermissionParams::read(params)?;
    let options: Vec<_> = params.options.into_iter().map(OptionParams::into_option).collect();
    let key = sessions.key(&params.session_id);
    let call = match key.and_then(|key| sessions.find_mut(key)) {
        Some(session) => session.calls.merge(&params.tool_call)?,
        None => Default::default(),
    };
    let kind = AgentRequestKind::Permission { call, options: options.clone() };
    let form = AnswerForm::Permission(options);
    Some(SessionRequest { native: params.session_id, form, kind })
}

fn elicitation(params: &Value) -> Option<SessionRequest> {
    let params = ElicitationParams::read(params)?;
    // The client declares forms only; an address to open is no form.
    if params.mode.as_deref().is_some_and(|mode| mode != "form") {
        return None;
    }
    let kind = AgentRequestKind::Form {
        message: params.message.unwrap_or_default(),
        schema: params.requested_schema.unwrap_or_default(),
        call: params.tool_call_id,
    };
    Some(SessionRequest { native: params.session_id, form: AnswerForm::Elicitation, kind })
}

fn cancelled(form: &AnswerForm) -> Value {
    match form {
        AnswerForm::Permission(_) => json!({"outcome": {"outcome": "cancelled"}}),
        AnswerForm::Elicitation => json!({"action": "cancel"}),
    }
}

/// Returns the result that expresses the answer; `None` if the answer does not fit.
fn result(form: &AnswerForm, answer: RequestAnswer) -> Option<Value> {
    match (form, answer) {
        (AnswerForm::Permission(options), RequestAnswer::Allow) => {
            Some(select(options, PermissionOptionKind::AllowOnce).unwrap_or_else(|| deny(options)))
        }
        (AnswerForm::Permission(options), RequestAnswer::Deny { .. }) => Some(deny(options)),
        (form, RequestAnswer::Cancelled) => Some(cancelled(form)),
        (AnswerForm::Permission(_), RequestAnswer::Form { .. }) => None,
        (AnswerForm::Elicitation, RequestAnswer::Allow) => None,
        (AnswerForm::Elicitation, RequestAnswer::Deny { .. }) => Some(json!({"action": "decline"})),
        (AnswerForm::Elicitation, RequestAnswer::Form { action }) => Some(match action {
            FormAction::Accept(values) => json!({"action": "accept", "content": values}),
            FormAction::Decline => json!({"action": "decline"}),
            FormAction::Cancel => json!({"action": "cancel"}),
        }),
    }
}

/// Returns true if a recorded result allows the tool call of the request.
fn allows(form: &AnswerForm, result: &Value) -> bool {
    match form {
        AnswerForm::Permission(options) => {
            select(options, PermissionOptionKind::AllowOnce).is_some_and(|allow| allow == *result)
        }
        AnswerForm::Elicitation => false,
    }
}

fn deny(options: &[PermissionOption]) -> Value {
    select(options, PermissionOptionKind::RejectOnce)
        .unwrap_or_else(|| json!({"outcome": {"outcome": "cancelled"}}))
}

/// Selects the first option of a kind. An id that also belongs to an option of another kind is not selected: the agent
/// could take it for the other one.
fn select(options: &[PermissionOption], kind: PermissionOptionKind) -> Option<Value> {
    let is_unique = |candidate: &&PermissionOption| {
        options.iter().all(|option| option.id != candidate.id || option.kind == kind)
    };
    let option = options.iter().filter(|option| option.kind == kind).find(is_unique)?;
    Some(json!({"outcome": {"outcome": "selected", "optionId": option.id}}))
}
