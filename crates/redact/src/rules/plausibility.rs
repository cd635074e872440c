//! Plausibility of a value: decides whether a value in the position of a secret can be one.
//!
//! Entropy alone is no evidence: digests, identifiers and pictures have high entropy too.

use super::numeric_values::{is_no_password, is_numeric_value, is_package_source};
use crate::spans::{DOTS, STARS};
use crate::text::boundary::{find_bytes, is_word_byte};

/// Number of first bytes by which a secret is judged, so that the result does not depend on how much of a long secret
/// has arrived.
pub(crate) const MAX_JUDGED_BYTES: usize = 1024;

/// Kind of value that a key announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretKind {
    /// Password chosen by a person, so it may consist of words. Its end is never shown.
    Password,
    /// Key whose end is never shown.
    KeyWithoutTail,
    /// Machine-generated token.
    Token,
}

/// Value and its notation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CandidateValue<'l> {
    /// Value without quotes.
    pub(crate) text: &'l [u8],
    /// True if the value was quoted.
    pub(crate) is_quoted: bool,
    /// True if the value is written as in an environment or a command line, where a password may look like a name:
    /// only `=` separates it from its key, or it is the argument of a password option.
    pub(crate) may_look_like_name: bool,
}

/// Shortest value that counts as a secret, in bytes.
const MIN_SECRET_BYTES: usize = 6;

/// Placeholder words for a value.
const PLACEHOLDERS: &[&str] = &[
    "changeme",
    "change_me",
    "change-me",
    "redacted",
    "[redacted]",
    "masked",
    "hidden",
    "filtered",
    "required",
    "optional",
    "undefined",
    "example",
    "placeholder",
    "disabled",
    "enabled",
    "unknown",
    "missing",
    "invalid",
    "expired",
    "incorrect",
    "not-set",
    "not_set",
    "string",
    "number",
    "boolean",
    "integer",
    "password",
];

/// Prefixes of references to a value that is stored elsewhere.
const REFERENCE_PREFIXES: &[&str] = &[
    "process.env",
    "os.environ",
    "os.getenv",
    "getenv(",
    "env.",
    "env:",
    "env[",
    "env(",
    "$env:",
    "std::env",
    "import.meta.env",
    "deno.env",
    "bun.env",
    "secrets.",
    "vars.",
    "vault:",
    "op://",
    "arn:",
    "file:",
    "!vault",
    "!ref",
    "!secret",
    "!sub",
    "ref+",
    "your_",
    "your-",
    "your ",
    "yourapi",
    "insert_",
    "insert-",
    "replace_",
    "replace-",
    "enter_",
    "enter-",
    "-----begin",
    "&lt;",
    "\\u003c",
    "/etc/",
    "/home/",
    "/usr/",
    "/var/",
    "/opt/",
    "/tmp/",
    "/run/",
    "/root/",
    "/users/",
    "/dev/",
    "/mnt/",
    "/srv/",
    "/app/",
    "/workspace/",
    "/proc/",
    "/path/",
    "./",
    "../",
    "~/",
];

/// Words that indicate a sentence.
const PROSE_WORDS: &[&str] = &[
    "your", "the", "is", "are", "must", "please", "enter", "should", "for", "not", "cannot", "a",
    "an", "to", "of", "or", "be", "and", "with",
];

/// Prefixes without punctuation at their end that a redacted value may have kept.
const UNPUNCTUATED_PREFIXES: &[&str] = &[
    "AKIA",
    "ASIA",
    "ABIA",
    "ACCA",
    "AIza",
    "eyJ",
    "dapi",
    "ATATT3",
    "ATCTT3",
    "ATBB",
    "1//0",
    "AGE-SECRET-KEY-1",
];

