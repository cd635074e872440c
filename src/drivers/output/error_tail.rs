//! End of the error output of a backend program, for the sentence about its failure.

use algonius_actors::decide::output::truncation::TailBuffer;
use algonius_actors::ports::tools::TextRedactor;
use algonius_warden::OutputPipe;
use tokio::io::AsyncReadExt as _;

/// Bytes that are kept of the end of the error output.
const MAX_TAIL_BYTES: usize = 16 << 10;

/// Bytes of the error output in the sentence about a failure.
const MAX_QUOTED_BYTES: usize = 2 << 10;

/// Bytes that are read at once.
const READ_BUFFER_BYTES: usize = 16 << 10;

/// End of an error output. Raw: it may contain secrets.
pub(in crate::drivers) struct ErrorTail {
    lost_bytes: u64,
    bytes: Vec<u8>,
}

impl ErrorTail {
    /// Reads the error output to its end, and keeps the last bytes.
    pub(in crate::drivers) async fn read(mut pipe: OutputPipe) -> Self {
        let (mut tail, mut buffer) = (TailBuffer::new(MAX_TAIL_BYTES), vec![0; READ_BUFFER_BYTES]);
        while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
            tail.push(buffer.get(..read).unwrap_or_default());
        }
        let (lost_bytes, bytes) = tail.into_parts();
        Self { lost_bytes, bytes }
    }

    /// Returns true if the output was longer.
    pub(in crate::drivers) const fn is_cut(&self) -> bool {
        self.lost_bytes > 0
    }

    /// Returns the text.
    pub(in crate::drivers) fn into_text(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Returns the redacted end of a report; `None` if nothing of it can be quoted. `is_cut` is true if the report itself
/// is the end of a longer text.
pub(in crate::drivers) fn redacted_tail(
    (text, is_cut): (&str, bool),
    redactor: &TextRedactor,
) -> Option<String> {
    let redacted = redactor.redact(text);
    // A cut report with secrets may start with a part of one, which redaction does not recognize.
    if is_cut && redacted != text {
        return None;
    }
    let redacted_text = redacted.trim();
    let start =
        redacted_text.ceil_char_boundary(redacted_text.len().saturating_sub(MAX_QUOTED_BYTES));
    let end = redacted_text.get(start..).unwrap_or_default();
    (!end.is_empty()).then(|| end.to_owned())
}
