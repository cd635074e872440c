//! JSON documents of callers: read in spite of unpaired surrogates, which JavaScript writes for a text that was cut
//! within a character.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use serde_json::Value;

/// Length of an escaped code unit: `\ud83d`.
const ESCAPE_BYTES: usize = 6;

/// Parses a body. Unpaired surrogates become U+FFFD.
///
/// # Errors
/// `malformed-json`, with the cause and its position.
pub fn parse_document(body: &[u8]) -> Result<Value, Failure> {
    if body.trim_ascii().is_empty() {
        return Err(Failure::new(Code::MalformedJson, "the body is empty"));
    }
    let parsed = serde_json::from_slice(body).or_else(|error| {
        // A position stays right, because an escape is as long as the escape that replaces it.
        replace_unpaired_surrogates(body).map_or(Err(error), |body| serde_json::from_slice(&body))
    });
    // The parser's message quotes nothing of the body.
    parsed.map_err(|error| {
        let message = format!("the body is not one JSON document: {error}");
        Failure::new(Code::MalformedJson, message)
    })
}

/// Returns the body with U+FFFD for each unpaired surrogate; `None` if it has none.
fn replace_unpaired_surrogates(body: &[u8]) -> Option<Vec<u8>> {
    let (mut repaired, mut rest, mut is_changed) = (Vec::with_capacity(body.len()), body, false);
    while !rest.is_empty() {
        let next_unit = rest.get(ESCAPE_BYTES..).and_then(parse_escaped_code_unit);
        // Outside of strings a valid document has no backslash.
        let copied_length = match parse_escaped_code_unit(rest) {
            Some(0xd800..0xdc00) if matches!(next_unit, Some(0xdc00..0xe000)) => 2 * ESCAPE_BYTES,
            Some(0xd800..0xe000) => {
                repaired.extend_from_slice(br"\ufffd");
                is_changed = true;
                rest = rest.get(ESCAPE_BYTES..).unwrap_or_default();
                continue;
            }
            _ if rest.starts_with(br"\") => 2,
            _ => rest.iter().position(|byte| *byte == b'\\').unwrap_or(rest.len()),
        };
        let (copied, remaining) = rest.split_at(copied_length.min(rest.len()));
        repaired.extend_from_slice(copied);
        rest = remaining;
    }
    is_changed.then_some(repaired)
}

/// Returns the code unit of the escape at the start of a text.
fn parse_escaped_code_unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(br"\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unpaired_surrogates_become_replacement_characters() {
        for (body, expected) in [
            (r#"{"a":"x\ud83d"}"#, json!({"a": "x\u{fffd}"})),
            (r#"["\udc00y", "\ud83d\ud83d\ude00"]"#, json!(["\u{fffd}y", "\u{fffd}\u{1f600}"])),
            (r#""\\ud83d \ud83dA \uD83D\u0041""#, json!("\\ud83d \u{fffd}A \u{fffd}A")),
            (r#""\ud83d\ude00 \\\udfff""#, json!("\u{1f600} \\\u{fffd}")),
        ] {
            assert_eq!(parse_document(body.as_bytes()), Ok(expected), "{body}");
        }
    }

    #[test]
    fn each_malformed_document_has_its_cause() {
        for (body, cause) in [
            (&b" \n"[..], "the body is empty"),
            (b"{\"a\":", "EOF while parsing"),
            (b"{} {}", "trailing characters at line 1 column 4"),
            (b"{\"a\":\"\xe9\"}", "invalid unicode code point"),
            (b"{\"a\":\"\\ud83d", "EOF while parsing a string"),
            (b"[\"\\ud83d\", 7", "EOF while parsing a list at line 1 column 12"),
            (b"\xef\xbb\xbf{}", "expected value at line 1 column 1"),
            (b"[1e999]", "number out of range"),
            (b"\"\\ud83", "EOF while parsing a string"),
        ] {
            let failure = parse_document(body).unwrap_err();
            assert_eq!(failure.code, Code::MalformedJson);
            assert!(failure.message.contains(cause), "{}", failure.message);
        }
    }
}
