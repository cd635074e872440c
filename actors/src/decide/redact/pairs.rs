//! Secrets that are known by their key: `key = value` in all its spellings.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::edge::{before, is_word};
use super::pattern::compiled;
use super::plausible::{Promise, Value, plausible};
use super::span::{Form, Span};
use super::value::{Budget, Place, value_at};

/// The end of a key that promises a secret, what closes the key, and what leads to the value.
pub(super) const HEAD: &str = concat!(
    r"(?i)(pass(?:word|wd|phrase|code)?|pwd|secret|token|credentials?|auth|signature|api[-_. ]?key|",
    r"(?:private|access|secret|account|shared|encryption|encrypt|signing|subscription|functions?|master|deploy|",
    r"license|auth|session|client|service|webhook|jwt|hmac|admin|app|storage|host)[-_.]?key)",
    r#"(?:\\*["'`])?\]?[ \t]{0,16}(=>|:=|={1,3}|:|%3[AaDd]|>)[ \t]{0,64}"#
);

/// A type between a name and its value: `token: Option<&str> = Some("…")`.
pub(super) const TYPED: &str = r#"^[&'A-Za-z0-9_\[\]<>:|? ]{1,48}=[ \t]{0,8}(?:Some\()?["'`]"#;

/// A scheme before the secret: `auth: Bearer …`.
pub(super) const SCHEME: &str =
    r"^(?i:bearer|basic|token|bot|api-?key|key|digest|negotiate|sso-key|oauth)[ \t]+";

/// What programs wrap a text in: `Some("…")`, `b"…"`, `SecretStr("…")`.
pub(super) const WRAPPED: &str = r#"^(?:Some|Ok|String::from|str|Secret[A-Za-z]*(?:::new|::from)?|Buffer\.from|[brfuBRFU]{1,2})\(?["'`]"#;

static WRAPS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(WRAPPED));
static HEADS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(HEAD));
static TYPES: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(TYPED));
static SCHEMES: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(SCHEME));

/// Finds the values of all keys that promise a secret.
pub(super) fn pairs(line: &[u8], spans: &mut Vec<Span>) {
    let Some(heads) = HEADS.as_ref() else { return };
    let mut budget = Budget::of(line);
    for head in heads.captures_iter(line) {
        let (Some(whole), Some(key), Some(mark)) = (head.get(0), head.get(1), head.get(2)) else {
            continue;
        };
        let tight = mark.end() == whole.end() && mark.as_bytes() == b"=";
        let promise = promise(line, key.start(), key.as_bytes());
        let lead =
            Lead { key: key.start(), mark: mark.as_bytes(), value: whole.end(), promise, tight };
        if !budget.is_masked(lead.key) && lead.is_key(line, key.as_bytes()) {
            let found = lead.span(line, &mut budget);
            if let Some(span) = found {
                budget.mask(&span.secret);
                spans.push(span);
            }
        }
    }
}

/// A key and what is known of its value.
struct Lead<'l> {
    key: usize,
    mark: &'l [u8],
    value: usize,
    promise: Promise,
    tight: bool,
}

impl Lead<'_> {
    fn is_key(&self, line: &[u8], key: &[u8]) -> bool {
        let letter = before(line, self.key).is_some_and(|byte| byte.is_ascii_alphabetic());
        let inner = letter && !key.first().is_some_and(u8::is_ascii_uppercase);
        let next = line.get(self.value).copied();
        match self.mark {
            b">" => self.opens_element(line),
            b":" if next == Some(b':') => false,
            _ => {
                !(inner && (key.eq_ignore_ascii_case(b"pass") || key.eq_ignore_ascii_case(b"pwd")))
            }
        }
    }

    /// Whether the key is the end of `<name`.
    fn opens_element(&self, line: &[u8]) -> bool {
        let head = line.get(..self.key).unwrap_or_default();
        let name =
            head.iter().rev().take_while(|byte| is_word(**byte) || b"-.:".contains(byte)).count();
        before(line, self.key - name) == Some(b'<')
    }

    fn span(&self, line: &[u8], budget: &mut Budget) -> Option<Span> {
        let place = value_at(line, self.value).filter(|place| !is_closing(line, self.value, place));
        let spent = budget.is_spent(place.as_ref().map_or(0, |place| place.range.len()));
        let first = place.and_then(|place| {
            if spent { Some(place) } else { secret(line, place, self.promise, self.tight) }
        });
        let place = first.or_else(|| {
            let typed = TYPES.as_ref()?.find(line.get(self.value..)?)?;
            let place = value_at(line, self.value + typed.end() - 1)?;
            secret(line, place, self.promise, false)
        })?;
        let form = if self.promise == Promise::Token { Form::Tail(0) } else { Form::Stars(0) };
        Some(Span { secret: place.range, context: self.key, form })
    }
}

fn promise(line: &[u8], start: usize, key: &[u8]) -> Promise {
    let starts =
        |head: &[u8]| key.get(..head.len()).is_some_and(|found| found.eq_ignore_ascii_case(head));
    let head = line.get(start.saturating_sub(12)..start).unwrap_or_default().to_ascii_lowercase();
    if starts(b"pass") || starts(b"pwd") || starts(b"secret") && key.len() == 6 {
        Promise::Password
    } else if starts(b"access")
        || starts(b"account")
        || starts(b"shared")
        || starts(b"secret")
        || head.windows(3).any(|part| part == b"aws")
    {
        Promise::Silent
    } else {
        Promise::Token
    }
}

/// The part of a value that is secret, if it can be one.
fn secret(line: &[u8], place: Place, promise: Promise, tight: bool) -> Option<Place> {
    let mut place = place;
    let rest = line.get(place.range.start..)?;
    if let Some(scheme) = SCHEMES.as_ref().and_then(|schemes| schemes.find(rest)) {
        let start = place.range.start + scheme.end();
        place = if place.quoted && start < place.range.end {
            Place { range: start..place.range.end, quoted: true }
        } else {
            value_at(line, start)?
        };
    }
    if let Some(wrap) = WRAPS.as_ref().and_then(|wraps| wraps.find(rest)).filter(|_| !place.quoted)
    {
        place = value_at(line, place.range.start + wrap.end() - 1)?;
    }
    let value = Value { text: line.get(place.range.clone())?, quoted: place.quoted, tight };
    plausible(value, promise).then_some(place)
}

/// Whether the quote at `at` closes a text (`input("password: ") or "…"`) and opens none.
fn is_closing(line: &[u8], at: usize, place: &Place) -> bool {
    let next = line.get(place.range.start).copied();
    if line.get(at) != Some(&b'"') || !next.is_some_and(|next| b"),;:]}+ ".contains(&next)) {
        return false;
    }
    let head = line.get(at.saturating_sub(512)..at).unwrap_or_default();
    head.iter().filter(|byte| **byte == b'"').count() % 2 == 1
}
