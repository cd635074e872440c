//! Secrets identified by their key: `key = value` in all notations.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::plausibility::{SecretKind, ValueNotation, is_plausible_secret};
use crate::spans::{SecretSpan, VisiblePart};
use crate::text::boundary::{byte_before, is_word};
use crate::text::pattern::compile;
use crate::text::value::{InspectionBudget, ValueRange, value_at};

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

static WRAPPER_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile(WRAPPER_PATTERN));
static KEY_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile(KEY_PATTERN));
static TYPE_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile(TYPE_PATTERN));
static SCHEME_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile(SCHEME_PATTERN));

/// Finds the values of all keys that announce a secret.
pub(crate) fn pairs(line: &[u8], spans: &mut Vec<SecretSpan>) {
    let Some(key_regex) = KEY_REGEX.as_ref() else { return };
    let mut budget = InspectionBudget::of(line);
    for captures in key_regex.captures_iter(line) {
        let (Some(full_match), Some(key), Some(separator)) =
            (captures.get(0), captures.get(1), captures.get(2))
        else {
            continue;
        };
        let follows_equals = separator.end() == full_match.end() && separator.as_bytes() == b"=";
        let kind = secret_kind(line, key.start(), key.as_bytes());
        let key_match = KeyMatch {
            key: key.start(),
            separator: separator.as_bytes(),
            value: full_match.end(),
            kind,
            follows_equals,
        };
        if !budget.is_redacted(key_match.key) && key_match.is_key(line, key.as_bytes()) {
            let found = key_match.span(line, &mut budget);
            if let Some(span) = found {
                budget.mark_redacted(&span.secret);
                spans.push(span);
            }
        }
    }
}

/// Key with the known facts about its value.
struct KeyMatch<'l> {
    key: usize,
    separator: &'l [u8],
    value: usize,
    kind: SecretKind,
    follows_equals: bool,
}

impl KeyMatch<'_> {
    fn is_key(&self, line: &[u8], key: &[u8]) -> bool {
        let letter = byte_before(line, self.key).is_some_and(|byte| byte.is_ascii_alphabetic());
        // `compass: north` and `bypass=1` end in a key word by chance, `userPass` does not.
        let inner = letter && !key.first().is_some_and(u8::is_ascii_uppercase);
        let next = line.get(self.value).copied();
        match self.separator {
            b">" => self.opens_element(line),
            // A path in code, such as `token::parse`.
            b":" if next == Some(b':') => false,
            _ => {
                !(inner && (key.eq_ignore_ascii_case(b"pass") || key.eq_ignore_ascii_case(b"pwd")))
            }
        }
    }

    /// Returns true if the key is the end of `<name`.
    fn opens_element(&self, line: &[u8]) -> bool {
        let head = line.get(..self.key).unwrap_or_default();
        let name =
            head.iter().rev().take_while(|byte| is_word(**byte) || b"-.:".contains(byte)).count();
        byte_before(line, self.key - name) == Some(b'<')
    }

    fn span(&self, line: &[u8], budget: &mut InspectionBudget) -> Option<SecretSpan> {
        let location =
            value_at(line, self.value).filter(|location| !is_closing(line, self.value, location));
        let spent = budget.is_spent(location.as_ref().map_or(0, |location| location.range.len()));
        // Beyond the budget of the line the value counts as a secret without an inspection.
        let first = location.and_then(|location| {
            if spent {
                Some(location)
            } else {
                secret_part(line, location, self.kind, self.follows_equals)
            }
        });
        let location = first.or_else(|| {
            let typed = TYPE_REGEX.as_ref()?.find(line.get(self.value..)?)?;
            let location = value_at(line, self.value + typed.end() - 1)?;
            secret_part(line, location, self.kind, false)
        })?;
        let form = if self.kind == SecretKind::Token {
            VisiblePart::Tail(0)
        } else {
            VisiblePart::Stars(0)
        };
        Some(SecretSpan { secret: location.range, context: self.key, form })
    }
}

fn secret_kind(line: &[u8], start: usize, key: &[u8]) -> SecretKind {
    let starts =
        |head: &[u8]| key.get(..head.len()).is_some_and(|found| found.eq_ignore_ascii_case(head));
    let head = line.get(start.saturating_sub(12)..start).unwrap_or_default().to_ascii_lowercase();
    if starts(b"pass") || starts(b"pwd") || starts(b"secret") && key.len() == 6 {
        SecretKind::Password
    } else if starts(b"access")
        || starts(b"account")
        || starts(b"shared")
        || starts(b"secret")
        || head.windows(3).any(|part| part == b"aws")
    {
        SecretKind::HiddenKey
    } else {
        SecretKind::Token
    }
}

/// Returns the secret part of a value, if the value can be a secret.
fn secret_part(
    line: &[u8],
    location: ValueRange,
    kind: SecretKind,
    follows_equals: bool,
) -> Option<ValueRange> {
    let mut location = location;
    let rest = line.get(location.range.start..)?;
    if let Some(scheme) = SCHEME_REGEX.as_ref().and_then(|schemes| schemes.find(rest)) {
        let start = location.range.start + scheme.end();
        location = if location.is_quoted && start < location.range.end {
            ValueRange { range: start..location.range.end, is_quoted: true }
        } else {
            value_at(line, start)?
        };
    }
    if let Some(wrap) =
        WRAPPER_REGEX.as_ref().and_then(|wraps| wraps.find(rest)).filter(|_| !location.is_quoted)
    {
        location = value_at(line, location.range.start + wrap.end() - 1)?;
    }
    let value = ValueNotation {
        text: line.get(location.range.clone())?,
        is_quoted: location.is_quoted,
        follows_equals,
    };
    is_plausible_secret(value, kind).then_some(location)
}

/// Returns true if the quote at `at` closes a text (`input("password: ") or "…"`) and opens none.
fn is_closing(line: &[u8], at: usize, location: &ValueRange) -> bool {
    let next = line.get(location.range.start).copied();
    if line.get(at) != Some(&b'"') || !next.is_some_and(|next| b"),;:]}+ ".contains(&next)) {
        return false;
    }
    // Bounded, or a line with many keys would be read once for each of them.
    let head = line.get(at.saturating_sub(512)..at).unwrap_or_default();
    head.iter().filter(|byte| **byte == b'"').count() % 2 == 1
}
