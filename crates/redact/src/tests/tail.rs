//! Tests: the end of a text shows no part of a secret, wherever the text was cut.

use std::sync::Arc;

use super::super::Redactor;
use super::corpus::SeededRng;
use super::{Pattern, RedactionConfig, corpus_cases, shows_secret};

/// Redactor with a multi-line registered value, one with white space, and a pattern.
fn test_redactor() -> Arc<Redactor> {
    let patterns = vec![Pattern::new("a", "deep [a-z]{1,8} blue", 0).unwrap()];
    let registered = ["ab\ncd\nefgh\nthe last line", "two words here"].map(str::to_owned);
    Arc::new(
        Redactor::new(registered)
            .with_configuration(RedactionConfig { patterns, redacts_personal_numbers: false }),
    )
}

/// Returns a text with ordinary text before and after the secret, long enough as context, and the start of the secret.
fn text_and_secret_start(secret: &str, filler_unit: &str, redactor: &Redactor) -> (String, usize) {
    let filler = filler_unit.repeat(redactor.required_context_bytes() / filler_unit.len() + 1);
    (format!("{filler}{secret}{}", filler_unit.repeat(20)), filler.len())
}

/// Returns the redacted end of the text from `at` on, with one context before it.
fn redacted_end(redactor: &Arc<Redactor>, text: &str, at: usize) -> String {
    let context_start = at.saturating_sub(redactor.required_context_bytes());
    redactor.redact_text_end(&text.as_bytes()[context_start..], at - context_start).0
}

#[test]
fn a_truncated_secret_is_not_shown() {
    let redactor = test_redactor();
    let secrets = [
        "two words here",
        "ab\ncd\nefgh\nthe last line",
        "password: Hunter22-Hunter22",
        "deep sea blue",
    ];
    for secret in secrets {
        for filler_unit in ["a word and\n", "a word and ", "a\u{1b}[1mword\u{1b}[0m\n"] {
            let (text, secret_start) = text_and_secret_start(secret, filler_unit, &redactor);
            for cut in (secret_start..=secret_start + secret.len()).step_by(4) {
                let output = redacted_end(&redactor, &text, cut);
                let parts = ["words", "here", "efgh", "last", "Hunter", "nter22", "sea", "blue"];
                let leaked_part = parts.iter().find(|part| output.contains(**part));
                assert_eq!(
                    leaked_part,
                    None,
                    "{secret:?} in {filler_unit:?}, cut at {}",
                    cut - secret_start
                );
                assert!(output.contains("word"), "{secret:?} in {filler_unit:?}");
            }
        }
    }
}

#[test]
fn no_truncation_shows_a_secret_of_the_corpus() {
    let redactor = Arc::new(super::default_redactor());
    let mut rng = SeededRng(17);
    for (secret, text) in corpus_cases(4).into_iter().step_by(47) {
        let (full_text, secret_start) =
            text_and_secret_start(&format!("{text}\n"), "a word and\n", &redactor);
        let cut = secret_start + rng.next_below(text.len() + 1);
        let output = redacted_end(&redactor, &full_text, full_text.ceil_char_boundary(cut));
        assert!(
            !shows_secret(&output, &secret),
            "{secret} of {text:?} cut at {}",
            cut - secret_start
        );
    }
}

/// The header of the key is missing; the rest of its body is as long as the whole context.
#[test]
fn the_body_of_a_key_without_its_header_is_not_shown() {
    let redactor = test_redactor();
    let mut rng = SeededRng(3);
    let body: String = (0..4000).map(|_| rng.expand("{b64}\n")).collect();
    let footer = "-----END PRIVATE KEY-----";
    let text = format!("{body}{footer}\nand on\n");
    for context in [0, 1000, redactor.required_context_bytes()] {
        let (output, _) = redactor.redact_text_end(text.as_bytes(), context);
        assert_eq!(output, "***\nand on\n", "{context}");
    }
}

#[test]
fn the_end_of_a_long_word_is_shown() {
    let redactor = Arc::new(super::default_redactor());
    let run = "aB3".repeat(redactor.required_context_bytes());
    for text in [format!("{run} and on"), run.clone(), format!("{run}\nand on\n")] {
        let context = redactor.required_context_bytes();
        let (output, count) = redactor.redact_text_end(text.as_bytes(), context);
        let expected = text.get(context..).unwrap();
        assert!(
            output.ends_with(expected) && output.len() < expected.len() + 20_000,
            "{}",
            output.len()
        );
        assert_eq!(count, 0);
    }
}

/// Too little of the run is known: its start may be the rest of a secret.
#[test]
fn a_word_with_too_little_context_is_masked() {
    let redactor = Arc::new(super::default_redactor());
    let run = "aB3".repeat(1000);
    for (text, expected) in [(format!("{run} and on"), "***and on"), (run.clone(), "***")] {
        assert_eq!(redactor.redact_text_end(text.as_bytes(), 1000).0, expected);
    }
}

/// Little of a line is visible between its escape sequences, so all of it is held back.
#[test]
fn a_line_without_visible_context_is_masked() {
    let redactor = Arc::new(super::default_redactor());
    let escapes = format!("x {}", "\u{1b}[1m".repeat(redactor.required_context_bytes() / 4));
    let text = format!("{escapes}rest of it\nand on\n");
    let (output, count) =
        redactor.redact_text_end(text.as_bytes(), redactor.required_context_bytes());
    assert_eq!((output.as_str(), count), ("***\nand on\n", 1));
}
