//! Neither the pieces in which a text comes nor a second masking changes what is masked.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;

use super::super::{Redactor, Stream};
use super::corpus::{Dice, SHAPED};
use super::{corpus, none, registered, shows};

/// Sends `text` through a stream in pieces whose sizes `size` tells.
pub(super) fn streamed(
    redactor: Arc<Redactor>,
    text: &[u8],
    mut size: impl FnMut() -> usize,
) -> String {
    let mut stream = Stream::new(redactor);
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(size().clamp(1, rest.len()));
        out.push_str(&stream.push(piece));
        rest = tail;
    }
    out + &stream.finish()
}

#[test]
fn no_boundary_shows_what_the_whole_hides() {
    let all = corpus(99);
    let text: String = all.iter().map(|(_, text)| format!("{text}\n")).collect();
    let whole = none().redact(&text).into_owned();
    let mut dice = Dice(1);
    assert_eq!(streamed(Arc::new(none()), text.as_bytes(), || 1), whole);
    assert_eq!(streamed(Arc::new(none()), text.as_bytes(), || 64), whole);
    assert_eq!(streamed(Arc::new(none()), text.as_bytes(), || 1 + dice.below(300)), whole);
    assert_eq!(streamed(Arc::new(none()), text.as_bytes(), || usize::MAX), whole);
}

#[test]
fn a_registered_value_of_more_lines_is_held_until_it_ends() {
    let text = "x ab\ncd\nefgh\nlast\nx ab\ncd\nx\n";
    let whole = "x ***\n***\n***\n***\nx ab\ncd\nx\n";
    for size in [1, 2, 3, 5, 8, 100] {
        let redactor = Arc::new(registered("ab\ncd\nefgh\nlast"));
        assert_eq!(streamed(redactor, text.as_bytes(), || size), whole);
    }
}

#[test]
fn a_mention_of_a_key_waits_for_a_line_of_any_length_that_is_short() {
    let text =
        format!("{}-----BEGIN PRIVATE KEY-----\n{}\n", "of ".repeat(1000), "w ".repeat(3500));
    for size in [1, 100, 5000, usize::MAX] {
        assert_eq!(streamed(Arc::new(none()), text.as_bytes(), || size), text, "{size}");
    }
}

#[test]
fn long_lines_show_no_secret_and_hold_little_back() {
    let mut all = corpus(5);
    all.retain(|(_, text)| !text.starts_with("  password"));
    let one_line = |between: &str| -> String {
        let texts = all.iter().filter(|(_, text)| !text.contains(['\n', '\r']));
        texts.map(|(_, text)| format!("{text}{between}")).collect()
    };
    for between in [" ", " and more words ", "\t"] {
        let text = one_line(between);
        let mut dice = Dice(2);
        let masked = streamed(Arc::new(none()), text.as_bytes(), || 1 + dice.below(300));
        for (secret, text) in &all {
            assert!(!shows(&masked, secret), "{secret} of {text} in a long line");
        }
    }
}

#[test]
fn a_run_without_a_place_to_cut_is_masked_to_white_space() {
    let token = Dice(8).fill("{a30000}");
    let mut stream = Stream::new(Arc::new(none()));
    let mut out = String::new();
    for piece in format!("before {token} after\n").as_bytes().chunks(100) {
        out.push_str(&stream.push(piece));
    }
    out.push_str(&stream.finish());
    assert_eq!(out, "before *** after\n");
}

#[test]
fn an_endless_key_holds_little_back() {
    let mut stream = Stream::new(Arc::new(none()));
    stream.push(b"-----BEGIN PRIVATE KEY-----\n");
    for _ in 0..10_000 {
        let line = Dice(9).fill("{b64}\n");
        assert_eq!(stream.push(line.as_bytes()), "");
    }
    assert_eq!(
        stream.push(b"-----END PRIVATE KEY----- ok\n"),
        "-----BEGIN PRIVATE KEY-----***-----END PRIVATE KEY----- ok\n"
    );
}

#[test]
fn a_pause_releases_only_what_is_safe() {
    let mut stream = Stream::new(Arc::new(registered("two words here")));
    assert_eq!(stream.push(b"Continue? [y/N] two wo"), "");
    assert_eq!(stream.idle(), "Continue? [y/N] ");
    assert_eq!(stream.idle(), "");
    assert_eq!(stream.push(b"rds here and password: "), "");
    assert_eq!(stream.idle(), "");
    assert_eq!(stream.push(b"Hunter22\n"), "*** and password: ***\n");
    assert_eq!((stream.finish(), stream.count()), (String::new(), 2));
}

/// Words of which texts are made that try to confuse.
const WORDS: &[&str] = &[
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

/// A word, a secret or noise.
fn fragment() -> impl Strategy<Value = String> {
    let secret =
        (0..SHAPED.len(), any::<u64>()).prop_map(|(kind, seed)| Dice(seed | 1).fill(SHAPED[kind]));
    let random = any::<u64>().prop_map(|seed| Dice(seed | 1).fill("{p12}"));
    let token = any::<u64>().prop_map(|seed| Dice(seed | 1).fill("{a24}"));
    let word = proptest::sample::select(WORDS).prop_map(str::to_owned);
    prop_oneof![8 => word, 1 => secret, 1 => random, 1 => token, 1 => "[ -~]{1,12}"]
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(fragment(), 0..40).prop_map(|parts| parts.concat())
}

fn some() -> Arc<Redactor> {
    static SOME: LazyLock<Arc<Redactor>> = LazyLock::new(|| {
        Arc::new(Redactor::new(["ab\ncd\nefgh".to_owned(), "registered 1".to_owned()]))
    });
    Arc::clone(&SOME)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn masking_twice_changes_nothing(text in text()) {
        let once = some().redact(&text).into_owned();
        prop_assert_eq!(some().redact(&once).into_owned(), once);
    }

    #[test]
    fn the_pieces_in_which_a_text_comes_do_not_matter(text in text(), seed in 1_u64.., most in 1_usize..90) {
        let mut dice = Dice(seed);
        let pieces = streamed(some(), text.as_bytes(), || 1 + dice.below(most));
        prop_assert_eq!(pieces, some().redact(&text).into_owned());
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced(bytes in proptest::collection::vec(any::<u8>(), 0..200), seed in 1_u64..) {
        let mut dice = Dice(seed);
        let pieces = streamed(some(), &bytes, || 1 + dice.below(4));
        prop_assert_eq!(pieces, some().redact(&String::from_utf8_lossy(&bytes)).into_owned());
    }
}
