//! Tests: a long word is returned unchanged, apart from the secrets in it.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::{Redactor, StreamRedactor};
use super::corpus::{SECRET_TEMPLATES, SeededRng};
use super::streaming::redact_in_pieces;
use super::{default_redactor, redactor_with_value};
use crate::rules::pem::DROPPED_BODY_PLACEHOLDER;

/// Length of the longest line that the stream holds back as a whole, without registered values.
const WINDOW_BYTES: usize = 12 * 1024;

/// Maximum number of bytes in memory of one stream: a window and its context, and a piece of the input.
const MAX_STREAM_BYTES: usize = 64 * 1024;

type LongWordGenerator = fn(&mut SeededRng, usize) -> String;

/// Kinds of long words, and the separator between the word and a secret.
const LONG_WORD_KINDS: &[(&str, LongWordGenerator, &str)] = &[
    ("letters", |rng, length| rng.expand(&format!("{{l{length}}}")), ","),
    ("mixed", |rng, length| rng.expand(&format!("{{a{length}}}")), "|"),
    ("base64", |rng, length| rng.expand(&format!("{{b{length}}}")), "="),
    ("hex", |rng, length| rng.expand(&format!("{{h{length}}}")), ":"),
    ("CJK", |rng, length| (0..length / 3).map(|_| cjk_letter(rng)).collect(), "。"),
    ("JSON", long_json, ",\"k\":"),
    ("one letter", |_, length| "x".repeat(length), "("),
    ("slashes", |_, length| "\\".repeat(length), "\""),
    ("brackets", |_, length| "[{(".repeat(length / 3), " "),
];

fn cjk_letter(rng: &mut SeededRng) -> char {
    let number = 0x4e00 + u32::try_from(rng.next_below(0x5000)).unwrap();
    char::from_u32(number).unwrap()
}

/// Minified JSON with keys and values that rules inspect and leave unchanged.
fn long_json(rng: &mut SeededRng, length: usize) -> String {
    let mut out = String::new();
    while out.len() < length {
        let (id, count) = (rng.expand("{h32}"), rng.next_below(5000));
        out.push_str(&format!(
            "{{\"id\":\"{id}\",\"max_tokens\":{count},\"author\":\"x\",\"url\":\"https://h.test/{count}\",\
             \"text\":\"a@b @ c\\u00e4 token\"}},"
        ));
    }
    out
}

/// Streams `text` in pieces of several sizes, compares each result with `expected`, and
/// reports the first difference.
fn assert_redacts_to(redactor: &Arc<Redactor>, text: &str, expected: &str, description: &str) {
    let mut rng = SeededRng(41);
    let sizes: [&mut dyn FnMut() -> usize; 5] =
        [&mut || 7, &mut || 64, &mut || 4096, &mut || usize::MAX, &mut || 1 + rng.next_below(9000)];
    for (index, size) in sizes.into_iter().enumerate() {
        let streamed = redact_in_pieces(Arc::clone(redactor), text.as_bytes(), size);
        assert_equal(&streamed, expected, &format!("{description}, {index}"));
    }
    assert_equal(&redactor.redact(text), expected, &format!("{description}, whole"));
}

fn assert_equal(actual: &str, expected: &str, description: &str) {
    let mismatch_at = actual.bytes().zip(expected.bytes()).position(|(left, right)| left != right);
    let mismatch_at = mismatch_at.unwrap_or(actual.len().min(expected.len()));
    let around = |text: &str| {
        let from = text.floor_char_boundary(mismatch_at.saturating_sub(20));
        text.get(from..text.floor_char_boundary(mismatch_at + 20)).unwrap().to_owned()
    };
    assert!(
        actual == expected,
        "{description}: {} bytes, not {}; at {mismatch_at}: {:?}, not {:?}",
        actual.len(),
        expected.len(),
        around(actual),
        around(expected)
    );
}

#[test]
fn a_long_word_without_a_secret_is_unchanged() {
    let redactor = Arc::new(default_redactor());
    for (kind, generate_word, _) in LONG_WORD_KINDS {
        for length in [1 << 10, WINDOW_BYTES - 1, WINDOW_BYTES, WINDOW_BYTES + 1, 40_000, 100_000] {
            let text = generate_word(&mut SeededRng(7), length);
            assert_redacts_to(&redactor, &text, &text, &format!("{length} of {kind}"));
            let line = format!("before\n{text}\nafter\n");
            assert_redacts_to(&redactor, &line, &line, &format!("{length} of {kind} as a line"));
        }
    }
}

#[test]
fn a_long_word_is_unchanged_byte_by_byte() {
    let redactor = Arc::new(default_redactor());
    for (kind, generate_word, _) in LONG_WORD_KINDS {
        let text = generate_word(&mut SeededRng(9), 40_000);
        assert_equal(&redact_in_pieces(Arc::clone(&redactor), text.as_bytes(), || 1), &text, kind);
    }
}

