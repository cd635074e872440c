//! What is masked besides what is known for a secret: as configured.

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;

/// What is masked besides what is known for a secret.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Redaction {
    /// Patterns of which every match is masked.
    pub patterns: Vec<Pattern>,
    /// Whether numbers of telephones, of payment cards and of social security are masked.
    pub personal: bool,
}

/// A checked pattern of which every match is masked. It sees one line at a time, as a reader sees
/// it: without its end and without the escapes of a terminal.
///
/// A text is masked as it comes, and a part of a match must not be shown before the whole is there.
/// So it is known of each pattern how long its longest match is.
#[derive(Debug, Clone)]
pub struct Pattern {
    name: String,
    regex: Regex,
    keep: usize,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        let Self { name, regex, keep } = self;
        *name == other.name && regex.as_str() == other.regex.as_str() && *keep == other.keep
    }
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It cannot be read.
    #[error("is not a regular expression: {cause}")]
    Syntax {
        /// What is wrong with it.
        cause: String,
    },
    /// It has too many states.
    #[error("is too large a regular expression")]
    Size,
    /// Every text would match it, everywhere.
    #[error("matches the empty text")]
    Empty,
    /// No text can match it.
    #[error("can match nothing")]
    Nothing,
    /// Its matches have no bound, or one that is too high.
    #[error("can match more than {} bytes", Pattern::LONGEST)]
    Long,
    /// So much is kept of a match that it can be guessed.
    #[error("`keep` is more than half of the shortest match, which has {shortest} bytes")]
    Keep {
        /// Bytes of the shortest match.
        shortest: usize,
    },
}

impl Pattern {
    /// The longest match that a pattern may have, in bytes.
    pub const LONGEST: usize = 1024;

    /// The most memory that a compiled pattern may take, in bytes.
    const SIZE: usize = 1 << 20;

    /// Checks a regular expression over bytes: its classes are those of ASCII, but for `(?u)`.
    /// `keep` bytes at the beginning of a match are not masked.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn new(name: &str, regex: &str, keep: usize) -> Result<Self, PatternError> {
        let syntax = |error: regex_syntax::Error| PatternError::Syntax { cause: cause(&error) };
        let parsed = ParserBuilder::new().unicode(false).utf8(false).build().parse(regex);
        let parsed = parsed.map_err(syntax)?;
        let bounds = parsed.properties();
        let shortest = bounds.minimum_len().ok_or(PatternError::Nothing)?;
        if shortest == 0 {
            return Err(PatternError::Empty);
        }
        if bounds.maximum_len().is_none_or(|longest| longest > Self::LONGEST) {
            return Err(PatternError::Long);
        }
        if 2 * keep > shortest {
            return Err(PatternError::Keep { shortest });
        }
        let built = RegexBuilder::new(regex).unicode(false).size_limit(Self::SIZE).build();
        // What was parsed can be built, unless it is too large.
        let regex = built.map_err(|_too_large| PatternError::Size)?;
        Ok(Self { name: name.to_owned(), regex, keep })
    }

    /// Its name for people.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The expression. No match is empty or longer than [`Pattern::LONGEST`].
    #[must_use]
    pub const fn regex(&self) -> &Regex {
        &self.regex
    }

    /// How many bytes at the beginning of a match are shown.
    #[must_use]
    pub const fn keep(&self) -> usize {
        self.keep
    }
}

fn cause(error: &regex_syntax::Error) -> String {
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
    fn a_pattern_has_matches_of_a_known_length() {
        for (regex, keep, wanted) in [
            ("EMP-[0-9]{6}", 5, None),
            ("(?i)caf\u{e9}(?u:[\u{e9}\\d])", 0, None),
            ("[a-z]{1024}", 0, None),
            ("[a-z]{1025}", 0, Some(E::Long)),
            ("x+", 0, Some(E::Long)),
            ("x.*y", 0, Some(E::Long)),
            ("x?|", 0, Some(E::Empty)),
            ("\\b", 0, Some(E::Empty)),
            ("[a&&b]", 0, Some(E::Nothing)),
            ("EMP-[0-9]{6}", 6, Some(E::Keep { shortest: 10 })),
            ("(?u)\\w{60}\\w{60}\\w{60}", 0, Some(E::Size)),
        ] {
            assert_eq!(Pattern::new("a", regex, keep).err(), wanted, "{regex}");
        }
        let Err(E::Syntax { cause }) = Pattern::new("a", "(", 0) else { panic!("a pattern") };
        assert_eq!(cause, "unclosed group");
    }
}
