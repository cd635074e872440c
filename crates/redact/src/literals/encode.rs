//! Forms in which a registered value may appear: unchanged, and as programs encode it.

use std::fmt::Write as _;

use super::quoting::quoted_forms;

/// Shortest form, in characters and in bytes; a shorter one would match too much by chance.
pub(crate) const MIN_FORM_LENGTH: usize = 8;

/// Returns all forms of a value and of each of its lines, without duplicates.
pub(crate) fn encoded_forms(value: &str) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    let lines = value.lines().map(str::trim);
    for part in [value, value.trim()].into_iter().chain(lines) {
        if part.chars().count() >= MIN_FORM_LENGTH {
            forms.extend(encodings(part).into_iter().map(String::into_bytes));
        }
    }
    forms.retain(|form| form.len() >= MIN_FORM_LENGTH);
    forms.sort_unstable();
    forms.dedup();
    forms
}

fn encodings(value: &str) -> Vec<String> {
    let json_text = json_escape(value);
    let mut forms = vec![value.to_owned(), hex_encode(value, false), hex_encode(value, true)];
    for preceding_bytes in 0..3 {
        forms.extend([
            shifted_base64(value, preceding_bytes, b"+/"),
            shifted_base64(value, preceding_bytes, b"-_"),
        ]);
    }
    forms.extend(percent_encodings(value));
    for is_upper_case in [false, true] {
        // Python writes JSON in this form by default, and so does PHP, which also escapes slashes.
        let ascii_escaped = unicode_escape(value, false, is_upper_case);
        let all_escaped = unicode_escape(value, true, is_upper_case);
        forms.extend([
            json_escape(&ascii_escaped),
            ascii_escaped.replace('/', "\\/"),
            ascii_escaped,
        ]);
        forms.extend([json_escape(&all_escaped), all_escaped]);
    }
    forms.extend([
        json_escape(&json_text),
        json_text.replace('/', "\\/"),
        escape_json_markup(&json_text),
        json_text,
    ]);
    forms.extend([
        xml_escape(value, "&quot;", "&apos;"),
        xml_escape(value, "&#34;", "&#39;"),
        xml_escape(value, "\"", "'"),
    ]);
    // A command line often appears inside JSON.
    forms.extend(quoted_forms(value).into_iter().flat_map(|form| [json_escape(&form), form]));
    forms
}

fn hex_encode(value: &str, is_upper_case: bool) -> String {
    value.bytes().fold(String::new(), |mut out, byte| {
        _ = if is_upper_case { write!(out, "{byte:02X}") } else { write!(out, "{byte:02x}") };
        out
    })
}

/// Returns the base64 characters that `value` alone determines when `preceding_bytes` unknown ones precede it.
fn shifted_base64(value: &str, preceding_bytes: usize, last_alphabet_chars: &[u8; 2]) -> String {
    let bytes: Vec<u8> = std::iter::repeat_n(0, preceding_bytes).chain(value.bytes()).collect();
    let end = bytes.len() * 8 / 6;
    let start = (preceding_bytes * 8).div_ceil(6);
    let sextet = |index: usize| {
        let bit = index * 6;
        let pair = [bit / 8, bit / 8 + 1].map(|at| u32::from(bytes.get(at).copied().unwrap_or(0)));
        let [high, low] = pair;
        ((high << 8 | low) >> (10 - bit % 8)) & 63
    };
    (start..end).map(|index| base64_char(sextet(index), *last_alphabet_chars)).collect()
}

fn base64_char(sextet: u32, [plus, slash]: [u8; 2]) -> char {
    let char_at_offset =
        |first: char, from: u32| char::from_u32(u32::from(first) + sextet - from).unwrap_or(first);
    match sextet {
        0..26 => char_at_offset('A', 0),
        26..52 => char_at_offset('a', 26),
        52..62 => char_at_offset('0', 52),
        62 => char::from(plus),
        _ => char::from(slash),
    }
}

/// Returns the percent-encoded forms: strict, as in browsers, as in forms; hexadecimal digits in both cases.
fn percent_encodings(value: &str) -> Vec<String> {
    let encode = |safe_chars: &str, is_upper_case: bool| {
        value.bytes().fold(String::new(), |mut out, byte| {
            let is_safe = byte.is_ascii_alphanumeric() || safe_chars.as_bytes().contains(&byte);
            _ = match (is_safe, is_upper_case) {
                (true, _) => write!(out, "{}", char::from(byte)),
                (false, true) => write!(out, "%{byte:02X}"),
                (false, false) => write!(out, "%{byte:02x}"),
            };
            out
        })
    };
    let safe_chars = ["-._~", "-._~!'()*", "-._~!'()*;/?:@&=+$,#", "-._~/"];
    let mut forms: Vec<String> = safe_chars
        .iter()
        .flat_map(|safe_chars| [encode(safe_chars, true), encode(safe_chars, false)])
        .collect();
    forms.extend([
        encode("-._*", true).replace("%20", "+"),
        encode("-._*", false).replace("%20", "+"),
    ]);
    forms
}

fn json_escape(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value).to_owned()
}

/// Returns JSON with escaped markup characters, as HTML-safe writers produce it.
fn escape_json_markup(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Escapes as `\uXXXX` all characters, or only those outside ASCII.
fn unicode_escape(value: &str, escapes_ascii: bool, is_upper_case: bool) -> String {
    let mut out = String::new();
    for character in value.chars() {
        if matches!(character, '\0'..='~') && !escapes_ascii {
            out.push_str(&json_escape(character.encode_utf8(&mut [0; 4])));
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            _ = if is_upper_case {
                write!(out, "\\u{unit:04X}")
            } else {
                write!(out, "\\u{unit:04x}")
            };
        }
    }
    out
}

fn xml_escape(value: &str, double_quote: &str, single_quote: &str) -> String {
    let escaped = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('"', double_quote).replace('\'', single_quote)
}
