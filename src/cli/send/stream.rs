//! What an agent does, as it is told while it happens.

use std::collections::VecDeque;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

use crate::cli::client::{Client, result_of};
use crate::cli::fault::CliError;

/// The longest line of a stream, in bytes: an artifact of the largest output, escaped.
const LONGEST: usize = 1 << 28;

/// The events of one task, from the beginning of a call on.
pub(super) struct Stream {
    body: Incoming,
    rest: Vec<u8>,
    ready: VecDeque<Value>,
}

impl Stream {
    /// Calls an agent, whose answer is a stream.
    ///
    /// # Errors
    /// When it is refused.
    pub(super) async fn open(
        client: &Client,
        agent: &str,
        method: &str,
        params: Value,
    ) -> Result<Self, CliError> {
        let body = client.open(agent, method, params).await?;
        Ok(Self { body, rest: Vec::new(), ready: VecDeque::new() })
    }

    /// The next event; `None` when the stream has ended.
    ///
    /// # Errors
    /// When the connection breaks, or a failure comes instead of an event.
    pub(super) async fn next(&mut self) -> Result<Option<Value>, CliError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return result_of(event).map(Some);
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|source| CliError::Broken { source })?;
            if let Some(data) = frame.data_ref() {
                self.take(data)?;
            }
        }
    }

    fn take(&mut self, data: &[u8]) -> Result<(), CliError> {
        self.rest.extend_from_slice(data);
        let lines = lines(&mut self.rest);
        for line in lines.iter().filter_map(|line| line.strip_prefix(b"data:")) {
            let strange = |_| CliError::Strange { about: "an event is not JSON" };
            self.ready.push_back(serde_json::from_slice(line).map_err(strange)?);
        }
        if self.rest.len() > LONGEST {
            return Err(CliError::Strange { about: "an event does not end" });
        }
        Ok(())
    }
}

/// Takes whole lines out, and leaves what has no end yet.
fn lines(rest: &mut Vec<u8>) -> Vec<Vec<u8>> {
    let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
    let left = rest.split_off(end + 1);
    let whole = std::mem::replace(rest, left);
    whole.split(|byte| *byte == b'\n').map(|line| line.trim_ascii_end().to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn lines_are_whole_however_they_come() {
        let mut rest = Vec::new();
        let mut seen = Vec::new();
        for piece in ["data: 1", "2\r\n\nda", "ta: 3\n", "id: 4"] {
            rest.extend_from_slice(piece.as_bytes());
            seen.extend(lines(&mut rest).into_iter().filter(|line| !line.is_empty()));
        }
        assert_eq!(seen, [b"data: 12".to_vec(), b"data: 3".to_vec()]);
        assert_eq!(rest, b"id: 4");
    }
}
