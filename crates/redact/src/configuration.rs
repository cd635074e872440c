//! Configured redaction beside the redaction of known secrets.

pub(crate) mod patterns;

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;

/// Configured redaction beside the redaction of known secrets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RedactionConfig {
    /// Patterns whose matches are redacted.
    pub patterns: Vec<Pattern>,
    /// True if telephone numbers, payment card numbers and social security numbers are redacted.
    pub redacts_personal_numbers: bool,
}

/// Validated pattern whose matches are redacted. The pattern applies to one line at a time, without the line end and
/// without terminal escape sequences.
///
/// Text is redacted while it arrives, and no part of a match may be shown before the whole match is there. For this
/// reason each pattern has a known longest match.
#[derive(Debug, Clone)]
pub struct Pattern {
    name: String,
    regex: Regex,
    visible_prefix_bytes: usize,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        let Self { name, regex, visible_prefix_bytes } = self;
        *name == other.name
            && regex.as_str() == other.regex.as_str()
            && *visible_prefix_bytes == other.visible_prefix_bytes
    }
}

/// Error of an unusable pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The text is not a regular expression.
    #[error("is not a regular expression: {cause}")]
    Syntax {
        /// Explanation of the parser.
        cause: String,
    },
    /// The compiled expression is too large.
    #[error("is too large a regular expression")]
    TooLarge,
    /// The expression matches the empty text.
    #[error("matches the empty text")]
    MatchesEmpty,
    /// The expression matches no text.
    #[error("can match nothing")]
    MatchesNothing,
    /// The matches have no upper length limit, or one that is too high.
    #[error("can match more than {} bytes", Pattern::MAX_MATCH_BYTES)]
    MatchTooLong,
    /// The visible part of a match is so long that the rest can be guessed.
    #[error("`keep` is more than half of the shortest match, which has {shortest} bytes")]
    VisiblePrefixTooLong {
        /// Bytes of the shortest possible match.
        shortest: usize,
    },
}

impl Pattern {
    /// Longest match that a pattern may have, in bytes.
    pub const MAX_MATCH_BYTES: usize = 1024;

    /// Memory limit of a compiled pattern, in bytes.
    const MAX_COMPILED_BYTES: usize = 1 << 20;

    /// Validates a regular expression over bytes: its classes are ASCII, except under `(?u)`. The first `keep` bytes of
    /// a match stay visible.
    ///
    /// # Errors
    /// Returns an error if the pattern is unusable.
    pub fn new(name: &str, regex: &str, visible_prefix_bytes: usize) -> Result<Self, PatternError> {
        let syntax_error =
            |error: regex_syntax::Error| PatternError::Syntax { cause: error_cause(&error) };
        let parsed = ParserBuilder::new().unicode(false).utf8(false).build().parse(regex);
        let parsed = parsed.map_err(syntax_error)?;
        let properties = parsed.properties();
        let shortest = properties.minimum_len().ok_or(PatternError::MatchesNothing)?;
        if shortest == 0 {
            return Err(PatternError::MatchesEmpty);
        }
        if properties.maximum_len().is_none_or(|longest| longest > Self::MAX_MATCH_BYTES) {
            return Err(PatternError::MatchTooLong);
        }
        if 2 * visible_prefix_bytes > shortest {
            return Err(PatternError::VisiblePrefixTooLong { shortest });
        }
        let built =
            RegexBuilder::new(regex).unicode(false).size_limit(Self::MAX_COMPILED_BYTES).build();
        // A parsed expression can be built, unless it is too large.
        let regex = built.map_err(|_too_large| PatternError::TooLarge)?;
        Ok(Self { name: name.to_owned(), regex, visible_prefix_bytes })
    }

    /// Returns the display name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the expression. No match is empty or longer than [`Pattern::MAX_MATCH_BYTES`].
    #[must_use]
    pub const fn regex(&self) -> &Regex {
        &self.regex
    }

    /// Returns the number of bytes at the start of a match that stay visible.
    #[must_use]
    pub const fn visible_prefix_bytes(&self) -> usize {
        self.visible_prefix_bytes
    }
}

fn error_cause(error: &regex_syntax::Error) -> String {
    match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Pattern, PatternError as E};

    #[test]
    fn a_pattern_must_have_matches_of_bounded_length() {
        for (regex, keep, expected) in [
            ("EMP-[0-9]{6}", 5, None),
            ("(?i)caf\u{e9}(?u:[\u{e9}\\d])", 0, None),
            ("[a-z]{1024}", 0, None),
            ("[a-z]{1025}", 0, Some(E::MatchTooLong)),
            ("x+", 0, Some(E::MatchTooLong)),
            ("x.*y", 0, Some(E::MatchTooLong)),
            ("x?|", 0, Some(E::MatchesEmpty)),
            ("\\b", 0, Some(E::MatchesEmpty)),
            ("[a&&b]", 0, Some(E::MatchesNothing)),
            ("EMP-[0-9]{6}", 6, Some(E::VisiblePrefixTooLong { shortest: 10 })),
            ("(?u)\\w{60}\\w{60}\\w{60}", 0, Some(E::TooLarge)),
        ] {
            assert_eq!(Pattern::new("a", regex, keep).err(), expected, "{regex}");
        }
        let Err(E::Syntax { cause }) = Pattern::new("a", "(", 0) else { panic!("a pattern") };
        assert_eq!(cause, "unclosed group");
    }
}
