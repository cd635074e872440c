//! Shapes of interactions, their answers, and permission decisions.

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::id::{AgentId, ExecutionId};
use algonius_actors::model::interaction::{
    AnswerSource, AnswerValue, Interaction, InteractionId, InteractionOrigin, InteractionState,
    QuestionKind, QuestionOption, ToolCallSubject,
};
use algonius_actors::model::permission::{PermissionDecision, PermissionVerdict};
use chrono::{DateTime, Utc};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Question of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InteractionEntry {
    /// Id of the interaction.
    pub id: InteractionId,
    /// Execution whose agent asked.
    pub execution: ExecutionId,
    /// Agent that asked.
    pub agent: AgentId,
    /// Teams whose runs passed the request on, the outermost first, and then the agent that opened the question;
    /// absent without a team.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<AgentId>,
    /// Conversation of the execution.
    pub context: String,
    /// Attempt that asked.
    pub attempt: AttemptId,
    /// Kind of the question.
    pub kind: QuestionKind,
    /// State of the interaction.
    pub state: InteractionState,
    /// Question, with the digest to which an answer can bind.
    pub question: QuestionEntry,
    /// Time of the question.
    pub asked_at: DateTime<Utc>,
    /// Time at which the interaction expires.
    pub due_at: DateTime<Utc>,
    /// Answer or end; absent while the interaction is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<ClosedEntry>,
}

/// Content of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionEntry {
    /// Question in one sentence, redacted.
    pub message: String,
    /// Options that the agent offers. The service never selects one that allows more than this call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<QuestionOption>,
    /// Tool call that the question is about, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolCallSubject>,
    /// JSON schema of the answer of a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Keyed digest of the question as the agent wrote it.
    pub digest: String,
}

/// End of an interaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClosedEntry {
    /// Answer, redacted; absent if the interaction ended without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerValue>,
    /// Origin of the answer or of the end.
    pub by: AnswerSource,
    /// Time of the end.
    pub at: DateTime<Utc>,
    /// Time at which the answer was written to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<DateTime<Utc>>,
}

impl From<Interaction> for InteractionEntry {
    fn from(interaction: Interaction) -> Self {
        let delivered_at = interaction.delivered_at;
        let closed = interaction.end.map(|closed| ClosedEntry {
            answer: closed.answer.value,
            by: closed.answer.by,
            at: closed.at,
            delivered_at,
        });
        Self {
            id: interaction.id,
            execution: interaction.request_key.execution,
            path: team_path(&interaction.origin),
            agent: interaction.origin.agent,
            context: interaction.origin.context.0,
            attempt: interaction.request_key.attempt_id,
            kind: interaction.question.kind,
            state: interaction.state,
            question: QuestionEntry {
                message: interaction.question.message,
                options: interaction.question.options,
                tool: interaction.question.subject,
                schema: interaction.question.schema,
                digest: interaction.tool_call_digest,
            },
            asked_at: interaction.opened_at,
            due_at: interaction.due_at,
            closed,
        }
    }
}

/// Returns the path of a question; empty without a team.
fn team_path(origin: &InteractionOrigin) -> Vec<AgentId> {
    if origin.teams.is_empty() { Vec::new() } else { origin.agent_path().cloned().collect() }
}

/// Page of interactions, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InteractionList {
    /// Interactions of the page.
    pub interactions: Vec<InteractionEntry>,
    /// Cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<InteractionId>,
}

/// Answer to an interaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = exactly_one_answer)]
pub struct AnswerRequest {
    /// Verdict about a tool call: `allow` or `deny`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<PermissionVerdict>,
    /// Id of an option that the agent offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// Free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Values of a form, by field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub values: Option<Value>,
    /// True to decline the question.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decline: bool,
    /// Reason for the agent; with the verdict `deny` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Digest of the question that the caller read. A different digest refuses the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl AnswerRequest {
    /// Returns the answer; `None` unless exactly one kind of answer is given, with a reason for a denial only.
    #[must_use]
    pub fn answer_value(&self) -> Option<AnswerValue> {
        let Self { verdict, option, text, values, decline, reason, digest: _ } = self;
        let verdict = match (verdict, reason) {
            (Some(PermissionVerdict::Allow), None) => Some(AnswerValue::Allow),
            (Some(PermissionVerdict::Deny), reason) => {
                Some(AnswerValue::Deny { reason: reason.clone() })
            }
            (None, None) => None,
            _ => return None,
        };
        let answers = [
            verdict,
            option.clone().map(|id| AnswerValue::Option { id }),
            text.clone().map(|text| AnswerValue::Text { text }),
            values.clone().map(|values| AnswerValue::Form { values }),
            decline.then_some(AnswerValue::Decline),
        ];
        let mut answers = answers.into_iter().flatten();
        answers.next().filter(|_| answers.next().is_none())
    }
}

