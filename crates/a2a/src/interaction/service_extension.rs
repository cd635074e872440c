//! Answers under the extension of this service.

use algonius_actors::model::interaction::AnswerValue;
use serde::Deserialize;
use serde_json::Value;

use super::reply::{InteractionReply, Replies, ReplyContent, ReplyFault, parse_value};

/// Reads the answers of a message; `None` if it has none under the extension of this service.
pub(super) fn read_service_replies(payload: &Value) -> Result<Option<Replies>, ReplyFault> {
    if payload.get("answers").is_none() {
        return Ok(None);
    }
    let payload: ServiceExtensionPayload = parse_value(payload, "answers", "a list of answers")?;
    let list = payload
        .answers
        .into_iter()
        .map(ServiceExtensionAnswer::into_reply)
        .collect::<Result<_, _>>()?;
    Ok(Some(Replies { list, requires_all_decisions: false }))
}

#[derive(Deserialize)]
struct ServiceExtensionPayload {
    answers: Vec<ServiceExtensionAnswer>,
}

/// Answer under the extension of this service. Exactly one of the fields for the answer is present.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceExtensionAnswer {
    id: String,
    digest: Option<String>,
    reason: Option<String>,
    verdict: Option<String>,
    option: Option<String>,
    text: Option<String>,
    values: Option<Value>,
    decline: Option<bool>,
}

impl ServiceExtensionAnswer {
    fn into_reply(self) -> Result<InteractionReply, ReplyFault> {
        let expected = "exactly one of `verdict`, `option`, `text`, `values` and `decline`";
        let fault = ReplyFault::Malformed { field: "answers", expected };
        let decision = match self.verdict.as_deref() {
            None => None,
            Some("allow") if self.reason.is_none() => Some(AnswerValue::Allow),
            Some("deny") => Some(AnswerValue::Deny { reason: self.reason.clone() }),
            Some(_) => {
                let expected = "`allow`, or `deny` with an optional `reason`";
                return Err(ReplyFault::Malformed { field: "verdict", expected });
            }
        };
        if self.reason.is_some() && decision.is_none() || self.decline == Some(false) {
            return Err(fault);
        }
        let answer_values = [
            decision,
            self.option.map(|id| AnswerValue::Option { id }),
            self.text.map(|text| AnswerValue::Text { text }),
            self.values.map(|values| AnswerValue::Form { values }),
            self.decline.map(|_| AnswerValue::Decline),
        ];
        let mut answer_values = answer_values.into_iter().flatten();
        let (Some(value), None) = (answer_values.next(), answer_values.next()) else {
            return Err(fault);
        };
        Ok(InteractionReply {
            id: Some(self.id),
            answer: ReplyContent::Value(value),
            digest: self.digest,
        })
    }
}
