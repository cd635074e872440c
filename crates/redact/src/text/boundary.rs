//! Look-around checks beside a match, which the search itself does not support.

/// Returns true for letters, digits and the underscore.
pub(crate) const fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns true for the characters of a long token without white space.
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    is_word_byte(byte)
        || matches!(byte, b'-' | b'.' | b'+' | b'/' | b'=' | b'~' | b'%' | b'@' | b':' | b'\\')
}

/// Returns the byte before `at`.
pub(crate) fn byte_before(line: &[u8], at: usize) -> Option<u8> {
    line.get(at.checked_sub(1)?).copied()
}

/// Returns true if a word may start at `at`: not directly after a word, or after an escape that ends in a letter or a
/// digit (`\n`, `\u0022`, `%3D`).
pub(crate) fn is_word_start(line: &[u8], at: usize) -> bool {
    let Some(previous) = byte_before(line, at).filter(|byte| is_word_byte(*byte)) else {
        return true;
    };
    if line.get(at).is_some_and(|first| !is_word_byte(*first)) {
        return true;
    }
    let head = line.get(..at).unwrap_or_default();
    let ends_in_hex = |count: usize| head.iter().rev().take(count).all(u8::is_ascii_hexdigit);
    let byte_before_last = |count: usize| byte_before(line, at.saturating_sub(count));
    let follows_letter_escape = b"nrtbf0".contains(&previous) && byte_before_last(1) == Some(b'\\');
    let follows_byte_escape = (ends_in_hex(2) && byte_before_last(2) == Some(b'%'))
        || (head.ends_with(b"x1b") && byte_before_last(3) == Some(b'\\'));
    let follows_unicode_escape =
        ends_in_hex(4) && byte_before_last(4) == Some(b'u') && byte_before_last(5) == Some(b'\\');
    follows_letter_escape
        || follows_byte_escape
        || follows_unicode_escape
        || ends_in_escaped_color_code(head)
}

/// Returns true if `head` ends in a colour code whose escape character is written out (`\u001b[31m`).
fn ends_in_escaped_color_code(head: &[u8]) -> bool {
    let Some(rest) = head.strip_suffix(b"m") else { return false };
    let digits =
        rest.iter().rev().take(24).take_while(|byte| matches!(byte, b'0'..=b'9' | b';')).count();
    let rest = rest.get(..rest.len() - digits).unwrap_or_default();
    let Some(rest) = rest.strip_suffix(b"[") else { return false };
    let rest = rest.get(rest.len().saturating_sub(6)..).unwrap_or_default().to_ascii_lowercase();
    [&b"\\u001b"[..], b"\\x1b", b"\\033", b"\\e"].iter().any(|escape| rest.ends_with(escape))
}

/// Returns the position of `needle`.
pub(crate) fn find_bytes(line: &[u8], needle: &[u8]) -> Option<usize> {
    line.windows(needle.len().max(1)).position(|window| window == needle)
}
