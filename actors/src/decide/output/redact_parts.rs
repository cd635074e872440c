//! Stored form of raw parts: the redacted text, and whether redaction changed it.

use std::borrow::Cow;

use algonius_redact::Redactor;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::redact_file::redact_file;
use crate::model::execution::AttemptId;
use crate::model::execution::content::{Content, Part, PartKind, StoredPart, decode_base64};
use crate::model::execution::event::{TextChannel, TextRange};

/// Text in place of one that is redacted as a whole.
const REDACTED_TEXT: &str = "***";

/// Greatest length of the end of a key, in bytes, that is examined with each number: a key word is at the end.
const MAX_KEY_BYTES: usize = 256;

/// Parts in stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredParts {
    /// Redacted text of all parts, one after the other.
    pub text: String,
    /// Location of each part in the text.
    pub parts: Vec<StoredPart>,
    /// True if nothing was redacted, so that the parts can be read back unchanged.
    pub is_unchanged: bool,
}

/// Redacted part without a location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedactedPart {
    kind: PartKind,
    text: String,
    filename: Option<String>,
    media_type: Option<String>,
    redaction_count: u64,
    dropped_bytes: u64,
    is_unchanged: bool,
}

impl RedactedPart {
    /// Redacts one part.
    #[must_use]
    pub fn redact(part: &Part, redactor: &Redactor) -> Self {
        let (kind, text, redaction_count) = redact_content(&part.content, redactor);
        Self {
            filename: part.filename.clone(),
            media_type: part.media_type.clone(),
            is_unchanged: redaction_count == 0,
            ..Self::from_redacted(kind, text, redaction_count)
        }
    }

    /// Creates the part from a stored part and its text.
    #[must_use]
    pub fn from_stored(stored_part: &StoredPart, text: String) -> Self {
        Self {
            filename: stored_part.filename.clone(),
            media_type: stored_part.media_type.clone(),
            dropped_bytes: stored_part.dropped,
            ..Self::from_redacted(stored_part.kind, text, stored_part.redacted)
        }
    }

    /// Creates the part from a text that was redacted before in this many places.
    #[must_use]
    pub const fn from_redacted_text(text: String, redaction_count: u64) -> Self {
        Self::from_redacted(PartKind::Text, text, redaction_count)
    }

    /// Creates a part from content that was redacted before, without a name or dropped bytes.
    const fn from_redacted(kind: PartKind, text: String, redaction_count: u64) -> Self {
        Self {
            kind,
            text,
            filename: None,
            media_type: None,
            redaction_count,
            dropped_bytes: 0,
            is_unchanged: true,
        }
    }

    /// Returns the part with `dropped` additional missing bytes.
    #[must_use]
    pub const fn with_dropped_bytes(mut self, dropped: u64) -> Self {
        self.dropped_bytes += dropped;
        self
    }
}

/// Redacts parts, and places them on a channel, starting at an offset.
#[must_use]
pub fn redact_parts(
    parts: &[Part],
    redactor: &Redactor,
    attempt_id: AttemptId,
    channel: TextChannel,
    offset: u64,
) -> StoredParts {
    let redacted_parts = parts.iter().map(|part| RedactedPart::redact(part, redactor));
    assign_ranges(redacted_parts, TextRange { attempt_id, channel, from: offset, to: offset })
}

/// Places redacted parts one after the other, starting at an empty range.
#[must_use]
pub fn assign_ranges(
    parts: impl IntoIterator<Item = RedactedPart>,
    start: TextRange,
) -> StoredParts {
    let mut stored = StoredParts { text: String::new(), parts: Vec::new(), is_unchanged: true };
    for RedactedPart {
        kind,
        text,
        filename,
        media_type,
        redaction_count: redacted,
        dropped_bytes: dropped,
        is_unchanged,
    } in parts
    {
        let from = start.from + stored.text.len() as u64;
        stored.text.push_str(&text);
        let text = TextRange { from, to: start.from + stored.text.len() as u64, ..start };
        stored.parts.push(StoredPart { kind, text, filename, media_type, redacted, dropped });
        stored.is_unchanged &= is_unchanged;
    }
    stored
}

