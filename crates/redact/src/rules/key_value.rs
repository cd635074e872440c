//! Secrets identified by their key: `key = value` in all notations.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::plausibility::{CandidateValue, SecretKind, is_plausible_secret};
use crate::spans::{SecretSpan, VisiblePart};
use crate::text::boundary::{byte_before, is_word_byte};
use crate::text::pattern::compile_constant;
use crate::text::value::{LineInspection, ValueRange, value_at};

/// Pattern of the end of a key that announces a secret, the closing quote of the key, and the separator before the
/// value.
pub(crate) const KEY_PATTERN: &str = concat!(
    r"(?i)(pass(?:word|wd|phrase|code)?|pwd|secret|token|credentials?|auth|signature|api[-_. ]?key|",
    r"(?:private|access|secret|account|shared|encryption|encrypt|signing|subscription|functions?|master|deploy|",
    r"license|auth|session|client|service|webhook|jwt|hmac|admin|app|storage|host)[-_.]?key)",
    r#"(?:\\*["'`])?\]?[ \t]{0,16}(=>|:=|={1,3}|:|%3[AaDd]|>)[ \t]{0,64}"#
);

/// Pattern of a type between a name and its value: `token: Option<&str> = Some("…")`.
pub(crate) const TYPE_PATTERN: &str =
    r#"^[&'A-Za-z0-9_\[\]<>:|? ]{1,48}=[ \t]{0,8}(?:Some\()?["'`]"#;

/// Pattern of a scheme before the secret: `auth: Bearer …`.
pub(crate) const SCHEME_PATTERN: &str =
    r"^(?i:bearer|basic|token|bot|api-?key|key|digest|negotiate|sso-key|oauth)[ \t]+";

/// Pattern of code that wraps a string literal: `Some("…")`, `b"…"`, `SecretStr("…")`.
pub(crate) const WRAPPER_PATTERN: &str = r#"^(?:Some|Ok|String::from|str|Secret[A-Za-z]*(?:::new|::from)?|Buffer\.from|[brfuBRFU]{1,2})\(?["'`]"#;

static WRAPPER_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(WRAPPER_PATTERN));
static KEY_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(KEY_PATTERN));
static TYPE_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(TYPE_PATTERN));
static SCHEME_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(SCHEME_PATTERN));

/// Finds the values of all keys that announce a secret.
pub(crate) fn find_key_value_secrets(line: &[u8], spans: &mut Vec<SecretSpan>) {
    let Some(key_regex) = KEY_REGEX.as_ref() else { return };
    let mut inspection = LineInspection::for_line(line);
    for captures in key_regex.captures_iter(line) {
        let (Some(full_match), Some(key), Some(separator)) =
            (captures.get(0), captures.get(1), captures.get(2))
        else {
            continue;
        };
        let follows_equals = separator.end() == full_match.end() && separator.as_bytes() == b"=";
        let kind = secret_kind(line, key.start(), key.as_bytes());
        let key_match = KeyMatch {
            key_start: key.start(),
            separator: separator.as_bytes(),
            value_start: full_match.end(),
            kind,
            follows_equals,
        };
        if !inspection.is_redacted_at(key_match.key_start) && key_match.is_key(line, key.as_bytes())
        {
            let secret_span = key_match.secret_span(line, &mut inspection);
            if let Some(span) = secret_span {
                inspection.mark_redacted(&span.secret);
                spans.push(span);
            }
        }
    }
}

/// Key with the known facts about its value.
struct KeyMatch<'l> {
    key_start: usize,
    separator: &'l [u8],
    value_start: usize,
    kind: SecretKind,
    follows_equals: bool,
}

