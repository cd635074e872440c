//! Parser of usage counters in the output of a program.

use std::collections::BTreeMap;

use serde_json::Number;

use crate::model::agent::success_criteria::UsagePattern;

/// Returns the sums of the numbers that the named groups capture over all matches in the texts; empty if nothing
/// matches.
#[must_use]
pub fn sum_usage(usage_pattern: &UsagePattern, texts: [&str; 2]) -> BTreeMap<String, Number> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let Some(regex) = &usage_pattern.regex else { return BTreeMap::new() };
    for captures in texts.iter().flat_map(|text| regex.captures_iter(text)) {
        for name in regex.capture_names().flatten() {
            if let Some(count) = captures.name(name).and_then(|found| parse_number(found.as_str()))
            {
                let sum = sums.entry(name.to_owned()).or_default();
                *sum = sum.saturating_add(count);
            }
        }
    }
    sums.into_iter().map(|(name, sum)| (name, sum.into())).collect()
}

/// Parses "1,234", "1.2k" and "3M", because programs format numbers for people.
fn parse_number(text: &str) -> Option<u64> {
    let compact: String = text.chars().filter(|c| !matches!(c, ',' | '_' | ' ')).collect();
    let (digits, thousand_exponent) = match compact.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1),
        None => compact.strip_suffix('M').map_or((compact.as_str(), 0), |digits| (digits, 2)),
    };
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if integer.is_empty() {
        return None;
    }
    let decimal_places = thousand_exponent * 3;
    let fraction: String =
        fraction.chars().chain(std::iter::repeat('0')).take(decimal_places).collect();
    format!("{integer}{fraction}").parse().ok()
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    fn found_counts(regex: &str, texts: [&str; 2]) -> Vec<(String, u64)> {
        let usage_pattern = UsagePattern { regex: Some(Regex::new(regex).unwrap()) };
        let counts = sum_usage(&usage_pattern, texts).into_iter();
        counts.map(|(name, number)| (name, number.as_u64().unwrap())).collect()
    }

    #[test]
    fn token_counts_of_all_matches_are_added() {
        let regex = "(?<input_tokens>[0-9.,kM]+) in(?:, (?<output_tokens>[0-9.,kM]+) out)?";
        let expected = |input, output| {
            vec![("input_tokens".to_owned(), input), ("output_tokens".to_owned(), output)]
        };
        assert_eq!(found_counts(regex, ["1,234 in, 5 out", ""]), expected(1234, 5));
        assert_eq!(
            found_counts(regex, ["2.3k in, 1M out\n1k in", "7 in, 0.5k out"]),
            expected(3307, 1_000_500)
        );
        assert_eq!(found_counts(regex, ["nothing", "k in"]), []);
        assert_eq!(found_counts(regex, ["99999999999999999999 in", ""]), []);
        assert_eq!(sum_usage(&UsagePattern::default(), ["1 in", ""]), BTreeMap::new());
    }
}
