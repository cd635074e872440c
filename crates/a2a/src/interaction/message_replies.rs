//! Structured answers of a message, in the first form that the message contains.

use std::collections::BTreeSet;

use super::decision::read_decisions;
use super::kagent::read_kagent_replies;
use super::reply::{Replies, ReplyFault};
use super::service_extension::read_service_replies;
use super::{HUMAN_IN_THE_LOOP_EXTENSION, INTERACTIONS_EXTENSION};
use crate::v1::{A2aPart, Metadata, PartContent};

/// Reads the structured answers of a message. The first form that the message contains counts: the metadata of this
/// service, the metadata of kagent, and data parts. The list of extensions of the message does not matter.
///
/// # Errors
/// Returns the first fault: a malformed value, or two answers with the same id.
pub fn read_replies(metadata: &Metadata, parts: &[A2aPart]) -> Result<Replies, ReplyFault> {
    let replies =
        read_metadata_replies(metadata)?.map_or_else(|| read_data_part_replies(parts), Ok)?;
    let mut ids = BTreeSet::new();
    if replies.list.iter().any(|reply| !ids.insert(&reply.id)) {
        return Err(ReplyFault::Duplicate);
    }
    Ok(replies)
}

fn read_metadata_replies(metadata: &Metadata) -> Result<Option<Replies>, ReplyFault> {
    let service_replies =
        metadata.get(INTERACTIONS_EXTENSION).map(read_service_replies).transpose()?.flatten();
    if service_replies.is_some() {
        return Ok(service_replies);
    }
    Ok(metadata.get(HUMAN_IN_THE_LOOP_EXTENSION).map(read_kagent_replies).transpose()?.flatten())
}

fn read_data_part_replies(parts: &[A2aPart]) -> Result<Replies, ReplyFault> {
    read_decisions(parts.iter().filter_map(|part| match &part.content {
        PartContent::Data(data) => Some((data, &part.metadata)),
        PartContent::Text(_) | PartContent::Raw(_) | PartContent::Url(_) => None,
    }))
}
