//! Notations of shells and programming languages for a value between quotes.

use std::fmt::Write as _;

/// Characters that bash escapes with a backslash outside of quotes.
const BASH_SPECIAL_CHARS: &str = " \t!\"$&'()*,;<>?[\\]^`{|}";

/// Returns all forms of a quoted `value`, without the quotes around it.
pub(crate) fn quoted_forms(value: &str) -> Vec<String> {
    let is_safe = |part: char| part.is_alphanumeric() || "_-./,:=@%+".contains(part);
    let is_strictly_safe = |part: char| part.is_alphanumeric() || "_-./".contains(part);
    let mut forms = vec![
        value.replace('\'', "'\\''"),
        value.replace('\'', "'\"'\"'"),
        backslashed(value, |part| part == '\''),
        backslashed(value, |part| "\"$`\\".contains(part)),
        backslashed(value, |part| "\"$`\\!".contains(part)),
        backslashed(value, |part| BASH_SPECIAL_CHARS.contains(part)),
        backslashed(value, |part| !is_safe(part)),
        backslashed(value, |part| !is_strictly_safe(part)),
        value.replace('\'', "\\'"),
    ];
    let writers: [fn(&mut String, char); 6] =
        [unicode, latin, octal, small_hex, capital_hex, braced];
    forms.extend(writers.into_iter().flat_map(|writer| {
        // Inside quotes of the other kind a quote needs no backslash.
        ["\\'", "\\\"", "\\'\"", "\\"].map(|special| escaped(value, special, writer))
    }));
    forms
}

fn backslashed(value: &str, is_special: impl Fn(char) -> bool) -> String {
    value.chars().fold(String::with_capacity(value.len()), |mut out, part| {
        if is_special(part) {
            out.push('\\');
        }
        out.push(part);
        out
    })
}

/// Escapes `value` as languages of the C family do: `$'…'` of shells, `repr` of Python, source code. `other` writes the
/// characters outside ASCII.
fn escaped(value: &str, special: &str, other: fn(&mut String, char)) -> String {
    value.chars().fold(String::with_capacity(value.len()), |mut out, part| {
        match part {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            part if special.contains(part) => out.extend(['\\', part]),
            ' '..='~' => out.push(part),
            part => other(&mut out, part),
        }
        out
    })
}

fn unicode(out: &mut String, part: char) {
    out.push(part);
}

/// Writes `\xe4`, `\u20ac`, `\U0001f600`, as Python's `ascii` does.
fn latin(out: &mut String, part: char) {
    let number = u32::from(part);
    _ = match number {
        0..=0xff => write!(out, "\\x{number:02x}"),
        0x100..=0xffff => write!(out, "\\u{number:04x}"),
        _ => write!(out, "\\U{number:08x}"),
    };
}

/// Writes `\u{e4}`, as Rust and JavaScript do.
fn braced(out: &mut String, part: char) {
    _ = write!(out, "\\u{{{:x}}}", u32::from(part));
}

/// Writes `\303\244`, as bash does for non-ASCII characters in a locale that has only ASCII.
fn octal(out: &mut String, part: char) {
    part.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| _ = write!(out, "\\{byte:03o}"));
}

/// Writes `\xc3\xa4`, as Python does for bytes.
fn small_hex(out: &mut String, part: char) {
    part.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| _ = write!(out, "\\x{byte:02x}"));
}

fn capital_hex(out: &mut String, part: char) {
    part.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| _ = write!(out, "\\x{byte:02X}"));
}
