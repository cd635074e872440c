//! Words that are the answer unless others follow them.

use crate::drive::events::line::{Event, Word, Words};

/// What was said last.
#[derive(Default)]
pub(super) struct Draft(String);

impl Draft {
    /// Takes a whole text in its place. The one before was said on the way.
    pub(super) fn offer(&mut self, text: &str) -> Option<Event> {
        let before = self.put_off();
        text.clone_into(&mut self.0);
        before
    }

    /// Takes more of the same text.
    pub(super) fn extend(&mut self, text: &str) {
        self.0.push_str(text);
    }

    /// What was said last was said on the way.
    pub(super) fn put_off(&mut self) -> Option<Event> {
        let text = std::mem::take(&mut self.0);
        if text.trim().is_empty() {
            return None;
        }
        let words = Some(Words::One(Word::Text { text }));
        Some(Event::Status { state: String::new(), words })
    }

    /// What was said last is the answer.
    pub(super) fn release(&mut self) -> Option<Event> {
        let text = std::mem::take(&mut self.0);
        (!text.is_empty()).then_some(Event::Text { text })
    }

    /// Forgets it: another text is the answer.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
