//! Events of a task as sentences for people. Events for programs only have no sentence.

use algonius_actors::model::execution::content::{PartKind, StoredPart};
use algonius_actors::model::execution::event::{
    ANSWER_ARTIFACT_ID, AgentStep, Event, EventKind, FileChange, MessageRole, TextRange, ToolStage,
};
use algonius_actors::model::execution::hop::HopStage;
use algonius_actors::model::execution::step::{StepErrorCause, StepRecord, StepType};
use algonius_actors::model::execution::{ExecutionState, Interruption, StateChange};
use algonius_actors::model::permission::PermissionVerdict;

use crate::cli::client::ServiceClient;
use crate::cli::output::screen::truncate_line;
use crate::cli::output::time_text::format_time;
use crate::cli::output::usage_text;
use crate::wire::api::history::TextPart;
use crate::wire::api::usage::UsageAmounts;

/// Maximum number of bytes read from a message, followed by the maximum number of characters shown.
const MAX_MESSAGE_BYTES: u64 = 2048;
const MAX_DISPLAYED_CHARS: usize = 200;

/// Returns a line with the time of an event and its sentence; `None` for an event that is of no use to people. The
/// text of a message is read from the service.
pub(crate) async fn fetch_event_line(
    client: &ServiceClient,
    id: &str,
    event: &Event,
) -> Option<String> {
    let sentence = match &event.data {
        EventKind::Message { speaker, pieces, .. } => {
            let message = message_text(client, id, pieces).await;
            message_sentence(*speaker, &message)
        }
        kind => event_sentence(kind),
    };
    sentence.map(|sentence| format!("{}  {sentence}", format_time(event.at)))
}

/// Returns the sentence of an event that refers to no stored text.
fn event_sentence(kind: &EventKind) -> Option<String> {
    match kind {
        EventKind::StateChanged(change) => state_sentence(change),
        EventKind::AttemptFailed(failure) => {
            Some(format!("attempt failed: {} ({})", failure.message, failure.code))
        }
        EventKind::Deferred(deferred) => {
            Some(format!("waits for its account until {}", format_time(deferred.until)))
        }
        EventKind::Artifact { id, name, pieces, last, .. } => {
            artifact_sentence(id, name.as_ref(), pieces, *last)
        }
        EventKind::BudgetCharged { charge, .. } => {
            usage_text::usage_line(UsageAmounts::from(*charge))
                .map(|amounts| format!("used {amounts}"))
        }
        EventKind::Step { step } => Some(step_sentence(step)),
        EventKind::OutputTruncated { channel, dropped } => Some(format!(
            "{dropped} bytes of {} were not kept: it is longer than the agent's limit",
            channel.as_str()
        )),
        EventKind::DeadlineApproaching { message, .. } => Some(message.clone()),
        EventKind::SessionLost { message } => Some(format!("context was lost: {message}")),
        EventKind::CheckOutput { stdout, stderr } => Some(format!(
            "the check of the work failed: {}",
            truncate_line(&format!("{stdout}{stderr}"), MAX_DISPLAYED_CHARS)
        )),
        EventKind::MalformedLine { line, reason, text } => Some(format!(
            "line {line} of the output {reason}: {}",
            truncate_line(text, MAX_DISPLAYED_CHARS)
        )),
        EventKind::InteractionOpened { interaction, message, due_at, .. } => Some(format!(
            "the agent asks: {} (interaction {interaction}, until {})",
            truncate_line(message, MAX_DISPLAYED_CHARS),
            format_time(*due_at)
        )),
        EventKind::InteractionClosed { state, answer, .. } => {
            let answer = answer.as_ref().map(|answer| format!(": {answer}")).unwrap_or_default();
            Some(format!("the question is {}{answer}", state.as_str()))
        }
        EventKind::PermissionDecided { tool, verdict, rule } => {
            let verb = match verdict {
                PermissionVerdict::Allow => "allows",
                PermissionVerdict::Deny => "denies",
                PermissionVerdict::Ask => "requires an answer about",
            };
            Some(format!("{rule} {verb} {tool}"))
        }
        EventKind::Hop { hop, stage } => Some(hop_sentence(*hop, stage)),
        EventKind::RunStep { row, .. } => Some(run_step_sentence(row)),
        EventKind::Warning { message } => Some(format!("warning: {message}")),
        // Processes, heartbeats, sessions and measurements: events for programs.
        _ => None,
    }
}

fn run_step_sentence(row: &StepRecord) -> String {
    let StepRecord { number, turn, step_type, tool, .. } = row;
    let clause = match (step_type, tool.as_deref()) {
        (StepType::Thought, _) => "text of the model".to_owned(),
        (StepType::ToolCall, Some(tool)) => format!("the model calls {tool}"),
        (StepType::Observation, Some(tool)) => format!("{tool} returned a result"),
        (StepType::Error, Some(tool)) if row.cause == Some(StepErrorCause::Interrupted) => {
            format!("the outcome of {tool} is unknown")
        }
        (StepType::Error, Some(tool)) => format!("{tool} failed"),
        (StepType::Error, None) if row.cause == Some(StepErrorCause::UnusableReply) => {
            "the reply of the model could not be used".to_owned()
        }
        (StepType::Error, None) => "the reply of the model was refused".to_owned(),
        (step_type, None) => step_type.as_str().to_owned(),
    };
    format!("step {number}, turn {turn}: {clause}")
}

fn hop_sentence(hop: u32, stage: &HopStage) -> String {
    match stage {
        HopStage::Planned { step, agent, .. } if step == agent.as_str() => {
            format!("hop {hop} goes to {agent}")
        }
        HopStage::Planned { step, agent, .. } => format!("hop {hop} goes to {agent}, for {step}"),
        HopStage::Taken { execution } => format!("hop {hop} is task {execution}"),
        HopStage::Ended { outcome, code } => {
            let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
            format!("hop {hop} ended: {outcome}{code}")
        }
    }
}

