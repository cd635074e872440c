//! Selection of rules: one search for the literals of all rules, then only the rules whose literals were found.

pub(crate) mod context_rules;
pub(crate) mod discord_token;
pub(crate) mod email;
pub(crate) mod key_value;
pub(crate) mod pem;
pub(crate) mod personal;
pub(crate) mod plausibility;
pub(crate) mod token_formats;

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::bytes::Regex;

use self::context_rules::{cookies, headers, options, sentences, userinfo};
use self::email::emails;
use self::key_value::pairs;
use self::plausibility::MAX_JUDGED_BYTES;
use self::token_formats::{MatchCondition, TOKEN_FORMATS, TokenFormat};
use super::spans::{SecretSpan, VisiblePart};
use super::text::boundary::begins_word;
use super::text::pattern::compile;

/// Family of rules that share their key words.
type RuleFamily = fn(&[u8], &mut Vec<SecretSpan>);

/// Key words, case-insensitive, and the families that they select.
pub(super) const RULE_FAMILIES: &[(&[&str], &[RuleFamily])] = &[
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

/// Text that requires an inspection besides known literals: escape sequences and keys in PEM.
const ALWAYS_INSPECTED: &[&str] = &["\u{1b}", "private key", "private+key", "private%20key"];

/// Compiled token formats, in the order of their table.
pub(super) static COMPILED_FORMATS: LazyLock<Vec<(&'static TokenFormat, Option<Regex>)>> =
    LazyLock::new(|| {
        TOKEN_FORMATS
            .iter()
            .map(|token_format| (token_format, compile(token_format.pattern)))
            .collect()
    });

/// Automaton of the key words; the number of a pattern is an index into `KEYWORD_ROWS`.
static KEYWORD_AUTOMATON: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let words = RULE_FAMILIES.iter().flat_map(|(words, _)| words.iter());
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words.chain(ALWAYS_INSPECTED))
        .ok()
});

/// Row of `RULE_FAMILIES` for each key word.
static KEYWORD_ROWS: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let rows = RULE_FAMILIES.iter().enumerate();
    rows.flat_map(|(row, (words, _))| std::iter::repeat_n(row, words.len())).collect()
});

/// Iterates over all key words; `None` if their automaton is missing.
pub(super) fn keywords() -> Option<impl Iterator<Item = &'static str>> {
    let words = RULE_FAMILIES.iter().flat_map(|(words, _)| words.iter());
    KEYWORD_AUTOMATON.is_some().then(|| words.chain(ALWAYS_INSPECTED).copied())
}

/// Returns the range of the first key word from `at` on.
pub(super) fn next_keyword(text: &[u8], at: usize) -> Option<(usize, usize)> {
    // Without the automaton every position counts as a hit, so that everything is inspected.
    let Some(words) = KEYWORD_AUTOMATON.as_ref() else { return Some((at, at)) };
    words.find(text.get(at..)?).map(|found| (at + found.start(), at + found.end()))
}

/// Runs the families that the line's key words select.
pub(super) fn apply_keyword_rules(line: &[u8], spans: &mut Vec<SecretSpan>) {
    let mut called: Vec<RuleFamily> = Vec::new();
    let all = || RULE_FAMILIES.iter().flat_map(|(_, families)| families.iter());
    match KEYWORD_AUTOMATON.as_ref() {
        // All families run: slow, but nothing is missed.
        None => called.extend(all()),
        Some(words) => {
            let mut rows = 0_u32;
            // Overlapping, because one key word may contain another one of a different row.
            for found in words.find_overlapping_iter(line) {
                let row = KEYWORD_ROWS.get(found.pattern().as_usize());
                rows |= row.map_or(0, |row| 1 << row);
            }
            let marked = RULE_FAMILIES.iter().enumerate().filter(|(row, _)| rows >> row & 1 == 1);
            called.extend(marked.flat_map(|(_, (_, families))| families.iter()));
        }
    }
    let mut done: Vec<RuleFamily> = Vec::new();
    for family in called {
        // Several rows select the same family, and it inspects the whole line each time.
        if !done.iter().any(|known| std::ptr::fn_addr_eq(*known, family)) {
            family(line, spans);
            done.push(family);
        }
    }
}

/// Runs the token formats whose bit is set.
pub(super) fn apply_token_formats(line: &[u8], selected: u128, spans: &mut Vec<SecretSpan>) {
    for (_, (token_format, pattern)) in
        COMPILED_FORMATS.iter().enumerate().filter(|(bit, _)| selected >> bit & 1 == 1)
    {
        let Some(pattern) = pattern else { continue };
        let mut from = 0;
        while let Some(found) = pattern.captures_at(line, from) {
            let Some(full_match) = found.get(0) else { break };
            let keep = found.get(1).map_or(0, |prefix| prefix.len());
            // The text after the longest token of this format consists of the same characters.
            let end = full_match
                .end()
                .min((full_match.start() + keep).saturating_add(token_format.max_bytes));
            let body = line.get(full_match.start() + keep..end).unwrap_or_default();
            let judged = body.get(..MAX_JUDGED_BYTES).unwrap_or(body);
            let starts_word = begins_word(line, full_match.start())
                || TokenFormat::is_in_run(line, &full_match.range(), keep);
            if starts_word && meets_condition(token_format.condition, judged) && is_varied(judged) {
                let tail = token_format.tail && end == full_match.end();
                let form = if tail { VisiblePart::Tail(keep) } else { VisiblePart::Stars(keep) };
                spans.push(SecretSpan::without_context(full_match.start()..end, form));
            }
            // After the end of the format and not of the match: a second token may follow directly.
            from = end.max(full_match.start() + 1);
        }
    }
}

fn meets_condition(condition: MatchCondition, body: &[u8]) -> bool {
    let digit = body.iter().any(u8::is_ascii_digit);
    let letters =
        body.iter().any(u8::is_ascii_uppercase) && body.iter().any(u8::is_ascii_lowercase);
    match condition {
        MatchCondition::Nothing => true,
        MatchCondition::Digit => digit,
        MatchCondition::MixedCaseAndDigit => digit && letters,
    }
}

/// Returns true if the body contains more than four different bytes: `xxxx…` is a placeholder.
fn is_varied(body: &[u8]) -> bool {
    let seen = body.iter().fold(0_u128, |seen, byte| seen | 1 << (byte & 127));
    seen.count_ones() > 4
}
