//! Personal numbers, redacted only if configured: they resemble many other numbers.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::spans::{SecretSpan, VisiblePart};
use crate::text::boundary::{byte_before, is_word_byte};
use crate::text::pattern::compile_constant;

/// Pattern of a payment card number: 13 to 19 digits, optionally in groups.
pub(crate) const CARD_PATTERN: &str = r"\d(?:[ -]?\d){12,18}";
/// Pattern of a United States social security number.
pub(crate) const SOCIAL_SECURITY_PATTERN: &str = r"\d{3}-\d{2}-\d{4}";
/// Pattern of a telephone number with its country code, or in the American notation.
pub(crate) const PHONE_PATTERN: &str =
    r"\+\d{1,3}(?:[ .-]?\(?\d{1,5}\)?){2,5}|\(\d{3}\) ?\d{3}-\d{4}|\d{3}-\d{3}-\d{4}";

static CARD_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(CARD_PATTERN));
static SOCIAL_SECURITY_REGEX: LazyLock<Option<Regex>> =
    LazyLock::new(|| compile_constant(SOCIAL_SECURITY_PATTERN));
static PHONE_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(PHONE_PATTERN));

/// Finds the numbers of payment cards, of social security and of telephones.
pub(crate) fn find_personal_numbers(line: &[u8], spans: &mut Vec<SecretSpan>) {
    for (regex, needs_check_digit) in
        [(&CARD_REGEX, true), (&SOCIAL_SECURITY_REGEX, false), (&PHONE_REGEX, false)]
    {
        let Some(regex) = regex.as_ref() else { continue };
        for found in regex.find_iter(line) {
            let follows_text = byte_before(line, found.start())
                .is_some_and(|byte| is_word_byte(byte) || b"-.".contains(&byte));
            let continues = line.get(found.end()).is_some_and(|byte| is_word_byte(*byte));
            if !follows_text
                && !continues
                && (!needs_check_digit || passes_luhn_check(found.as_bytes()))
            {
                spans.push(SecretSpan::without_context(found.range(), VisiblePart::PrefixOnly(0)));
            }
        }
    }
}

/// Returns true if the number passes the Luhn check.
fn passes_luhn_check(number: &[u8]) -> bool {
    let digits =
        number.iter().rev().filter(|byte| byte.is_ascii_digit()).map(|byte| u32::from(byte - b'0'));
    let sum: u32 = digits
        .enumerate()
        .map(|(index, digit)| match (index % 2, digit * 2) {
            (0, _) => digit,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    sum.is_multiple_of(10)
}
