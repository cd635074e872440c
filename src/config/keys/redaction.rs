//! `[redaction]`: redaction in addition to the known secrets.

use algonius_redact::{Pattern, PatternError, RedactionConfig, Redactor};

use crate::config::diagnostics::{DiagnosticBuilder, new_diagnostic};
use crate::config::table::secret::is_redactable;
use crate::config::table::{Positioned, RangeWithDefault, Section};

/// Greatest number of patterns: all are searched for at once, and each is tried on the lines where one may match.
const MAX_PATTERNS: usize = 64;
/// Greatest length of a pattern's name in characters.
const MAX_PATTERN_NAME_CHARS: usize = 64;

/// Reads `[redaction]`. The secrets of files are registered for redaction.
pub(crate) fn read(mut section: Section<'_>) -> RedactionConfig {
    let redacts_personal_numbers = section.flag("pii", false);
    let patterns = read_patterns(&mut section);
    for file in section.text_list("secret_files").unwrap_or_default() {
        register_secrets(&section, &file);
    }
    section.report_unknown_keys();
    RedactionConfig { patterns, redacts_personal_numbers }
}

/// Reads the patterns, each with a unique name.
fn read_patterns(table: &mut Section<'_>) -> Vec<Pattern> {
    let reader = table.reader;
    let items = table.list("patterns").unwrap_or_default();
    if let Some(first) = items.get(MAX_PATTERNS) {
        let diagnostic = format!("there are {} patterns; {MAX_PATTERNS} are allowed", items.len());
        reader.report_error(&first.position.clone().without_excerpt(), diagnostic);
    }
    let mut patterns: Vec<Pattern> = Vec::new();
    for item in items {
        let position = item.position.clone().without_excerpt();
        let Some(pattern) = Section::from_entry(reader, item).and_then(read_pattern) else {
            continue;
        };
        if patterns.iter().any(|other| other.name() == pattern.name()) {
            let name = pattern.name();
            reader.report_error(&position, format!("another pattern has the name `{name}`"));
        }
        patterns.push(pattern);
    }
    patterns
}

/// Reads one pattern; its name and its expression are required.
fn read_pattern(mut section: Section<'_>) -> Option<Pattern> {
    let reader = section.reader;
    let (name, regex) = (section.nonblank_text("name"), section.nonblank_text("regex"));
    let keep_position = section.entry("keep").map(|entry| entry.position);
    let max_keep = u64::try_from(Pattern::MAX_MATCH_BYTES).unwrap_or(u64::MAX);
    let visible_prefix_bytes =
        usize::try_from(section.count("keep", RangeWithDefault::new(0, max_keep, 0))).unwrap_or(0);
    for (key, found) in [("name", &name), ("regex", &regex)] {
        if found.is_none() && !section.has_key(key) {
            reader.report_error(&section.position.child(key).without_excerpt(), "is needed");
        }
    }
    section.report_unknown_keys();
    let (name, regex) = (name?, regex?);
    if name.value.chars().count() > MAX_PATTERN_NAME_CHARS {
        reader.report_error(
            &name.position,
            format!("the name must have 1 to {MAX_PATTERN_NAME_CHARS} characters"),
        );
    }
    let pattern = Pattern::new(&name.value, &regex.value, visible_prefix_bytes);
    if let Err(error) = &pattern {
        let is_keep_error = matches!(error, PatternError::VisiblePrefixTooLong { .. });
        let position =
            keep_position.filter(|_| is_keep_error).unwrap_or_else(|| regex.position.clone());
        reader.report_error(&position, pattern_diagnostic(error));
    }
    pattern.ok()
}

/// Returns the diagnostic about an expression, with a suggestion.
fn pattern_diagnostic(error: &PatternError) -> DiagnosticBuilder {
    let diagnostic = new_diagnostic(error.to_string());
    match error {
        PatternError::MatchTooLong => {
            diagnostic.with_hint("write `{1,64}` for `+`, and `{0,64}` for `*`")
        }
        PatternError::TooLarge => diagnostic.with_hint("leave `(?u)` out, or count less often"),
        PatternError::MatchesEmpty => diagnostic.with_hint("let it need one character at least"),
        PatternError::Syntax { .. }
        | PatternError::MatchesNothing
        | PatternError::VisiblePrefixTooLong { .. } => diagnostic,
    }
}

/// Registers each line of a file; a file that other users may read causes a warning.
fn register_secrets(section: &Section<'_>, file: &Positioned<String>) {
    let reader = section.reader;
    let path = reader.resolve_path(&file.value);
    let text = match reader.read_secret_file(&path) {
        Ok(text) => text,
        Err(error) => {
            return reader.report_error(&file.position, format!("cannot be read: {error}"));
        }
    };
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let (short_lines, secrets): (Vec<_>, Vec<_>) = lines.partition(|line| !is_redactable(line));
    if !short_lines.is_empty() {
        let (count, min) = (short_lines.len(), Redactor::MIN_VALUE_CHARS);
        let diagnostic = format!("{count} of its lines have fewer than {min} characters");
        reader.report_warning(
            &file.position,
            new_diagnostic(diagnostic).with_hint("they are not redacted"),
        );
    }
    secrets.into_iter().for_each(|secret| reader.register_secret(secret));
}
