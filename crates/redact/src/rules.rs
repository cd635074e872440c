//! Selection of rules: one search for the literals of all rules, then only the rules whose literals were found.

pub(crate) mod context_rules;
pub(crate) mod discord_token;
pub(crate) mod email;
pub(crate) mod key_value;
pub(crate) mod numeric_values;
pub(crate) mod pem;
pub(crate) mod personal_numbers;
pub(crate) mod plausibility;
pub(crate) mod token_formats;

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::bytes::Regex;

use self::context_rules::{
    find_cookie_secrets, find_header_secrets, find_option_secrets, find_sentence_secrets,
    find_userinfo_passwords,
};
use self::email::find_emails;
use self::key_value::find_key_value_secrets;
use self::plausibility::MAX_JUDGED_BYTES;
use self::token_formats::{MatchCondition, TOKEN_FORMATS, TokenFormat};
use super::spans::{SecretSpan, VisiblePart};
use super::text::boundary::is_word_start;
use super::text::pattern::compile_constant;

/// Family of rules that share their key words.
type RuleFamily = fn(&[u8], &mut Vec<SecretSpan>);

/// Key words, case-insensitive, and the families that they select.
pub(super) const RULE_FAMILIES_BY_KEYWORD: &[(&[&str], &[RuleFamily])] = &[
    (
        &["passw", "passp", "passc"],
        &[find_key_value_secrets, find_option_secrets, find_sentence_secrets],
    ),
    (
        &["pass=", "pass:", "pass\"", "pass'", "pass ", "pass\\", "pass%", "pwd"],
        &[find_key_value_secrets, find_option_secrets],
    ),
    (
        &["secret", "token", "credential"],
        &[find_key_value_secrets, find_option_secrets, find_sentence_secrets],
    ),
    (
        &["apikey", "api-key", "api_key", "api.key", "api key"],
        &[find_key_value_secrets, find_option_secrets, find_sentence_secrets],
    ),
    (
        &["_key", "-key", ".key", "auth", "signature"],
        &[find_key_value_secrets, find_option_secrets],
    ),
    (
        &[
            "privatekey",
            "accesskey",
            "accountkey",
            "encryptionkey",
            "signingkey",
            "subscriptionkey",
        ],
        &[find_key_value_secrets],
    ),
    (
        &["functionkey", "functionskey", "masterkey", "deploykey", "licensekey", "sessionkey"],
        &[find_key_value_secrets],
    ),
    (
        &["clientkey", "servicekey", "webhookkey", "jwtkey", "hmackey", "adminkey", "appkey"],
        &[find_key_value_secrets],
    ),
    (&["storagekey", "hostkey", "encryptkey"], &[find_key_value_secrets]),
    (&["authorization", "bearer"], &[find_header_secrets]),
    (&["cookie"], &[find_cookie_secrets]),
    (&["@"], &[find_userinfo_passwords, find_emails]),
    (&[" -u", "-u ", "-u=", "\"-u", "'-u", "--user", "--proxy-user"], &[find_option_secrets]),
];

/// Text that requires an inspection besides known literals: escape sequences and keys in PEM.
const ALWAYS_INSPECTED_LITERALS: &[&str] =
    &["\u{1b}", "private key", "private+key", "private%20key"];

/// Compiled token formats, in the order of their table.
pub(super) static COMPILED_FORMATS: LazyLock<Vec<(&'static TokenFormat, Option<Regex>)>> =
    LazyLock::new(|| {
        TOKEN_FORMATS
            .iter()
            .map(|token_format| (token_format, compile_constant(token_format.pattern)))
            .collect()
    });

/// Automaton of the key words; the number of a pattern is an index into `KEYWORD_ROW_INDEXES`.
static KEYWORD_AUTOMATON: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let keywords = RULE_FAMILIES_BY_KEYWORD.iter().flat_map(|(words, _)| words.iter());
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(keywords.chain(ALWAYS_INSPECTED_LITERALS))
        .ok()
});

/// Row of `RULE_FAMILIES_BY_KEYWORD` for each key word.
static KEYWORD_ROW_INDEXES: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let rows = RULE_FAMILIES_BY_KEYWORD.iter().enumerate();
    rows.flat_map(|(row, (words, _))| std::iter::repeat_n(row, words.len())).collect()
});

/// Iterates over all key words; `None` if their automaton is missing.
pub(super) fn keywords() -> Option<impl Iterator<Item = &'static str>> {
    let keywords = RULE_FAMILIES_BY_KEYWORD.iter().flat_map(|(words, _)| words.iter());
    KEYWORD_AUTOMATON.is_some().then(|| keywords.chain(ALWAYS_INSPECTED_LITERALS).copied())
}

