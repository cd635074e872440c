//! Questions of an agent as interactions, and their answers as messages of the protocol.

use std::collections::HashMap;

use algonius_actors::model::interaction::{
    AnswerValue, OptionKind, Question, QuestionKind, QuestionOption, ToolCallSubject, WireId,
};
use algonius_protocols::{
    AgentRequest, AgentRequestKind, AnsweredCall, FormAction, PermissionOptionKind as Offered,
    RequestAnswer, RequestId, ToolCall, ToolKind,
};

/// Requests of the agent that wait for an answer.
#[derive(Default)]
pub(super) struct OpenRequests(HashMap<WireId, OpenRequest>);

struct OpenRequest {
    id: RequestId,
    /// Id of the tool call of a permission request.
    call_id: Option<String>,
}

impl OpenRequests {
    /// Adds a request. Returns its question with the id under which the answer arrives.
    pub(super) fn add(&mut self, request: AgentRequest) -> (WireId, Question) {
        let AgentRequest { id, kind } = request;
        let wire_id = to_wire_id(&id);
        let call_id = match &kind {
            AgentRequestKind::Permission { call, .. } => Some(call.id.clone()),
            AgentRequestKind::Form { .. } => None,
        };
        self.0.insert(wire_id.clone(), OpenRequest { id, call_id });
        (wire_id, to_question(kind))
    }

    /// Removes a request that the agent withdrew.
    pub(super) fn remove(&mut self, request_id: &RequestId) -> WireId {
        let wire_id = to_wire_id(request_id);
        self.0.remove(&wire_id);
        wire_id
    }

    /// Removes an open request. Returns its id, its tool call, and the answer in the words of the protocol.
    pub(super) fn resolve(
        &mut self,
        wire_id: &WireId,
        answer: Option<AnswerValue>,
    ) -> Option<(RequestId, Option<AnsweredCall>, RequestAnswer)> {
        let OpenRequest { id, call_id } = self.0.remove(wire_id)?;
        let is_form = call_id.is_none();
        let answer = match answer {
            Some(AnswerValue::Form { values }) => {
                RequestAnswer::Form { action: FormAction::Accept(values) }
            }
            Some(AnswerValue::Decline) if is_form => {
                RequestAnswer::Form { action: FormAction::Decline }
            }
            Some(AnswerValue::Allow) => RequestAnswer::Allow,
            Some(AnswerValue::Deny { reason }) => RequestAnswer::Deny { message: reason },
            Some(AnswerValue::Decline) => RequestAnswer::Deny { message: None },
            // No question of these protocols is a choice or a free text.
            Some(AnswerValue::Option { .. } | AnswerValue::Text { .. }) | None => {
                RequestAnswer::Cancel
            }
        };
        let call =
            call_id.map(|id| AnsweredCall { id, is_allowed: answer == RequestAnswer::Allow });
        Some((id, call, answer))
    }
}

/// Numbers and texts are distinct ids, so their JSON is the id.
fn to_wire_id(request_id: &RequestId) -> WireId {
    WireId(request_id.to_string())
}

fn to_question(kind: AgentRequestKind) -> Question {
    match kind {
        AgentRequestKind::Permission { call, options } => {
            let kind = match call.kind {
                ToolKind::Edit | ToolKind::Delete | ToolKind::Move if !call.diffs.is_empty() => {
                    QuestionKind::FileApproval
                }
                _ => QuestionKind::ToolPermission,
            };
            let options = options.into_iter().map(|option| QuestionOption {
                id: option.id,
                name: option.name,
                kind: option_kind(option.kind),
            });
            let (options, message) = (options.collect(), permission_text(&call));
            Question { kind, message, options, subject: Some(call_subject(call)), schema: None }
        }
        AgentRequestKind::Form { message, schema, call_id: _ } => Question {
            kind: QuestionKind::Form,
            message,
            options: Vec::new(),
            subject: None,
            schema: Some(schema),
        },
    }
}

const fn option_kind(kind: Offered) -> OptionKind {
    match kind {
        Offered::AllowOnce => OptionKind::AllowOnce,
        Offered::AllowAlways => OptionKind::AllowAlways,
        Offered::RejectOnce => OptionKind::RejectOnce,
        Offered::RejectAlways => OptionKind::RejectAlways,
        Offered::Unknown => OptionKind::Other,
    }
}

/// Name of the tool: its own, or its kind.
pub(super) fn tool_name(call: &ToolCall) -> String {
    call.name.clone().unwrap_or_else(|| call.kind.as_str().to_owned())
}

fn permission_text(call: &ToolCall) -> String {
    let tool = tool_name(call);
    let subject = call.command.clone().or_else(|| call.title.clone());
    let subject = subject.or_else(|| call.paths.first().cloned()).or_else(|| call.url.clone());
    match subject {
        Some(subject) => format!("Allow {tool}: {subject}"),
        None => format!("Allow {tool}"),
    }
}

pub(super) fn call_subject(call: ToolCall) -> ToolCallSubject {
    let tool = tool_name(&call);
    let diffs = call.diffs.iter().map(|diff| &diff.path);
    let mut paths = call.paths.clone();
    for path in diffs {
        if !paths.contains(path) {
            paths.push(path.clone());
        }
    }
    ToolCallSubject {
        id: call.id,
        tool,
        kind: Some(call.kind.as_str().to_owned()),
        title: call.title,
        command: call.command,
        paths,
        url: call.url,
        args: call.args,
    }
}
