//! Suggestions for misspelled words and renamed keys.

/// Keys of earlier builds with their present names.
const RENAMED_KEYS: [(&str, &str); 8] = [
    ("agents_memory_bytes", "max_reserved_memory_bytes"),
    ("lost_exit_codes", "unknown_session_exit_codes"),
    ("lost_regex", "unknown_session_regex"),
    ("park_default", "first_wait"),
    ("park_max", "max_wait"),
    ("park_times", "max_deferrals"),
    ("refused_pause", "blocked_time"),
    ("return_raw", "unredacted_response"),
];

/// Returns the present name of a key of earlier builds.
pub(super) fn renamed_key(name: &str) -> Option<&'static str> {
    RENAMED_KEYS.iter().find(|(old, _)| *old == name).map(|(_, new)| *new)
}

/// Returns the known word that `input` is most likely a misspelling of.
#[must_use]
pub fn nearest_word<'w>(input: &str, known: &[&'w str]) -> Option<&'w str> {
    let input = input.to_lowercase().replace('-', "_");
    let distance = |word: &str| strsim::damerau_levenshtein(&input, &word.replace('-', "_"));
    let (distance, word) = known.iter().map(|word| (distance(word), *word)).min()?;
    (distance <= (word.len() / 3).max(1)).then_some(word)
}