/// Returns the range of the first key word from `search_start` on.
pub(super) fn next_keyword(text: &[u8], search_start: usize) -> Option<(usize, usize)> {
    // Without the automaton every position counts as a hit, so that everything is inspected.
    let Some(automaton) = KEYWORD_AUTOMATON.as_ref() else {
        return Some((search_start, search_start));
    };
    automaton
        .find(text.get(search_start..)?)
        .map(|found| (search_start + found.start(), search_start + found.end()))
}

/// Runs the families that the line's key words select.
pub(super) fn apply_keyword_rules(line: &[u8], redacts_emails: bool, spans: &mut Vec<SecretSpan>) {
    let mut selected: Vec<RuleFamily> = Vec::new();
    let all_families = || RULE_FAMILIES_BY_KEYWORD.iter().flat_map(|(_, families)| families.iter());
    match KEYWORD_AUTOMATON.as_ref() {
        // All families run: slow, but nothing is missed.
        None => selected.extend(all_families()),
        Some(automaton) => {
            let mut row_bits = 0_u32;
            // Overlapping, because one key word may contain another one of a different row.
            for found in automaton.find_overlapping_iter(line) {
                let row = KEYWORD_ROW_INDEXES.get(found.pattern().as_usize());
                row_bits |= row.map_or(0, |row| 1 << row);
            }
            let selected_rows = RULE_FAMILIES_BY_KEYWORD
                .iter()
                .enumerate()
                .filter(|(row, _)| row_bits >> row & 1 == 1);
            selected.extend(selected_rows.flat_map(|(_, (_, families))| families.iter()));
        }
    }
    let mut applied: Vec<RuleFamily> = Vec::new();
    if !redacts_emails {
        applied.push(find_emails);
    }
    for family in selected {
        // Several rows select the same family, and it inspects the whole line each time.
        if !applied.iter().any(|known| std::ptr::fn_addr_eq(*known, family)) {
            family(line, spans);
            applied.push(family);
        }
    }
}

/// Runs the token formats whose bit is set.
pub(super) fn apply_token_formats(line: &[u8], selected_bits: u128, spans: &mut Vec<SecretSpan>) {
    for (_, (token_format, regex)) in
        COMPILED_FORMATS.iter().enumerate().filter(|(index, _)| selected_bits >> index & 1 == 1)
    {
        let Some(regex) = regex else { continue };
        let mut from = 0;
        while let Some(captures) = regex.captures_at(line, from) {
            let Some(full_match) = captures.get(0) else { break };
            let prefix_bytes = captures.get(1).map_or(0, |prefix| prefix.len());
            // The text after the longest token of this format consists of the same characters.
            let end = full_match.end().min(
                (full_match.start() + prefix_bytes).saturating_add(token_format.max_secret_bytes),
            );
            let body = line.get(full_match.start() + prefix_bytes..end).unwrap_or_default();
            let judged_body = body.get(..MAX_JUDGED_BYTES).unwrap_or(body);
            let starts_word = is_word_start(line, full_match.start())
                || TokenFormat::is_recognizable_in_run(line, &full_match.range(), prefix_bytes);
            if starts_word
                && meets_condition(token_format.condition, judged_body)
                && is_varied(judged_body)
            {
                let shows_tail = token_format.shows_tail && end == full_match.end();
                let visible_part = if shows_tail {
                    VisiblePart::PrefixAndTail(prefix_bytes)
                } else {
                    VisiblePart::PrefixOnly(prefix_bytes)
                };
                spans.push(SecretSpan::without_context(full_match.start()..end, visible_part));
            }
            // After the end of the format and not of the match: a second token may follow directly.
            from = end.max(full_match.start() + 1);
        }
    }
}

fn meets_condition(condition: MatchCondition, body: &[u8]) -> bool {
    let has_digit = body.iter().any(u8::is_ascii_digit);
    let has_mixed_case =
        body.iter().any(u8::is_ascii_uppercase) && body.iter().any(u8::is_ascii_lowercase);
    match condition {
        MatchCondition::Unconditional => true,
        MatchCondition::Digit => has_digit,
        MatchCondition::MixedCaseAndDigit => has_digit && has_mixed_case,
    }
}

/// Returns true if the body contains more than four different bytes: `xxxx…` is a placeholder.
fn is_varied(body: &[u8]) -> bool {
    let seen_bytes = body.iter().fold(0_u128, |seen_bytes, byte| seen_bytes | 1 << (byte & 127));
    seen_bytes.count_ones() > 4
}
