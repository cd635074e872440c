//! Redaction of the bytes of a file: as text if they are text, also if a part of them is not valid UTF-8.

use std::borrow::Cow;

use algonius_redact::Redactor;

/// First of the 256 characters at the end of the last private plane of Unicode. They stand for bytes that are not UTF-8
/// during the redaction.
const FIRST_BYTE_CHARACTER: u32 = 0x0010_FF00;

/// Least number of bytes of text for each control character in it. Random bytes have one in ten, and a text may have an
/// old end of file (`\x1a`).
const MIN_BYTES_PER_CONTROL_CHARACTER: usize = 24;

/// Redacts the bytes of a file, and returns them with the number of redactions. A file without a secret, and a binary
/// file, are returned unchanged.
pub(super) fn redact_file<'b>(bytes: &'b [u8], redactor: &Redactor) -> (Cow<'b, [u8]>, u64) {
    let redacted = match TextEncoding::of(bytes) {
        TextEncoding::Utf8(text) => {
            let (redacted, count) = redactor.redact_and_count(text);
            (count > 0).then(|| (redacted.into_owned().into_bytes(), count))
        }
        TextEncoding::MostlyUtf8 => redact_mostly_utf8(bytes, redactor),
        TextEncoding::Utf16 { is_little_endian } => redact_utf16(bytes, is_little_endian, redactor),
        TextEncoding::Binary => None,
    };
    redacted.map_or((Cow::Borrowed(bytes), 0), |(bytes, count)| (Cow::Owned(bytes), count))
}

/// Encoding of a file.
enum TextEncoding<'b> {
    Utf8(&'b str),
    /// Text in which some bytes are not UTF-8: an older encoding, or a damaged file.
    MostlyUtf8,
    /// UTF-16 with a byte order mark, as Windows writes it.
    Utf16 {
        is_little_endian: bool,
    },
    /// No text. A rule could match random bytes, and a replacement of another length destroys the file.
    Binary,
}

impl<'b> TextEncoding<'b> {
    fn of(bytes: &'b [u8]) -> Self {
        if let Ok(text) = std::str::from_utf8(bytes) {
            return Self::Utf8(text);
        }
        if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
            return Self::Utf16 { is_little_endian: bytes.starts_with(&[0xFF]) };
        }
        let is_control = |byte: &&u8| {
            byte.is_ascii_control()
                && !byte.is_ascii_whitespace()
                && !b"\x07\x08\x1b".contains(byte)
        };
        let control_count = bytes.iter().filter(is_control).count();
        let is_binary = control_count * MIN_BYTES_PER_CONTROL_CHARACTER > bytes.len();
        if is_binary { Self::Binary } else { Self::MostlyUtf8 }
    }
}

/// Redacts text in which some bytes are not UTF-8. Private characters stand for these bytes during the redaction, so
/// that the bytes divide no secret.
fn redact_mostly_utf8(bytes: &[u8], redactor: &Redactor) -> Option<(Vec<u8>, u64)> {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let to_character = |byte: &u8| char::from_u32(FIRST_BYTE_CHARACTER + u32::from(*byte));
        text.extend(chunk.invalid().iter().filter_map(to_character));
    }
    let (redacted, count) = redactor.redact_and_count(&text);
    if count == 0 {
        return None;
    }
    let mut out = Vec::with_capacity(redacted.len());
    for character in redacted.chars() {
        let byte = u32::from(character).checked_sub(FIRST_BYTE_CHARACTER);
        match byte.and_then(|byte| u8::try_from(byte).ok()) {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Some((out, count))
}

/// Redacts text in UTF-16. If the text contains a secret, an odd byte at the end is dropped and unpaired surrogates
/// become U+FFFD.
fn redact_utf16(
    bytes: &[u8],
    is_little_endian: bool,
    redactor: &Redactor,
) -> Option<(Vec<u8>, u64)> {
    let to_unit = |pair: &[u8; 2]| {
        if is_little_endian { u16::from_le_bytes(*pair) } else { u16::from_be_bytes(*pair) }
    };
    let units: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(to_unit).collect();
    let text = String::from_utf16_lossy(&units);
    let (redacted, count) = redactor.redact_and_count(&text);
    let to_bytes =
        |unit: u16| if is_little_endian { unit.to_le_bytes() } else { unit.to_be_bytes() };
    (count > 0).then(|| (redacted.encode_utf16().flat_map(to_bytes).collect(), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "password=Hunter22Zq9";

    fn redact(bytes: &[u8]) -> (Vec<u8>, u64) {
        let redactor = Redactor::new([]);
        let (redacted, count) = redact_file(bytes, &redactor);
        (redacted.into_owned(), count)
    }

    #[test]
    fn bytes_outside_of_utf_8_hide_no_secret_and_stay() {
        // `password=geh\xE4im22Zq9` is Latin-1.
        for (secret, expected) in [
            (&b"\xE4 password=Hunter22Zq9 \xFF\n"[..], &b"\xE4 password=*** \xFF\n"[..]),
            (b"a\npassword=geh\xE4im22Zq9 b", b"a\npassword=*** b"),
            (b"\xF0\x9F password=Hunter22Zq9", b"\xF0\x9F password=***"),
            (b"\xE4 password=Hunter22Zq9\r\n\x1A", b"\xE4 password=***\r\n\x1A"),
        ] {
            assert_eq!(redact(secret), (expected.to_vec(), 1));
        }
    }

    #[test]
    fn text_in_utf_16_is_redacted() {
        let encode = |text: &str, to_bytes: fn(u16) -> [u8; 2]| {
            format!("\u{feff}{text}").encode_utf16().flat_map(to_bytes).collect::<Vec<u8>>()
        };
        for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let text = format!("one \u{1f600}\r\n{SECRET}\r\n");
            let expected = encode("one \u{1f600}\r\npassword=***\r\n", to_bytes);
            // A secret in a text file is redacted in UTF-8 with damaged bytes, in older encodings and in UTF-16
            assert_eq!(redact(&encode(&text, to_bytes)), (expected, 1));
            let harmless = [encode("two\r\n", to_bytes), vec![0xD8]].concat();
            assert_eq!(redact(&harmless), (harmless, 0));
        }
    }

    /// The text of a secret in it does not count, because a shorter text would destroy the file.
    #[test]
    fn a_binary_file_stays_as_it_is() {
        let picture = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR ", SECRET.as_bytes(), b" \xFF"].concat();
        assert_eq!(redact(&picture), (picture, 0));
    }
}
