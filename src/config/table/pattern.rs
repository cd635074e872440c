//! Regular expressions and JSON pointers.

use regex::Regex;

use super::position::Positioned;
use super::reader::ConfigReader;
use super::section::Section;

/// Reads a regular expression.
pub(crate) fn read_regex(section: &mut Section<'_>, key: &'static str) -> Option<Regex> {
    let text = section.nonblank_text(key)?;
    parse_regex(section.reader, &text)
}

/// Parses a text as a regular expression.
pub(crate) fn parse_regex(reader: &ConfigReader<'_>, text: &Positioned<String>) -> Option<Regex> {
    let parsed = reader.compile_regex(&text.value);
    let last_line = |error: &regex::Error| error.to_string().lines().last().map(str::to_owned);
    if let Err(error) = &parsed {
        let cause = last_line(error).unwrap_or_default();
        let cause = cause.trim_start_matches("error: ");
        reader.report_error(&text.position, format!("is not a regular expression: {cause}"));
    }
    parsed.ok()
}

/// Reads a JSON pointer.
pub(crate) fn read_json_pointer(section: &mut Section<'_>, key: &'static str) -> Option<String> {
    let text = section.text(key)?;
    let has_valid_escapes = text.value.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    if !(text.value.is_empty() || text.value.starts_with('/')) || !has_valid_escapes {
        let diagnostic = "must be empty or start with `/`, with `~0` for `~` and `~1` for `/`";
        section.reader.report_error(&text.position, diagnostic);
    }
    Some(text.value)
}
