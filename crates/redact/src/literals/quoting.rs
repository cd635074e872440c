//! Notations of shells and programming languages for a value between quotes.

use std::fmt::Write as _;

/// Characters that bash escapes with a backslash outside of quotes.
const BASH_SPECIAL_CHARS: &str = " \t!\"$&'()*,;<>?[\\]^`{|}";

/// Returns all forms of a quoted `value`, without the quotes around it.
pub(crate) fn quoted_forms(value: &str) -> Vec<String> {
    let is_safe = |character: char| character.is_alphanumeric() || "_-./,:=@%+".contains(character);
    let is_strictly_safe =
        |character: char| character.is_alphanumeric() || "_-./".contains(character);
    let mut forms = vec![
        value.replace('\'', "'\\''"),
        value.replace('\'', "'\"'\"'"),
        escape_with_backslash(value, |character| character == '\''),
        escape_with_backslash(value, |character| "\"$`\\".contains(character)),
        escape_with_backslash(value, |character| "\"$`\\!".contains(character)),
        escape_with_backslash(value, |character| BASH_SPECIAL_CHARS.contains(character)),
        escape_with_backslash(value, |character| !is_safe(character)),
        escape_with_backslash(value, |character| !is_strictly_safe(character)),
        value.replace('\'', "\\'"),
    ];
    let writers: [fn(&mut String, char); 6] = [
        write_unchanged,
        write_ascii_escape,
        write_octal,
        write_lower_hex,
        write_upper_hex,
        write_braced_escape,
    ];
    forms.extend(writers.into_iter().flat_map(|writer| {
        // Inside quotes of the other kind a quote needs no backslash.
        ["\\'", "\\\"", "\\'\"", "\\"].map(|special| escape_c_style(value, special, writer))
    }));
    forms
}

fn escape_with_backslash(value: &str, is_special: impl Fn(char) -> bool) -> String {
    value.chars().fold(String::with_capacity(value.len()), |mut out, character| {
        if is_special(character) {
            out.push('\\');
        }
        out.push(character);
        out
    })
}

/// Escapes `value` as languages of the C family do: `$'…'` of shells, `repr` of Python, source code. `write_other`
/// writes the characters outside ASCII.
fn escape_c_style(value: &str, special_chars: &str, write_other: fn(&mut String, char)) -> String {
    value.chars().fold(String::with_capacity(value.len()), |mut out, character| {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            character if special_chars.contains(character) => out.extend(['\\', character]),
            ' '..='~' => out.push(character),
            character => write_other(&mut out, character),
        }
        out
    })
}

fn write_unchanged(out: &mut String, character: char) {
    out.push(character);
}

/// Writes `\xe4`, `\u20ac`, `\U0001f600`, as Python's `ascii` does.
fn write_ascii_escape(out: &mut String, character: char) {
    let code_point = u32::from(character);
    _ = match code_point {
        0..=0xff => write!(out, "\\x{code_point:02x}"),
        0x100..=0xffff => write!(out, "\\u{code_point:04x}"),
        _ => write!(out, "\\U{code_point:08x}"),
    };
}

/// Writes `\u{e4}`, as Rust and JavaScript do.
fn write_braced_escape(out: &mut String, character: char) {
    _ = write!(out, "\\u{{{:x}}}", u32::from(character));
}

/// Writes `\303\244`, as bash does for non-ASCII characters in a locale that has only ASCII.
fn write_octal(out: &mut String, character: char) {
    character.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| _ = write!(out, "\\{byte:03o}"));
}

/// Writes `\xc3\xa4`, as Python does for bytes.
fn write_lower_hex(out: &mut String, character: char) {
    character.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| _ = write!(out, "\\x{byte:02x}"));
}

fn write_upper_hex(out: &mut String, character: char) {
    character.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| _ = write!(out, "\\x{byte:02X}"));
}
