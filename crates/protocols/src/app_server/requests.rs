//! Requests of the app server: approvals, questions and forms.

use serde_json::{Map, Value, json};

use super::thread::AppServerThreads;
use crate::agent_requests::{AgentRequestTable, IdRegistration, UnansweredRequest};
use crate::model::command::{FormAction, RequestAnswer};
use crate::model::ids::{RequestId, SessionKey};
use crate::model::step::{
    AgentRequest, AgentRequestKind, AnsweredCall, PermissionOption, PermissionOptionKind,
    ProtocolStep,
};
use crate::model::tool_call::{ToolCall, ToolKind};
use crate::rpc::{METHOD_NOT_FOUND, RpcWriter};
use crate::subject::apply_args;
use crate::turns::TurnCounts;

/// Format of the answer to an open request.
#[derive(Debug, Clone)]
pub(super) enum AppServerAnswerFormat {
    /// Decision from a list, with the permissions that it grants.
    Decision { options: Vec<PermissionOption>, permissions: Value },
    /// Answers to questions with these ids.
    Questions,
    /// Form of an MCP server.
    Elicitation,
}

/// Requests of the app server that are open.
#[derive(Debug, Default)]
pub(super) struct AppServerAgentRequests {
    table: AgentRequestTable<AppServerAnswerFormat>,
}

impl AppServerAgentRequests {
    pub(super) fn record_answer(&mut self, id: RequestId, line_number: u64, answer: (bool, Value)) {
        self.table.record_answer(id, line_number, answer);
    }

