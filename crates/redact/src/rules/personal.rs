//! Personal numbers, redacted only if configured: they resemble many other numbers.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::spans::{SecretSpan, VisiblePart};
use crate::text::boundary::{before, is_word};
use crate::text::pattern::compiled;

/// Pattern of a payment card number: 13 to 19 digits, optionally in groups.
pub(crate) const CARD: &str = r"\d(?:[ -]?\d){12,18}";
/// Pattern of a United States social security number.
pub(crate) const SECURITY: &str = r"\d{3}-\d{2}-\d{4}";
/// Pattern of a telephone number with its country code, or in the American notation.
pub(crate) const PHONE: &str =
    r"\+\d{1,3}(?:[ .-]?\(?\d{1,5}\)?){2,5}|\(\d{3}\) ?\d{3}-\d{4}|\d{3}-\d{3}-\d{4}";

static CARDS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(CARD));
static SECURITIES: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(SECURITY));
static PHONES: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(PHONE));

/// Finds the numbers of payment cards, of social security and of telephones.
pub(crate) fn personal(line: &[u8], spans: &mut Vec<SecretSpan>) {
    for (pattern, checked) in [(&CARDS, true), (&SECURITIES, false), (&PHONES, false)] {
        let Some(pattern) = pattern.as_ref() else { continue };
        for found in pattern.find_iter(line) {
            let joined = before(line, found.start())
                .is_some_and(|byte| is_word(byte) || b"-.".contains(&byte));
            let longer = line.get(found.end()).is_some_and(|byte| is_word(*byte));
            if !joined && !longer && (!checked || has_check_digit(found.as_bytes())) {
                spans.push(SecretSpan::shape(found.range(), VisiblePart::Stars(0)));
            }
        }
    }
}

/// Returns true if the number passes the Luhn check.
fn has_check_digit(number: &[u8]) -> bool {
    let digits =
        number.iter().rev().filter(|byte| byte.is_ascii_digit()).map(|byte| u32::from(byte - b'0'));
    let sum: u32 = digits
        .enumerate()
        .map(|(place, digit)| match (place % 2, digit * 2) {
            (0, _) => digit,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    sum.is_multiple_of(10)
}
