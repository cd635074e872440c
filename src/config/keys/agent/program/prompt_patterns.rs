//! `interactive_prompts`: patterns of a program's prompts for a person.

use std::sync::Arc;

use algonius_actors::model::program::PromptPatterns;
use regex::Regex;

use crate::config::table::pattern::parse_regex;
use crate::config::table::{RangeWithDefault, Section};

/// Default patterns of the last output line of a program that waits for a person.
const DEFAULT_PROMPT_PATTERNS: [&str; 5] = [
    r"(?i)\[(?:y/n|n/y|yes/no)\]\s*[:?]?\s*$",
    r"(?i)\((?:y/n|n/y|yes/no)[^()]{0,24}\)\s*[:?]?\s*$",
    r"(?i)\b(?:password|passphrase|passcode|username)(?: (?:for|of) .{1,80})?:\s*$",
    r"(?i)\bpress (?:any key|enter|return)\b[^\n]{0,40}$",
    r"\? +$",
];

/// Reads the patterns of prompts, and the silence that must follow one.
pub(crate) fn read(section: &mut Section<'_>) -> PromptPatterns {
    let bounds = RangeWithDefault::new(0.1, 600.0, 2.0);
    let silence = section.duration("prompt_silence", bounds);
    let patterns = match section.text_list("interactive_prompts") {
        None => section.reader.default_prompt_patterns(default_patterns),
        Some(texts) => texts.iter().filter_map(|text| parse_regex(section.reader, text)).collect(),
    };
    PromptPatterns { patterns, silence }
}

/// Returns the default patterns. Their compilation takes longer than the rest of an agent, so all agents share them.
fn default_patterns() -> Arc<[Regex]> {
    DEFAULT_PROMPT_PATTERNS.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_PROMPT_PATTERNS, Regex};

    #[test]
    fn common_prompts_are_detected_and_other_lines_are_not() {
        let patterns: Vec<Regex> =
            DEFAULT_PROMPT_PATTERNS.iter().map(|text| Regex::new(text).unwrap()).collect();
        let is_prompt = |line: &str| patterns.iter().any(|pattern| pattern.is_match(line));
        for line in [
            "Overwrite? [y/N] ",
            "Proceed (Y/n)? ",
            "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
            "Password:",
            "Password for 'https://example.org': ",
            "Enter passphrase for key 'id': ",
            "[sudo] password for ann: ",
            "Press any key to continue . . .",
            "Press ENTER to continue",
            "What is your name? ",
        ] {
            assert!(is_prompt(line), "{line}");
        }
        for line in ["", "42", "Is it so?", "the password: hunter", "50% [=====>    ]", "a (y/n) b"]
        {
            assert!(!is_prompt(line), "{line}");
        }
    }
}
