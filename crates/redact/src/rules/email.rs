//! E-mail addresses, as opposed to remotes, packages, services and pictures.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::context_rules::is_in_userinfo;
use crate::spans::{SecretSpan, VisiblePart};
use crate::text::boundary::{byte_before, is_word_byte};
use crate::text::pattern::compile_constant;

/// `local@domain.tld`.
pub(crate) const EMAIL_PATTERN: &str =
    r"([A-Za-z0-9_][A-Za-z0-9._%+'-]*)@((?:[A-Za-z0-9][A-Za-z0-9-]*\.)+([A-Za-z]{2,24}))";

/// Twice the maximum length of the part before the `@`, in bytes. Text before that belongs to a run to which the
/// address was appended.
const MAX_LOCAL_PART_BYTES: usize = 128;

/// Longest host name and longest label of one, in bytes.
const MAX_DOMAIN_BYTES: usize = 255;
const MAX_LABEL_BYTES: usize = 63;

static EMAIL_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(EMAIL_PATTERN));

/// Last labels that no domain has: types of units and of files.
const NON_DOMAIN_LABELS: &[&str] = &[
    "service",
    "socket",
    "timer",
    "mount",
    "automount",
    "target",
    "slice",
    "scope",
    "device",
    "swap",
    "local",
    "png",
    "jpg",
    "jpeg",
    "gif",
    "svg",
    "webp",
    "avif",
    "ico",
    "bmp",
    "pdf",
    "css",
    "scss",
    "js",
    "mjs",
    "cjs",
    "ts",
    "tsx",
    "jsx",
    "json",
    "yaml",
    "yml",
    "toml",
    "lock",
    "html",
    "xml",
    "txt",
    "rs",
    "py",
    "go",
    "rb",
    "tgz",
    "zip",
    "gz",
    "whl",
    "jar",
    "log",
    "conf",
    "internal",
    "localhost",
    "localdomain",
];

/// Finds e-mail addresses. The first letter and the domain stay visible.
pub(crate) fn find_emails(line: &[u8], spans: &mut Vec<SecretSpan>) {
    let Some(email_regex) = EMAIL_REGEX.as_ref() else { return };
    for captures in email_regex.captures_iter(line) {
        let (Some(local_part), Some(domain), Some(last_label)) =
            (captures.get(1), captures.get(2), captures.get(3))
        else {
            continue;
        };
        let start = local_part.start().max(local_part.end().saturating_sub(MAX_LOCAL_PART_BYTES));
        let is_appended_to_run = start > local_part.start();
        if is_standalone_address(line, start, domain.end(), is_appended_to_run)
            && is_domain(domain.as_bytes(), last_label.as_bytes())
            // The user of every code host, and no person.
            && local_part.as_bytes() != b"git"
            && !is_in_userinfo(line, start)
        {
            spans.push(SecretSpan::without_context(
                start..local_part.end(),
                VisiblePart::PrefixOnly(1),
            ));
        }
    }
}

fn is_standalone_address(line: &[u8], start: usize, end: usize, is_appended_to_run: bool) -> bool {
    let next = line.get(end).copied();
    let second = line.get(end + 1).copied();
    let is_path_byte = |byte: u8| is_word_byte(byte) || b"/~.".contains(&byte);
    // `user@host:path` is an address of scp or git.
    let is_remote = next == Some(b':') && second.is_some_and(is_path_byte);
    let continues = next.is_some_and(|next| is_word_byte(next) || b"-@(".contains(&next));
    let continues_after_dot = next == Some(b'.') && second.is_some_and(is_word_byte);
    let follows_text = !is_appended_to_run
        && byte_before(line, start)
            .is_some_and(|previous| b"/@*$&".contains(&previous) || is_word_byte(previous));
    !is_remote && !continues && !continues_after_dot && !follows_text
}

fn is_domain(domain: &[u8], last_label: &[u8]) -> bool {
    let is_non_domain =
        NON_DOMAIN_LABELS.iter().any(|known| last_label.eq_ignore_ascii_case(known.as_bytes()));
    let is_too_long = domain.len() > MAX_DOMAIN_BYTES
        || domain.split(|byte| *byte == b'.').any(|label| label.len() > MAX_LABEL_BYTES);
    let mut labels = domain.split(|byte| *byte == b'.');
    let is_number = |label: &[u8]| {
        let digits = label.strip_prefix(b"v").unwrap_or(label);
        !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    };
    let first_label = labels.next().unwrap_or_default();
    let second_label = labels.next().unwrap_or_default();
    let is_version = is_number(first_label)
        && (first_label.starts_with(b"v") || second_label.first().is_some_and(u8::is_ascii_digit));
    !is_non_domain && !is_version && !is_too_long
}