/// Returns the stored form of a content, with the number of redactions.
fn redact_content(content: &Content, redactor: &Redactor) -> (PartKind, String, u64) {
    let redact = |kind, text: &str| {
        let (redacted, count) = redactor.redact_and_count(text);
        (kind, redacted.into_owned(), count)
    };
    match content {
        Content::Text(text) => redact(PartKind::Text, text),
        Content::Url(url) => redact(PartKind::Url, url),
        Content::Data(data) => redact_data(data, redactor),
        Content::Bytes(encoded) => redact_bytes(encoded, redactor),
    }
}

/// Redacts a document: first all of it, because a key can mark its value as a secret, and then each text without the
/// quotes and escapes of JSON, because a configured pattern may match a whole line. In the other order the first
/// redaction could leave a value that looks redacted already.
fn redact_data(data: &Value, redactor: &Redactor) -> (PartKind, String, u64) {
    let original = data.to_string();
    let (text, count) = redactor.redact_and_count(&original);
    let Ok(mut document) = serde_json::from_str(&text) else {
        return redact_values_then_document(data, redactor);
    };
    match redact_texts(&mut document, &|text| redactor.redact_and_count(text)) {
        0 => (PartKind::Data, text.into_owned(), count),
        text_count => (PartKind::Data, document.to_string(), count + text_count),
    }
}

/// Redacts a document that is no JSON after its redaction, because a number or a quotation mark is redacted. Here, a
/// text or a number with a secret is redacted as a whole, so that no rest of it looks redacted already. A document
/// stays one, unless a configured pattern matches across its members; then it becomes a text.
fn redact_values_then_document(data: &Value, redactor: &Redactor) -> (PartKind, String, u64) {
    let mut document = data.clone();
    let value_count = redact_values(&mut document, "", redactor);
    let document = document.to_string();
    let (text, count) = redactor.redact_and_count(&document);
    (PartKind::Data, text.into_owned(), value_count + count)
}

/// Redacts the texts and numbers of a value that has this key, and returns the number of redactions.
fn redact_values(value: &mut Value, key: &str, redactor: &Redactor) -> u64 {
    let count = match value {
        Value::Array(items) => {
            return items.iter_mut().map(|item| redact_values(item, key, redactor)).sum();
        }
        Value::Object(members) => {
            return members.iter_mut().map(|(key, it)| redact_values(it, key, redactor)).sum();
        }
        Value::String(text) => redactor.redact_and_count(text).1,
        Value::Number(number) => {
            // The key may announce a secret. The member is no JSON if its number is redacted.
            let key_start = key.floor_char_boundary(key.len().saturating_sub(MAX_KEY_BYTES));
            let key = key.get(key_start..).unwrap_or_default();
            let member = json!({ key: number }).to_string();
            let redacted = redactor.redact(&member);
            u64::from(serde_json::from_str::<IgnoredAny>(&redacted).is_err())
        }
        Value::Null | Value::Bool(_) => 0,
    };
    if count > 0 {
        *value = Value::from(REDACTED_TEXT);
    }
    count
}