/// Returns true if `text` is the result of a redaction.
pub(crate) fn is_redaction_result(text: &[u8]) -> bool {
    if text.starts_with(STARS.as_bytes()) {
        return true;
    }
    let head = text.get(..text.len().saturating_sub(4));
    let Some(prefix) = head.and_then(|head| head.strip_suffix(DOTS.as_bytes())) else {
        return false;
    };
    // A second redaction must change nothing, so the results of the first one are recognized by their form.
    let ends_in_separator = prefix.last().is_none_or(|last| b"-_./=".contains(last));
    let is_ordinary = prefix.len() <= 48
        && prefix.iter().all(|byte| is_word_byte(*byte) || b"-./?&;=".contains(byte));
    (ends_in_separator && is_ordinary)
        || UNPUNCTUATED_PREFIXES.iter().any(|known| known.as_bytes() == prefix)
}

/// Returns true if `value` can be a secret under a key of this kind.
pub(crate) fn is_plausible_secret(value: CandidateValue<'_>, kind: SecretKind) -> bool {
    // The same bytes in a stream, where the rest may not have arrived.
    let text = value.text.get(..MAX_JUDGED_BYTES).unwrap_or(value.text);
    let value = CandidateValue { text, ..value };
    text.len() >= MIN_SECRET_BYTES
        && !is_redaction_result(text)
        && !text.iter().all(u8::is_ascii_digit)
        && !is_placeholder(text)
        && !is_reference(text)
        && !is_plain_word(text)
        && !is_code(value)
        && !is_prose(text)
        && !is_package_source(text)
        && !(if kind == SecretKind::Password { is_no_password } else { is_numeric_value })(text)
        && (value.is_quoted || !is_name(text, kind, value.may_look_like_name))
}

/// Returns true if `text` is only a placeholder or a reference.
pub(crate) fn is_placeholder_or_reference(text: &[u8]) -> bool {
    is_redaction_result(text) || is_placeholder(text) || is_reference(text)
}

fn is_placeholder(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_known_word = PLACEHOLDERS.iter().any(|word| word.as_bytes() == lower.as_slice());
    let is_filler = text.iter().all(|byte| b"xX*.-_#?0".contains(byte));
    let has_dots = text.starts_with(DOTS.as_bytes()) || text.ends_with(DOTS.as_bytes());
    let is_bracketed = text.starts_with(b"[") && may_end_with(text, b"]");
    let is_crossed_out = find_bytes(&lower, b"xxxx").is_some();
    let ends_in_ellipsis = text.ends_with("…".as_bytes());
    is_known_word
        || is_filler
        || has_dots
        || is_bracketed
        || is_crossed_out
        || ends_in_ellipsis
        || text.starts_with(b"<")
}

/// Returns true if `text` ends with `end`, or is only the start of a longer value, whose end is not inspected.
fn may_end_with(text: &[u8], end: &[u8]) -> bool {
    text.len() >= MAX_JUDGED_BYTES || text.ends_with(end)
}

fn is_reference(text: &[u8]) -> bool {
    let lower = text.get(..text.len().min(20)).unwrap_or_default().to_ascii_lowercase();
    let has_known_prefix = REFERENCE_PREFIXES.iter().any(|head| lower.starts_with(head.as_bytes()));
    let template_prefixes = [&b"${"[..], b"$(", b"{{", b"%(", b"#{", b"{%", b"\\("];
    let is_braced = text.starts_with(b"{") && may_end_with(text, b"}");
    has_known_prefix
        || is_braced
        || is_variable(text)
        || template_prefixes.iter().any(|head| text.starts_with(head))
        || is_url(text)
}

/// Returns true for `https://…`, but not for a secret that contains `://` late.
fn is_url(text: &[u8]) -> bool {
    text.starts_with(b"//")
        || find_bytes(text, b"://")
            .is_some_and(|at| text.iter().take(at).all(u8::is_ascii_alphabetic))
}

