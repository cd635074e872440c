//! Blocks of private keys: the header stays, the body is masked until the end, wherever that is.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::edge::find;
use super::pattern::compiled;
use super::span::STARS;

/// The head of a block.
pub(super) const BEGIN: &str = r"-{4,5} ?BEGIN(?:[ +]|%20)(?:[A-Z0-9]+(?:[ +]|%20)){0,4}PRIVATE(?:[ +]|%20)KEY(?:[ +]BLOCK)? ?-{4,5}";
/// The foot of a block.
pub(super) const END: &str = r"-{4,5} ?END(?:[ +]|%20)(?:[A-Z0-9]+(?:[ +]|%20)){0,4}PRIVATE(?:[ +]|%20)KEY(?:[ +]BLOCK)? ?-{4,5}";

static BEGINS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(BEGIN));
static ENDS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(END));

/// Stands for the part of a body that a stream has dropped already. No text has this character.
pub(super) const FORGOTTEN: &str = "\u{fdd0}";

/// A shorter run of base64 is a word.
const RUN: usize = 16;

/// No foot is longer.
const FOOT: usize = 128;

/// How the first head from a place on goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block {
    /// There is no head, or only mentions of one.
    None,
    /// Its body.
    Closed(Range<usize>),
    /// Where its head begins and where its body begins; the foot is not in the text.
    Open(usize, usize),
}

/// Finds the first block whose head lies within `within`; its foot may lie beyond.
pub(super) fn block(text: &str, within: Range<usize>, last: bool) -> Block {
    let (Some(begins), Some(ends)) = (BEGINS.as_ref(), ENDS.as_ref()) else { return Block::None };
    let bytes = text.as_bytes();
    let heads = begins.find_iter(
        bytes.get(..within.end).unwrap_or_default().get(within.start..).unwrap_or_default(),
    );
    for head in heads {
        let (start, body) = (within.start + head.start(), within.start + head.end());
        let rest = bytes.get(body..).unwrap_or_default();
        match is_block(rest, last) {
            Some(false) => {}
            None => return Block::Open(start, body),
            Some(true) => {
                let foot = ends.find(rest);
                return foot.map_or(Block::Open(start, body), |foot| {
                    Block::Closed(body..body + foot.start())
                });
            }
        }
    }
    Block::None
}

/// Whether a body follows a head, or the head is only mentioned. Nothing if that is not known yet.
fn is_block(rest: &[u8], last: bool) -> Option<bool> {
    let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let same_line = !rest.get(..blank).unwrap_or_default().contains(&b'\n');
    let rest = rest.get(blank..).unwrap_or_default();
    let length = rest.iter().position(|byte| *byte == b'\n');
    let line = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
    let is_block = if same_line { starts_body(line) } else { is_body(line) };
    let is_known = last || length.is_some() || same_line && !line.is_empty();
    (is_block || is_known).then_some(is_block)
}

/// Whether what follows a head is known to be a body, and not that the head is only mentioned.
pub(super) fn has_body(text: &str, body: usize, last: bool) -> bool {
    is_block(text.as_bytes().get(body..).unwrap_or_default(), last) == Some(true)
}

/// Whether a body goes on in the line of its head.
fn starts_body(line: &[u8]) -> bool {
    let slashes = line.iter().take_while(|byte| **byte == b'\\').count();
    let escaped = slashes > 0 && line.get(slashes).is_some_and(|next| b"nru".contains(next));
    let coded = [&b"%0"[..], b"&#", FORGOTTEN.as_bytes()].iter().any(|head| line.starts_with(head));
    let run = line.iter().take_while(|byte| is_base64(**byte)).count();
    escaped || coded || run >= RUN
}

/// Whether a line can be the first of a body: a header or a long run, behind whatever stands there.
fn is_body(line: &[u8]) -> bool {
    let names = [&b"Proc-Type"[..], b"DEK-Info", b"Version", b"Comment", b"Hash", b"Charset"];
    let named = names.iter().any(|name| find(line, name).is_some());
    let closed = ENDS.as_ref().is_some_and(|ends| ends.is_match(line));
    named || closed || has_run(line)
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn has_run(line: &[u8]) -> bool {
    let inside = |byte: &u8| is_base64(*byte);
    line.chunk_by(|left, right| inside(left) && inside(right))
        .any(|run| run.len() >= RUN && run.iter().all(inside))
}

/// The text with all bodies masked, and whether the last block is still open.
pub(super) fn compact(text: &str, last: bool) -> (Cow<'_, str>, bool) {
    let mut out = String::new();
    let mut done = 0;
    loop {
        match block(text, done..text.len(), last) {
            Block::Closed(body) => {
                out.push_str(text.get(done..body.start).unwrap_or_default());
                out.push_str(STARS);
                done = body.end;
            }
            Block::Open(_, body) if has_body(text, body, last) => {
                out.push_str(text.get(done..body).unwrap_or_default());
                out.push_str(STARS);
                return (Cow::Owned(out), true);
            }
            open => {
                let rest = text.get(done..).unwrap_or_default();
                let is_open = open != Block::None;
                return if done == 0 {
                    (Cow::Borrowed(text), is_open)
                } else {
                    (Cow::Owned(out + rest), is_open)
                };
            }
        }
    }
}

/// The end of a foot that has no head before it: what stands before is the body of a key.
pub(super) fn after_foot(text: &[u8]) -> Option<usize> {
    let (begins, ends) = (BEGINS.as_ref()?, ENDS.as_ref()?);
    let foot = ends.find(text)?;
    let head = begins.find(text).is_some_and(|head| head.start() < foot.start());
    (!head).then(|| foot.end())
}

/// The end of an open block's text that may be the beginning of its foot.
pub(super) fn possible_foot(text: &str, body: usize) -> &str {
    let from = text.floor_char_boundary(text.len().saturating_sub(FOOT)).max(body);
    text.get(from..).unwrap_or_default()
}
