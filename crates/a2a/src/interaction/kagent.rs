//! Answers under the extension of kagent.

use serde::Deserialize;
use serde_json::Value;

use super::HUMAN_IN_THE_LOOP_EXTENSION;
use super::reply::{
    AskUserAnswer, InteractionReply, Replies, ReplyFault, decision_answer, parse_value,
    texts_answer,
};

/// Reads the metadata of kagent; `None` if it is the request that the service has published.
pub(super) fn read_kagent_replies(payload: &Value) -> Result<Option<Replies>, ReplyFault> {
    let expected = "`tool_approval_response` or `ask_user_response` with all its fields";
    let payload: KagentPayload =
        parse_value(&normalize_type_field(payload), HUMAN_IN_THE_LOOP_EXTENSION, expected)?;
    Ok(match payload {
        KagentPayload::ToolApprovalResponse { approvals } => {
            let list = approvals.into_iter().map(|approval| InteractionReply {
                id: Some(approval.id),
                answer: decision_answer(approval.approved, approval.rejection_reason),
                digest: None,
            });
            Some(Replies { list: list.collect(), requires_all_decisions: true })
        }
        KagentPayload::AskUserResponse { id, answers } => {
            let reply =
                InteractionReply { id: Some(id), answer: texts_answer(answers), digest: None };
            Some(Replies { list: vec![reply], requires_all_decisions: false })
        }
        KagentPayload::ToolApprovalRequest | KagentPayload::AskUserRequest => None,
    })
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum KagentPayload {
    ToolApprovalResponse { approvals: Vec<ToolApproval> },
    AskUserResponse { id: String, answers: Vec<AskUserAnswer> },
    // A caller may return the metadata of the pause unchanged.
    ToolApprovalRequest,
    AskUserRequest,
}

#[derive(Deserialize)]
struct ToolApproval {
    id: String,
    approved: bool,
    #[serde(alias = "rejectionReason")]
    rejection_reason: Option<String>,
}

/// Returns a payload with its type as a field, also if the type is the name of an object.
fn normalize_type_field(payload: &Value) -> Value {
    for name in ["tool_approval_response", "ask_user_response"] {
        if let Some(Value::Object(body)) = payload.get(name) {
            let mut body = body.clone();
            body.insert("type".to_owned(), Value::from(name));
            return Value::Object(body);
        }
    }
    payload.clone()
}
