//! JSON objects in one line of a program's output.
//!
//! Many programs write for a terminal too. Escape sequences, a byte order mark, or progress that a carriage return
//! overwrites may therefore precede an object; some programs write bytes that are not UTF-8, unpaired surrogates, raw
//! control characters in strings, or `NaN`. The objects of such lines are read nevertheless. Text that is no object is
//! returned as [`UnreadableText`], so that a caller never takes a lost message for silence.
//!
//! An object that follows other text on its line is not read: the text may be a log message that quotes the caller.

mod noise;
mod repair;
#[cfg(test)]
mod tests;

use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value};

use self::noise::skip_noise;
use self::repair::repair_object;

/// Greatest number of objects and unreadable texts of one line. The next one takes the rest of the line.
const MAX_ITEMS: usize = 1000;

/// Greatest number of positions in an unreadable text at which an object is searched.
const MAX_SEARCH_POSITIONS: usize = 64;

/// Greatest number of bytes of a line that may be read in vain, besides twice the line. The next text takes the rest of
/// the line: an object without an end is read up to the end of the line, so that a hostile line would otherwise be read
/// again and again.
const MAX_WASTED_BYTES: usize = 1 << 20;

/// Reason why the rest of a line is not read.
const TOO_MANY_ITEMS: &str = "has too many parts";

/// Greatest number of values in the objects of a line. A value takes many times the memory of its text, which may be
/// one digit.
const MAX_VALUES: usize = 1 << 20;

/// Reason why an object with more values is not read.
const TOO_MANY_VALUES: &str = "has too many values";

/// Item of a line.
#[derive(Debug, PartialEq)]
pub enum LineItem {
    /// JSON object.
    Object(Value),
    /// Text that is no JSON object.
    UnreadableText(UnreadableText),
}

/// Text of a line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableText {
    /// Clause that follows "the line".
    pub reason: &'static str,
    /// Text, with U+FFFD for bytes that are not UTF-8.
    pub text: String,
}

/// Result of reading an object at the start of a text.
enum ObjectParseResult<'t> {
    /// The object, and the text after it.
    Object(Value, &'t str),
    /// Text of an object with too many values, and the text after it.
    TooLarge(&'t str, &'t str),
    /// No object. The number of bytes that were read in vain.
    Invalid(usize),
}

impl UnreadableText {
    /// Returns true if the text has more items or values than are read.
    #[must_use]
    pub fn exceeds_limit(&self) -> bool {
        matches!(self.reason, TOO_MANY_ITEMS | TOO_MANY_VALUES)
    }

    /// Returns true if the text may be a message that was lost: it begins like an object with members, it is part of a
    /// line with too many items or values, or a message follows other text. `is_message` returns true for the object of
    /// a message, and `is_damaged_message` for the text of an object that cannot be read.
    pub fn may_be_message(
        &self,
        is_message: impl Fn(&Value) -> bool,
        is_damaged_message: impl Fn(&str) -> bool,
    ) -> bool {
        if self.exceeds_limit() {
            return true; // It holds objects that were not read.
        }
        let (mut rest, mut wasted_bytes) = (self.text.as_str(), 0);
        for position_index in 0..MAX_SEARCH_POSITIONS {
            let Some(object_text) = find_object_start(rest) else { return false };
            let is_at_text_start = position_index == 0 && object_text.len() == self.text.len();
            rest = match read_object(object_text, &mut { MAX_VALUES }) {
                ObjectParseResult::Object(object, _) if is_message(&object) => return true,
                ObjectParseResult::Object(_, more) => more,
                ObjectParseResult::TooLarge(text, _) if is_damaged_message(text) => return true,
                ObjectParseResult::TooLarge(_, more) => more,
                ObjectParseResult::Invalid(_)
                    if is_at_text_start || is_damaged_message(object_text) =>
                {
                    return true;
                }
                ObjectParseResult::Invalid(bytes) => {
                    wasted_bytes += bytes;
                    object_text.strip_prefix('{').unwrap_or_default()
                }
            };
            if wasted_bytes > MAX_WASTED_BYTES {
                break;
            }
        }
        is_damaged_message(rest)
    }
}

/// Returns true if the text contains one of the words as a JSON string.
#[must_use]
pub(crate) fn contains_any_json_string(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(&format!("\"{word}\"")))
}

/// Returns true if the text of an object that cannot be read may have one of these as its `type`.
#[must_use]
pub fn may_have_type(text: &str, types: &[&str]) -> bool {
    contains_any_json_string(text, &["type"]) && contains_any_json_string(text, types)
}