/// Returns secrets with their redacted form, and whether each is recognized without a separator from the word.
fn redaction_cases() -> Vec<(String, String, bool)> {
    let mut rng = SeededRng(77);
    let github = rng.expand("ghp_{a36}");
    let token = rng.expand("sk-ant-api03-{w93}AA");
    let (head, body) = (rng.expand("eyJ{a30}.eyJ{a900}"), rng.expand("{a42}"));
    let key = rng.expand("{b64}\\n{b64}\\n");
    let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
    let last_four = |text: &str| text.get(text.len() - 4..).unwrap().to_owned();
    vec![
        ("registered-value-1".to_owned(), "***".to_owned(), true),
        (format!("{begin}\\n{key}{end}"), format!("{begin}***{end}"), true),
        (format!("\"{github}\""), format!("\"ghp_...{}\"", last_four(&github)), false),
        (format!("\"{token}\""), format!("\"sk-ant-...{}\"", last_four(&token)), false),
        (format!("\"{head}.{body}\""), format!("\"eyJ...{}\"", last_four(&body)), false),
        ("\"password\":\"Hunter22!\",".to_owned(), "\"password\":\"***\",".to_owned(), false),
        ("<jane.doe@host.test>".to_owned(), "<j***@host.test>".to_owned(), false),
        ("(db://me:Hunter22@host)".to_owned(), "(db://me:***@host)".to_owned(), false),
    ]
}

/// The secret moves over each border of a window: of the first window, of the next one, and of the lookahead.
#[test]
fn a_secret_inside_a_long_word_is_masked_alone() {
    let redactor = Arc::new(redactor_with_value("registered-value-1"));
    let window = redactor.window_bytes();
    let borders = [8 << 10, window, window + (4 << 10)];
    for (kind, generate_word, separator) in LONG_WORD_KINDS {
        let word = generate_word(&mut SeededRng(5), 2 * window);
        for (secret, redacted, needs_no_separator) in redaction_cases() {
            let separator = if needs_no_separator { "" } else { separator };
            let (max_distance, step) = (secret.len() + 40, secret.len() / 2 + 23);
            for at in borders.into_iter().flat_map(|border: usize| {
                (border.saturating_sub(max_distance)..border + max_distance).step_by(step)
            }) {
                let at = word.floor_char_boundary(at);
                let (head, tail) = word.split_at(at);
                let text = format!("{head}{separator}{secret}{separator}{tail}");
                let expected = format!("{head}{separator}{redacted}{separator}{tail}");
                let description = format!("{redacted} at {at} of {kind}");
                if kind == &"slashes" && secret.starts_with('"') {
                    continue; // An escaped quote after a key is another text.
                }
                let stream = redact_in_pieces(Arc::clone(&redactor), text.as_bytes(), || 4096);
                assert_equal(&stream, &expected, &description);
            }
        }
    }
}

#[test]
fn a_secret_at_the_end_of_a_long_word_is_masked_alone() {
    let redactor = Arc::new(redactor_with_value("registered-value-1"));
    for (kind, generate_word, separator) in LONG_WORD_KINDS {
        for (secret, redacted, needs_no_separator) in redaction_cases() {
            if kind == &"slashes" && secret.starts_with('"') {
                continue;
            }
            let separator = if needs_no_separator { "" } else { separator };
            let word = generate_word(&mut SeededRng(6), 26_000);
            for end in ["", "\n", "\nand on"] {
                let text = format!("{word}{separator}{secret}{end}");
                let expected = format!("{word}{separator}{redacted}{end}");
                assert_redacts_to(&redactor, &text, &expected, kind);
            }
        }
    }
}

/// There is no separator between the letters and the prefix, nor after the token.
#[test]
fn a_token_is_found_within_letters() {
    let redactor = Arc::new(default_redactor());
    let mut rng = SeededRng(19);
    let word = rng.expand("{l20000}");
    for template in ["ghp_{a36}", "sk-ant-api03-{w93}AA", "glpat-{w19}a", "xoxb-{d12}-{d12}-{a24}"]
    {
        let token = rng.expand(template);
        let text = format!("{word}{token}{word}");
        let redacted = redactor.redact(&text);
        assert!(!redacted.contains(token.get(8..).unwrap()), "{template}");
        assert!(redacted.starts_with(&word), "{template}");
        let removed_bytes = text.len() - redacted.len();
        assert!(removed_bytes < 600 || template.starts_with('x'), "{template}: {removed_bytes}");
    }
    let redacted = redactor.redact(&format!("{word}jane@host.test,{word}")).into_owned();
    assert!(!redacted.contains("jane@"), "{}", redacted.len());
    assert!(redacted.contains("***@host.test,"), "{}", redacted.len());
}

