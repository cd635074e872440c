//! Text that is released early, in the middle of its lines, equals the text without early releases.

use std::sync::{Arc, LazyLock};

use algonius_actors::decide::output::early_redaction::EarlyReleaseRedactor;
use algonius_redact::Redactor;
use proptest::prelude::*;

const SECRET: &str = "correct-horse battery";

/// Costly to build, so built once.
static REDACTOR: LazyLock<Arc<Redactor>> =
    LazyLock::new(|| Arc::new(Redactor::new([SECRET.to_owned()])));

/// Words that are harmless, announce a secret, are one or are a part of one.
const WORDS: &[&str] = &[
    "Continue? [y/N] ",
    "name: ",
    "password",
    ": ",
    "=",
    "hunter22",
    " ",
    "\n",
    "é",
    "correct-",
    "correct-horse",
    " battery",
    "battery",
    "Bearer ",
    "abcdef0123456789abcdef0123456789",
    "https://",
    "ann:hush-hush@",
    "密码，",
    "api ",
    "key: ",
    "-----BEGIN ",
    "PRIVATE KEY-----\n",
    "MIIabcdefghijklmnop\n",
    "-----END ",
    "host/",
    "\u{1b}[1m",
    "\u{1b}[0m",
    "ann@mail.example",
    "\"",
    "\r\n",
];

fn words() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(proptest::sample::select(WORDS), 0..40)
}

/// Returns all text that a stream releases, with early releases after some of the pieces.
fn redact_with_releases(text: &str, chunk_size: usize, release_pattern: &[bool]) -> String {
    let mut stream = EarlyReleaseRedactor::new(Arc::clone(&REDACTOR));
    let mut released = String::new();
    let mut release_flags = release_pattern.iter().cycle();
    for piece in text.as_bytes().chunks(chunk_size) {
        stream.push_to(piece, &mut released);
        if *release_flags.next().unwrap() {
            released.push_str(&stream.release_line_start());
        }
    }
    released + &stream.finish()
}

#[test]
fn a_released_prefix_still_marks_its_secret() {
    for (text, secret) in [
        ("\"my password\": \"hush hush\"\n", "hush"),
        (
            "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n",
            "MII",
        ),
        ("log in with -u ann:hush-hush now\n", "hush"),
        ("see correct-horse battery\n", "horse"),
        ("é password = hush-hush-hush\n", "hush"),
    ] {
        let early = redact_with_releases(text, 1, &[true]);
        assert_eq!(early, REDACTOR.redact(text).into_owned());
        assert!(!early.contains(secret), "{early}");
    }
}

#[test]
fn harmless_words_are_released_before_the_line_ends() {
    let mut stream = EarlyReleaseRedactor::new(Arc::clone(&REDACTOR));
    assert_eq!(stream.push(b"Continue? [y/N] "), "");
    assert_eq!(stream.release_line_start(), "Continue? [y/N] ");
    assert_eq!(stream.release_line_start(), "");
    assert_eq!(stream.push(b"yes or no pass"), "");
    assert_eq!(stream.release_line_start(), "yes or no ");
    assert_eq!(stream.push(b"word: hunter22\nnext "), "password: ***\n");
    assert_eq!(stream.release_line_start(), "next ");
    assert_eq!(stream.finish(), "");
}

proptest! {
    #[test]
    fn redaction_does_not_depend_on_the_release_points(
        words in words(),
        size in 1_usize..20,
        releases in proptest::collection::vec(any::<bool>(), 1..20),
    ) {
        let text = words.concat();
        prop_assert_eq!(redact_with_releases(&text, size, &releases), REDACTOR.redact(&text).into_owned());
    }
}