/// Returns true if an object has one of these as its `type`.
#[must_use]
pub fn has_type(object: &Value, types: &[&str]) -> bool {
    object.get("type").and_then(Value::as_str).is_some_and(|name| types.contains(&name))
}

/// Returns the items of a line without its line feed, in order. A blank line has none.
#[must_use]
pub fn read_json_line(line: &[u8]) -> Vec<LineItem> {
    // Nearly every line is one plain object.
    if !has_too_many_values(line)
        && let Ok(object @ Value::Object(_)) = serde_json::from_slice(line)
    {
        return vec![LineItem::Object(object)];
    }
    let text = String::from_utf8_lossy(line);
    let max_wasted_bytes = 2 * text.len() + MAX_WASTED_BYTES;
    let (mut items, mut wasted_bytes, mut values_left) = (Vec::new(), 0, MAX_VALUES);
    let mut rest = skip_noise(&text);
    while !rest.is_empty() {
        if items.len() == MAX_ITEMS || wasted_bytes > max_wasted_bytes {
            items.push(unreadable_text_item(TOO_MANY_ITEMS, rest));
            break;
        }
        let more = match read_object(rest, &mut values_left) {
            ObjectParseResult::Object(object, more) => {
                items.push(LineItem::Object(object));
                more
            }
            ObjectParseResult::TooLarge(text, more) => {
                items.push(unreadable_text_item(TOO_MANY_VALUES, text));
                more
            }
            ObjectParseResult::Invalid(bytes) => {
                wasted_bytes += bytes;
                let (text, more) = split_at_carriage_return(rest);
                // A carriage return overwrites progress. An object is no progress.
                if more.is_empty() || find_object_start(text).is_some() {
                    items.push(unreadable_text_item(syntax_reason(text), text.trim_end()));
                }
                more
            }
        };
        rest = skip_noise(more);
    }
    items
}

/// Reads the object at the start of the text, and subtracts its values from those that are left.
fn read_object<'t>(text: &'t str, values_left: &mut usize) -> ObjectParseResult<'t> {
    if !text.starts_with('{') {
        return ObjectParseResult::Invalid(0);
    }
    // Its end is searched first, because the values of an object may take many times the memory of its text.
    let mut values = Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let end = values.next().and_then(Result::ok).map(|_| values.byte_offset());
    let parsed = end.and_then(|end| text.split_at_checked(end)).and_then(|(object_text, more)| {
        parse_object(object_text, (object_text, more), values_left)
    });
    if let Some(read) = parsed {
        return read;
    }
    let Some((repaired, more)) = repair_object(text) else {
        return ObjectParseResult::Invalid(text.len());
    };
    let object_text = text.get(..text.len() - more.len()).unwrap_or(text);
    let parsed = parse_object(&repaired, (object_text, more), values_left);
    parsed.unwrap_or(ObjectParseResult::Invalid(object_text.len()))
}

/// Parses an object in valid form, whose original text and the text after it are given.
fn parse_object<'t>(
    valid_form: &str,
    (text, more): (&'t str, &'t str),
    values_left: &mut usize,
) -> Option<ObjectParseResult<'t>> {
    let Some(left) = values_left.checked_sub(count_separators(valid_form.as_bytes())) else {
        return Some(ObjectParseResult::TooLarge(text, more));
    };
    *values_left = left;
    Some(ObjectParseResult::Object(serde_json::from_str(valid_form).ok()?, more))
}

fn unreadable_text_item(reason: &'static str, text: &str) -> LineItem {
    LineItem::UnreadableText(UnreadableText { reason, text: text.to_owned() })
}

/// Returns the reason why a text is not read as an object.
fn syntax_reason(text: &str) -> &'static str {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => "is not a JSON object",
        Err(_) => "is not JSON",
    }
}

/// Returns the text before the next carriage return that other text follows, and what follows; else the whole text.
fn split_at_carriage_return(text: &str) -> (&str, &str) {
    match text.split_once('\r') {
        Some((before, after)) if !skip_noise(after).is_empty() => (before, after),
        _ => (text, ""),
    }
}

/// Returns the text from the next place that may be the start of an object with members.
fn find_object_start(text: &str) -> Option<&str> {
    let mut places = text.match_indices('{').filter_map(|(place, _)| text.get(place..));
    places.find(|from| from.strip_prefix('{').is_some_and(|it| skip_noise(it).starts_with('"')))
}

/// Returns true if the text, which is JSON, has more values than `MAX_VALUES`. Any result is possible for other text.
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
