//! Artifacts that grow: their texts are masked as one, over all the events that bring them.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use super::keep::Masked;
use super::redact::{Redactor, Stream};
use crate::model::content::{Content, Part};

/// So many texts are open at once, for each holds memory. When there are more, the one that has
/// rested longest is shown to its end, so what is appended to it later is masked as a text of its
/// own: a secret that is cut just there is not seen.
const MOST: usize = 64;

/// Something made, or more of it: raw, or as it can be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made<P> {
    /// Its id within the execution.
    pub id: String,
    /// Its name for people.
    pub name: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// What it is made of.
    pub parts: Vec<P>,
    /// Whether the parts follow those that came before under this id.
    pub append: bool,
    /// Whether nothing more of it will come.
    pub last: bool,
}

/// The artifacts of an attempt whose text may go on, and what is held back of each.
pub struct Growth {
    redactor: Arc<Redactor>,
    /// The one that grew last stands last.
    open: VecDeque<(String, Stream)>,
}

impl Growth {
    /// Nothing is made as yet.
    #[must_use]
    pub const fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, open: VecDeque::new() }
    }

    /// Takes something made, and gives what can be shown by now, in order: of this artifact, and of
    /// others that are held no longer. What adds nothing to see is not shown, but an artifact's
    /// beginning and end always are.
    pub fn take(&mut self, made: Made<Part>) -> Vec<Made<Masked>> {
        let Made { id, name, description, parts, append, last } = made;
        let mut open = self.release(&id);
        let mut shown = Vec::new();
        if !append {
            shown.extend(open.take().and_then(|text| remainder(&id, text)));
        }
        let has_begun = open.is_some();
        let parts = if append { joined(parts) } else { parts.into() };
        let (mut parts, open) = self.grow(open, parts, last);
        let is_silent = parts.is_empty() && has_begun && !last;
        if parts.is_empty() {
            parts.push(Masked::text(String::new(), 0));
        }
        if !is_silent {
            shown.push(Made { id: id.clone(), name, description, parts, append, last });
        }
        shown.extend(open.and_then(|text| self.hold(id, text)));
        shown
    }

    /// Gives the rest of all that is open. Nothing more will come of it.
    pub fn end(&mut self) -> Vec<Made<Masked>> {
        self.open.drain(..).map(|(id, mut text)| rest(id, finished(&mut text), true)).collect()
    }

    fn release(&mut self, id: &str) -> Option<Stream> {
        let at = self.open.iter().position(|(open, _)| open == id)?;
        self.open.remove(at).map(|(_, text)| text)
    }

    fn hold(&mut self, id: String, text: Stream) -> Option<Made<Masked>> {
        self.open.push_back((id, text));
        if self.open.len() <= MOST {
            return None;
        }
        let (id, text) = self.open.pop_front()?;
        remainder(&id, text)
    }

    /// What can be shown of further parts, and the text that stays open behind them. Only a text
    /// at the end of them can go on.
    fn grow(
        &self,
        open: Option<Stream>,
        mut parts: VecDeque<Part>,
        last: bool,
    ) -> (Vec<Masked>, Option<Stream>) {
        let mut shown = Vec::new();
        if let Some(mut text) = open {
            let more = parts.pop_front_if(|part| is_plain(part));
            let goes_on = parts.is_empty() && !last;
            let before = text.count();
            let mut grown = pushed(&mut text, more);
            if !goes_on {
                grown.push_str(&text.finish());
            }
            shown.extend(visible((grown, text.count() - before)));
            if goes_on {
                return (shown, Some(text));
            }
        }
        let begun = if last { None } else { parts.pop_back_if(|part| is_plain(part)) };
        shown.extend(parts.iter().map(|part| Masked::part(part, &self.redactor)));
        let open = begun.map(|begun| {
            let mut text = Stream::new(Arc::clone(&self.redactor));
            let grown = pushed(&mut text, Some(begun));
            shown.extend(visible((grown, text.count())));
            text
        });
        (shown, open)
    }
}

/// Texts that follow each other in what is appended are read as one, so they are masked as one.
fn joined(parts: Vec<Part>) -> VecDeque<Part> {
    let mut joined: VecDeque<Part> = VecDeque::new();
    for part in parts {
        match (joined.back_mut(), &part) {
            (Some(Part { content: Content::Text(text), filename: None, .. }), more)
                if is_plain(more) =>
            {
                text.push_str(plain(more));
            }
            _ => joined.push_back(part),
        }
    }
    joined
}

fn is_plain(part: &Part) -> bool {
    matches!(part, Part { content: Content::Text(_), filename: None, .. })
}

fn plain(part: &Part) -> &str {
    if let Content::Text(text) = &part.content { text } else { "" }
}

fn pushed(text: &mut Stream, more: Option<Part>) -> String {
    more.map(|more| text.push(plain(&more).as_bytes())).unwrap_or_default()
}

/// A masked text, and in how many places.
type Counted = (String, u64);

fn finished(text: &mut Stream) -> Counted {
    let before = text.count();
    (text.finish(), text.count() - before)
}

fn visible((text, redacted): Counted) -> Option<Masked> {
    (!text.is_empty()).then(|| Masked::text(text, redacted))
}

/// What was held back of a text, where that is anything.
fn remainder(id: &str, mut text: Stream) -> Option<Made<Masked>> {
    let text = finished(&mut text);
    (!text.0.is_empty()).then(|| rest(id.to_owned(), text, false))
}

fn rest(id: String, (text, redacted): Counted, last: bool) -> Made<Masked> {
    let parts = vec![Masked::text(text, redacted)];
    Made { id, name: None, description: None, parts, append: true, last }
}
