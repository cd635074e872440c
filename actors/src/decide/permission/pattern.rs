//! Patterns of permission rules: `*` matches any characters, also none; every other character matches itself.

/// Wildcard of a pattern.
pub(super) const WILDCARD: char = '*';

/// Returns true if the complete text matches the pattern. Case is significant.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once(WILDCARD) else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once(WILDCARD).unwrap_or(("", rest));
    // The leftmost place of each piece leaves the most text for the next ones, so no other place needs a try.
    for piece in middle.split(WILDCARD) {
        let Some((_, after)) = text.split_once(piece) else { return false };
        text = after;
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_matches_any_characters() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "a b/c", true),
            ("git", "git", true),
            ("git", "Git", false),
            ("git", "git ", false),
            ("git*", "git", true),
            ("git*", "git status", true),
            ("git*", "agit", false),
            ("*git", "agit", true),
            ("*git", "gita", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "acb", false),
            ("a*b*c", "abbcbc", true),
            ("a**c", "abc", true),
            ("*b*b*", "b", false),
            ("*b*b*", "abab", true),
            ("ü*ß", "über Maß", true),
            ("a?c", "abc", false),
            ("[ab]", "a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern:?} {text:?}");
        }
    }

    /// A pattern with many wildcards takes time in proportion to the text, so that no agent can occupy the service.
    #[test]
    fn many_wildcards_match_without_backtracking() {
        let (pattern, text) = ("*a".repeat(2_000) + "b", "a".repeat(200_000));
        assert!(!matches(&pattern, &text));
        assert!(matches(&pattern, &(text + "b")));
    }
}
