//! Tests: neither the pieces of a text nor a second redaction changes the result.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;

use super::super::{Redactor, StreamRedactor};
use super::corpus::{SECRET_TEMPLATES, SeededRng};
use super::{corpus_cases, default_redactor, redactor_with_value, shows_secret};

/// Sends `text` through a stream in pieces whose sizes `next_size` returns.
pub(super) fn redact_in_pieces(
    redactor: Arc<Redactor>,
    text: &[u8],
    mut next_size: impl FnMut() -> usize,
) -> String {
    let mut stream = StreamRedactor::new(redactor);
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(next_size().clamp(1, rest.len()));
        out.push_str(&stream.push(piece));
        rest = tail;
    }
    out + &stream.finish()
}

#[test]
fn no_chunk_boundary_shows_a_secret() {
    let all = corpus_cases(99);
    let text: String = all.iter().map(|(_, text)| format!("{text}\n")).collect();
    let redacted_whole = default_redactor().redact(&text).into_owned();
    let mut rng = SeededRng(1);
    assert_eq!(
        redact_in_pieces(Arc::new(default_redactor()), text.as_bytes(), || 1),
        redacted_whole
    );
    assert_eq!(
        redact_in_pieces(Arc::new(default_redactor()), text.as_bytes(), || 64),
        redacted_whole
    );
    assert_eq!(
        redact_in_pieces(Arc::new(default_redactor()), text.as_bytes(), || 1 + rng.next_below(300)),
        redacted_whole
    );
    assert_eq!(
        redact_in_pieces(Arc::new(default_redactor()), text.as_bytes(), || usize::MAX),
        redacted_whole
    );
}

#[test]
fn a_multi_line_value_is_held_back_until_it_ends() {
    let text = "x ab\ncd\nefgh\nlast\nx ab\ncd\nx\n";
    let expected = "x ***\n***\n***\n***\nx ab\ncd\nx\n";
    for size in [1, 2, 3, 5, 8, 100] {
        let redactor = Arc::new(redactor_with_value("ab\ncd\nefgh\nlast"));
        assert_eq!(redact_in_pieces(redactor, text.as_bytes(), || size), expected);
    }
}

#[test]
fn a_key_header_without_a_key_passes_for_any_chunk_size() {
    let text =
        format!("{}-----BEGIN PRIVATE KEY-----\n{}\n", "of ".repeat(1000), "w ".repeat(3500));
    for size in [1, 100, 5000, usize::MAX] {
        assert_eq!(
            redact_in_pieces(Arc::new(default_redactor()), text.as_bytes(), || size),
            text,
            "{size}"
        );
    }
}

#[test]
fn long_lines_show_no_secret_and_are_released_early() {
    let mut all = corpus_cases(5);
    all.retain(|(_, text)| !text.starts_with("  password"));
    let one_line = |separator: &str| -> String {
        let texts = all.iter().filter(|(_, text)| !text.contains(['\n', '\r']));
        texts.map(|(_, text)| format!("{text}{separator}")).collect()
    };
    for separator in [" ", " and more words ", "\t"] {
        let text = one_line(separator);
        let mut rng = SeededRng(2);
        let redacted = redact_in_pieces(Arc::new(default_redactor()), text.as_bytes(), || {
            1 + rng.next_below(300)
        });
        for (secret, text) in &all {
            assert!(!shows_secret(&redacted, secret), "{secret} of {text} in a long line");
        }
    }
}

#[test]
fn an_endless_key_uses_bounded_memory() {
    let mut stream = StreamRedactor::new(Arc::new(default_redactor()));
    stream.push(b"-----BEGIN PRIVATE KEY-----\n");
    for _ in 0..10_000 {
        let line = SeededRng(9).expand("{b64}\n");
        assert_eq!(stream.push(line.as_bytes()), "");
    }
    assert_eq!(
        stream.push(b"-----END PRIVATE KEY----- ok\n"),
        "-----BEGIN PRIVATE KEY-----***-----END PRIVATE KEY----- ok\n"
    );
}

#[test]
fn a_pause_releases_only_text_without_a_possible_secret() {
    let mut stream = StreamRedactor::new(Arc::new(redactor_with_value("two words here")));
    assert_eq!(stream.push(b"Continue? [y/N] two wo"), "");
    assert_eq!(stream.release_safe_text(), "Continue? [y/N] ");
    assert_eq!(stream.release_safe_text(), "");
    assert_eq!(stream.push(b"rds here and password: "), "");
    assert_eq!(stream.release_safe_text(), "");
    assert_eq!(stream.push(b"Hunter22\n"), "*** and password: ***\n");
    assert_eq!((stream.finish(), stream.redaction_count()), (String::new(), 2));
}

