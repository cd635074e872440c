//! Takes the bytes of a program's output, and gives the events in them, wherever they are cut.

use algonius_actors::model::program::Dialect;

use super::line::{Event, LONGEST, LONGEST_NATIVE, Line};
use super::native::{Translate, translator};

/// An output so far.
pub(super) struct Reader {
    line: Line,
    /// Where the events are not of ours.
    translator: Option<Box<dyn Translate>>,
}

impl Reader {
    /// Reads events of ours, or of another kind.
    pub(super) fn new(dialect: Option<Dialect>) -> Self {
        let longest = if dialect.is_some() { LONGEST_NATIVE } else { LONGEST };
        Self { line: Line::new(longest), translator: dialect.map(translator) }
    }

    /// Whether the output ends with a word that it is done.
    pub(super) const fn is_native(&self) -> bool {
        self.translator.is_some()
    }

    /// Takes the next bytes; gives what they say.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend(part.strip_suffix(b"\n").unwrap_or(part));
            if part.ends_with(b"\n") {
                events.extend(self.finish());
            }
        }
        events
    }

    /// Takes it that nothing more comes; gives what the last line says, with or without its end.
    pub(super) fn end(&mut self) -> Vec<Event> {
        let mut events = self.finish();
        events.extend(
            self.translator.as_mut().map(|translator| translator.end()).unwrap_or_default(),
        );
        events
    }

    fn finish(&mut self) -> Vec<Event> {
        let line = self.line.take();
        if line.is_blank() {
            return Vec::new();
        }
        let events = match &mut self.translator {
            None => line.event().map(|event| vec![event]),
            Some(translator) => line.object().map(|line| translator.read(&line)),
        };
        events.unwrap_or_else(|| vec![Event::Unknown])
    }
}