impl KeyMatch<'_> {
    fn is_key(&self, line: &[u8], key: &[u8]) -> bool {
        let follows_letter =
            byte_before(line, self.key_start).is_some_and(|byte| byte.is_ascii_alphabetic());
        // `compass: north` and `bypass=1` end in a key word by chance, `userPass` does not.
        let is_inside_word = follows_letter && !key.first().is_some_and(u8::is_ascii_uppercase);
        let next = line.get(self.value_start).copied();
        match self.separator {
            b">" => self.is_element_name(line),
            // A path in code, such as `token::parse`.
            b":" if next == Some(b':') => false,
            _ => {
                !(is_inside_word
                    && (key.eq_ignore_ascii_case(b"pass") || key.eq_ignore_ascii_case(b"pwd")))
            }
        }
    }

    /// Returns true if the key is the end of `<name`.
    fn is_element_name(&self, line: &[u8]) -> bool {
        let head = line.get(..self.key_start).unwrap_or_default();
        let name_length = head
            .iter()
            .rev()
            .take_while(|byte| is_word_byte(**byte) || b"-.:".contains(byte))
            .count();
        byte_before(line, self.key_start - name_length) == Some(b'<')
    }

    fn secret_span(&self, line: &[u8], inspection: &mut LineInspection) -> Option<SecretSpan> {
        let location = value_at(line, self.value_start)
            .filter(|location| !is_closing_quote(line, self.value_start, location));
        let is_budget_spent = inspection.spend_and_check_exhausted(
            location.as_ref().map_or(0, |location| location.range.len()),
        );
        // Beyond the budget of the line the value counts as a secret without an inspection.
        let direct_location = location.and_then(|location| {
            if is_budget_spent {
                Some(location)
            } else {
                plausible_secret_range(line, location, self.kind, self.follows_equals)
            }
        });
        let location = direct_location.or_else(|| {
            let type_match = TYPE_REGEX.as_ref()?.find(line.get(self.value_start..)?)?;
            let location = value_at(line, self.value_start + type_match.end() - 1)?;
            plausible_secret_range(line, location, self.kind, false)
        })?;
        let visible_part = if self.kind == SecretKind::Token {
            VisiblePart::PrefixAndTail(0)
        } else {
            VisiblePart::PrefixOnly(0)
        };
        Some(SecretSpan { secret: location.range, context_start: self.key_start, visible_part })
    }
}

fn secret_kind(line: &[u8], start: usize, key: &[u8]) -> SecretKind {
    let key_starts_with = |prefix: &[u8]| {
        key.get(..prefix.len()).is_some_and(|key_start| key_start.eq_ignore_ascii_case(prefix))
    };
    let preceding =
        line.get(start.saturating_sub(12)..start).unwrap_or_default().to_ascii_lowercase();
    if key_starts_with(b"pass")
        || key_starts_with(b"pwd")
        || key_starts_with(b"secret") && key.len() == 6
    {
        SecretKind::Password
    } else if key_starts_with(b"access")
        || key_starts_with(b"account")
        || key_starts_with(b"shared")
        || key_starts_with(b"secret")
        || preceding.windows(3).any(|part| part == b"aws")
    {
        SecretKind::KeyWithoutTail
    } else {
        SecretKind::Token
    }
}

/// Returns the secret part of a value, if the value can be a secret.
fn plausible_secret_range(
    line: &[u8],
    location: ValueRange,
    kind: SecretKind,
    follows_equals: bool,
) -> Option<ValueRange> {
    let mut location = location;
    let rest = line.get(location.range.start..)?;
    if let Some(scheme) = SCHEME_REGEX.as_ref().and_then(|regex| regex.find(rest)) {
        let start = location.range.start + scheme.end();
        location = if location.is_quoted && start < location.range.end {
            ValueRange { range: start..location.range.end, is_quoted: true }
        } else {
            value_at(line, start)?
        };
    }
    if let Some(wrapper) =
        WRAPPER_REGEX.as_ref().and_then(|regex| regex.find(rest)).filter(|_| !location.is_quoted)
    {
        location = value_at(line, location.range.start + wrapper.end() - 1)?;
    }
    let value = CandidateValue {
        text: line.get(location.range.clone())?,
        is_quoted: location.is_quoted,
        may_look_like_name: follows_equals,
    };
    is_plausible_secret(value, kind).then_some(location)
}

/// Returns true if the quote at `at` closes a text (`input("password: ") or "…"`) and opens none.
fn is_closing_quote(line: &[u8], at: usize, location: &ValueRange) -> bool {
    let next = line.get(location.range.start).copied();
    if line.get(at) != Some(&b'"') || !next.is_some_and(|next| b"),;:]}+ ".contains(&next)) {
        return false;
    }
    // Bounded, or a line with many keys would be read once for each of them.
    let head = line.get(at.saturating_sub(512)..at).unwrap_or_default();
    head.iter().filter(|byte| **byte == b'"').count() % 2 == 1
}
