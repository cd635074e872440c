//! Repair of objects that most parsers accept although JSON forbids them.

use std::str::Chars;

use super::noise::skip_noise;

/// Greatest depth of an object, as in `serde_json`.
const MAX_DEPTH: usize = 128;

/// Number that JSON cannot express. Encoders of many languages write it nevertheless.
const NON_FINITE_NUMBERS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// Returns the object at the start of the text in valid form, and the text after it; `None` if the object has no end.
/// Unpaired surrogates become U+FFFD, control characters in strings are escaped, and non-finite numbers become null.
pub(super) fn repair_object(text: &str) -> Option<(String, &str)> {
    let mut repaired = String::new();
    let (mut chars, mut depth) = (text.chars(), 0_usize);
    loop {
        let rest = chars.as_str();
        if let Some(more) = NON_FINITE_NUMBERS.iter().find_map(|name| rest.strip_prefix(name)) {
            repaired.push_str("null");
            chars = more.chars();
            continue;
        }
        let char = chars.next()?;
        match char {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.checked_sub(1)?,
            '"' => repair_string(&mut chars, &mut repaired)?,
            char if char.is_control() => {
                chars = skip_noise(rest).chars();
                continue;
            }
            _ => {}
        }
        repaired.push(char);
        match depth {
            0 => return Some((repaired, chars.as_str())),
            1..=MAX_DEPTH => {}
            _ => return None,
        }
    }
}

/// Repairs a string whose opening quotation mark was read. Its closing quotation mark is read and not written.
fn repair_string(chars: &mut Chars<'_>, repaired: &mut String) -> Option<()> {
    repaired.push('"');
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '\\' => repair_escape(chars, repaired)?,
            char if char.is_control() => push_escaped(repaired, u32::from(char)),
            char => repaired.push(char),
        }
    }
}

/// Repairs an escape whose backslash was read.
fn repair_escape(chars: &mut Chars<'_>, repaired: &mut String) -> Option<()> {
    let escaped = chars.next()?;
    if escaped != 'u' {
        repaired.extend(['\\', escaped]);
        return Some(());
    }
    let unit = read_code_unit(chars)?;
    if !(0xd800..0xe000).contains(&unit) {
        push_escaped(repaired, unit);
        return Some(());
    }
    let mut next_chars = chars.clone();
    let low = (unit < 0xdc00 && next_chars.next() == Some('\\') && next_chars.next() == Some('u'))
        .then(|| read_code_unit(&mut next_chars))
        .flatten();
    match low.filter(|low| (0xdc00..0xe000).contains(low)) {
        Some(low) => {
            push_escaped(repaired, unit);
            push_escaped(repaired, low);
            *chars = next_chars;
        }
        None => repaired.push(char::REPLACEMENT_CHARACTER),
    }
    Some(())
}

/// Reads four hexadecimal digits.
fn read_code_unit(chars: &mut Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |unit, _| Some(unit * 16 + chars.next()?.to_digit(16)?))
}

fn push_escaped(repaired: &mut String, unit: u32) {
    repaired.push_str(&format!("\\u{unit:04x}"));
}