    pub(super) fn receive(
        &mut self,
        id: &RequestId,
        (method, params): (&str, &Value),
        threads: &mut AppServerThreads,
        rpc: &mut RpcWriter,
    ) -> Vec<ProtocolStep> {
        if let IdRegistration::Reused(earlier_request) = self.table.register_id(id) {
            let withdrawal = earlier_request.map(|request| withdrawal_step(&request));
            let reply =
                (!self.table.consume_recorded_answer(id)).then(|| rpc.reused_id_response(id));
            let error_step =
                ProtocolStep::protocol_error(format!("the agent used the request id {id} again"));
            return withdrawal.into_iter().chain(reply).chain([error_step]).collect();
        }
        let native_id = params.get("threadId").and_then(Value::as_str).unwrap_or_default();
        let key = threads.key(native_id);
        let Some((answer_format, kind)) =
            parse_request(method, params, key.and_then(|key| threads.find_mut(key)))
        else {
            let message = "the client does not offer this method";
            let reply = (!self.table.consume_recorded_answer(id))
                .then(|| rpc.error_response(id, METHOD_NOT_FOUND, message));
            return reply.into_iter().collect();
        };
        let answer_line = self.table.recorded_answer_line(id);
        let turns = threads.turns_of(native_id);
        let is_in_turn = turns.is_some_and(|turns| turns.is_turn_open_at_line(answer_line));
        let Some(session) = key.filter(|_| is_in_turn) else {
            let cause = if key.is_some() { "outside of a turn" } else { "for an unknown session" };
            let error_step = ProtocolStep::protocol_error(format!("request {id} {cause}"));
            return self
                .cancel_unless_recorded(id, &answer_format, rpc)
                .into_iter()
                .chain([error_step])
                .collect();
        };
        let is_cancelling = turns.is_some_and(TurnCounts::is_cancelling)
            && !self.table.has_recorded_id_rejection(id);
        if answer_line.is_some() || is_cancelling {
            let result = self.table.recorded_result(id);
            let is_allowed = result.is_some_and(|it| it.get("decision") == Some(&json!("accept")));
            let call = AnsweredCall::from_request_kind(&kind, is_allowed);
            let answered = ProtocolStep::RequestAnswered { session, request_id: id.clone(), call };
            return self
                .cancel_unless_recorded(id, &answer_format, rpc)
                .into_iter()
                .chain([answered])
                .collect();
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

    fn cancel_unless_recorded(
        &mut self,
        id: &RequestId,
        answer_format: &AppServerAnswerFormat,
        rpc: &mut RpcWriter,
    ) -> Option<ProtocolStep> {
        (!self.table.consume_recorded_answer(id))
            .then(|| rpc.result_response(id, &cancelled_result(answer_format)))
    }

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

    /// Handles the report that a request needs no answer any more. It receives one nevertheless: a replay could not
    /// distinguish a request without an answer from one whose answer was not written.
    pub(super) fn handle_resolved(
        &mut self,
        params: &Value,
        rpc: &mut RpcWriter,
    ) -> Vec<ProtocolStep> {
        let id = params.get("requestId").and_then(RequestId::from_json);
        let Some(request) = id.and_then(|id| self.table.remove_request(&id)) else {
            return Vec::new();
        };
        vec![
            rpc.result_response(&request.id, &cancelled_result(&request.answer_context)),
            withdrawal_step(&request),
        ]
    }

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

fn withdrawal_step(request: &UnansweredRequest<AppServerAnswerFormat>) -> ProtocolStep {
    ProtocolStep::RequestWithdrawn { session: request.session, request_id: request.id.clone() }
}

/// Reads a request; `None` if the client does not offer its method.
fn parse_request(
    method: &str,
    params: &Value,
    thread: Option<&mut super::thread::AppServerThread>,
) -> Option<(AppServerAnswerFormat, AgentRequestKind)> {
    let string_field = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = match method {
        "item/commandExecution/requestApproval" => ToolKind::Execute,
        "item/fileChange/requestApproval" => ToolKind::Edit,
        "item/permissions/requestApproval" => ToolKind::Other,
        "item/tool/requestUserInput" => {
            let questions = params.get("questions").and_then(Value::as_array);
            let (message, schema) = build_questions_form(questions?);
            let call_id = string_field("itemId");
            return Some((
                AppServerAnswerFormat::Questions,
                AgentRequestKind::Form { message, schema, call_id },
            ));
        }
        "mcpServer/elicitation/request" => {
            let message = string_field("message").unwrap_or_default();
            let schema = params.get("requestedSchema").cloned().unwrap_or_default();
            let kind = AgentRequestKind::Form { message, schema, call_id: None };
            return Some((AppServerAnswerFormat::Elicitation, kind));
        }
        _ => return None,
    };
    let id = string_field("itemId").unwrap_or_default();
    let reported_call = thread.and_then(|thread| thread.calls.get(&id).cloned());
    let mut call = reported_call.unwrap_or_else(|| ToolCall { id, kind, ..ToolCall::default() });
    if kind == ToolKind::Execute || call.args.is_null() {
        apply_args(&mut call, params);
    }
    call.title = string_field("reason").or(call.title);
    let options = parse_decisions(params.get("availableDecisions"));
    let permissions = params.get("permissions").cloned().unwrap_or_default();
    let answer_format = AppServerAnswerFormat::Decision { options: options.clone(), permissions };
    Some((answer_format, AgentRequestKind::Permission { call, options }))
}

/// Returns the decisions to choose from. A decision that is an object applies to later calls too.
fn parse_decisions(list: Option<&Value>) -> Vec<PermissionOption> {
    let default_decisions = json!(["accept", "decline", "cancel"]);
    let list = list.filter(|list| list.is_array()).unwrap_or(&default_decisions);
    let option = |decision: &Value| {
        let id = match decision {
            Value::String(id) => id.clone(),
            other => other.as_object()?.keys().next()?.clone(),
        };
        let kind = match (decision.is_string(), id.as_str()) {
            (true, "accept") => PermissionOptionKind::AllowOnce,
            (true, "decline" | "cancel") => PermissionOptionKind::RejectOnce,
            _ => PermissionOptionKind::AllowAlways,
        };
        Some(PermissionOption { name: id.clone(), id, kind })
    };
    list.as_array().into_iter().flatten().filter_map(option).collect()
}

/// Returns the text and the schema for questions: one field per question, with its id as the name.
fn build_questions_form(questions: &[Value]) -> (String, Value) {
    let mut fields = Map::new();
    let mut texts = Vec::new();
    for question in questions {
        let string_field =
            |name: &str| question.get(name).and_then(Value::as_str).unwrap_or_default();
        texts.push(string_field("question").to_owned());
        let options = question.get("options").and_then(Value::as_array).into_iter().flatten();
        let labels: Vec<_> = options.filter_map(|option| option.get("label").cloned()).collect();
        let mut field = json!({"type": "string", "title": string_field("question")});
        if let (Some(field), false) = (field.as_object_mut(), labels.is_empty()) {
            field.insert("enum".to_owned(), labels.into());
        }
        fields.insert(string_field("id").to_owned(), field);
    }
    (texts.join("\n"), json!({"type": "object", "properties": fields}))
}

fn cancelled_result(answer_format: &AppServerAnswerFormat) -> Value {
    match answer_format {
        AppServerAnswerFormat::Decision { options, .. } => {
            rejection_result(options, &["cancel", "decline"])
        }
        AppServerAnswerFormat::Questions => json!({"answers": {}}),
        AppServerAnswerFormat::Elicitation => json!({"action": "cancel"}),
    }
}

/// Returns the first of the decisions that the server offers. `permissions` is part of the answer to a request for
/// permissions, and an unknown field elsewhere.
fn rejection_result(options: &[PermissionOption], preferred_names: &[&str]) -> Value {
    let is_offered = |name: &&&str| {
        options.iter().any(|it| it.id == **name && it.kind == PermissionOptionKind::RejectOnce)
    };
    let name = preferred_names.iter().find(is_offered).unwrap_or(&"cancel");
    json!({"decision": name, "permissions": {}})
}

/// Returns the result that expresses the answer; `None` if the answer does not fit.
fn answer_result(answer_format: &AppServerAnswerFormat, answer: RequestAnswer) -> Option<Value> {
    match (answer_format, answer) {
        (answer_format, RequestAnswer::Cancel) => Some(cancelled_result(answer_format)),
        (AppServerAnswerFormat::Decision { options, permissions }, RequestAnswer::Allow) => {
            let offers_accept =
                options.iter().any(|option| option.kind == PermissionOptionKind::AllowOnce);
            let accept_result = match permissions {
                Value::Null => json!({"decision": "accept"}),
                granted => json!({"decision": "accept", "permissions": granted, "scope": "turn"}),
            };
            Some(if offers_accept {
                accept_result
            } else {
                rejection_result(options, &["decline", "cancel"])
            })
        }
        (AppServerAnswerFormat::Decision { options, .. }, RequestAnswer::Deny { .. }) => {
            Some(rejection_result(options, &["decline", "cancel"]))
        }
        (AppServerAnswerFormat::Decision { .. }, RequestAnswer::Form { .. }) => None,
        (
            AppServerAnswerFormat::Questions | AppServerAnswerFormat::Elicitation,
            RequestAnswer::Allow,
        ) => None,
        (
            AppServerAnswerFormat::Questions,
            RequestAnswer::Form { action: FormAction::Accept(values) },
        ) => {
            let values = values.as_object().cloned().unwrap_or_default();
            let answer = |(id, value): (String, Value)| match value {
                Value::Array(_) => (id, json!({"answers": value})),
                value => (id, json!({"answers": [value]})),
            };
            let answers: Map<_, _> = values.into_iter().map(answer).collect();
            Some(json!({"answers": answers}))
        }
        (
            AppServerAnswerFormat::Questions,
            RequestAnswer::Deny { .. } | RequestAnswer::Form { .. },
        ) => Some(cancelled_result(answer_format)),
        (AppServerAnswerFormat::Elicitation, RequestAnswer::Deny { .. }) => {
            Some(json!({"action": "decline"}))
        }
        (AppServerAnswerFormat::Elicitation, RequestAnswer::Form { action }) => {
            Some(match action {
                FormAction::Accept(values) => json!({"action": "accept", "content": values}),
                FormAction::Decline => json!({"action": "decline"}),
                FormAction::Cancel => json!({"action": "cancel"}),
            })
        }
    }
}