/// Requires exactly one kind of answer, with a reason for a denial only.
fn exactly_one_answer(schema: &mut Schema) {
    // A member that is null and `decline` that is false count as absent, which `required` alone cannot express.
    let alternative = |member: &str, value: Value, allowed_members: &[&str]| {
        let mut properties: Map<String, Value> = ["verdict", "option", "text", "values", "reason"]
            .into_iter()
            .filter(|name| !allowed_members.contains(name))
            .map(|name| (name.to_owned(), json!({"type": "null"})))
            .collect();
        properties.insert("decline".to_owned(), json!({"const": false}));
        properties.insert(member.to_owned(), value);
        json!({"required": [member], "properties": properties})
    };
    schema.insert(
        "oneOf".to_owned(),
        json!([
            alternative("verdict", json!({"const": "allow"}), &[]),
            alternative("verdict", json!({"const": "deny"}), &["reason"]),
            alternative("option", json!({"type": "string"}), &[]),
            alternative("text", json!({"type": "string"}), &[]),
            alternative("values", json!({"type": "object"}), &[]),
            alternative("decline", json!({"const": true}), &[]),
        ]),
    );
}

/// Verdict about a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionEntry {
    /// Number of the decision. Later decisions have greater numbers.
    pub number: u64,
    /// Time of the verdict.
    pub at: DateTime<Utc>,
    /// Agent that requested the call.
    pub agent: AgentId,
    /// Execution of the call.
    pub execution: ExecutionId,
    /// Attempt of the call.
    pub attempt: AttemptId,
    /// Interaction, if a person was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction: Option<InteractionId>,
    /// Name of the tool.
    pub tool: String,
    /// Keyed digest of the tool and its arguments.
    pub digest: String,
    /// Verdict: `allow` or `deny`.
    pub verdict: PermissionVerdict,
    /// Origin of the verdict.
    pub by: AnswerSource,
    /// Milliseconds from the request of the agent to the verdict.
    pub waited_ms: u64,
}

impl From<(u64, PermissionDecision)> for DecisionEntry {
    fn from((number, decision): (u64, PermissionDecision)) -> Self {
        Self {
            number,
            at: decision.at,
            agent: decision.agent,
            execution: decision.execution,
            attempt: decision.attempt_id,
            interaction: decision.interaction,
            tool: decision.tool,
            digest: decision.tool_call_digest,
            verdict: decision.verdict,
            by: decision.source,
            waited_ms: decision.waited_ms,
        }
    }
}

/// Permission decisions, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionList {
    /// Decisions of the page.
    pub decisions: Vec<DecisionEntry>,
    /// Number after which the next page begins; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bodies with exactly one answer, each with that answer.
    fn valid_bodies() -> Vec<(Value, AnswerValue)> {
        let denied = AnswerValue::Deny { reason: Some("no".to_owned()) };
        vec![
            (json!({"verdict": "allow"}), AnswerValue::Allow),
            (json!({"verdict": "allow", "option": null, "decline": false}), AnswerValue::Allow),
            (json!({"verdict": "deny", "reason": "no"}), denied),
            (json!({"decline": true}), AnswerValue::Decline),
        ]
    }

    /// Bodies with no answer, or with more than one.
    fn invalid_bodies() -> Vec<Value> {
        vec![
            json!({}),
            json!({"decline": false}),
            json!({"verdict": "ask"}),
            json!({"verdict": "allow", "reason": "why"}),
            json!({"verdict": "allow", "option": "a"}),
            json!({"text": "a", "values": {}}),
            json!({"reason": "alone"}),
        ]
    }

    #[test]
    fn a_request_with_one_answer_is_read() {
        let read =
            |body: Value| serde_json::from_value::<AnswerRequest>(body).unwrap().answer_value();
        for (body, answer) in valid_bodies() {
            assert_eq!(read(body.clone()), Some(answer), "{body}");
        }
        for body in invalid_bodies() {
            assert_eq!(read(body.clone()), None, "{body}");
        }
    }
}
