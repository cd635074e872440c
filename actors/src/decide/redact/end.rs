//! Masks the end of a text whose beginning is gone: a secret that was cut must not be shown.

use std::sync::Arc;

use super::pem::after_foot;
use super::span::STARS;
use super::{Redactor, Stream};

/// So many windows before a text are enough to know what it begins in.
const WINDOWS: usize = 8;

impl Redactor {
    /// How much of a text must be known before a place at which it is taken up, in bytes.
    #[must_use]
    pub fn context(&self) -> usize {
        WINDOWS * self.window()
    }

    /// Masks what follows the first `context` bytes, of which the beginning may be the rest of a
    /// secret, and tells how many places were masked. A little of them may be in the text.
    #[must_use]
    pub fn redact_end(self: &Arc<Self>, bytes: &[u8], context: usize) -> (String, u64) {
        let from = border(bytes, context);
        // A run without a place to begin is masked, as it is where all of the text is known.
        let mut out = if from > context { STARS.to_owned() } else { String::new() };
        let mut stream = Stream::new(Arc::clone(self));
        if let Some(before) = bytes.get(from..context) {
            stream.push(before); // What this gives stands before the text.
            if stream.held() > self.context() / 2 {
                return self.next_line(bytes, context);
            }
        }
        let masked = stream.count();
        out.push_str(&stream.push(bytes.get(from.max(context)..).unwrap_or_default()));
        out.push_str(&stream.finish());
        (out, stream.count() - masked)
    }

    /// The text from its next line on, where nothing is known of the present one.
    fn next_line(self: &Arc<Self>, bytes: &[u8], context: usize) -> (String, u64) {
        let rest = bytes.get(context..).unwrap_or_default();
        let line = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let mut stream = Stream::new(Arc::clone(self));
        let text = stream.push(rest.get(line..).unwrap_or_default()) + &stream.finish();
        (format!("{STARS}{text}"), stream.count() + 1)
    }
}

/// Where to take up: behind the first line end or, in a long line, behind white space; but not
/// within the body of a key. What is cut there is long over where the text begins.
fn border(bytes: &[u8], context: usize) -> usize {
    let behind = |found: Option<usize>| found.map(|at| at + 1);
    let before = bytes.get(..context / 2).unwrap_or(bytes);
    let line = behind(before.iter().position(|byte| *byte == b'\n'));
    let space = || behind(bytes.iter().position(u8::is_ascii_whitespace));
    let from = line.or_else(space).unwrap_or(bytes.len());
    from.max(after_foot(bytes).unwrap_or(0))
}
