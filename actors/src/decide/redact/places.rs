//! Secrets that are known by where they stand: headers, addresses, command lines, sentences.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Captures, Regex};

use super::edge::{before, find, is_word};
use super::pattern::compiled;
use super::plausible::{Promise, Value, is_stand_in_or_reference, plausible};
use super::span::{Form, Span};
use super::value::{Budget, bare, value_at};

/// `Authorization: Basic …`, with any quoting between name and value.
pub(super) const HEADER: &str = concat!(
    r#"(?i)authorization[\\"'`\]]{0,8}[ \t]{0,8}(?:=>|[:=,])[ \t\[]{0,8}[\\"'`]{0,8}[ \t]{0,8}"#,
    r"(?:(?:basic|bearer|token|bot|api-?key|key|digest|negotiate|sso-key|oauth|apitoken)[ \t]+)?"
);
/// A bearer token without its header.
pub(super) const BEARER: &str = r"(?i)\bbearer[ \t]+([a-z0-9_.~+/-]{16,}={0,2})";
/// `scheme://user:password@`.
pub(super) const USERINFO: &str = r#"(?i)[a-z][a-z0-9+.-]*://[^\s/:@"'<>`\\]*:([^\s/?"'<>`]+)@"#;
/// `--password …`, with white space.
pub(super) const OPTION: &str = concat!(
    r"(?i)(?:^|[\s\[(\x22'`,])--?(?:[a-z0-9]+[-_])*(passw(?:or)?d|passphrase|pass|pwd|token|secret|credential|auth|",
    r"api[-_]?key|access[-_]?key|secret[-_]?key|private[-_]?key)[\x22']?,?[ \t]+"
);
/// `-u user:password`.
pub(super) const USER: &str = r#"(?:^|[\s"'`])(?:-u|-U|--user|--proxy-user)(?:[ \t]+|=)?["']?([^\s:"'`]{0,64}):([^\s"'`]{1,256})"#;
/// `login … password …`, or a line of a netrc file that has only the password.
pub(super) const NETRC: &str =
    r"(?i)(?:\blogin[ \t]+\S{1,64}[ \t]+|^[ \t]*)(?:password|passwd)[ \t]+(\S+)";
/// `password is …`.
pub(super) const SENTENCE: &str = r"(?i)(?:password|passphrase|passcode|passwd|token|secret|api[-_ ]?key|credential)s?[ \t]+(?:is|was|will be)[ \t]*:?[ \t]+";
/// A cookie header.
pub(super) const COOKIES: &str =
    r#"(?i)cookie[\\"'`\]]{0,8}[ \t]{0,8}[:=,][ \t\[]{0,8}[\\"'`]{0,8}([^\r\n"'`\\]+)"#;
/// One cookie.
pub(super) const COOKIE: &str = r"([^\s=;,]{1,128})=([^\s;,]+)";

static HEADERS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(HEADER));
static BEARERS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(BEARER));
static USERINFOS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(USERINFO));
static OPTIONS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(OPTION));
static USERS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(USER));
static NETRCS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(NETRC));
static SENTENCES: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(SENTENCE));
static COOKIE_LINES: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(COOKIES));
static COOKIE_PAIRS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(COOKIE));

fn each<'l>(pattern: Option<&Regex>, line: &'l [u8], mut visit: impl FnMut(&Captures<'l>)) {
    if let Some(pattern) = pattern {
        pattern.captures_iter(line).for_each(|found| visit(&found));
    }
}

fn whole(found: &Captures<'_>) -> Range<usize> {
    found.get(0).map_or(0..0, |whole| whole.range())
}

/// Credentials of headers.
pub(super) fn headers(line: &[u8], spans: &mut Vec<Span>) {
    let mut budget = Budget::of(line);
    each(HEADERS.as_ref(), line, |found| {
        let Range { start, end } = whole(found);
        if budget.is_masked(start) {
            return;
        }
        let place = bare(line, end);
        let text = line.get(place.range.clone()).unwrap_or_default();
        let value = Value { text, quoted: false, tight: false };
        if budget.is_spent(text.len()) || plausible(value, Promise::Token) {
            budget.mask(&place.range);
            spans.push(Span { secret: place.range, context: start, form: Form::Tail(0) });
        }
    });
    each(BEARERS.as_ref(), line, |found| {
        let Some(token) = found.get(1) else { return };
        let digit = token.as_bytes().iter().any(u8::is_ascii_digit);
        if digit
            && plausible(
                Value { text: token.as_bytes(), quoted: true, tight: false },
                Promise::Token,
            )
        {
            let secret = bare(line, token.start()).range;
            let secret = secret.start..secret.end.max(token.start() + 1);
            spans.push(Span { secret, context: whole(found).start, form: Form::Tail(0) });
        }
    });
}

