//! Secrets identified by their context: headers, addresses, command lines, sentences.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Captures, Regex};

use super::plausibility::{
    CandidateValue, MAX_JUDGED_BYTES, SecretKind, is_placeholder_or_reference, is_plausible_secret,
};
use crate::spans::{SecretSpan, VisiblePart};
use crate::text::boundary::{byte_before, find_bytes, is_word_byte};
use crate::text::pattern::compile_constant;
use crate::text::value::{LineInspection, bare_value, value_at};

/// Pattern of `Authorization: Basic …`, with any quoting between name and value.
pub(crate) const AUTHORIZATION_PATTERN: &str = concat!(
    r#"(?i)authorization[\\"'`\]]{0,8}[ \t]{0,8}(?:=>|[:=,])[ \t\[]{0,8}[\\"'`]{0,8}[ \t]{0,8}"#,
    r"(?:(?:basic|bearer|token|bot|api-?key|key|digest|negotiate|sso-key|oauth|apitoken)[ \t]+)?"
);
/// Pattern of a bearer token without its header.
pub(crate) const BEARER_PATTERN: &str = r"(?i)\bbearer[ \t]+([a-z0-9_.~+/-]{16,}={0,2})";
/// Pattern of `scheme://user:password@`.
pub(crate) const USERINFO_PATTERN: &str =
    r#"(?i)[a-z][a-z0-9+.-]*://[^\s/:@"'<>`\\]*:([^\s/?"'<>`]+)@"#;
/// Pattern of `--password …`, with white space.
pub(crate) const OPTION_PATTERN: &str = concat!(
    r"(?i)(?:^|[\s\[(\x22'`,])--?(?:[a-z0-9]+[-_])*(passw(?:or)?d|passphrase|pass|pwd|token|secret|credential|auth|",
    r"api[-_]?key|access[-_]?key|secret[-_]?key|private[-_]?key)[\x22']?,?[ \t]+"
);
/// Pattern of `-u user:password`.
pub(crate) const USER_OPTION_PATTERN: &str = r#"(?:^|[\s"'`])(?:-u|-U|--user|--proxy-user)(?:[ \t]+|=)?["']?([^\s:"'`]{0,64}):([^\s"'`]{1,256})"#;
/// Pattern of `login … password …`, or of a netrc line with only the password.
pub(crate) const NETRC_PATTERN: &str =
    r"(?i)(?:\blogin[ \t]+\S{1,64}[ \t]+|^[ \t]*)(?:password|passwd)[ \t]+(\S+)";
/// Pattern of `password is …`.
pub(crate) const SENTENCE_PATTERN: &str = r"(?i)(?:password|passphrase|passcode|passwd|token|secret|api[-_ ]?key|credential)s?[ \t]+(?:is|was|will be)[ \t]*:?[ \t]+";
/// Pattern of a cookie header.
pub(crate) const COOKIE_HEADER_PATTERN: &str =
    r#"(?i)cookie[\\"'`\]]{0,8}[ \t]{0,8}[:=,][ \t\[]{0,8}[\\"'`]{0,8}([^\r\n"'`\\]+)"#;
/// Pattern of one cookie.
pub(crate) const COOKIE_PATTERN: &str = r"([^\s=;,]{1,128})=([^\s;,]+)";

/// Longest password in an address, in bytes.
const MAX_PASSWORD_BYTES: usize = 2048;

static AUTHORIZATION_REGEX: LazyLock<Option<Regex>> =
    LazyLock::new(|| compile_constant(AUTHORIZATION_PATTERN));
static BEARER_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(BEARER_PATTERN));
static USERINFO_REGEX: LazyLock<Option<Regex>> =
    LazyLock::new(|| compile_constant(USERINFO_PATTERN));
static OPTION_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(OPTION_PATTERN));
static USER_OPTION_REGEX: LazyLock<Option<Regex>> =
    LazyLock::new(|| compile_constant(USER_OPTION_PATTERN));
static NETRC_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(NETRC_PATTERN));
static SENTENCE_REGEX: LazyLock<Option<Regex>> =
    LazyLock::new(|| compile_constant(SENTENCE_PATTERN));
static COOKIE_HEADER_REGEX: LazyLock<Option<Regex>> =
    LazyLock::new(|| compile_constant(COOKIE_HEADER_PATTERN));
static COOKIE_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(COOKIE_PATTERN));

fn for_each_match<'l>(
    pattern: Option<&Regex>,
    line: &'l [u8],
    mut visit: impl FnMut(&Captures<'l>),
) {
    if let Some(pattern) = pattern {
        pattern.captures_iter(line).for_each(|captures| visit(&captures));
    }
}

