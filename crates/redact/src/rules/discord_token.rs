//! Tokens of Discord's bots: three parts separated by dots, recognized by their lengths and not by a prefix.
//!
//! The first part is the bot's number in base64, which starts with one of three letters.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::spans::{SecretSpan, VisiblePart};
use crate::text::boundary::{is_word_byte, is_word_start};

/// Length of the second part.
const SECOND_PART_BYTES: usize = 6;

/// Distance from the first dot to the second.
const DOT_DISTANCE: usize = SECOND_PART_BYTES + 1;

/// Lengths of the first part.
const FIRST_PART_BYTES: Range<usize> = 23..30;

/// Lengths of the third part; only the third part of a token with a number may be longer, because formats grow.
const THIRD_PART_BYTES: Range<usize> = 27..39;
const MAX_THIRD_PART_BYTES: usize = 128;

/// Number of bytes that are compared in one operation.
const WORD_BYTES: usize = size_of::<u128>();

/// Number of words that are inspected together.
const WORDS_PER_BLOCK: usize = 4;

const BLOCK_BYTES: usize = WORD_BYTES * WORDS_PER_BLOCK;

type WordBlock = [[u8; WORD_BYTES]; WORDS_PER_BLOCK];

/// Finds all tokens.
pub(crate) fn find_discord_tokens(line: &[u8], spans: &mut Vec<SecretSpan>) {
    let mut from = 0;
    while let Some(token) = next_discord_token(line, from) {
        from = token.end;
        spans.push(SecretSpan::without_context(token, VisiblePart::PrefixAndTail(0)));
    }
}

/// Returns the first token whose first dot is at `from` or later.
///
/// Every redacted text passes through this function, so it does not inspect single bytes: few blocks have two
/// dots at this distance, and a few operations show that a whole block has none.
pub(crate) fn next_discord_token(line: &[u8], from: usize) -> Option<Range<usize>> {
    let (text, shifted_text) = (line.get(from..)?, line.get(from + DOT_DISTANCE..)?);
    let mut block = from..from + BLOCK_BYTES;
    for (first, second) in blocks(text).iter().zip(blocks(shifted_text)) {
        if have_dot_at_same_offset(first, second)
            && let Some(token) = first_discord_token_at(line, block.clone())
        {
            return Some(token);
        }
        block = block.end..block.end + BLOCK_BYTES;
    }
    // The rest is shorter than a block, but it is the end of a block.
    let last_start = shifted_text.len().saturating_sub(BLOCK_BYTES);
    let (text, shifted_text) = (text.get(last_start..)?, shifted_text.get(last_start..)?);
    let last_blocks = blocks(text).first().zip(blocks(shifted_text).first());
    if last_blocks.is_some_and(|(first, second)| !have_dot_at_same_offset(first, second)) {
        return None;
    }
    first_discord_token_at(line, block.start..line.len())
}

fn blocks(bytes: &[u8]) -> &[WordBlock] {
    bytes.as_chunks().0.as_chunks().0
}

/// Returns true if both blocks have a dot at the same distance from their start.
const fn have_dot_at_same_offset(first: &WordBlock, second: &WordBlock) -> bool {
    let ([first_0, first_1, first_2, first_3], [second_0, second_1, second_2, second_3]) =
        (first, second);
    zero_byte_marks(zero_where_both_have_dots(first_0, second_0))
        | zero_byte_marks(zero_where_both_have_dots(first_1, second_1))
        | zero_byte_marks(zero_where_both_have_dots(first_2, second_2))
        | zero_byte_marks(zero_where_both_have_dots(first_3, second_3))
        != 0
}

/// Returns a word with a zero byte exactly where both words have a dot.
const fn zero_where_both_have_dots(first: &[u8; WORD_BYTES], second: &[u8; WORD_BYTES]) -> u128 {
    const DOTS: u128 = u128::from_ne_bytes([b'.'; WORD_BYTES]);
    (u128::from_ne_bytes(*first) ^ DOTS) | (u128::from_ne_bytes(*second) ^ DOTS)
}

/// Returns a nonzero word if a byte is zero: only then does the subtraction of one from every byte set the highest bit
/// of a byte in which the bit was not set.
const fn zero_byte_marks(word: u128) -> u128 {
    const ONES: u128 = u128::from_ne_bytes([1; WORD_BYTES]);
    const HIGHEST: u128 = u128::from_ne_bytes([0x80; WORD_BYTES]);
    word.wrapping_sub(ONES) & !word & HIGHEST
}

/// Returns the first token whose first dot is at one of these positions.
fn first_discord_token_at(line: &[u8], positions: Range<usize>) -> Option<Range<usize>> {
    let shifted_text = line.get(positions.start + DOT_DISTANCE..)?;
    let byte_pairs = line.get(positions.clone())?.iter().zip(shifted_text).enumerate();
    let mut dot_pairs =
        byte_pairs.filter(|(_, (first, second))| **first == b'.' && **second == b'.');
    dot_pairs.find_map(|(offset, _)| discord_token_at(line, positions.start + offset))
}

