//! Reads the bytes of a program's output, and returns their events, independent of chunk boundaries.

#[cfg(test)]
mod tests;

use algonius_actors::model::program::EventDialect;
use algonius_protocols::has_type;

use crate::drivers::adapters::event_line::{EventLine, ProgramEvent};
use crate::drivers::adapters::{EventAdapter, new_adapter};

/// Reader of one output.
pub(super) struct LineReader {
    line: EventLine,
    /// Number of lines that have ended.
    line_count: u64,
    /// Adapter of native events; `None` for this project's events.
    adapter: Option<Box<dyn EventAdapter>>,
}

impl LineReader {
    /// Returns a reader of this project's events, or of a native dialect, whose lines have this greatest length.
    pub(super) fn new(dialect: Option<EventDialect>, max_line_bytes: usize) -> Self {
        Self {
            line: EventLine::new(max_line_bytes),
            line_count: 0,
            adapter: dialect.map(new_adapter),
        }
    }

    /// Returns true if the output is native and ends with a completion event.
    pub(super) const fn is_native(&self) -> bool {
        self.adapter.is_some()
    }

    /// Takes the next bytes, and returns their events, each with the number of its line. Bytes for the raw output go to
    /// `raw_output`.
    pub(super) fn decode(
        &mut self,
        bytes: &[u8],
        raw_output: &mut Vec<u8>,
    ) -> Vec<(u64, ProgramEvent)> {
        let mut events = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let complete_line = part.strip_suffix(b"\n");
            self.line.extend(complete_line.unwrap_or(part), raw_output);
            if complete_line.is_some() {
                events.extend(self.finish_line(b"\n", raw_output));
            }
        }
        events
    }

    /// Handles the end of the output, and returns the events of the last line, with or without a line end.
    pub(super) fn decode_end(&mut self, raw_output: &mut Vec<u8>) -> Vec<(u64, ProgramEvent)> {
        let mut events = self.finish_line(b"", raw_output);
        // An error after which the program has written nothing is known as a failure only now.
        let last_events = self.adapter.as_mut().map(|adapter| adapter.finish_output());
        events.extend(
            last_events.unwrap_or_default().into_iter().map(|event| (self.line_count, event)),
        );
        events
    }

    fn finish_line(
        &mut self,
        line_end: &[u8],
        raw_output: &mut Vec<u8>,
    ) -> Vec<(u64, ProgramEvent)> {
        let line = self.line.take();
        self.line_count += 1;
        let (events, is_omitted) = match &mut self.adapter {
            None => (line.parse_events(), false),
            Some(adapter) => read_native_line(&line, &mut **adapter),
        };
        // A line with the whole message follows its pieces. Stored pieces would make the raw output of an answer up to
        // a hundred times as long.
        if !is_omitted {
            raw_output.append(&mut line.into_bytes());
            raw_output.extend_from_slice(line_end);
        }
        events.into_iter().map(|event| (self.line_count, event)).collect()
    }
}

/// Returns the events of a native line, and true if the line has only pieces that a later line repeats.
fn read_native_line(line: &EventLine, adapter: &mut dyn EventAdapter) -> (Vec<ProgramEvent>, bool) {
    let types = adapter.result_line_types();
    let items = line.parse_objects(|object| has_type(object, types), types);
    let (mut events, mut omitted_count) = (Vec::new(), 0);
    let item_count = items.len();
    for item in items {
        match item {
            Ok(object) => {
                omitted_count += usize::from(adapter.is_omitted_from_raw_output(&object));
                events.extend(adapter.convert_line(&object));
            }
            Err(error) => events.push(ProgramEvent::Malformed(error)),
        }
    }
    (events, item_count > 0 && omitted_count == item_count)
}