#[test]
fn a_secret_of_any_length_is_masked_to_its_end() {
    let redactor = Arc::new(redactor_with_value("aaaaaaaaab"));
    let mut rng = SeededRng(23);
    for length in [9_000, 13_000, 100_000] {
        let token = rng.expand(&format!("{{a{length}}}"));
        let last_four = token.get(length - 4..).unwrap();
        for (text, expected) in [
            (format!("x token={token} y"), format!("x token=...{last_four} y")),
            (
                format!("{{\"password\":\"{token}\\\\\",\"n\":1}}"),
                "{\"password\":\"***\",\"n\":1}".to_owned(),
            ),
            (
                format!("{{\"password\":\"{}\\\"b1\",\"n\":1}}", "\\\\".repeat(length)),
                "{\"password\":\"***\",\"n\":1}".to_owned(),
            ),
            (
                format!("(eyJ{}.eyJ{token}.{token},x", token.get(..600).unwrap()),
                format!("(eyJ...{last_four},x"),
            ),
            (
                format!("<-----BEGIN PRIVATE KEY-----{token}-----END PRIVATE KEY-----{token}"),
                format!("<-----BEGIN PRIVATE KEY-----***-----END PRIVATE KEY-----{token}"),
            ),
            (format!("{}b", "a".repeat(length)), format!("{}***", "a".repeat(length - 9))),
            ("aaaaaaaaab".repeat(length / 10), "***".repeat(length / 10)),
        ] {
            let long_text = format!("{token}\n{text}\n{token}");
            let expected = format!("{token}\n{expected}\n{token}");
            assert_redacts_to(&redactor, &long_text, &expected, text.get(..24).unwrap());
        }
    }
}

/// The text after the first KiB of a value does not change the judgement of the value.
#[test]
fn a_value_is_judged_by_its_first_kilobyte() {
    let redactor = Arc::new(default_redactor());
    let name = format!("my_{}", "name_".repeat(5_000));
    for text in [
        format!("token={name} x"),
        format!("token={name}7Hx x"),
        format!("token={}1 x", "1".repeat(30_000)),
    ] {
        assert_redacts_to(&redactor, &text, &text, text.get(..20).unwrap());
    }
}

/// A token may contain hyphens, so it seems to continue in the header of the key that follows it.
#[test]
fn a_key_directly_behind_a_token_is_masked_to_its_end() {
    let redactor = Arc::new(default_redactor());
    for length in [100, 9_000, 12_170, 12_193, 12_240, 12_300, 30_000] {
        let mut rng = SeededRng(43);
        let (token, long_key_line) =
            (rng.expand("glpat-{a20}"), rng.expand(&format!("{{b{length}}}")));
        let last_key_line = rng.expand("{b64}");
        let key_lines = format!("{long_key_line}\n{last_key_line}");
        let key = format!("-----BEGIN PRIVATE KEY-----{key_lines}\n-----END PRIVATE KEY-----");
        let text = format!("{token}{key}\nthe end");
        let redacted = redactor.redact(&text).into_owned();
        assert_redacts_to(&redactor, &text, &redacted, &length.to_string());
        let shows = |text: &str| redacted.contains(text);
        assert!(
            !shows(&token) && !shows(&last_key_line) && !shows(DROPPED_BODY_PLACEHOLDER),
            "{length}: {redacted}"
        );
        assert!(!shows(long_key_line.get(length - 32..).unwrap()), "{length}: {redacted}");
        assert!(redacted.ends_with("-----END PRIVATE KEY-----\nthe end"), "{length}: {redacted}");
    }
}

#[test]
fn colors_in_a_long_word_hide_no_secret() {
    let redactor = Arc::new(redactor_with_value("registered-value-1"));
    for (color, length) in [("\u{1b}[1m", 40_000), ("\u{1b}[38;5;200m", 200_000)] {
        let unit = format!("{color}w{color}");
        let word = unit.repeat(length / unit.len());
        let secret = "registered-value-1".split("").collect::<Vec<_>>().join(color);
        for at in (0..word.len()).step_by(word.len() / 7) {
            let at = at / unit.len() * unit.len();
            let (head, tail) = word.split_at(at);
            let text = format!("{head}{secret}{tail}");
            let redacted = redactor.redact(&text).into_owned();
            let expected = format!("{head}{color}***{color}{tail}");
            assert_equal(&redacted, &expected, &format!("{at} of {}", word.len()));
            for size in [1000, 5003] {
                let redacted = redact_in_pieces(Arc::clone(&redactor), text.as_bytes(), || size);
                assert_equal(&redacted, &expected, &format!("{at} of {}, {size}", word.len()));
            }
        }
    }
}

