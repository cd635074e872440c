//! Requests of the app server: approvals, questions and forms.

use serde_json::{Map, Value, json};

use super::thread::ServerThreads;
use crate::agent_requests::{AgentRequestTable, IdClaim, UnansweredRequest};
use crate::model::command::{FormAction, RequestAnswer};
use crate::model::ids::{RequestId, SessionKey};
use crate::model::step::{
    AgentRequest, AgentRequestKind, AnsweredCall, PermissionOption, PermissionOptionKind, Step,
};
use crate::model::tool_call::{ToolCall, ToolKind};
use crate::rpc::{METHOD_NOT_FOUND, RpcWriter};
use crate::subject::apply_args;
use crate::turns::TurnCounts;

/// Form of the answer to an open request.
#[derive(Debug, Clone)]
pub(super) enum ServerAnswerForm {
    /// Decision from a list, with the permissions that it grants.
    Decision { options: Vec<PermissionOption>, permissions: Value },
    /// Answers to questions with these ids.
    Questions,
    /// Form of an MCP server.
    Elicitation,
}

/// Requests of the app server that are open.
#[derive(Debug, Default)]
pub(super) struct ServerRequests {
    table: AgentRequestTable<ServerAnswerForm>,
}

impl ServerRequests {
    pub(super) fn record_answer(&mut self, id: RequestId, line: u64, answer: (bool, Value)) {
        self.table.record_answer(id, line, answer);
    }

    pub(super) fn receive(
        &mut self,
        id: &RequestId,
        (method, params): (&str, &Value),
        threads: &mut ServerThreads,
        rpc: &mut RpcWriter,
    ) -> Vec<Step> {
        if let IdClaim::Reused(open) = self.table.claim(id) {
            let withdrawn = open.map(|request| withdrawal_step(&request));
            let reply = (!self.table.take_recorded(id)).then(|| rpc.conflict(id));
            let report = Step::protocol_error(format!("the agent used the request id {id} again"));
            return withdrawn.into_iter().chain(reply).chain([report]).collect();
        }
        let native = params.get("threadId").and_then(Value::as_str).unwrap_or_default();
        let key = threads.key(native);
        let Some((form, kind)) = read(method, params, key.and_then(|key| threads.find_mut(key)))
        else {
            let text = "the client does not offer this method";
            let reply =
                (!self.table.take_recorded(id)).then(|| rpc.error(id, METHOD_NOT_FOUND, text));
            return reply.into_iter().collect();
        };
        let recorded = self.table.recorded_line(id);
        let turns = threads.turns_of(native);
        let in_turn = turns.is_some_and(|turns| turns.contains_request(recorded));
        let Some(session) = key.filter(|_| in_turn) else {
            let cause = if key.is_some() { "outside of a turn" } else { "for an unknown session" };
            let report = Step::protocol_error(format!("request {id} {cause}"));
            return self.cancel(id, &form, rpc).into_iter().chain([report]).collect();
        };
        let is_cancelling =
            turns.is_some_and(TurnCounts::is_cancelling) && !self.table.is_recorded_as_open(id);
        if recorded.is_some() || is_cancelling {
            let result = self.table.recorded_result(id);
            let is_allowed = result.is_some_and(|it| it.get("decision") == Some(&json!("accept")));
            let call = AnsweredCall::of(&kind, is_allowed);
            let answered = Step::Answered { session, request: id.clone(), call };
            return self.cancel(id, &form, rpc).into_iter().chain([answered]).collect();
        }
        self.table.open(UnansweredRequest { id: id.clone(), session, form });
        vec![Step::Request {
            session,
            request: Box::new(AgentRequest { request: id.clone(), kind }),
        }]
    }

    fn cancel(
        &mut self,
        id: &RequestId,
        form: &ServerAnswerForm,
        rpc: &mut RpcWriter,
    ) -> Option<Step> {
        (!self.table.take_recorded(id)).then(|| rpc.result(id, &cancelled(form)))
    }

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

    /// Handles the report that a request needs no answer any more. It receives one nevertheless: a replay could not
    /// distinguish a request without an answer from one whose answer was not written.
    pub(super) fn handle_resolved(&mut self, params: &Value, rpc: &mut RpcWriter) -> Vec<Step> {
        let id = params.get("requestId").and_then(RequestId::read);
        let Some(open) = id.and_then(|id| self.table.close(&id)) else { return Vec::new() };
        vec![rpc.result(&open.id, &cancelled(&open.form)), withdrawal_step(&open)]
    }

    pub(super) fn close_session(&mut self, session: SessionKey, rpc: &mut RpcWriter) -> Vec<Step> {
        let closed = self.table.close_session(session).into_iter();
        closed
            .flat_map(|open| [rpc.result(&open.id, &cancelled(&open.form)), withdrawal_step(&open)])
            .collect()
    }
}

fn withdrawal_step(open: &UnansweredRequest<ServerAnswerForm>) -> Step {
    Step::Withdraw { session: open.session, request: open.id.clone() }
}

