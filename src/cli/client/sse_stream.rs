//! Reader of server-sent events.

use std::collections::VecDeque;

use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::cli::error::CliError;

/// Maximum length of a line, in bytes: an artifact of maximum size, escaped.
const MAX_LINE_BYTES: usize = 1 << 28;

/// Event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SseEvent {
    /// Name of the event; empty if it has none.
    pub(crate) name: String,
    /// Document of the event.
    pub(crate) data: String,
}

/// Stream that is being read.
pub(crate) struct SseStream {
    body: Incoming,
    parser: SseParser,
}

impl SseStream {
    /// Creates the reader of a stream.
    pub(crate) fn new(body: Incoming) -> Self {
        Self { body, parser: SseParser::default() }
    }

    /// Returns the next event; `None` after the end of the stream.
    ///
    /// # Errors
    /// Fails if the connection is lost.
    pub(crate) async fn next(&mut self) -> Result<Option<SseEvent>, CliError> {
        loop {
            if let Some(event) = self.parser.ready_events.pop_front() {
                return Ok(Some(event));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|source| CliError::ConnectionLost { source })?;
            if let Some(data) = frame.data_ref() {
                self.parser.push(data)?;
            }
        }
    }

    /// Returns the cursor of the last event that had one: a broken stream is resumed there.
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.parser.cursor.as_deref()
    }
}

/// Parser that combines lines into events.
#[derive(Default)]
struct SseParser {
    /// Bytes of a line without an end yet.
    partial_line: Vec<u8>,
    current_event: SseEvent,
    cursor: Option<String>,
    ready_events: VecDeque<SseEvent>,
}

impl SseParser {
    fn push(&mut self, data: &[u8]) -> Result<(), CliError> {
        let mut unread = data;
        while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
            let (line, after_line) = unread.split_at(end);
            self.partial_line.extend_from_slice(line);
            self.finish_line()?;
            unread = after_line.get(1..).unwrap_or_default();
        }
        self.partial_line.extend_from_slice(unread);
        if self.partial_line.len() > MAX_LINE_BYTES {
            return Err(CliError::UnexpectedResponse { reason: "an event does not end" });
        }
        Ok(())
    }

    /// Processes a complete line.
    fn finish_line(&mut self) -> Result<(), CliError> {
        let line = String::from_utf8(std::mem::take(&mut self.partial_line));
        let line =
            line.map_err(|_bytes| CliError::UnexpectedResponse { reason: "an event is not text" })?;
        let line = line.strip_suffix('\r').unwrap_or(&line);
        if line.is_empty() {
            let event = std::mem::take(&mut self.current_event);
            self.ready_events.extend((!event.data.is_empty()).then_some(event));
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.current_event.data.push_str(value),
            "event" => value.clone_into(&mut self.current_event.name),
            "id" => self.cursor = Some(value.to_owned()),
            _ => {} // A comment, or a field that nobody knows here.
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_sent_events_do_not_depend_on_the_chunks() {
        let text =
            "id: 12:1.1:stdout=3\ndata: {\"a\":1}\n\n: quiet\n\nevent: text\r\ndata:2\r\n\r\n";
        for size in [1, 3, 1000] {
            let mut parser = SseParser::default();
            for piece in text.as_bytes().chunks(size) {
                parser.push(piece).unwrap();
            }
            let event =
                |name: &str, data: &str| SseEvent { name: name.to_owned(), data: data.to_owned() };
            let events: Vec<_> = parser.ready_events.into_iter().collect();
            assert_eq!(events, [event("", "{\"a\":1}"), event("text", "2")]);
            assert_eq!(parser.cursor.as_deref(), Some("12:1.1:stdout=3"));
        }
    }
}
