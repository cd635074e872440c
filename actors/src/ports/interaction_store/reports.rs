//! Events and decisions that report an interaction. Every store derives them from the interaction in the same way.

use chrono::{DateTime, Utc};

use crate::model::execution::Outcome;
use crate::model::execution::event::EventKind;
use crate::model::interaction::{
    AnswerSource, AnswerValue, Interaction, InteractionAnswer, InteractionEnd, InteractionId,
    InteractionState,
};
use crate::model::permission::{PermissionDecision, PermissionVerdict};

/// Returns the event that reports an open interaction.
#[must_use]
pub fn opened_event(interaction: &Interaction) -> EventKind {
    let question = &interaction.question;
    EventKind::InteractionOpened {
        interaction: interaction.id,
        question: question.kind,
        message: question.message.clone(),
        tool: question.subject.as_ref().map(|call| call.tool.clone()),
        due_at: interaction.due_at,
    }
}

/// Returns the event that reports the end of an interaction. It contains no text of the answer.
#[must_use]
pub fn closed_event(interaction: InteractionId, end: &InteractionEnd) -> EventKind {
    EventKind::InteractionClosed {
        interaction,
        state: end.state,
        answer: end.answer.value.as_ref().map(|value| value.kind_name().to_owned()),
        by: end.answer.by.clone(),
    }
}

/// Returns the decision about the tool call of an interaction; `None` if the end decides about no tool call.
#[must_use]
pub fn permission_decision(
    interaction: &Interaction,
    end: &InteractionEnd,
) -> Option<PermissionDecision> {
    let question = &interaction.question;
    let verdict = verdict(end).filter(|_| question.kind.is_permission())?;
    let waited = (end.at - interaction.opened_at).num_milliseconds();
    Some(PermissionDecision {
        at: end.at,
        agent: interaction.origin.agent.clone(),
        owner: interaction.origin.owner,
        execution: interaction.request_key.execution,
        attempt_id: interaction.request_key.attempt_id,
        interaction: Some(interaction.id),
        tool: question.subject.as_ref().map(|call| call.tool.clone()).unwrap_or_default(),
        tool_call_digest: interaction.tool_call_digest.clone(),
        verdict,
        source: end.answer.by.clone(),
        // The clock may have been set back while the question was open.
        waited_ms: u64::try_from(waited).unwrap_or_default(),
    })
}

fn verdict(end: &InteractionEnd) -> Option<PermissionVerdict> {
    match (end.state, &end.answer.value) {
        (InteractionState::Open, _) => None,
        (InteractionState::Answered, Some(AnswerValue::Allow)) => Some(PermissionVerdict::Allow),
        (InteractionState::Answered, Some(AnswerValue::Deny { .. })) => {
            Some(PermissionVerdict::Deny)
        }
        (InteractionState::Answered, _) => None,
        // The agent may not call the tool without an answer.
        (InteractionState::Expired | InteractionState::Withdrawn | InteractionState::Lost, _) => {
            Some(PermissionVerdict::Deny)
        }
    }
}

/// Returns the end of an interaction that is open when its execution settles.
#[must_use]
pub const fn interaction_end_at_settlement(outcome: Outcome, at: DateTime<Utc>) -> InteractionEnd {
    match outcome {
        Outcome::Completed | Outcome::Timeout | Outcome::Cancelled => {
            let answer = InteractionAnswer { value: None, by: AnswerSource::Cancel };
            InteractionEnd { state: InteractionState::Withdrawn, answer, at }
        }
        Outcome::Failed => lost_interaction_end(at),
    }
}

/// Returns the end of an interaction whose process has ended.
#[must_use]
pub const fn lost_interaction_end(at: DateTime<Utc>) -> InteractionEnd {
    let answer = InteractionAnswer { value: None, by: AnswerSource::ProcessEnd };
    InteractionEnd { state: InteractionState::Lost, answer, at }
}

/// Returns the position among the last events of an execution at which the ends of its interactions are recorded:
/// before the transition to the end, because a reader of the events stops there.
#[must_use]
pub fn last_transition_index(events: &[(DateTime<Utc>, EventKind)]) -> usize {
    let is_transition = |(_, kind): &(_, EventKind)| matches!(kind, EventKind::StateChanged(_));
    events.iter().rposition(is_transition).unwrap_or(events.len())
}
