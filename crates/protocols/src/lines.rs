//! Splitting of output into lines of limited length.

/// Line of output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReceivedLine {
    /// Line without its line feed.
    Complete(Vec<u8>),
    /// Line that exceeds the limit. Its bytes are dropped.
    TooLong {
        /// Limit in bytes.
        max_bytes: usize,
    },
}

/// Buffer for the beginning of a line.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    partial_line: Vec<u8>,
    max_line_bytes: usize,
    is_skipping_line: bool,
}

impl LineBuffer {
    pub(crate) fn new(max_line_bytes: usize) -> Self {
        Self { partial_line: Vec::new(), max_line_bytes, is_skipping_line: false }
    }

    /// Returns the lines that the bytes complete. The result does not depend on how the output is cut into pieces.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<ReceivedLine> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (content, is_complete) =
                piece.strip_suffix(b"\n").map_or((piece, false), |content| (content, true));
            if !self.is_skipping_line
                && self.partial_line.len() + content.len() > self.max_line_bytes
            {
                lines.push(ReceivedLine::TooLong { max_bytes: self.max_line_bytes });
                self.is_skipping_line = true;
                self.partial_line = Vec::new();
            }
            if !self.is_skipping_line {
                self.partial_line.extend_from_slice(content);
            }
            if is_complete && !std::mem::take(&mut self.is_skipping_line) {
                lines.push(ReceivedLine::Complete(std::mem::take(&mut self.partial_line)));
            }
        }
        lines
    }

    /// Returns the last line of an output that does not end with a line feed.
    pub(crate) fn take_last_line(&mut self) -> Option<Vec<u8>> {
        self.is_skipping_line = false;
        Some(std::mem::take(&mut self.partial_line)).filter(|last_line| !last_line.is_empty())
    }
}