/// Redacts the texts of a document, and returns the number of redactions. Keys stay: they keep members apart.
fn redact_texts(value: &mut Value, redact: &impl Fn(&str) -> (Cow<'_, str>, u64)) -> u64 {
    match value {
        Value::String(text) => {
            let (redacted, count) = redact(text);
            if count > 0 {
                *text = redacted.into_owned();
            }
            count
        }
        Value::Array(items) => items.iter_mut().map(|item| redact_texts(item, redact)).sum(),
        Value::Object(members) => {
            members.values_mut().map(|member| redact_texts(member, redact)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Redacts text inside a file like other text. Without a secret in it, the file keeps its encoding too.
fn redact_bytes(encoded: &str, redactor: &Redactor) -> (PartKind, String, u64) {
    let bytes = decode_base64(encoded).unwrap_or_default();
    match redact_file(&bytes, redactor) {
        (_, 0) => (PartKind::Bytes, encoded.to_owned(), 0),
        (redacted, count) => (PartKind::Bytes, STANDARD.encode(redacted), count),
    }
}

#[cfg(test)]
mod tests {
    use algonius_redact::{Pattern, RedactionConfig};
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn redactor() -> Redactor {
        let pattern = Pattern::new("account", "^ACCT-[0-9]{8}$", 0).unwrap();
        let configuration =
            RedactionConfig { patterns: vec![pattern], ..RedactionConfig::default() };
        Redactor::new([]).with_configuration(configuration)
    }

    fn redacted(data: Value) -> (Value, u64) {
        let (_, text, count) = redact_content(&Content::Data(data), &redactor());
        (serde_json::from_str(&text).unwrap(), count)
    }

    /// The pattern matches a whole line.
    #[test]
    fn a_pattern_sees_each_text_of_a_document_without_its_escapes() {
        let data = json!([{ "a": "one\nACCT-12345678\ntwo", "b": ["ACCT-87654321"] }, 2]);
        let expected = json!([{ "a": "one\n***\ntwo", "b": ["***"] }, 2]);
        assert_eq!(redacted(data), (expected, 2));
    }

    /// A pattern that matches the start of a value must not hide that the key makes all of it a secret.
    #[test]
    fn a_secret_key_hides_its_whole_value() {
        for value in ["ACCT-12345678\nHunter22Zq9", "Hunter22Zq9\nACCT-12345678"] {
            assert_eq!(redacted(json!({ "password": value })).0, json!({ "password": "***" }));
        }
    }

    /// A redacted number is no JSON.
    #[test]
    fn a_document_with_a_secret_number_stays_one() {
        let configuration = RedactionConfig {
            patterns: vec![
                Pattern::new("account", "^ACCT-[0-9]{8}$", 0).unwrap(),
                Pattern::new("pin", "\"pin\":([0-9]{4})", 1).unwrap(),
            ],
            redacts_personal_numbers: true,
        };
        let redactor = Redactor::new([]).with_configuration(configuration);
        let data = json!({
            "note": "one\nACCT-12345678",
            "usd_per_token": 0.000_25,
            "cards": [4_111_111_111_111_111_u64, 7],
            "pin": 1234,
        });
        let (_, text, count) = redact_content(&Content::Data(data), &redactor);
        let document: Value = serde_json::from_str(&text).unwrap();
        let expected =
            json!({ "note": "***", "usd_per_token": 0.000_25, "cards": ["***", 7], "pin": "***" });
        assert_eq!((document, count), (expected, 3));
    }

    #[test]
    fn a_file_is_redacted_in_each_form_of_base64() {
        let text = b"?>password=Hunter22Zq9";
        let expected = STANDARD.encode("?>password=***");
        for encoded in [STANDARD.encode(text), URL_SAFE_NO_PAD.encode(text)] {
            let (_, redacted, count) = redact_content(&Content::Bytes(encoded), &redactor());
            assert_eq!((redacted, count), (expected.clone(), 1));
        }
        let harmless = URL_SAFE_NO_PAD.encode(b"?>?>\xFF");
        let (_, unchanged, count) = redact_content(&Content::Bytes(harmless.clone()), &redactor());
        assert_eq!((unchanged, count), (harmless, 0));
    }

    #[test]
    fn a_document_without_a_secret_stays_as_it_is() {
        let data = json!({ "b": "one\ntwo", "a": [null, true, 1.5, "\"", { "c": {} }] });
        assert_eq!(redacted(data.clone()), (data, 0));
    }
}