/// Reads a request; `None` if the client does not offer its method.
fn read(
    method: &str,
    params: &Value,
    thread: Option<&mut super::thread::ServerThread>,
) -> Option<(ServerAnswerForm, AgentRequestKind)> {
    let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = match method {
        "item/commandExecution/requestApproval" => ToolKind::Execute,
        "item/fileChange/requestApproval" => ToolKind::Edit,
        "item/permissions/requestApproval" => ToolKind::Other,
        "item/tool/requestUserInput" => {
            let questions = params.get("questions").and_then(Value::as_array);
            let (message, schema) = questions_form(questions?);
            let call = text("itemId");
            return Some((
                ServerAnswerForm::Questions,
                AgentRequestKind::Form { message, schema, call },
            ));
        }
        "mcpServer/elicitation/request" => {
            let message = text("message").unwrap_or_default();
            let schema = params.get("requestedSchema").cloned().unwrap_or_default();
            let kind = AgentRequestKind::Form { message, schema, call: None };
            return Some((ServerAnswerForm::Elicitation, kind));
        }
        _ => return None,
    };
    let id = text("itemId").unwrap_or_default();
    let known = thread.and_then(|thread| thread.calls.get(&id).cloned());
    let mut call = known.unwrap_or_else(|| ToolCall { id, kind, ..ToolCall::default() });
    if kind == ToolKind::Execute || call.args.is_null() {
        apply_args(&mut call, params);
    }
    call.title = text("reason").or(call.title);
    let options = decisions(params.get("availableDecisions"));
    let permissions = params.get("permissions").cloned().unwrap_or_default();
    let form = ServerAnswerForm::Decision { options: options.clone(), permissions };
    Some((form, AgentRequestKind::Permission { call, options }))
}

/// Returns the decisions to choose from. A decision that is an object applies to later calls too.
fn decisions(list: Option<&Value>) -> Vec<PermissionOption> {
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
fn questions_form(questions: &[Value]) -> (String, Value) {
    let mut fields = Map::new();
    let mut texts = Vec::new();
    for question in questions {
        let text = |name: &str| question.get(name).and_then(Value::as_str).unwrap_or_default();
        texts.push(text("question").to_owned());
        let options = question.get("options").and_then(Value::as_array).into_iter().flatten();
        let labels: Vec<_> = options.filter_map(|option| option.get("label").cloned()).collect();
        let mut field = json!({"type": "string", "title": text("question")});
        if let (Some(field), false) = (field.as_object_mut(), labels.is_empty()) {
            field.insert("enum".to_owned(), labels.into());
        }
        fields.insert(text("id").to_owned(), field);
    }
    (texts.join("\n"), json!({"type": "object", "properties": fields}))
}

fn cancelled(form: &ServerAnswerForm) -> Value {
    match form {
        ServerAnswerForm::Decision { options, .. } => decision(options, &["cancel", "decline"]),
        ServerAnswerForm::Questions => json!({"answers": {}}),
        ServerAnswerForm::Elicitation => json!({"action": "cancel"}),
    }
}

/// Returns the first of the decisions that the server offers. `permissions` is part of the answer to a request for
/// permissions, and an unknown field elsewhere.
fn decision(options: &[PermissionOption], preferred: &[&str]) -> Value {
    let offered = |name: &&&str| {
        options.iter().any(|it| it.id == **name && it.kind == PermissionOptionKind::RejectOnce)
    };
    let name = preferred.iter().find(offered).unwrap_or(&"cancel");
    json!({"decision": name, "permissions": {}})
}

/// Returns the result that expresses the answer; `None` if the answer does not fit.
fn result(form: &ServerAnswerForm, answer: RequestAnswer) -> Option<Value> {
    match (form, answer) {
        (form, RequestAnswer::Cancelled) => Some(cancelled(form)),
        (ServerAnswerForm::Decision { options, permissions }, RequestAnswer::Allow) => {
            let accepts =
                options.iter().any(|option| option.kind == PermissionOptionKind::AllowOnce);
            let accept = match permissions {
                Value::Null => json!({"decision": "accept"}),
                granted => json!({"decision": "accept", "permissions": granted, "scope": "turn"}),
            };
            Some(if accepts { accept } else { decision(options, &["decline", "cancel"]) })
        }
        (ServerAnswerForm::Decision { options, .. }, RequestAnswer::Deny { .. }) => {
            Some(decision(options, &["decline", "cancel"]))
        }
        (ServerAnswerForm::Decision { .. }, RequestAnswer::Form { .. }) => None,
        (ServerAnswerForm::Questions | ServerAnswerForm::Elicitation, RequestAnswer::Allow) => None,
        (
            ServerAnswerForm::Questions,
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
        (ServerAnswerForm::Questions, RequestAnswer::Deny { .. } | RequestAnswer::Form { .. }) => {
            Some(cancelled(form))
        }
        (ServerAnswerForm::Elicitation, RequestAnswer::Deny { .. }) => {
            Some(json!({"action": "decline"}))
        }
        (ServerAnswerForm::Elicitation, RequestAnswer::Form { action }) => Some(match action {
            FormAction::Accept(values) => json!({"action": "accept", "content": values}),
            FormAction::Decline => json!({"action": "decline"}),
            FormAction::Cancel => json!({"action": "cancel"}),
        }),
    }
}
