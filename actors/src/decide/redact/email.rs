//! Addresses of e-mail, as opposed to remotes, packages, services and pictures.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::edge::{before, is_word};
use super::pattern::compiled;
use super::places::is_userinfo;
use super::span::{Form, Span};

/// `local@domain.tld`.
pub(super) const ADDRESS: &str =
    r"([A-Za-z0-9_][A-Za-z0-9._%+'-]*)@((?:[A-Za-z0-9][A-Za-z0-9-]*\.)+([A-Za-z]{2,24}))";

static ADDRESSES: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(ADDRESS));

/// Last parts that no domain has: kinds of units and of files.
const NO_DOMAINS: &[&str] = &[
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

/// Finds addresses. The first letter and the domain stay visible.
pub(super) fn emails(line: &[u8], spans: &mut Vec<Span>) {
    let Some(addresses) = ADDRESSES.as_ref() else { return };
    for found in addresses.captures_iter(line) {
        let (Some(local), Some(domain), Some(last)) = (found.get(1), found.get(2), found.get(3))
        else {
            continue;
        };
        if is_alone(line, local.start(), domain.end())
            && is_domain(domain.as_bytes(), last.as_bytes())
            && local.as_bytes() != b"git"
            && !is_userinfo(line, local.start())
        {
            spans.push(Span::shape(local.range(), Form::Stars(1)));
        }
    }
}

fn is_alone(line: &[u8], start: usize, end: usize) -> bool {
    let next = line.get(end).copied();
    let second = line.get(end + 1).copied();
    let path = |byte: u8| is_word(byte) || b"/~.".contains(&byte);
    let remote = next == Some(b':') && second.is_some_and(path);
    let longer = next.is_some_and(|next| is_word(next) || b"-@(".contains(&next));
    let dotted = next == Some(b'.') && second.is_some_and(is_word);
    let joined = before(line, start).is_some_and(|last| b"/@*$&".contains(&last) || is_word(last));
    !remote && !longer && !dotted && !joined
}

fn is_domain(domain: &[u8], last: &[u8]) -> bool {
    let kind = NO_DOMAINS.iter().any(|known| last.eq_ignore_ascii_case(known.as_bytes()));
    let mut labels = domain.split(|byte| *byte == b'.');
    let number = |label: &[u8]| {
        let digits = label.strip_prefix(b"v").unwrap_or(label);
        !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    };
    let first = labels.next().unwrap_or_default();
    let second = labels.next().unwrap_or_default();
    let version = number(first)
        && (first.starts_with(b"v") || second.first().is_some_and(u8::is_ascii_digit));
    !kind && !version
}