#[test]
fn a_stream_buffers_little_of_a_long_word() {
    let mut rng = SeededRng(31);
    let long_word = rng.expand("{a1000000}");
    let texts = [
        long_word.clone(),
        format!("token={long_word}"),
        format!("-----BEGIN PRIVATE KEY-----{long_word}"),
        format!("-----BEGIN PRIVATE KEY-----\n{}", long_word.replace('a', "a\n")),
        format!("-----BEGIN PRIVATE KEY-----{}", "\n".repeat(1_000_000)),
        format!("{}\n", "-----BEGIN PRIVATE KEY-----\n".repeat(40_000)),
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----"
            .repeat(10_000),
        "password=\"".repeat(100_000),
        "a@".repeat(500_000),
        "x://a:".repeat(200_000),
        "cookie: a=".repeat(100_000),
        "\u{1b}[1m".repeat(250_000),
        "\u{1b}]0;".repeat(250_000),
        "registered-value-1".repeat(50_000),
    ];
    for text in texts {
        let mut stream = StreamRedactor::new(Arc::new(redactor_with_value("registered-value-1")));
        let mut max_buffered = 0;
        for piece in text.as_bytes().chunks(4096) {
            stream.push(piece);
            max_buffered = max_buffered.max(stream.buffered_bytes());
        }
        let limit =
            if text.starts_with('\u{1b}') { 16 * MAX_STREAM_BYTES } else { MAX_STREAM_BYTES };
        assert!(max_buffered <= limit, "{max_buffered} bytes of {:?}", text.get(..24).unwrap());
    }
}

/// The time for a word is proportional to its length, with and without hits.
#[test]
#[expect(clippy::disallowed_types, reason = "nothing here waits, so no clock is paused")]
fn redaction_of_a_long_word_takes_linear_time() {
    let redactor = Arc::new(default_redactor());
    let generators: Vec<fn(usize) -> String> = vec![
        |length| "x".repeat(length),
        |length| "\"token\":\"".repeat(length / 9),
        |length| "ghp_".repeat(length / 4),
        |length| "a@b.".repeat(length / 4),
        |length| "eyJaaaaaaaa.eyJ".repeat(length / 15),
        |length| format!("password={}", "x1".repeat(length / 2)),
        |length| "x://u:p".repeat(length / 7),
    ];
    for generate in generators {
        let time = |length: usize| {
            let text = generate(length);
            let begin = std::time::Instant::now();
            let redacted = redact_in_pieces(Arc::clone(&redactor), text.as_bytes(), || 65_536);
            assert!(!redacted.is_empty());
            begin.elapsed()
        };
        let (short_time, long_time) = (time(100_000), time(800_000));
        assert!(
            long_time < 24 * short_time + std::time::Duration::from_millis(300),
            "{short_time:?}, {long_time:?}: {}",
            generate(30)
        );
    }
}

/// Generates a long word, a secret or text that looks like the start of one.
fn any_fragment() -> impl Strategy<Value = String> {
    let long_word = (0..LONG_WORD_KINDS.len(), 1_usize..20_000, any::<u64>())
        .prop_map(|(kind, length, seed)| LONG_WORD_KINDS[kind].1(&mut SeededRng(seed | 1), length));
    let secret = (0..SECRET_TEMPLATES.len(), any::<u64>())
        .prop_map(|(kind, seed)| SeededRng(seed | 1).expand(SECRET_TEMPLATES[kind]));
    let short_fragment = proptest::sample::select(vec![
        "password=",
        "\"token\":\"",
        "\"",
        "://",
        "me:",
        "@",
        "host.test",
        "eyJ",
        ".",
        " ",
        "\\",
        "\u{1b}[1m",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "\n",
        "ab\ncd\nefgh",
        "registered 1",
        "***",
    ]);
    prop_oneof![3 => long_word, 2 => secret, 6 => short_fragment.prop_map(str::to_owned)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn long_lines_are_redacted_alike_for_any_chunks(
        parts in proptest::collection::vec(any_fragment(), 1..12), seed in 1_u64.., max_chunk in 1_usize..9000,
    ) {
        let text = parts.concat();
        let values = ["ab\ncd\nefgh".to_owned(), "registered 1".to_owned()];
        let redactor = Arc::new(Redactor::new(values));
        let mut rng = SeededRng(seed);
        let redacted_whole = redactor.redact(&text).into_owned();
        let pieces = redact_in_pieces(Arc::clone(&redactor), text.as_bytes(), || 1 + rng.next_below(max_chunk));
        prop_assert!(pieces == redacted_whole, "{} and {} bytes", pieces.len(), redacted_whole.len());
        prop_assert!(!redacted_whole.contains("registered 1"));
        prop_assert!(!redacted_whole.contains(DROPPED_BODY_PLACEHOLDER));
    }
}
