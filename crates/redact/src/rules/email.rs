//! E-mail addresses, as opposed to remotes, packages, services and pictures.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::context_rules::is_userinfo;
use crate::spans::{SecretSpan, VisiblePart};
use crate::text::boundary::{byte_before, is_word};
use crate::text::pattern::compile;

/// `local@domain.tld`.
pub(crate) const EMAIL_PATTERN: &str =
    r"([A-Za-z0-9_][A-Za-z0-9._%+'-]*)@((?:[A-Za-z0-9][A-Za-z0-9-]*\.)+([A-Za-z]{2,24}))";

/// Twice the maximum length of the part before the `@`, in bytes. Text before that belongs to a run to which the
/// address was appended.
const MAX_LOCAL_PART_BYTES: usize = 128;

/// Longest host name and longest label of one, in bytes.
const MAX_DOMAIN_BYTES: usize = 255;
const MAX_LABEL_BYTES: usize = 63;

static EMAIL_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile(EMAIL_PATTERN));

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
pub(crate) fn emails(line: &[u8], spans: &mut Vec<SecretSpan>) {
    let Some(addresses) = EMAIL_REGEX.as_ref() else { return };
    for found in addresses.captures_iter(line) {
        let (Some(local), Some(domain), Some(last)) = (found.get(1), found.get(2), found.get(3))
        else {
            continue;
        };
        let start = local.start().max(local.end().saturating_sub(MAX_LOCAL_PART_BYTES));
        let in_run = start > local.start();
        if is_alone(line, start, domain.end(), in_run)
            && is_domain(domain.as_bytes(), last.as_bytes())
            // The user of every code host, and no person.
            && local.as_bytes() != b"git"
            && !is_userinfo(line, start)
        {
            spans.push(SecretSpan::without_context(start..local.end(), VisiblePart::Stars(1)));
        }
    }
}

fn is_alone(line: &[u8], start: usize, end: usize, in_run: bool) -> bool {
    let next = line.get(end).copied();
    let second = line.get(end + 1).copied();
    let path = |byte: u8| is_word(byte) || b"/~.".contains(&byte);
    // `user@host:path` is an address of scp or git.
    let remote = next == Some(b':') && second.is_some_and(path);
    let longer = next.is_some_and(|next| is_word(next) || b"-@(".contains(&next));
    let dotted = next == Some(b'.') && second.is_some_and(is_word);
    let joined = !in_run
        && byte_before(line, start).is_some_and(|last| b"/@*$&".contains(&last) || is_word(last));
    !remote && !longer && !dotted && !joined
}

fn is_domain(domain: &[u8], last: &[u8]) -> bool {
    let kind = NON_DOMAIN_LABELS.iter().any(|known| last.eq_ignore_ascii_case(known.as_bytes()));
    let long = domain.len() > MAX_DOMAIN_BYTES
        || domain.split(|byte| *byte == b'.').any(|label| label.len() > MAX_LABEL_BYTES);
    let mut labels = domain.split(|byte| *byte == b'.');
    let number = |label: &[u8]| {
        let digits = label.strip_prefix(b"v").unwrap_or(label);
        !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    };
    let first = labels.next().unwrap_or_default();
    let second = labels.next().unwrap_or_default();
    let version = number(first)
        && (first.starts_with(b"v") || second.first().is_some_and(u8::is_ascii_digit));
    !kind && !version && !long
}
