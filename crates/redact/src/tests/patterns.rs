//! Tests: configured patterns hide all their matches, however the text arrives.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;

use super::super::Redactor;
use super::corpus::SeededRng;
use super::streaming::redact_in_pieces;
use super::{Pattern, RedactionConfig};

/// Creates a redactor with patterns, each with the length that stays visible.
fn redactor_with_patterns(patterns: &[(&str, usize)]) -> Redactor {
    let to_pattern = |(regex, visible_length): &(&str, usize)| {
        Pattern::new("a", regex, *visible_length).unwrap()
    };
    let patterns = patterns.iter().map(to_pattern).collect();
    Redactor::new([])
        .with_configuration(RedactionConfig { patterns, redacts_personal_numbers: false })
}

/// Redactor for personal numbers, a pair of words, words of capitals, and one pattern of maximum length.
fn test_redactor() -> Arc<Redactor> {
    static REDACTOR: LazyLock<Arc<Redactor>> = LazyLock::new(|| {
        let patterns =
            [("EMP-[0-9]{6}", 4), ("deep [a-z]{1,8} blue", 0), ("(?i)q[0-9a-f ]{900,1000}z", 0)];
        Arc::new(redactor_with_patterns(&patterns))
    });
    Arc::clone(&REDACTOR)
}

#[test]
fn a_match_is_masked_except_for_its_kept_prefix() {
    let redactor =
        redactor_with_patterns(&[("EMP-[0-9]{6}", 4), ("ticket-[0-9]{1,9}", 0), ("^secret$", 0)]);
    for (text, expected) in [
        ("of EMP-123456, EMP-12345", "of EMP-***, EMP-12345"),
        ("ticket-42 EMP-1234567", "*** EMP-***7"),
        ("secret\nsecret\r\nno secret\nsecret", "***\n***\r\nno secret\n***"),
        ("EM\u{1b}[1mP-12\u{1b}[0m3456", "EMP-***"),
        ("***ticket-42***", "*********"),
        ("EMP-*** ***", "EMP-*** ***"),
    ] {
        let redacted = redactor.redact(text).into_owned();
        assert_eq!(redacted, expected, "{text}");
        assert_eq!(redactor.redact(&redacted), redacted);
    }
}

#[test]
fn asterisks_before_a_match_do_not_hide_it() {
    let redactor = redactor_with_patterns(&[("[^ ]{0,5}EMP-[0-9]{6}", 0)]);
    assert_eq!(redactor.redact("a ***EMP-123456 b"), "a *** b");
}

#[test]
fn a_match_inside_a_character_leaves_valid_text() {
    let redactor = redactor_with_patterns(&[("x.", 0)]);
    assert_eq!(redactor.redact("axéb"), "a***b");
}

/// A long line has matches at every position at which a window could end.
#[test]
fn no_chunk_of_a_long_line_shows_a_match() {
    let long_match = format!("q{}z", "0a 1b ".repeat(160));
    for separator in [" ", " and ", "", "_"] {
        for filler in [0, 1, 700, 1023, 3001] {
            let unit = format!(
                "{}{separator}EMP-123456 deep sea blue{separator}{long_match}",
                "w".repeat(filler)
            );
            let text = unit.repeat(24);
            for size in [1000, 4096, usize::MAX] {
                let redacted = redact_in_pieces(test_redactor(), text.as_bytes(), || size);
                let is_shown =
                    ["123456", "sea", "0a 1b"].iter().any(|part| redacted.contains(part));
                assert!(!is_shown, "{filler} {separator:?} {size}: {redacted}");
            }
        }
    }
}

/// The run has no white space; the match starts in it and ends after white space.
#[test]
fn a_match_that_begins_in_a_long_word_is_masked_alone() {
    let run = "aB3".repeat(9000);
    let text = format!("before {run}deep sea blue after\nnext deep sky blue\n");
    for size in [1, 77, 1000, 9001, usize::MAX] {
        let redacted = redact_in_pieces(test_redactor(), text.as_bytes(), || size);
        assert!(redacted == format!("before {run}*** after\nnext ***\n"), "{size}");
    }
}

/// Components of the texts: matches, halves of them, and their surroundings.
const FRAGMENTS: &[&str] = &[
    "EMP-123456",
    "EMP-",
    "123456",
    "12",
    "deep ",
    "deep sea blue",
    "sea",
    " blue",
    "blue",
    " ",
    "\n",
    "\r\n",
    "*",
    "***",
    "\u{1b}[1m",
    "é",
    "password=",
    "ghp_",
    "q",
    "z",
    "0123 89ab ",
    "-----BEGIN PRIVATE KEY-----",
];

fn any_text(max_words: usize) -> impl Strategy<Value = String> {
    let word = prop_oneof![
        20 => proptest::sample::select(FRAGMENTS).prop_map(str::to_owned),
        1 => (900_usize..1000).prop_map(|length| format!("q{}z", "7".repeat(length))),
        1 => (1_usize..3000).prop_map(|length| "w ".repeat(length)),
    ];
    proptest::collection::vec(word, 0..max_words).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn short_lines_are_redacted_alike_for_any_chunks(text in any_text(30), seed in 1_u64.., max_chunk in 1_usize..9000) {
        let lines: String = text.lines().map(|line| format!("{line:.8000}\n")).collect();
        let mut rng = SeededRng(seed);
        let pieces = redact_in_pieces(test_redactor(), lines.as_bytes(), || 1 + rng.next_below(max_chunk));
        prop_assert_eq!(pieces, test_redactor().redact(&lines).into_owned());
    }

    #[test]
    fn no_match_is_shown_for_any_line_length_or_chunk_size(
        text in any_text(120), seed in 1_u64.., max_chunk in 1_usize..9000,
    ) {
        let text = text.replace('\n', " ");
        let mut rng = SeededRng(seed);
        let redacted = redact_in_pieces(test_redactor(), text.as_bytes(), || 1 + rng.next_below(max_chunk));
        // Whole matches are gone; other text may stay.
        prop_assert!(!redacted.contains("EMP-123456") && !redacted.contains("deep sea blue"), "{}", redacted);
        prop_assert!(!redacted.contains(&"7".repeat(800)), "{}", redacted);
    }
}
