//! Which rules a line calls for: one search for all their literals, then only those rules.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::bytes::Regex;

use super::edge::begins_word;
use super::email::emails;
use super::pairs::pairs;
use super::pattern::compiled;
use super::places::{cookies, headers, options, sentences, userinfo};
use super::shapes::{Needs, SHAPES, Shape};
use super::span::{Form, Span};

/// A family of rules that share their key words.
type Family = fn(&[u8], &mut Vec<Span>);

/// Key words, in any case of letters, and the families they call for.
pub(super) const FAMILIES: &[(&[&str], &[Family])] = &[
    (&["passw", "passp", "passc"], &[pairs, options, sentences]),
    (&["pass=", "pass:", "pass\"", "pass'", "pass ", "pass\\", "pass%", "pwd"], &[pairs, options]),
    (&["secret", "token", "credential"], &[pairs, options, sentences]),
    (&["apikey", "api-key", "api_key", "api.key", "api key"], &[pairs, options, sentences]),
    (&["_key", "-key", ".key", "auth", "signature"], &[pairs, options]),
    (
        &[
            "privatekey",
            "accesskey",
            "accountkey",
            "encryptionkey",
            "signingkey",
            "subscriptionkey",
        ],
        &[pairs],
    ),
    (
        &["functionkey", "functionskey", "masterkey", "deploykey", "licensekey", "sessionkey"],
        &[pairs],
    ),
    (
        &["clientkey", "servicekey", "webhookkey", "jwtkey", "hmackey", "adminkey", "appkey"],
        &[pairs],
    ),
    (&["storagekey", "hostkey", "encryptkey"], &[pairs]),
    (&["authorization", "bearer"], &[headers]),
    (&["cookie"], &[cookies]),
    (&["@"], &[userinfo, emails]),
    (&[" -u", "-u ", "-u=", "\"-u", "'-u", "--user", "--proxy-user"], &[options]),
];

/// What is in a line besides known literals and must be looked at: escapes and keys in PEM.
const ALWAYS: &[&str] = &["\u{1b}", "private key", "private+key", "private%20key"];

/// The compiled shapes, beside their table.
pub(super) static COMPILED: LazyLock<Vec<(&'static Shape, Option<Regex>)>> =
    LazyLock::new(|| SHAPES.iter().map(|shape| (shape, compiled(shape.pattern))).collect());

/// The key words, in one automaton; a pattern's number is a place in `WORD_FAMILIES`.
static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let words = FAMILIES.iter().flat_map(|(words, _)| words.iter());
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words.chain(ALWAYS))
        .ok()
});

/// The row of `FAMILIES` of each key word.
static WORD_FAMILIES: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let rows = FAMILIES.iter().enumerate();
    rows.flat_map(|(row, (words, _))| std::iter::repeat_n(row, words.len())).collect()
});

/// All key words, where there is a search for them.
pub(super) fn words() -> Option<impl Iterator<Item = &'static str>> {
    let words = FAMILIES.iter().flat_map(|(words, _)| words.iter());
    WORDS.is_some().then(|| words.chain(ALWAYS).copied())
}

/// The first key word from `at` on.
pub(super) fn next_word(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let Some(words) = WORDS.as_ref() else { return Some((at, at)) };
    words.find(text.get(at..)?).map(|found| (at + found.start(), at + found.end()))
}

/// Runs the families that the line's key words call for.
pub(super) fn by_words(line: &[u8], spans: &mut Vec<Span>) {
    let mut called: Vec<Family> = Vec::new();
    let all = || FAMILIES.iter().flat_map(|(_, families)| families.iter());
    match WORDS.as_ref() {
        None => called.extend(all()),
        Some(words) => {
            let mut rows = 0_u32;
            for found in words.find_overlapping_iter(line) {
                let row = WORD_FAMILIES.get(found.pattern().as_usize());
                rows |= row.map_or(0, |row| 1 << row);
            }
            let marked = FAMILIES.iter().enumerate().filter(|(row, _)| rows >> row & 1 == 1);
            called.extend(marked.flat_map(|(_, (_, families))| families.iter()));
        }
    }
    let mut done: Vec<Family> = Vec::new();
    for family in called {
        if !done.iter().any(|known| std::ptr::fn_addr_eq(*known, family)) {
            family(line, spans);
            done.push(family);
        }
    }
}

/// Runs the shapes whose bit is set.
pub(super) fn by_shapes(line: &[u8], wanted: u128, spans: &mut Vec<Span>) {
    for (_, (shape, pattern)) in
        COMPILED.iter().enumerate().filter(|(bit, _)| wanted >> bit & 1 == 1)
    {
        let Some(pattern) = pattern else { continue };
        for found in pattern.captures_iter(line) {
            let Some(whole) = found.get(0) else { continue };
            let keep = found.get(1).map_or(0, |kept| kept.len());
            let body = whole.as_bytes().get(keep..).unwrap_or_default();
            if begins_word(line, whole.start()) && holds(shape.needs, body) && is_varied(body) {
                let form = if shape.tail { Form::Tail(keep) } else { Form::Stars(keep) };
                spans.push(Span::shape(whole.range(), form));
            }
        }
    }
}

fn holds(needs: Needs, body: &[u8]) -> bool {
    let digit = body.iter().any(u8::is_ascii_digit);
    let letters =
        body.iter().any(u8::is_ascii_uppercase) && body.iter().any(u8::is_ascii_lowercase);
    match needs {
        Needs::Nothing => true,
        Needs::Digit => digit,
        Needs::Mixture => digit && letters,
    }
}

/// Whether more than four different bytes are in it: `xxxx…` is a stand-in.
fn is_varied(body: &[u8]) -> bool {
    let seen = body.iter().fold(0_u128, |seen, byte| seen | 1 << (byte & 127));
    seen.count_ones() > 4
}
