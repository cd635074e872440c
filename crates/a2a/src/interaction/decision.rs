//! Decisions in data parts, as the Agent Development Kit and earlier versions of kagent write them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::CONFIRMATION_FUNCTION;
use super::reply::{
    AskUserAnswer, InteractionReply, Replies, ReplyFault, decision_answer, parse_value,
    texts_answer,
};
use crate::v1::Metadata;

/// Key under which kagent gives one reason for all calls.
const ALL_CALLS_KEY: &str = "*";

/// Reads the decisions in the data parts of a message. Other data is left to the agent.
///
/// # Errors
/// Returns the fault of the first malformed part. A message with more than one decision for all calls is ambiguous.
pub(super) fn read_decisions<'p>(
    parts: impl Iterator<Item = (&'p Value, &'p Metadata)>,
) -> Result<Replies, ReplyFault> {
    let mut replies = Replies::default();
    let mut has_decision = false;
    for (data, metadata) in parts {
        if data.get("decision_type").is_some() {
            if has_decision || !replies.list.is_empty() {
                return Err(ReplyFault::Duplicate);
            }
            has_decision = true;
            replies = parse_decision(data)?;
        } else if let Some(response) = find_function_response(data, metadata) {
            if has_decision {
                return Err(ReplyFault::Duplicate);
            }
            replies.list.push(parse_confirmation(response)?);
        }
    }
    Ok(replies)
}

#[derive(Deserialize)]
struct DecisionPart {
    decision_type: DecisionType,
    #[serde(default)]
    decisions: BTreeMap<String, CallDecision>,
    #[serde(default)]
    rejection_reasons: BTreeMap<String, String>,
    rejection_reason: Option<String>,
    ask_user_answers: Option<Vec<AskUserAnswer>>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum DecisionType {
    Approve,
    #[serde(alias = "deny")]
    Reject,
    Batch,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum CallDecision {
    Approve,
    #[serde(alias = "deny")]
    Reject,
}

fn parse_decision(data: &Value) -> Result<Replies, ReplyFault> {
    let expected = "`approve`, `reject` or `batch` with all its fields";
    let part: DecisionPart = parse_value(data, "decision_type", expected)?;
    let DecisionPart { decision_type, decisions, mut rejection_reasons, .. } = part;
    let decisions_fault =
        ReplyFault::Malformed { field: "decisions", expected: "there for `batch` only" };
    let common_reason = part.rejection_reason.or_else(|| rejection_reasons.remove(ALL_CALLS_KEY));
    let is_batch = decision_type == DecisionType::Batch;
    if is_batch == decisions.is_empty() {
        return Err(decisions_fault);
    }
    let reply_without_id = |answer| InteractionReply { id: None, answer, digest: None };
    let mut list: Vec<_> = decisions
        .into_iter()
        .map(|(id, decision)| {
            let reason = rejection_reasons.remove(&id).or_else(|| common_reason.clone());
            let answer = decision_answer(decision == CallDecision::Approve, reason);
            InteractionReply { id: Some(id), answer, digest: None }
        })
        .collect();
    match (decision_type, part.ask_user_answers) {
        (DecisionType::Approve | DecisionType::Batch, Some(answers)) => {
            list.push(reply_without_id(texts_answer(answers)));
        }
        (DecisionType::Batch, None) => {}
        (DecisionType::Approve, None) => list.push(reply_without_id(decision_answer(true, None))),
        (DecisionType::Reject, _) => {
            list.push(reply_without_id(decision_answer(false, common_reason)));
        }
    }
    Ok(Replies { list, requires_all_decisions: is_batch })
}

/// Returns the response to a request for confirmation, if the part is one.
fn find_function_response<'p>(data: &'p Value, metadata: &Metadata) -> Option<&'p Value> {
    if let Some(response) = data.get("function_response") {
        return Some(response);
    }
    let has_response_marker = ["adk_type", "kagent_type"]
        .iter()
        .any(|key| metadata.get(*key).is_some_and(|kind| kind == "function_response"));
    let has_confirmation_name = data.get("name").is_some_and(|name| name == CONFIRMATION_FUNCTION);
    let is_response =
        data.get("response").is_some() && (has_confirmation_name || has_response_marker);
    (is_response || has_response_marker && has_confirmation_name).then_some(data)
}

#[derive(Deserialize)]
struct FunctionResponse {
    id: String,
    response: Confirmation,
}

#[derive(Deserialize)]
struct Confirmation {
    confirmed: bool,
    #[serde(alias = "reason")]
    rejection_reason: Option<String>,
}

fn parse_confirmation(response: &Value) -> Result<InteractionReply, ReplyFault> {
    let expected = "an `id` and a `response` with the truth value `confirmed`";
    let FunctionResponse { id, response } = parse_value(response, "function_response", expected)?;
    let answer = decision_answer(response.confirmed, response.rejection_reason);
    Ok(InteractionReply { id: Some(id), answer, digest: None })
}