/// Returns true for `$NAME`, `$name` and `%NAME%`.
fn is_variable(text: &[u8]) -> bool {
    let is_upper = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let is_lower = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
    let percent_name = text.strip_prefix(b"%").and_then(|rest| rest.strip_suffix(b"%"));
    let dollar_name = text.strip_prefix(b"$");
    percent_name
        .or(dollar_name)
        .is_some_and(|name| name.iter().all(is_upper) || name.iter().all(is_lower))
}

/// Returns true for a lower-case word or a `snake_case` name; a very long run of letters is neither.
fn is_plain_word(text: &[u8]) -> bool {
    let is_lower_case = text.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_');
    is_lower_case && (text.contains(&b'_') || text.len() <= 20)
}

/// Returns true for calls and paths of code, such as `get_token()`, `Token::Ident` and `headers["x"]`.
fn is_code(value: CandidateValue<'_>) -> bool {
    let text = value.text;
    let name_length =
        text.iter().take_while(|byte| is_word_byte(**byte) || b".:$?!&*".contains(byte)).count();
    let starts_with_name =
        text.first().is_some_and(|first| is_name_start(*first) || b"&*".contains(first));
    let is_call =
        starts_with_name && name_length > 0 && matches!(text.get(name_length), Some(b'(' | b'['));
    let is_generic =
        starts_with_name && text.get(name_length) == Some(&b'<') && text.ends_with(b">");
    let has_path = find_bytes(text, b"()").is_some() || find_bytes(text, b"::").is_some();
    let is_structure = text.first().is_some_and(|first| b"{[(|".contains(first));
    let has_code_chars =
        text.iter().all(|byte| is_word_byte(*byte) || b".:()[]&*$?!,'\"".contains(byte));
    if value.is_quoted {
        has_path && has_code_chars && !text.iter().any(u8::is_ascii_digit)
    } else {
        is_call || is_generic || has_path || is_structure
    }
}

const fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$'
}

/// Returns true for several words, one of which indicates a sentence.
fn is_prose(text: &[u8]) -> bool {
    let words = || text.split(|byte| *byte == b' ');
    let is_word_of_prose =
        |word: &[u8]| PROSE_WORDS.iter().any(|prose| word.eq_ignore_ascii_case(prose.as_bytes()));
    words().count() > 2 && words().any(is_word_of_prose)
}

/// Returns true for names in code and types: `userPassword`, `config.token`, `API_TOKEN`, `String`, `oauth-flow`.
fn is_name(text: &[u8], kind: SecretKind, may_look_like_name: bool) -> bool {
    let is_name_part = |part: &[u8]| {
        part.iter().all(|byte| is_word_byte(*byte))
            && part.iter().filter(|byte| byte.is_ascii_digit()).count() <= 1
    };
    // A person may choose a word as a password: `PASSWORD=Sunshine` in an environment is no name in code.
    let may_be_name_like_password = kind == SecretKind::Password && may_look_like_name;
    let is_dotted = text.contains(&b'.')
        && text.len() < 48
        && text.split(|byte| *byte == b'.').all(|part| !part.is_empty() && is_name_part(part));
    let is_upper_case = text.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
    let is_constant = is_upper_case && (text.contains(&b'_') || text.len() <= 12);
    let is_kebab = kind == SecretKind::Token
        && text.iter().all(|byte| byte.is_ascii_lowercase() || b"-_.".contains(byte));
    let is_short_word =
        kind == SecretKind::Token && text.len() <= 10 && text.iter().all(u8::is_ascii_alphabetic);
    is_short_word
        || is_dotted
        || (is_constant && !may_be_name_like_password)
        || is_kebab
        || (!may_be_name_like_password && is_camel_case(text))
}

/// Returns true for `someName`, `SomeName`, `Some`: words of at least three letters.
fn is_camel_case(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"&").or(text.strip_prefix(b"*")).unwrap_or(text);
    let humps = text.chunk_by(|_, next| !next.is_ascii_uppercase());
    text.iter().all(u8::is_ascii_alphabetic) && humps.into_iter().all(|hump| hump.len() >= 3)
}