/// Every character arrives alone, and the source pauses after each of them.
#[test]
fn pauses_at_every_place_show_no_secret_of_the_corpus() {
    let redactor = Arc::new(default_redactor());
    let mut leaks = Vec::new();
    let key = SeededRng(9).expand("-----BEGIN RSA PRIVATE KEY-----\n{b64}\n{b64}\n");
    let body = key.split('\n').nth(1).unwrap().to_owned();
    let mut cases = vec![
        (body, key),
        ("Hunter22Zq9abc".to_owned(), "my api key: Hunter22Zq9abc\n".to_owned()),
        ("geheim\u{fc}22Zq9".to_owned(), "http://me:geheim\u{fc}22Zq9@host.test\n".to_owned()),
        ("geheim22Zq9".to_owned(), "\u{5bc6}\u{7801}password=geheim22Zq9\u{3002}\n".to_owned()),
    ];
    cases.extend(corpus_cases(21));
    for (secret, text) in cases {
        let mut stream = StreamRedactor::new(Arc::clone(&redactor));
        let mut output = String::new();
        for character in text.chars() {
            output.push_str(&stream.push(character.encode_utf8(&mut [0; 4]).as_bytes()));
            output.push_str(&stream.release_safe_text());
        }
        output.push_str(&stream.finish());
        if shows_secret(&output, &secret) {
            leaks.push(format!("{text:?} -> {output:?}"));
        }
    }
    assert!(leaks.is_empty(), "{}:\n{}", leaks.len(), leaks.join("\n"));
}

/// Scripts without spaces would otherwise wait for the end of the line.
#[test]
fn a_pause_releases_text_in_scripts_without_spaces() {
    let mut stream = StreamRedactor::new(Arc::new(default_redactor()));
    assert_eq!(stream.push("\u{4f60}\u{597d}\u{ff0c}\u{4e16}\u{754c}ab".as_bytes()), "");
    assert_eq!(stream.release_safe_text(), "\u{4f60}\u{597d}\u{ff0c}\u{4e16}\u{754c}");
    assert_eq!(stream.push("c\u{6587} http://me:\u{4f60}".as_bytes()), "");
    assert_eq!(stream.release_safe_text(), "abc\u{6587} ");
    assert_eq!(stream.push("\u{597d}22Zq9@host.test\n".as_bytes()), "http://me:***@host.test\n");
}

/// Components of texts that are difficult to judge.
const FRAGMENTS: &[&str] = &[
    "password",
    "token",
    "=",
    ": ",
    "\"",
    "'",
    "\\",
    "\\\"",
    " ",
    "\n",
    "\r\n",
    "@",
    "://",
    "me:",
    ".",
    ",",
    ";",
    "&",
    "***",
    "...",
    "sk-",
    "AKIA",
    "eyJ",
    "ghp_",
    "Bearer ",
    "Authorization: ",
    "Cookie: ",
    "a=",
    "host.test",
    "\u{1b}[31m",
    "\u{1b}]0;",
    "\u{7}",
    "\u{1b}",
    "é",
    "😀",
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "\\n",
    "--password ",
    "-u ",
    "is ",
    "ab\ncd",
    "ab\n",
    "ab\ncd\nefgh",
    "cd\nefgh",
    "secret",
    "<",
    ">",
    "/",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "$",
    "%3D",
    "login ",
    "1234",
    "Hunter22",
    "MIIEvQIBADANBgkqhkiG9w0B",
];

/// Generates a word, a secret or noise.
fn any_fragment() -> impl Strategy<Value = String> {
    let secret = (0..SECRET_TEMPLATES.len(), any::<u64>())
        .prop_map(|(kind, seed)| SeededRng(seed | 1).expand(SECRET_TEMPLATES[kind]));
    let password = any::<u64>().prop_map(|seed| SeededRng(seed | 1).expand("{p12}"));
    let token = any::<u64>().prop_map(|seed| SeededRng(seed | 1).expand("{a24}"));
    let word = proptest::sample::select(FRAGMENTS).prop_map(str::to_owned);
    prop_oneof![8 => word, 1 => secret, 1 => password, 1 => token, 1 => "[ -~]{1,12}"]
}

fn any_text() -> impl Strategy<Value = String> {
    proptest::collection::vec(any_fragment(), 0..40).prop_map(|parts| parts.concat())
}

fn test_redactor() -> Arc<Redactor> {
    static REDACTOR: LazyLock<Arc<Redactor>> = LazyLock::new(|| {
        Arc::new(Redactor::new(["ab\ncd\nefgh".to_owned(), "registered 1".to_owned()]))
    });
    Arc::clone(&REDACTOR)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn redaction_is_idempotent(text in any_text()) {
        let once = test_redactor().redact(&text).into_owned();
        prop_assert_eq!(test_redactor().redact(&once).into_owned(), once);
    }

    #[test]
    fn redaction_does_not_depend_on_the_chunks(text in any_text(), seed in 1_u64.., max_chunk in 1_usize..90) {
        let mut rng = SeededRng(seed);
        let pieces = redact_in_pieces(test_redactor(), text.as_bytes(), || 1 + rng.next_below(max_chunk));
        prop_assert_eq!(pieces, test_redactor().redact(&text).into_owned());
    }

    #[test]
    fn invalid_utf_8_is_replaced(bytes in proptest::collection::vec(any::<u8>(), 0..200), seed in 1_u64..) {
        let mut rng = SeededRng(seed);
        let pieces = redact_in_pieces(test_redactor(), &bytes, || 1 + rng.next_below(4));
        prop_assert_eq!(pieces, test_redactor().redact(&String::from_utf8_lossy(&bytes)).into_owned());
    }
}
