//! Targets of answers: the open interaction that each answer of a message is for.

use std::collections::BTreeSet;

use algonius_actors::model::interaction::{Interaction, InteractionId};

use super::pause::kagent_questions;
use super::reply::{InteractionReply, Replies, ReplyContent, ReplyFault};

/// Answer with its interaction.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedReply {
    /// Interaction that is answered.
    pub interaction_id: InteractionId,
    /// Answer of the caller.
    pub answer: ReplyContent,
}

/// Assigns the answers of a message to the open interactions of its task.
///
/// An id is that of the interaction, or else that of the tool call. An answer without an id is for the only open
/// interaction of its kind; a rejection without an id is for all open permission requests. An approval without an id
/// never covers several requests, because the caller may not have seen the latest one.
///
/// # Errors
/// Returns the first fault: an unknown or ambiguous target, two answers for one interaction, a changed digest, or an
/// incomplete answer. None of the answers counts then.
pub fn resolve_replies(
    replies: &Replies,
    interactions: &[Interaction],
) -> Result<Vec<ResolvedReply>, ReplyFault> {
    let open_interactions: Vec<_> =
        interactions.iter().filter(|interaction| interaction.is_open()).collect();
    let mut resolved_replies = Vec::new();
    let mut answered_ids = BTreeSet::new();
    for reply in &replies.list {
        for target in find_targets(reply, &open_interactions)? {
            check_reply(reply, target)?;
            if !answered_ids.insert(target.id) {
                return Err(ReplyFault::Duplicate);
            }
            let answer = reply.answer.clone();
            resolved_replies.push(ResolvedReply { interaction_id: target.id, answer });
        }
    }
    let mut permission_requests =
        open_interactions.iter().filter(|it| it.question.kind.is_permission());
    if replies.requires_all_decisions
        && !permission_requests.all(|it| answered_ids.contains(&it.id))
    {
        return Err(ReplyFault::Incomplete);
    }
    Ok(resolved_replies)
}

fn find_targets<'i>(
    reply: &InteractionReply,
    open_interactions: &[&'i Interaction],
) -> Result<Vec<&'i Interaction>, ReplyFault> {
    let (permission_requests, questions): (Vec<_>, Vec<_>) = open_interactions
        .iter()
        .copied()
        .partition(|interaction| interaction.question.kind.is_permission());
    let Some(id) = &reply.id else {
        return match &reply.answer {
            ReplyContent::Decision { approved: false, .. } if !permission_requests.is_empty() => {
                Ok(permission_requests)
            }
            ReplyContent::Decision { .. } if !permission_requests.is_empty() => {
                require_single_target(permission_requests)
            }
            ReplyContent::Decision { .. } | ReplyContent::Texts(_) => {
                require_single_target(questions)
            }
            ReplyContent::Value(_) => require_single_target(open_interactions.to_vec()),
        };
    };
    // The agent chooses the ids of its calls, so the id of an interaction comes first.
    let named_interaction =
        open_interactions.iter().copied().find(|interaction| interaction.id.to_string() == *id);
    if let Some(interaction) = named_interaction {
        return Ok(vec![interaction]);
    }
    let is_for_call =
        |it: &Interaction| it.question.subject.as_ref().is_some_and(|call| call.id == *id);
    require_single_target(
        open_interactions.iter().copied().filter(|it| !id.is_empty() && is_for_call(it)).collect(),
    )
}

fn require_single_target(candidates: Vec<&Interaction>) -> Result<Vec<&Interaction>, ReplyFault> {
    match candidates.len() {
        0 => Err(ReplyFault::UnknownTarget),
        1 => Ok(candidates),
        _ => Err(ReplyFault::Ambiguous),
    }
}

fn check_reply(reply: &InteractionReply, target: &Interaction) -> Result<(), ReplyFault> {
    if reply.digest.as_ref().is_some_and(|digest| *digest != target.tool_call_digest) {
        return Err(ReplyFault::ChangedDigest);
    }
    match &reply.answer {
        ReplyContent::Texts(_) if target.question.kind.is_permission() => {
            Err(ReplyFault::Malformed { field: "answers", expected: "a decision for a tool call" })
        }
        ReplyContent::Texts(texts) if texts.len() != kagent_questions(target).len() => {
            Err(ReplyFault::Incomplete)
        }
        ReplyContent::Texts(_) | ReplyContent::Decision { .. } | ReplyContent::Value(_) => Ok(()),
    }
}