fn state_sentence(change: &StateChange) -> Option<String> {
    match change.to {
        ExecutionState::Starting => Some(format!("attempt {} starts", change.attempt_id.attempt)),
        ExecutionState::Waiting => Some(match change.interruption {
            Some(Interruption::AuthRequired) => "waits for the caller to authenticate".to_owned(),
            Some(Interruption::InputRequired) | None => {
                "waits for an answer of the caller".to_owned()
            }
        }),
        ExecutionState::Completed => Some("completed".to_owned()),
        ExecutionState::Failed => Some(format!("failed: {}", change.reason)),
        ExecutionState::Timeout => Some(format!("timed out: {}", change.reason)),
        ExecutionState::Cancelled => Some(format!("cancelled: {}", change.reason)),
        ExecutionState::Running | ExecutionState::Cleanup | ExecutionState::Idle => None,
    }
}

fn artifact_sentence(
    id: &str,
    name: Option<&String>,
    stored_parts: &[StoredPart],
    is_last: bool,
) -> Option<String> {
    if !is_last {
        return None; // More of it follows, and its last piece tells.
    }
    if id == ANSWER_ARTIFACT_ID {
        return Some("the answer is complete".to_owned());
    }
    let file = stored_parts.iter().find_map(|piece| piece.filename.as_ref());
    Some(format!("made {}", file.or(name).map_or(id, String::as_str)))
}

fn step_sentence(step: &AgentStep) -> String {
    match step {
        AgentStep::Thinking => "the agent thinks".to_owned(),
        AgentStep::ToolCall { tool, stage: ToolStage::Started, .. } => {
            format!("the agent uses {tool}")
        }
        AgentStep::ToolCall { tool, stage: ToolStage::Completed, .. } => format!("{tool} is done"),
        AgentStep::ToolCall { tool, stage: ToolStage::Failed, .. } => format!("{tool} failed"),
        AgentStep::FileChange { path, change } => {
            let verb = match change {
                FileChange::Created => "created",
                FileChange::Modified => "changed",
                FileChange::Deleted => "deleted",
            };
            format!("the agent {verb} {path}")
        }
        AgentStep::Denied { tool } => format!("the agent was not allowed to use {tool}"),
    }
}

fn message_sentence(speaker: MessageRole, message: &str) -> Option<String> {
    let message =
        message.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    let message = truncate_line(&message.join(" "), MAX_DISPLAYED_CHARS);
    if message.is_empty() {
        return None;
    }
    Some(match speaker {
        MessageRole::User => format!("asked: {message}"),
        MessageRole::AgentProgress => format!("the agent says: {message}"),
        MessageRole::AgentQuestion => format!("the agent asks: {message}"),
        MessageRole::AgentOutcome | MessageRole::AgentAnswer => {
            format!("the agent says at its end: {message}")
        }
    })
}

/// Returns the start of the texts of a message. An unreadable text is left out, because the event itself is still
/// valid.
async fn message_text(client: &ServiceClient, id: &str, stored_parts: &[StoredPart]) -> String {
    let mut texts = Vec::new();
    for stored_part in stored_parts
        .iter()
        .filter(|piece| piece.kind == PartKind::Text && piece.text.to > piece.text.from)
    {
        let TextRange { attempt_id, channel, from, to } = stored_part.text;
        let (turn, attempt, channel) = (attempt_id.turn, attempt_id.attempt, channel.as_str());
        let limit = (to - from).clamp(4, MAX_MESSAGE_BYTES);
        let path = format!(
            "/api/v1/executions/{id}/text?turn={turn}&attempt={attempt}&channel={channel}\
             &from={from}&limit={limit}"
        );
        if let Ok(part) = client.get::<TextPart>(&path).await {
            let length = usize::try_from(to - from).unwrap_or(usize::MAX).min(part.text.len());
            texts.push(part.text.get(..length).unwrap_or(&part.text).to_owned());
        }
    }
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use algonius_actors::model::agent::budget::Charge;
    use algonius_actors::model::execution::usage::{ResourceUsage, UsageReading};

    use super::*;

    #[test]
    fn technical_events_have_no_sentence() {
        let (numbers, cumulative) = (BTreeMap::new(), false);
        for kind in [
            EventKind::ProcessStarted { pid: 7 },
            EventKind::Heartbeat(UsageReading::default()),
            EventKind::ResourceUsage(ResourceUsage::default()),
            EventKind::Session { id: "s".to_owned() },
            EventKind::UsageReported { counters: numbers, cumulative },
            EventKind::BudgetCharged {
                day: <_>::default(),
                charge: Charge { wall_ms: 9, ..<_>::default() },
            },
        ] {
            assert_eq!(event_sentence(&kind), None, "{kind:?}");
        }
    }

    #[test]
    fn events_for_people_are_sentences() {
        let charge =
            Charge { input_tokens: 12, output_tokens: 3, cost_micros: 10_000, ..<_>::default() };
        let tool =
            AgentStep::ToolCall { id: None, tool: "Bash".to_owned(), stage: ToolStage::Started };
        let lost = "the program did not go on".to_owned();
        for (kind, sentence) in [
            (
                EventKind::BudgetCharged { day: <_>::default(), charge },
                "used 12 input tokens, 3 output tokens, $0.010000",
            ),
            (EventKind::Step { step: tool }, "the agent uses Bash"),
            (
                EventKind::SessionLost { message: lost },
                "context was lost: the program did not go on",
            ),
        ] {
            assert_eq!(event_sentence(&kind).as_deref(), Some(sentence));
        }
    }
}
