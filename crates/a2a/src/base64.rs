//! Base64 in JSON: the service writes the standard alphabet with padding and reads any alphabet.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes as text.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            text.push(if index <= chunk.len() {
                letter_of_group(group >> (18 - 6 * index))
            } else {
                '='
            });
        }
    }
    text
}

fn letter_of_group(group: u32) -> char {
    let index = usize::try_from(group & 63).unwrap_or_default();
    ALPHABET.get(index).copied().map_or('=', char::from)
}

/// Decodes a text in the standard or the URL-safe alphabet, with or without padding. Returns `None` if the text is
/// not base64.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_end_matches('=');
    let padding = text.len() - letters.len();
    // Padding is optional, but padding that is there must be right.
    if padding > 2 || padding > 0 && !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(letters.len() / 4 * 3 + 2);
    for chunk in letters.as_bytes().chunks(4) {
        let mut group = 0;
        for &letter in chunk {
            group = group << 6 | letter_value(letter)?;
        }
        let missing_letters = 4 - chunk.len();
        if missing_letters > 2 {
            return None;
        }
        let [_, high, middle, low] = (group << (6 * missing_letters)).to_be_bytes();
        bytes.extend([high, middle, low].iter().take(3 - missing_letters));
    }
    Some(bytes)
}

fn letter_value(letter: u8) -> Option<u32> {
    Some(u32::from(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_test_vectors_of_the_standard_are_encoded() {
        let test_vectors =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (decoded, text) in test_vectors {
            assert_eq!(encode(decoded.as_bytes()), text);
            assert_eq!(decode(text), Some(decoded.into()));
            assert_eq!(decode(text.trim_end_matches('=')), Some(decoded.into()));
        }
        assert_eq!(decode("-_-_"), decode("+/+/"));
        for invalid in ["A", "AAAAA", "A===", "Zg=", "Zg=a", "Z g=", "Zg==\n", "====", "ä"] {
            assert_eq!(decode(invalid), None, "{invalid}");
        }
    }

    proptest! {
        #[test]
        fn encoded_bytes_decode_to_themselves(bytes in proptest::collection::vec(any::<u8>(), 0..50)) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }

        #[test]
        fn no_text_makes_the_decoder_panic(text in ".{0,40}") {
            _ = decode(&text);
        }
    }
}
