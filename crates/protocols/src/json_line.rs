//! JSON objects in one line of a program's output.
//!
//! Many programs write for a terminal too. Escape sequences, a byte order mark, or progress that a carriage return
//! overwrites may therefore precede an object; some programs write bytes that are not UTF-8, unpaired surrogates, raw
//! control characters in strings, or `NaN`. The objects of such lines are read nevertheless. Text that is no object is
//! returned as [`UnreadText`], so that a caller never takes a lost message for silence.
//!
//! An object that follows other text on its line is not read: the text may be a log message that quotes the caller.

mod noise;
mod repair;
#[cfg(test)]
mod tests;

use serde_json::{Deserializer, Value};

use self::noise::skip_noise;
use self::repair::repair_object;

/// Greatest number of objects that are read from one line.
const MAX_OBJECTS: usize = 1000;

/// Greatest number of texts without an object in one line. The next one takes the rest of the line, so that a hostile
/// line is not scanned again and again.
const MAX_UNREAD_TEXTS: usize = 16;

/// Greatest number of places of an unread text at which an object is read.
const MAX_SEARCHED_PLACES: usize = 64;

/// Reason why the rest of a line is not read.
const TOO_MANY_ITEMS: &str = "has too many parts";

/// Greatest number of values in a line. A value takes many times the memory of its text, which may be one digit.
const MAX_VALUES: usize = 1 << 20;

/// Reason why a line with more values is not read.
pub const TOO_MANY_VALUES: &str = "has too many values";

/// Item of a line.
#[derive(Debug, PartialEq)]
pub enum LineItem {
    /// JSON object.
    Object(Value),
    /// Text that is no JSON object.
    Unread(UnreadText),
}

/// Text of a line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadText {
    /// Clause that follows "the line".
    pub reason: &'static str,
    /// Text, with U+FFFD for bytes that are not UTF-8.
    pub text: String,
}

impl UnreadText {
    /// Returns true if the text may be a message that was lost: it begins like an object with members, it is part of a
    /// line with too many items or values, or a message follows other text. `is_message` returns true for the object of
    /// a message. An object that cannot be read is a message if it contains one of the `member_names`.
    pub fn may_be_message(
        &self,
        member_names: &[&str],
        is_message: impl Fn(&Value) -> bool,
    ) -> bool {
        if matches!(self.reason, TOO_MANY_ITEMS | TOO_MANY_VALUES) {
            return true; // It holds objects that were not read.
        }
        let has_member =
            |text: &str| member_names.iter().any(|name| text.contains(&format!("\"{name}\"")));
        let mut rest = self.text.as_str();
        for place in 0..MAX_SEARCHED_PLACES {
            let Some(object_text) = find_object(rest) else { return false };
            let is_first = place == 0 && object_text.len() == self.text.len();
            rest = match read_object(object_text) {
                Some((object, _)) if is_message(&object) => return true,
                Some((_, more)) => more,
                None if is_first || has_member(object_text) => return true,
                None => object_text.strip_prefix('{').unwrap_or_default(),
            };
        }
        has_member(rest)
    }
}

/// Returns the items of a line without its line feed, in order. A blank line has none.
#[must_use]
pub fn read_json_line(line: &[u8]) -> Vec<LineItem> {
    if has_too_many_values(line) {
        let text = String::from_utf8_lossy(line).into_owned();
        return vec![LineItem::Unread(UnreadText { reason: TOO_MANY_VALUES, text })];
    }
    // Nearly every line is one plain object.
    if let Ok(object @ Value::Object(_)) = serde_json::from_slice(line) {
        return vec![LineItem::Object(object)];
    }
    let text = String::from_utf8_lossy(line);
    let (mut items, mut unread_count) = (Vec::new(), 0);
    let mut rest = skip_noise(&text);
    while !rest.is_empty() {
        if items.len() - unread_count == MAX_OBJECTS || unread_count == MAX_UNREAD_TEXTS {
            let (reason, text) = (TOO_MANY_ITEMS, rest.to_owned());
            items.push(LineItem::Unread(UnreadText { reason, text }));
            break;
        }
        let more = if let Some((object, more)) = read_object(rest) {
            items.push(LineItem::Object(object));
            more
        } else {
            let (text, more) = split_at_return(rest);
            // A carriage return overwrites progress. An object is no progress.
            if more.is_empty() || text.contains('{') {
                items.push(LineItem::Unread(unread_text(text)));
                unread_count += 1;
            }
            more
        };
        rest = skip_noise(more);
    }
    items
}

/// Returns the object at the start of the text, and the text after it.
fn read_object(text: &str) -> Option<(Value, &str)> {
    if !text.starts_with('{') {
        return None;
    }
    let mut values = Deserializer::from_str(text).into_iter();
    if let Some(Ok(object)) = values.next() {
        return Some((object, text.get(values.byte_offset()..)?));
    }
    let (repaired, more) = repair_object(text)?;
    Some((serde_json::from_str(&repaired).ok()?, more))
}

/// Returns the text before the next carriage return that other text follows, and what follows; else the whole text.
fn split_at_return(text: &str) -> (&str, &str) {
    match text.split_once('\r') {
        Some((before, after)) if !skip_noise(after).is_empty() => (before, after),
        _ => (text, ""),
    }
}

fn unread_text(text: &str) -> UnreadText {
    let text = text.trim_end();
    let is_json = serde_json::from_str::<Value>(text).is_ok();
    let reason = if is_json { "is not a JSON object" } else { "is not JSON" };
    UnreadText { reason, text: text.to_owned() }
}

/// Returns the text from the next place that may be the start of an object with members.
fn find_object(text: &str) -> Option<&str> {
    let mut places = text.match_indices('{').filter_map(|(place, _)| text.get(place..));
    places.find(|from| from.strip_prefix('{').is_some_and(|it| skip_noise(it).starts_with('"')))
}

/// Returns true if the line may have more values than `MAX_VALUES`.
#[must_use]
pub fn has_too_many_values(line: &[u8]) -> bool {
    // Each value except the first one has a comma, colon or bracket beside it.
    line.len() > 2 * MAX_VALUES && count_separators(line) > MAX_VALUES
}

fn count_separators(line: &[u8]) -> usize {
    let (mut is_in_string, mut is_escaped) = (false, false);
    let separators = line.iter().filter(|byte| {
        let is_quote = **byte == b'"' && !is_escaped;
        is_escaped = is_in_string && !is_escaped && **byte == b'\\';
        is_in_string ^= is_quote;
        !is_in_string && matches!(**byte, b',' | b':' | b'[' | b'{')
    });
    separators.count()
}
