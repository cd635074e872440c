//! Private key blocks in PEM: the header stays, and the body is redacted until the footer, wherever that is.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::spans::STARS;
use crate::text::boundary::find_bytes;
use crate::text::pattern::compile_constant;

/// Pattern of the header of a block.
pub(crate) const HEADER_PATTERN: &str = r"-{4,5} ?BEGIN(?:[ +]|%20)(?:[A-Z0-9]+(?:[ +]|%20)){0,4}PRIVATE(?:[ +]|%20)KEY(?:[ +]BLOCK)? ?-{4,5}";
/// Pattern of the footer of a block.
pub(crate) const FOOTER_PATTERN: &str = r"-{4,5} ?END(?:[ +]|%20)(?:[A-Z0-9]+(?:[ +]|%20)){0,4}PRIVATE(?:[ +]|%20)KEY(?:[ +]BLOCK)? ?-{4,5}";

static HEADER_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(HEADER_PATTERN));
static FOOTER_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(FOOTER_PATTERN));

/// Placeholder for the part of a body that a stream has dropped. No text contains this character.
pub(crate) const DROPPED_BODY_PLACEHOLDER: &str = "\u{fdd0}";

/// Shortest base64 run of a body; a shorter run is a word.
const MIN_BASE64_RUN: usize = 16;

/// Number of bytes after a header that decide whether they are a body.
const BODY_PROBE_BYTES: usize = 1024;

/// Longest footer in bytes.
const MAX_FOOTER_BYTES: usize = 128;

/// Result of the search for the first block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PemBlock {
    /// No header is present, or headers are only mentioned.
    NotFound,
    /// Closed block: the start of its header, and the range of its body.
    Closed(usize, Range<usize>),
    /// Open block: the start of its header and the start of its body; the footer is not in the text.
    Open(usize, usize),
}

/// Finds the first block whose header lies within `header_search_range`; its footer may lie beyond.
pub(crate) fn find_pem_block(
    text: &str,
    header_search_range: Range<usize>,
    is_complete: bool,
) -> PemBlock {
    let (Some(header_regex), Some(footer_regex)) = (HEADER_REGEX.as_ref(), FOOTER_REGEX.as_ref())
    else {
        return PemBlock::NotFound;
    };
    let bytes = text.as_bytes();
    let headers = header_regex.find_iter(
        bytes
            .get(..header_search_range.end)
            .unwrap_or_default()
            .get(header_search_range.start..)
            .unwrap_or_default(),
    );
    for header in headers {
        let (start, body_start) =
            (header_search_range.start + header.start(), header_search_range.start + header.end());
        let rest = bytes.get(body_start..).unwrap_or_default();
        match body_follows_header(rest, is_complete) {
            Some(false) => {}
            None => return PemBlock::Open(start, body_start),
            Some(true) => {
                let footer = footer_regex.find(rest);
                return footer.map_or(PemBlock::Open(start, body_start), |footer| {
                    PemBlock::Closed(start, body_start..body_start + footer.start())
                });
            }
        }
    }
    PemBlock::NotFound
}

/// Returns true if a body follows a header, and false if the header is only mentioned; `None` if that is not known yet.
///
/// The first bytes after the header decide: a mention may precede a line of any length.
fn body_follows_header(rest: &[u8], is_complete: bool) -> Option<bool> {
    let blank_bytes =
        rest.iter().take(BODY_PROBE_BYTES).take_while(|byte| byte.is_ascii_whitespace()).count();
    let is_same_line = !rest.get(..blank_bytes).unwrap_or_default().contains(&b'\n');
    let rest = rest.get(blank_bytes..).unwrap_or_default();
    let line_length = rest.iter().take(BODY_PROBE_BYTES).position(|byte| *byte == b'\n');
    let line =
        rest.get(..line_length.unwrap_or(rest.len().min(BODY_PROBE_BYTES))).unwrap_or_default();
    let is_block = if is_same_line { is_inline_body_start(line) } else { is_first_body_line(line) };
    let is_decidable = is_complete
        || line_length.is_some()
        || blank_bytes >= BODY_PROBE_BYTES
        || line.len() >= BODY_PROBE_BYTES
        || is_same_line && line.len() >= MIN_BASE64_RUN;
    (is_block || is_decidable).then_some(is_block)
}

