//! Answers to the open interactions of a task, in a message that continues it.

use algonius_a2a::interaction::{Replies, read_replies, resolve_replies};
use algonius_a2a::v1::{A2aPart, Message, PartContent};
use algonius_actors::api::{CallerAnswer, SubmitReply};
use algonius_actors::decide::permission::answer::{check_answer, parse_answer};
use algonius_actors::model::access::principal::Caller;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::execution::request::Overrides;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::interaction::{
    AnswerSource, AnswerValue, Interaction, InteractionFilter, InteractionId,
};

use super::answer_value::answer_value;
use super::message;
use crate::serve::AppState;

/// Answers the interactions of a task that a message names; `None` if the message is not an answer to an interaction,
/// so that it continues the task otherwise.
///
/// # Errors
/// Returns an error if a task with open interactions gets a message that does not answer them, or if the caller may not
/// answer. The answers are checked before the first of them counts.
pub(super) async fn answer_interactions(
    app: &AppState,
    caller: &Caller,
    record: &ExecutionRecord,
    message: &Message,
) -> Result<Option<SubmitReply>, Failure> {
    let filter = InteractionFilter { execution: Some(record.id), ..InteractionFilter::default() };
    let interactions = app.api.interactions.interactions(caller, filter).await?;
    if interactions.is_empty() {
        return Ok(None); // The metadata of the message may be for the agent.
    }
    // A client repeats a message whose response it missed. The agent may have asked another question meanwhile.
    if interactions.iter().any(|interaction| is_answered_by(interaction, &message.message_id)) {
        return Ok(Some(SubmitReply::for_existing_execution(record.id, None)));
    }
    // A run can end before its member, whose question is still open then.
    let has_ended = record.outcome.is_some();
    let open_interactions: Vec<_> = interactions
        .iter()
        .filter(|interaction| interaction.is_open() && !has_ended)
        .cloned()
        .collect();
    let replies = read_replies(&message.metadata, &message.parts)?;
    let is_answer = !open_interactions.is_empty() || !replies.list.is_empty();
    if is_answer && message.parts.iter().any(is_file) {
        return Err(Failure::new(Code::AnswerInvalid, "an answer contains no files"));
    }
    let answers = match (open_interactions.is_empty(), replies.list.is_empty()) {
        (true, true) => return Ok(None),
        (true, false) => answers_to_closed_interactions(&interactions, &replies),
        (false, true) => vec![text_answer(&open_interactions, &message.parts)?],
        (false, false) => structured_answers(&open_interactions, &replies)?,
    };
    if answers.is_empty() {
        return Ok(None);
    }
    refuse_new_settings(app, message, record)?;
    let mut progress = None;
    for (interaction, value) in answers {
        let message_id = Some(message.message_id.clone());
        let caller_answer = CallerAnswer { value, digest: None, channel: "a2a", message_id };
        let reply = app.api.interactions.answer(caller, interaction, caller_answer).await?;
        // The progress is that of the execution with the question. For a team, that is the execution of a member.
        let is_same_execution = reply.interaction.request_key.execution == record.id;
        progress = reply.progress.filter(|_| is_same_execution).or(progress);
    }
    Ok(Some(SubmitReply::for_existing_execution(record.id, progress)))
}

/// Refuses other parameters and overrides than those of the task: an agent that is running already cannot get them.
fn refuse_new_settings(
    app: &AppState,
    message: &Message,
    record: &ExecutionRecord,
) -> Result<(), Failure> {
    let Overrides { working_dir, env } = message::read_overrides(message)?;
    let is_new_variable =
        |(name, value): (&String, &String)| record.overrides.env.get(name) != Some(value);
    let is_new = !app.api.interactions.has_params(record, &message::read_parameters(message)?)
        || env.iter().any(is_new_variable)
        || working_dir.is_some() && working_dir != record.overrides.working_dir;
    if is_new {
        let text = "an answer has no other parameters or overrides than its task, because the agent \
                    is running already";
        return Err(Failure::new(Code::AnswerInvalid, text));
    }
    Ok(())
}

fn is_file(part: &A2aPart) -> bool {
    matches!(part.content, PartContent::Raw(_) | PartContent::Url(_))
}

/// Returns the answers of a message to open interactions.
fn structured_answers(
    open_interactions: &[Interaction],
    replies: &Replies,
) -> Result<Vec<(InteractionId, AnswerValue)>, Failure> {
    let answers = resolve_replies(replies, open_interactions)?.into_iter().map(|reply| {
        let interaction =
            open_interactions.iter().find(|interaction| interaction.id == reply.interaction_id);
        let value = interaction.and_then(|interaction| answer_value(reply.answer, interaction));
        let (Some(interaction), Some(value)) = (interaction, value) else {
            return Err(unsuitable_answer(open_interactions));
        };
        check_answer(&interaction.question, &value)
            .map_err(|fault| Failure::new(Code::AnswerInvalid, fault.to_string()))?;
        Ok((interaction.id, value))
    });
    answers.collect()
}

/// Returns the answer in the words of a message. Every part counts, so another part than text is no answer.
fn text_answer(
    open_interactions: &[Interaction],
    parts: &[A2aPart],
) -> Result<(InteractionId, AnswerValue), Failure> {
    let texts = parts.iter().map(|part| match &part.content {
        PartContent::Text(text) => Some(text.as_str()),
        PartContent::Data(_) | PartContent::Raw(_) | PartContent::Url(_) => None,
    });
    let texts: Option<Vec<_>> = texts.collect();
    let texts = texts.ok_or_else(|| unsuitable_answer(open_interactions))?;
    // A word such as "yes" never covers several questions, because the caller may not have seen the latest one.
    let [interaction] = open_interactions else { return Err(unsuitable_answer(open_interactions)) };
    let value = parse_answer(&interaction.question, &texts.join("\n"));
    value.map(|value| (interaction.id, value)).ok_or_else(|| unsuitable_answer(open_interactions))
}

/// Returns the answers to interactions that are closed already, which changes none of them.
fn answers_to_closed_interactions(
    interactions: &[Interaction],
    replies: &Replies,
) -> Vec<(InteractionId, AnswerValue)> {
    let answers = replies.list.iter().filter_map(|reply| {
        let is_named = |it: &&Interaction| !it.is_open() && Some(it.id.to_string()) == reply.id;
        let interaction = interactions.iter().find(is_named)?;
        Some((interaction.id, answer_value(reply.answer.clone(), interaction)?))
    });
    answers.collect()
}

/// Returns true if a message with this id answered the interaction.
fn is_answered_by(interaction: &Interaction, id: &str) -> bool {
    let source = interaction.end.as_ref().map(|closed| &closed.answer.by);
    matches!(source, Some(AnswerSource::Principal { message: Some(message), .. }) if message == id)
}

fn unsuitable_answer(open_interactions: &[Interaction]) -> Failure {
    let message = match open_interactions {
        [interaction] => {
            format!("the message does not answer the {}", interaction.question.kind.as_str())
        }
        _ => "several questions are open, so the message must name the one that it answers"
            .to_owned(),
    };
    Failure::new(Code::AnswerInvalid, message)
}
