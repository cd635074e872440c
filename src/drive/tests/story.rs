//! What a whole attempt has told and written.

use algonius_actors::model::code::Code;
use algonius_actors::model::event::{Channel, Fact};
use algonius_actors::model::failure::Failure;

use super::world::Entry;

/// A whole attempt.
pub(super) struct Story {
    pub(super) verdict: Result<(), Failure>,
    pub(super) seen: Vec<Entry>,
}

impl Story {
    pub(super) fn code(&self) -> Option<Code> {
        self.verdict.as_ref().err().map(|failure| failure.code)
    }

    pub(super) fn facts(&self) -> Vec<&Fact> {
        let facts = self.seen.iter().filter_map(|entry| match entry {
            Entry::Fact(fact) => Some(fact),
            Entry::Chunk(_) | Entry::Report(_) => None,
        });
        facts.collect()
    }

    pub(super) fn text(&self, channel: Channel) -> String {
        text(&self.seen, channel)
    }

    /// The text to which the one artifact refers.
    pub(super) fn answer(&self) -> Option<String> {
        let mut spans = self.facts().into_iter().filter_map(|fact| match fact {
            Fact::Artifact { pieces, .. } => pieces.first().map(|piece| piece.text),
            _ => None,
        });
        let span = spans.next_back()?;
        let range = usize::try_from(span.from).unwrap()..usize::try_from(span.to).unwrap();
        self.text(span.channel).get(range).map(ToOwned::to_owned)
    }
}

pub(super) fn text(seen: &[Entry], channel: Channel) -> String {
    let texts = seen.iter().filter_map(|entry| match entry {
        Entry::Chunk(chunk) if chunk.channel == channel => Some(chunk.text.as_str()),
        Entry::Chunk(_) | Entry::Fact(_) | Entry::Report(_) => None,
    });
    texts.collect()
}
