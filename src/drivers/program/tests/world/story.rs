//! Record of a whole attempt.

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::{EventKind, TextChannel};
use algonius_actors::model::failure::Failure;

use super::Entry;

/// Record of a whole attempt.
pub(in crate::drivers::program::tests) struct Story {
    pub(in crate::drivers::program::tests) verdict: Result<(), Failure>,
    pub(in crate::drivers::program::tests) seen: Vec<Entry>,
}

impl Story {
    pub(in crate::drivers::program::tests) fn code(&self) -> Option<Code> {
        self.verdict.as_ref().err().map(|failure| failure.code)
    }

    pub(in crate::drivers::program::tests) fn facts(&self) -> Vec<&EventKind> {
        let facts = self.seen.iter().filter_map(|entry| match entry {
            Entry::Fact(fact) => Some(fact),
            Entry::Chunk(_) | Entry::Report(_) => None,
        });
        facts.collect()
    }

    pub(in crate::drivers::program::tests) fn text(&self, channel: TextChannel) -> String {
        text(&self.seen, channel)
    }

    /// Returns the text of the only artifact.
    pub(in crate::drivers::program::tests) fn answer(&self) -> Option<String> {
        let mut spans = self.facts().into_iter().filter_map(|fact| match fact {
            EventKind::Artifact { pieces, .. } => pieces.first().map(|piece| piece.text),
            _ => None,
        });
        let span = spans.next_back()?;
        let range = usize::try_from(span.from).unwrap()..usize::try_from(span.to).unwrap();
        self.text(span.channel).get(range).map(ToOwned::to_owned)
    }
}

pub(in crate::drivers::program::tests) fn text(seen: &[Entry], channel: TextChannel) -> String {
    let texts = seen.iter().filter_map(|entry| match entry {
        Entry::Chunk(chunk) if chunk.channel == channel => Some(chunk.text.as_str()),
        Entry::Chunk(_) | Entry::Fact(_) | Entry::Report(_) => None,
    });
    texts.collect()
}
