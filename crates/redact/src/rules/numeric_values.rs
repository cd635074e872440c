//! Values that follow a key word by chance and are no secrets: numbers, versions, points in time, IPv4 addresses,
//! colours, and sources of packages.
//!
//! Names of packages and of measurements end in key words: `"jsonwebtoken": "^9.0.2"`, `input_cost_per_token =
//! 2.5e-06`.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::text::pattern::compile_constant;

/// Longest value that counts as a number, in bytes.
const MAX_NUMBER_BYTES: usize = 64;

/// Longest value that counts as a version, in bytes: pnpm adds the versions of other packages.
const MAX_VERSION_BYTES: usize = 512;

/// Pattern of a number, of a percentage and of a share: `-2.5e-06`, `1,234,567`, `98.55%`, `120/120`.
pub(crate) const NUMBER_PATTERN: &str =
    r"^[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?(?:%|/\d+(?:\.\d+)?)?$";

/// Pattern of a percentage or a share of counts: `98.55%`, `120/120`.
pub(crate) const SHARE_PATTERN: &str = r"^\d{1,3}(?:\.\d+)?%$|^\d{1,4}/\d{1,4}$";

/// Pattern of the source of a package. Such a source contains no password.
pub(crate) const PACKAGE_SOURCE_PATTERN: &str = concat!(
    r"^(?:npm:(?:@[\w.-]+/)?[\w.-]+@[~^]?\d[\w.+-]*|(?:github|gitlab|bitbucket):[\w.-]+/[\w.-]+(?:#[\w./-]+)?|",
    r"(?:link|portal|file):\.{0,2}/[\w./@-]*|workspace:(?:[*~^]|[~^]?\d[\w.+-]*)?|catalog:[a-z-]{0,20}|",
    r"git\+(?:https?|ssh|file)://(?:git@)?[\w.-]+[\w./:#~^-]*)$"
);

/// Pattern of a number with a unit: `1234.5ms`, `4096MiB`.
pub(crate) const QUANTITY_PATTERN: &str = r"^\d+(?:\.\d+)?(?:ns|us|ms|s|min|h|d|B|[kKMGT]i?B)$";

/// Pattern of a version or of a range of versions: `^9.0.2`, `>=2.14.1,<3.0.0.dev0`, `1.0.0-rc.1 || ^2.0`.
pub(crate) const VERSION_PATTERN: &str = concat!(
    r"^(?:(?:^|,[ ]?|[ ]|[ ]\|\|[ ]|[ ]-[ ])(?:[=<>!~^]{1,3}[ ]?)?[vV]?\d{1,5}(?:\.(?:\d{1,8}|[xX*])){1,3}",
    r"(?:[-.+]?(?:alpha|beta|rc|dev|preview|pre|post|next|canary|nightly|snapshot|final|release|[abc])[-.]?\d{0,10}){0,2}",
    r"(?:\([@A-Za-z0-9/._-]*@[@A-Za-z0-9/._()-]+\))?)+$"
);

/// Pattern of a date, with or without a time.
pub(crate) const TIME_PATTERN: &str =
    r"^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$";

/// Pattern of an address of IPv4 or of this machine, with or without a port.
pub(crate) const ADDRESS_PATTERN: &str = r"^(?:localhost|\d{1,3}(?:\.\d{1,3}){3})(?::\d{1,5})?/?$";

/// Pattern of a colour, as themes give one to each kind of token.
pub(crate) const COLOUR_PATTERN: &str = r"^#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$";

static NUMBER_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(NUMBER_PATTERN));
static SHARE_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(SHARE_PATTERN));
static PACKAGE_SOURCE_REGEX: LazyLock<Option<Regex>> =
    LazyLock::new(|| compile_constant(PACKAGE_SOURCE_PATTERN));
static QUANTITY_REGEX: LazyLock<Option<Regex>> =
    LazyLock::new(|| compile_constant(QUANTITY_PATTERN));
static VERSION_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(VERSION_PATTERN));
static TIME_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(TIME_PATTERN));
static ADDRESS_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(ADDRESS_PATTERN));
static COLOUR_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| compile_constant(COLOUR_PATTERN));

/// Returns true for a number, a share, a version or a range of versions, a quantity, a point in time, an IPv4 address
/// or a colour.
pub(crate) fn is_numeric_value(text: &[u8]) -> bool {
    let short_forms = [&NUMBER_REGEX, &QUANTITY_REGEX, &TIME_REGEX, &ADDRESS_REGEX, &COLOUR_REGEX];
    text.len() <= MAX_NUMBER_BYTES
        && short_forms.into_iter().any(|form| matches(form.as_ref(), text))
        || text.len() <= MAX_VERSION_BYTES && matches(VERSION_REGEX.as_ref(), text)
}

/// Returns true for a percentage, a share, or a range of versions with an operator. People choose the other numeric
/// values as passwords, such as their date of birth.
pub(crate) fn is_no_password(text: &[u8]) -> bool {
    let has_operator = text.first().is_some_and(|first| b"=<>!~^".contains(first));
    text.len() <= MAX_NUMBER_BYTES && matches(SHARE_REGEX.as_ref(), text)
        || has_operator && text.len() <= MAX_VERSION_BYTES && matches(VERSION_REGEX.as_ref(), text)
}

/// Returns true for the source of a package in the place of its version: `npm:name@1.2.3`, `workspace:*`.
pub(crate) fn is_package_source(text: &[u8]) -> bool {
    text.len() <= MAX_VERSION_BYTES && matches(PACKAGE_SOURCE_REGEX.as_ref(), text)
}

fn matches(form: Option<&Regex>, text: &[u8]) -> bool {
    form.is_some_and(|regex| regex.is_match(text))
}