/// Returns true if the text after a header is certainly a body, and the header is not only mentioned.
pub(crate) fn has_body(text: &str, body_start: usize, is_complete: bool) -> bool {
    body_follows_header(text.as_bytes().get(body_start..).unwrap_or_default(), is_complete)
        == Some(true)
}

/// Returns true if the body starts in the line of its header.
fn is_inline_body_start(line: &[u8]) -> bool {
    let backslash_count = line.iter().take_while(|byte| **byte == b'\\').count();
    let has_escape =
        backslash_count > 0 && line.get(backslash_count).is_some_and(|next| b"nru".contains(next));
    let has_encoding = [&b"%0"[..], b"&#", DROPPED_BODY_PLACEHOLDER.as_bytes()]
        .iter()
        .any(|head| line.starts_with(head));
    let run_bytes = line.iter().take_while(|byte| is_base64(**byte)).count();
    has_escape || has_encoding || run_bytes >= MIN_BASE64_RUN
}

/// Returns true if a line can be the first line of a body: a header field or a long run, at any position.
fn is_first_body_line(line: &[u8]) -> bool {
    let names = [&b"Proc-Type"[..], b"DEK-Info", b"Version", b"Comment", b"Hash", b"Charset"];
    let has_field = names.iter().any(|name| find_bytes(line, name).is_some());
    let has_footer = FOOTER_REGEX.as_ref().is_some_and(|footer_regex| footer_regex.is_match(line));
    has_field || has_footer || has_base64_run(line)
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn has_base64_run(line: &[u8]) -> bool {
    let is_inside = |byte: &u8| is_base64(*byte);
    line.chunk_by(|left, right| is_inside(left) && is_inside(right))
        .any(|run| run.len() >= MIN_BASE64_RUN && run.iter().all(is_inside))
}

/// Returns the text with all bodies redacted, and true if the last block is still open.
pub(crate) fn redact_key_bodies(text: &str, is_complete: bool) -> (Cow<'_, str>, bool) {
    let mut out = String::new();
    let mut copied_to = 0;
    loop {
        match find_pem_block(text, copied_to..text.len(), is_complete) {
            PemBlock::Closed(_, body) => {
                out.push_str(text.get(copied_to..body.start).unwrap_or_default());
                out.push_str(STARS);
                copied_to = body.end;
            }
            PemBlock::Open(_, body_start) if has_body(text, body_start, is_complete) => {
                out.push_str(text.get(copied_to..body_start).unwrap_or_default());
                out.push_str(STARS);
                return (Cow::Owned(out), true);
            }
            block => {
                let rest = text.get(copied_to..).unwrap_or_default();
                let is_open = block != PemBlock::NotFound;
                return if copied_to == 0 {
                    (Cow::Borrowed(text), is_open)
                } else {
                    (Cow::Owned(out + rest), is_open)
                };
            }
        }
    }
}

/// Returns the end of a footer that has no header before it: the text before it is the body of a key.
pub(crate) fn end_of_unmatched_footer(text: &[u8]) -> Option<usize> {
    let (header_regex, footer_regex) = (HEADER_REGEX.as_ref()?, FOOTER_REGEX.as_ref()?);
    let footer = footer_regex.find(text)?;
    let has_header = header_regex.find(text).is_some_and(|header| header.start() < footer.start());
    (!has_header).then(|| footer.end())
}

/// Returns the end of an open block's text that may be the start of its footer.
pub(crate) fn possible_footer_tail(text: &str, body_start: usize) -> &str {
    let from =
        text.floor_char_boundary(text.len().saturating_sub(MAX_FOOTER_BYTES)).max(body_start);
    text.get(from..).unwrap_or_default()
}