/// Returns the token whose first dot is at `dot`.
fn discord_token_at(line: &[u8], dot: usize) -> Option<Range<usize>> {
    let (head, rest) = (line.get(..dot)?, line.get(dot + 1..)?);
    let first_length = head
        .iter()
        .rev()
        .take(FIRST_PART_BYTES.end)
        .take_while(|byte| is_part_byte(**byte))
        .count();
    let is_second_valid = rest.get(..SECOND_PART_BYTES)?.iter().all(|byte| is_part_byte(*byte));
    let after_second_dot = rest.get(DOT_DISTANCE..)?;
    let third_length = after_second_dot
        .iter()
        .take(MAX_THIRD_PART_BYTES)
        .take_while(|byte| is_part_byte(**byte))
        .count();
    let token =
        discord_token_start(line, dot, first_length)?..dot + 1 + DOT_DISTANCE + third_length;
    let text = line.get(token.clone())?;
    let (id_part, secret) =
        (text.get(..dot - token.start)?, text.get(text.len() - third_length..)?);
    let has_numeric_id = is_base64_number(id_part) && third_length >= THIRD_PART_BYTES.start;
    let is_random_token =
        THIRD_PART_BYTES.contains(&third_length) && is_random(id_part) && is_random(secret);
    (is_second_valid && (has_numeric_id || is_random_token)).then_some(token)
}

/// Returns the start of the first part. An escape that ends in a letter (`\n`) may stand directly before it.
fn discord_token_start(line: &[u8], dot: usize, length: usize) -> Option<usize> {
    let starts = (FIRST_PART_BYTES.start..=length.min(FIRST_PART_BYTES.end - 1))
        .rev()
        .map(|length| dot - length);
    let mut starts = starts.filter(|at| line.get(*at).is_some_and(|byte| b"MNO".contains(byte)));
    starts.find(|at| is_word_start(line, *at))
}

const fn is_part_byte(byte: u8) -> bool {
    is_word_byte(byte) || byte == b'-'
}

/// Returns true if a part is the base64 form of a decimal number.
fn is_base64_number(part: &[u8]) -> bool {
    let number = URL_SAFE_NO_PAD.decode(part);
    number.is_ok_and(|number| number.len() > 15 && number.iter().all(u8::is_ascii_digit))
}

/// Returns true if a part contains capitals, small letters and digits, which identifiers in code seldom do.
fn is_random(part: &[u8]) -> bool {
    let digits = part.iter().filter(|byte| byte.is_ascii_digit()).count();
    let capitals = part.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    digits > 1 && capitals > 2 && part.iter().any(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD_NO_PAD;

    use super::*;

    fn find_tokens(text: &str) -> Vec<&str> {
        let mut spans = Vec::new();
        find_discord_tokens(text.as_bytes(), &mut spans);
        spans.iter().map(|span| text.get(span.secret.clone()).unwrap()).collect()
    }

    #[test]
    fn a_bot_token_is_recognized_by_its_numeric_id() {
        for number in ["80351110224678912", "198622483471925248", "1098622483471925248"] {
            for length in [27, 38, 60] {
                let secret = "k-_w".repeat(20);
                let token = format!(
                    "{}.Cl2FMQ.{}",
                    STANDARD_NO_PAD.encode(number),
                    secret.get(..length).unwrap()
                );
                for text in [format!("x={token}"), format!("\"{token}\","), format!("\\n{token} ")]
                {
                    assert_eq!(find_tokens(&text), [token.as_str()], "{text}");
                }
                assert!(find_tokens(&format!("a{token}")).is_empty());
                let short = token.get(..token.len() - length + 26).unwrap();
                assert!(find_tokens(&format!("x {short}")).is_empty());
            }
        }
    }

    #[test]
    fn a_bot_token_is_found_at_every_offset() {
        let token =
            format!("{}.Cl2FMQ.{}", STANDARD_NO_PAD.encode("198622483471925248"), "k-_w".repeat(8));
        for before in 0..3 * BLOCK_BYTES {
            for after in [0, 1, WORD_BYTES, BLOCK_BYTES] {
                let text = format!(
                    "{} {token}{}",
                    "/.".repeat(before / 2) + &"/".repeat(before % 2),
                    " .".repeat(after)
                );
                assert_eq!(find_tokens(&text), [token.as_str()], "{before}, {after}");
            }
        }
    }

    #[test]
    fn dotted_tokens_are_found_at_every_offset() {
        for filler in [0, 1, b'-', b'/', b'.' ^ 0x80, 0x80, 0xff] {
            let without_dots = [[filler; WORD_BYTES]; WORDS_PER_BLOCK];
            assert!(!have_dot_at_same_offset(&without_dots, &without_dots));
            for at in 0..BLOCK_BYTES {
                let mut one_dot = without_dots;
                one_dot[at / WORD_BYTES][at % WORD_BYTES] = b'.';
                assert!(have_dot_at_same_offset(&one_dot, &one_dot), "{at}");
                let mut other = without_dots;
                other.as_flattened_mut().fill(b'.');
                assert!(have_dot_at_same_offset(&one_dot, &other), "{at}");
                other[at / WORD_BYTES][at % WORD_BYTES] = filler;
                assert!(!have_dot_at_same_offset(&one_dot, &other), "{at}");
                assert!(!have_dot_at_same_offset(&other, &one_dot), "{at}");
            }
        }
    }

    #[test]
    fn code_and_host_names_are_not_bot_tokens() {
        for text in [
            "NetworkConfigurationManager.server.createConfigurationFromDefaults",
            "Module_with_a_rather_long_name.method.another_name_of_thirty_letters",
            "MyVeryLongHostNameForTests.corp01.example-of-a-long-domain-name-for-tests",
            "O123456789012345678901234.567890.123456789012345678901234567",
            "1.234567.8, 10.123456.1234567890123456789012345678",
        ] {
            assert_eq!(find_tokens(text), [""; 0], "{text}");
        }
    }
}
