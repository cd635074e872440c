//! The forms in which a registered value may appear: as it is, and as programs write it.

use std::fmt::Write as _;

/// A shorter form is too likely to be something else.
pub(super) const SHORTEST: usize = 8;

/// All forms of a value and of each of its lines, without repetition.
pub(super) fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let lines = value.lines().map(str::trim);
    for part in [value, value.trim()].into_iter().chain(lines) {
        if part.chars().count() >= SHORTEST {
            found.extend(written(part).into_iter().map(String::into_bytes));
        }
    }
    found.retain(|form| form.len() >= SHORTEST);
    found.sort_unstable();
    found.dedup();
    found
}

fn written(value: &str) -> Vec<String> {
    let json = json(value);
    let mut forms = vec![value.to_owned(), hex(value, false), hex(value, true)];
    for shift in 0..3 {
        forms.extend([base64(value, shift, b"+/"), base64(value, shift, b"-_")]);
    }
    forms.extend(percent(value));
    forms.extend([escaped_units(value, false, false), escaped_units(value, false, true)]);
    forms.extend([escaped_units(value, true, false), escaped_units(value, true, true)]);
    forms.extend([self::json(&json), json.replace('/', "\\/"), markup_safe(&json), json]);
    forms.extend([
        xml(value, "&quot;", "&apos;"),
        xml(value, "&#34;", "&#39;"),
        xml(value, "\"", "'"),
    ]);
    forms.extend(shell(value));
    forms
}

fn hex(value: &str, upper: bool) -> String {
    value.bytes().fold(String::new(), |mut out, byte| {
        _ = if upper { write!(out, "{byte:02X}") } else { write!(out, "{byte:02x}") };
        out
    })
}

/// The characters that `value` alone decides when `shift` unknown bytes stand before it.
fn base64(value: &str, shift: usize, last_two: &[u8; 2]) -> String {
    let bytes: Vec<u8> = std::iter::repeat_n(0, shift).chain(value.bytes()).collect();
    let whole = bytes.len() * 8 / 6;
    let unsure = (shift * 8).div_ceil(6);
    let sextet = |index: usize| {
        let bit = index * 6;
        let pair = [bit / 8, bit / 8 + 1].map(|at| u32::from(bytes.get(at).copied().unwrap_or(0)));
        let [high, low] = pair;
        ((high << 8 | low) >> (10 - bit % 8)) & 63
    };
    (unsure..whole).map(|index| letter(sextet(index), *last_two)).collect()
}

fn letter(sextet: u32, [plus, slash]: [u8; 2]) -> char {
    let offset =
        |first: char, from: u32| char::from_u32(u32::from(first) + sextet - from).unwrap_or(first);
    match sextet {
        0..26 => offset('A', 0),
        26..52 => offset('a', 26),
        52..62 => offset('0', 52),
        62 => char::from(plus),
        _ => char::from(slash),
    }
}

/// Percent-encoding: strict, as browsers do it, as forms do it; digits in both cases.
fn percent(value: &str) -> Vec<String> {
    let encode = |kept: &str, upper: bool| {
        value.bytes().fold(String::new(), |mut out, byte| {
            let plain = byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte);
            _ = match (plain, upper) {
                (true, _) => write!(out, "{}", char::from(byte)),
                (false, true) => write!(out, "%{byte:02X}"),
                (false, false) => write!(out, "%{byte:02x}"),
            };
            out
        })
    };
    let kept = ["-._~", "-._~!'()*", "-._~!'()*;/?:@&=+$,#", "-._~/"];
    let mut forms: Vec<String> =
        kept.iter().flat_map(|kept| [encode(kept, true), encode(kept, false)]).collect();
    forms.extend([
        encode("-._*", true).replace("%20", "+"),
        encode("-._*", false).replace("%20", "+"),
    ]);
    forms
}

fn json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value).to_owned()
}

/// JSON as writers make it that fear markup.
fn markup_safe(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// `\uXXXX` for all characters, or only for those outside ASCII.
fn escaped_units(value: &str, all: bool, upper: bool) -> String {
    let mut out = String::new();
    for part in value.chars() {
        if part.is_ascii() && !all {
            out.push_str(&json(part.encode_utf8(&mut [0; 4])));
            continue;
        }
        for unit in part.encode_utf16(&mut [0; 2]) {
            _ = if upper { write!(out, "\\u{unit:04X}") } else { write!(out, "\\u{unit:04x}") };
        }
    }
    out
}

fn xml(value: &str, double: &str, single: &str) -> String {
    let safe = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    safe.replace('"', double).replace('\'', single)
}

/// In single quotes (two customs), in double quotes, and with a backslash before what is special.
fn shell(value: &str) -> Vec<String> {
    let backslash = |special: &dyn Fn(char) -> bool| {
        value.chars().fold(String::new(), |mut out, part| {
            if special(part) {
                out.push('\\');
            }
            out.push(part);
            out
        })
    };
    let plain = |part: char| part.is_alphanumeric() || "_-./,:=@%+".contains(part);
    vec![
        value.replace('\'', "'\\''"),
        value.replace('\'', "'\"'\"'"),
        value.replace('\'', "\\'"),
        backslash(&|part| "\"$`\\".contains(part)),
        backslash(&|part| "\"$`\\!".contains(part)),
        backslash(&|part| !plain(part)),
        backslash(&|part| !(part.is_alphanumeric() || "_-./".contains(part))),
    ]
}
