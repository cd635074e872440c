//! Numbers of people, masked only where that is asked for: they look like many other numbers.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::edge::{before, is_word};
use super::pattern::compiled;
use super::span::{Form, Span};

/// Thirteen to nineteen digits, also in groups.
pub(super) const CARD: &str = r"\d(?:[ -]?\d){12,18}";
/// A social security number of the United States.
pub(super) const SECURITY: &str = r"\d{3}-\d{2}-\d{4}";
/// A telephone number with its country, or in the American spelling.
pub(super) const PHONE: &str =
    r"\+\d{1,3}(?:[ .-]?\(?\d{1,5}\)?){2,5}|\(\d{3}\) ?\d{3}-\d{4}|\d{3}-\d{3}-\d{4}";

static CARDS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(CARD));
static SECURITIES: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(SECURITY));
static PHONES: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(PHONE));

/// Finds numbers of cards, of social security and of telephones.
pub(super) fn personal(line: &[u8], spans: &mut Vec<Span>) {
    for (pattern, checked) in [(&CARDS, true), (&SECURITIES, false), (&PHONES, false)] {
        let Some(pattern) = pattern.as_ref() else { continue };
        for found in pattern.find_iter(line) {
            let joined = before(line, found.start())
                .is_some_and(|byte| is_word(byte) || b"-.".contains(&byte));
            let longer = line.get(found.end()).is_some_and(|byte| is_word(*byte));
            if !joined && !longer && (!checked || has_check_digit(found.as_bytes())) {
                spans.push(Span::shape(found.range(), Form::Stars(0)));
            }
        }
    }
}

/// Luhn's sum.
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