fn match_range(captures: &Captures<'_>) -> Range<usize> {
    captures.get(0).map_or(0..0, |full_match| full_match.range())
}

/// Finds credentials in headers.
pub(crate) fn find_header_secrets(line: &[u8], spans: &mut Vec<SecretSpan>) {
    let mut inspection = LineInspection::for_line(line);
    for_each_match(AUTHORIZATION_REGEX.as_ref(), line, |captures| {
        let Range { start, end } = match_range(captures);
        if inspection.is_redacted_at(start) {
            return;
        }
        let location = bare_value(line, end);
        let text = line.get(location.range.clone()).unwrap_or_default();
        let value = CandidateValue { text, is_quoted: false, may_look_like_name: false };
        // A line of many headers would be inspected in quadratic time; beyond the budget all values count as secrets.
        if inspection.spend_and_check_exhausted(text.len())
            || is_plausible_secret(value, SecretKind::Token)
        {
            inspection.mark_redacted(&location.range);
            spans.push(SecretSpan {
                secret: location.range,
                context_start: start,
                visible_part: VisiblePart::PrefixAndTail(0),
            });
        }
    });
    for_each_match(BEARER_REGEX.as_ref(), line, |captures| {
        let Some(token) = captures.get(1) else { return };
        let judged_token = token.as_bytes().get(..MAX_JUDGED_BYTES).unwrap_or(token.as_bytes());
        // Prose contains `bearer` too, but tokens nearly always have a digit.
        let has_digit = judged_token.iter().any(u8::is_ascii_digit);
        if has_digit
            && is_plausible_secret(
                CandidateValue {
                    text: token.as_bytes(),
                    is_quoted: true,
                    may_look_like_name: false,
                },
                SecretKind::Token,
            )
        {
            let secret = bare_value(line, token.start()).range;
            let secret = secret.start..secret.end.max(token.start() + 1);
            spans.push(SecretSpan {
                secret,
                context_start: match_range(captures).start,
                visible_part: VisiblePart::PrefixAndTail(0),
            });
        }
    });
}

/// Finds passwords in addresses.
pub(crate) fn find_userinfo_passwords(line: &[u8], spans: &mut Vec<SecretSpan>) {
    for_each_match(USERINFO_REGEX.as_ref(), line, |captures| {
        let Some(password) = captures.get(1) else { return };
        let Some(secret) = bound_password_range(line, password.range()) else { return };
        let text = line.get(secret.clone()).unwrap_or_default();
        if !is_placeholder_or_reference(text) {
            spans.push(SecretSpan {
                secret,
                context_start: match_range(captures).start,
                visible_part: VisiblePart::PrefixOnly(0),
            });
        }
    });
}

/// Returns the part of a match that may be a password: up to the last `@` that is near enough to its start.
/// Text without white space after an address may contain another `@` much later.
fn bound_password_range(line: &[u8], candidate: Range<usize>) -> Option<Range<usize>> {
    if candidate.len() <= MAX_PASSWORD_BYTES {
        return Some(candidate);
    }
    let near = line.get(candidate.start..candidate.start + MAX_PASSWORD_BYTES)?;
    let length = near.iter().rposition(|byte| *byte == b'@').filter(|length| *length > 0)?;
    Some(candidate.start..candidate.start + length)
}

/// Finds secrets in command-line options, in `user:password` and in netrc lines.
pub(crate) fn find_option_secrets(line: &[u8], spans: &mut Vec<SecretSpan>) {
    for_each_match(OPTION_REGEX.as_ref(), line, |captures| {
        let Range { start, end } = match_range(captures);
        let Some(location) = value_at(line, end) else { return };
        let name = captures.get(1).map_or(&b""[..], |name| name.as_bytes());
        let is_password =
            name.get(..1).is_some_and(|first| first.eq_ignore_ascii_case(b"p")) && name.len() < 11;
        let kind = if is_password { SecretKind::Password } else { SecretKind::Token };
        let text = line.get(location.range.clone()).unwrap_or_default();
        // Help texts name a value in capitals: `--token TOKEN`.
        let is_upper_case =
            text.iter().all(|byte| byte.is_ascii_uppercase() || b"_-".contains(byte));
        let value =
            CandidateValue { text, is_quoted: location.is_quoted, may_look_like_name: false };
        if !text.starts_with(b"-") && !is_upper_case && is_plausible_secret(value, kind) {
            let visible_part = if is_password {
                VisiblePart::PrefixOnly(0)
            } else {
                VisiblePart::PrefixAndTail(0)
            };
            spans.push(SecretSpan { secret: location.range, context_start: start, visible_part });
        }
    });
    for_each_match(USER_OPTION_REGEX.as_ref(), line, |captures| {
        push_plausible_password(line, captures, 2, spans);
    });
    for_each_match(NETRC_REGEX.as_ref(), line, |captures| {
        push_plausible_password(line, captures, 1, spans);
    });
}

