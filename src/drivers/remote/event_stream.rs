//! Server-sent events of a remote agent.

use std::collections::VecDeque;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

use super::remote_fault::RemoteFault;
use crate::platform::http_client::innermost_cause_text;

/// Greatest length of one event in bytes: an artifact of the greatest size, escaped.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// Stream of events. A future of [`next`](Self::next) may be dropped at any time without a loss.
pub(super) struct RemoteEventStream {
    body: Incoming,
    parser: EventParser,
    /// Cause for which the stream broke.
    break_cause: Option<String>,
}

impl RemoteEventStream {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, parser: EventParser::default(), break_cause: None }
    }

    /// Returns the cause for which the stream broke; `None` if it ended by itself.
    pub(super) fn break_cause(&self) -> Option<&str> {
        self.break_cause.as_deref()
    }

    /// Returns the document of the next event; `None` after the end of the stream, however it ended.
    ///
    /// # Errors
    /// Fails if an event is not a JSON document.
    pub(super) async fn next(&mut self) -> Result<Option<Value>, RemoteFault> {
        loop {
            if let Some(event) = self.parser.ready_events.pop_front() {
                let document = serde_json::from_slice(&event);
                return document.map(Some).map_err(|_syntax| {
                    let reason =
                        "an event in the stream of the remote agent is not JSON".to_owned();
                    RemoteFault::InvalidResponse { reason }
                });
            }
            // The parser holds everything between two frames, so a dropped future loses no bytes.
            match self.body.frame().await {
                Some(Ok(frame)) => self.parser.push(frame.data_ref().map_or(&[], |data| data))?,
                Some(Err(error)) => {
                    self.break_cause = Some(innermost_cause_text(&error));
                    return Ok(None);
                }
                None => return Ok(None),
            }
        }
    }
}

/// Parser that combines lines into events.
#[derive(Default)]
struct EventParser {
    /// Bytes of a line without an end yet.
    line: Vec<u8>,
    /// Data of an event without an end yet.
    data: Vec<u8>,
    ready_events: VecDeque<Vec<u8>>,
}

impl EventParser {
    fn push(&mut self, bytes: &[u8]) -> Result<(), RemoteFault> {
        let mut remaining = bytes;
        while let Some(end) = remaining.iter().position(|byte| *byte == b'\n') {
            let (line, line_end) = remaining.split_at(end);
            self.line.extend_from_slice(line);
            self.finish_line();
            remaining = line_end.get(1..).unwrap_or_default();
        }
        self.line.extend_from_slice(remaining);
        if self.line.len() + self.data.len() > MAX_EVENT_BYTES {
            Err(RemoteFault::ResponseTooLong { limit: MAX_EVENT_BYTES })
        } else {
            Ok(())
        }
    }

    fn finish_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            self.ready_events.extend((!data.is_empty()).then_some(data));
        } else if let Some(data) = line.strip_prefix(b"data:") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EventParser;

    #[test]
    fn server_sent_events_are_complete_for_any_chunks() {
        let text = b": hello\nid: 1\ndata: {\"a\":\ndata: 1}\r\n\r\nevent: x\ndata:[]\n\n";
        for size in 1..text.len() {
            let mut parser = EventParser::default();
            for piece in text.chunks(size) {
                assert!(parser.push(piece).is_ok());
            }
            assert_eq!(parser.ready_events, [b"{\"a\":\n1}".to_vec(), b"[]".to_vec()], "{size}");
        }
    }
}