/// Passwords in addresses.
pub(super) fn userinfo(line: &[u8], spans: &mut Vec<Span>) {
    each(USERINFOS.as_ref(), line, |found| {
        let Some(password) = found.get(1) else { return };
        if !is_stand_in_or_reference(password.as_bytes()) {
            let secret = password.range();
            spans.push(Span { secret, context: whole(found).start, form: Form::Stars(0) });
        }
    });
}

/// Options of command lines, `user:password`, and netrc.
pub(super) fn options(line: &[u8], spans: &mut Vec<Span>) {
    each(OPTIONS.as_ref(), line, |found| {
        let Range { start, end } = whole(found);
        let Some(place) = value_at(line, end) else { return };
        let name = found.get(1).map_or(&b""[..], |name| name.as_bytes());
        let is_password =
            name.get(..1).is_some_and(|first| first.eq_ignore_ascii_case(b"p")) && name.len() < 11;
        let promise = if is_password { Promise::Password } else { Promise::Token };
        let text = line.get(place.range.clone()).unwrap_or_default();
        let capitals = text.iter().all(|byte| byte.is_ascii_uppercase() || b"_-".contains(byte));
        let value = Value { text, quoted: place.quoted, tight: false };
        if !text.starts_with(b"-") && !capitals && plausible(value, promise) {
            let form = if is_password { Form::Stars(0) } else { Form::Tail(0) };
            spans.push(Span { secret: place.range, context: start, form });
        }
    });
    each(USERS.as_ref(), line, |found| chosen(line, found, 2, spans));
    each(NETRCS.as_ref(), line, |found| chosen(line, found, 1, spans));
}

/// Masks a group that holds a password.
fn chosen(line: &[u8], found: &Captures<'_>, group: usize, spans: &mut Vec<Span>) {
    let Some(start) = found.get(group).map(|group| group.start()) else { return };
    let secret = bare(line, start).range;
    let text = line.get(secret.clone()).unwrap_or_default();
    if plausible(Value { text, quoted: false, tight: true }, Promise::Password) {
        spans.push(Span { secret, context: whole(found).start, form: Form::Stars(0) });
    }
}

/// "The password is …": only what no word of a sentence looks like.
pub(super) fn sentences(line: &[u8], spans: &mut Vec<Span>) {
    each(SENTENCES.as_ref(), line, |found| {
        let Range { start, end } = whole(found);
        let Some(place) = value_at(line, end) else { return };
        let text = line.get(place.range.clone()).unwrap_or_default();
        let wordy = text.iter().all(|byte| byte.is_ascii_alphabetic() || b"-_'/ ".contains(byte));
        let value = Value { text, quoted: place.quoted, tight: true };
        if !wordy && plausible(value, Promise::Password) {
            spans.push(Span { secret: place.range, context: start, form: Form::Stars(0) });
        }
    });
}

/// Names of cookies whose value is not a session's.
const ATTRIBUTES: &[&str] = &[
    "path", "domain", "expires", "max-age", "samesite", "version", "lang", "locale", "theme",
    "priority",
];
/// Parts of names of cookies that carry a session.
const SESSIONS: &[&str] =
    &["sess", "sid", "auth", "token", "jwt", "csrf", "xsrf", "remember", "login", "secret"];

/// Values of session cookies, and every long value.
pub(super) fn cookies(line: &[u8], spans: &mut Vec<Span>) {
    each(COOKIE_LINES.as_ref(), line, |found| {
        let Some(list) = found.get(1) else { return };
        each(COOKIE_PAIRS.as_ref(), list.as_bytes(), |pair| {
            let (Some(name), Some(value)) = (pair.get(1), pair.get(2)) else { return };
            if is_session(name.as_bytes(), value.as_bytes()) {
                let secret = list.start() + value.start()..list.start() + value.end();
                spans.push(Span { secret, context: whole(found).start, form: Form::Tail(0) });
            }
        });
    });
}

fn is_session(name: &[u8], value: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    let attribute = ATTRIBUTES.iter().any(|known| known.as_bytes() == name.as_slice());
    let session = SESSIONS.iter().any(|part| find(&name, part.as_bytes()).is_some());
    let promised = plausible(Value { text: value, quoted: true, tight: true }, Promise::Token);
    !attribute && promised && (session || value.len() >= 16)
}

/// Whether `at` stands in the userinfo of an address.
pub(super) fn is_userinfo(line: &[u8], at: usize) -> bool {
    let head = line.get(at.saturating_sub(256)..at).unwrap_or_default();
    let part = head
        .iter()
        .rev()
        .take_while(|byte| is_word(**byte) || b":.+%$-!*{}".contains(byte))
        .count();
    let start = at - part;
    before(line, start) == Some(b'/') && before(line, start.saturating_sub(1)) == Some(b'/')
}