/// Adds the password in a group, if it is plausible.
fn push_plausible_password(
    line: &[u8],
    captures: &Captures<'_>,
    group: usize,
    spans: &mut Vec<SecretSpan>,
) {
    let Some(start) = captures.get(group).map(|group| group.start()) else { return };
    let secret = bare_value(line, start).range;
    let text = line.get(secret.clone()).unwrap_or_default();
    if is_plausible_secret(
        CandidateValue { text, is_quoted: false, may_look_like_name: true },
        SecretKind::Password,
    ) {
        spans.push(SecretSpan {
            secret,
            context_start: match_range(captures).start,
            visible_part: VisiblePart::PrefixOnly(0),
        });
    }
}

/// Finds secrets in "The password is …": only values that do not look like a word of a sentence.
pub(crate) fn find_sentence_secrets(line: &[u8], spans: &mut Vec<SecretSpan>) {
    for_each_match(SENTENCE_REGEX.as_ref(), line, |captures| {
        let Range { start, end } = match_range(captures);
        let Some(location) = value_at(line, end) else { return };
        let text = line.get(location.range.clone()).unwrap_or_default();
        // `The password is wrong` is a sentence about a password.
        let is_word_like =
            text.iter().all(|byte| byte.is_ascii_alphabetic() || b"-_'/ ".contains(byte));
        let value =
            CandidateValue { text, is_quoted: location.is_quoted, may_look_like_name: true };
        if !is_word_like && is_plausible_secret(value, SecretKind::Password) {
            spans.push(SecretSpan {
                secret: location.range,
                context_start: start,
                visible_part: VisiblePart::PrefixOnly(0),
            });
        }
    });
}

/// Names of cookies whose value is not a session token.
const NON_SESSION_COOKIES: &[&str] = &[
    "path", "domain", "expires", "max-age", "samesite", "version", "lang", "locale", "theme",
    "priority",
];
/// Substrings in the names of session cookies.
const SESSION_COOKIE_PARTS: &[&str] =
    &["sess", "sid", "auth", "token", "jwt", "csrf", "xsrf", "remember", "login", "secret"];

/// Finds the values of session cookies, and every long cookie value.
pub(crate) fn find_cookie_secrets(line: &[u8], spans: &mut Vec<SecretSpan>) {
    for_each_match(COOKIE_HEADER_REGEX.as_ref(), line, |captures| {
        let Some(list) = captures.get(1) else { return };
        for_each_match(COOKIE_REGEX.as_ref(), list.as_bytes(), |pair| {
            let (Some(name), Some(value)) = (pair.get(1), pair.get(2)) else { return };
            if is_secret_cookie(name.as_bytes(), value.as_bytes()) {
                let secret = list.start() + value.start()..list.start() + value.end();
                spans.push(SecretSpan {
                    secret,
                    context_start: match_range(captures).start,
                    visible_part: VisiblePart::PrefixAndTail(0),
                });
            }
        });
    });
}

fn is_secret_cookie(name: &[u8], value: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    let is_attribute = NON_SESSION_COOKIES.iter().any(|known| known.as_bytes() == name.as_slice());
    let has_session_part =
        SESSION_COOKIE_PARTS.iter().any(|part| find_bytes(&name, part.as_bytes()).is_some());
    let is_plausible = is_plausible_secret(
        CandidateValue { text: value, is_quoted: true, may_look_like_name: true },
        SecretKind::Token,
    );
    !is_attribute && is_plausible && (has_session_part || value.len() >= 16)
}

/// Returns true if `at` lies in the userinfo part of an address.
pub(crate) fn is_in_userinfo(line: &[u8], at: usize) -> bool {
    let head = line.get(at.saturating_sub(256)..at).unwrap_or_default();
    let userinfo_bytes = head
        .iter()
        .rev()
        .take_while(|byte| is_word_byte(**byte) || b":.+%$-!*{}".contains(byte))
        .count();
    let start = at - userinfo_bytes;
    byte_before(line, start) == Some(b'/')
        && byte_before(line, start.saturating_sub(1)) == Some(b'/')
}
