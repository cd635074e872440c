//! A strict reader of the text that Prometheus reads: what it does not know for sure it refuses.

use std::collections::{BTreeMap, BTreeSet};

/// The numbers of a page, by name and labels as they are written.
#[derive(Debug)]
pub(super) struct PrometheusPage {
    types: BTreeMap<String, String>,
    samples: BTreeMap<String, f64>,
}

impl PrometheusPage {
    /// Reads a whole page.
    pub(super) fn parse(page: &str) -> Self {
        let body = page.strip_suffix("# EOF\n").unwrap();
        let mut parsed_page = Self { types: BTreeMap::new(), samples: BTreeMap::new() };
        let (mut names_with_help, mut family) = (BTreeSet::new(), String::new());
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                assert!(names_with_help.insert(name.to_owned()) && !help.is_empty(), "{line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                let is_new = parsed_page.types.insert(name.to_owned(), kind.to_owned()).is_none();
                assert!(is_new && names_with_help.contains(name), "{line}");
                family = name.to_owned();
            } else {
                parsed_page.add_sample(&family, line);
            }
        }
        parsed_page
    }

    fn add_sample(&mut self, family: &str, line: &str) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
        let name = series.split('{').next().unwrap();
        let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("not of {family}: {line}"));
        let is_valid = match self.types.get(family).map(String::as_str) {
            Some("counter") => suffix == "_total",
            Some("gauge") => suffix.is_empty(),
            Some("histogram") => ["_bucket", "_count", "_sum"].contains(&suffix),
            _ => false,
        };
        assert!(is_valid && value >= 0.0, "{line}");
        parse_labels(series);
        assert!(self.samples.insert(series.to_owned(), value).is_none(), "twice: {line}");
    }

    /// The value of one series.
    pub(super) fn value_of(&self, series: &str) -> Option<f64> {
        self.samples.get(series).copied()
    }

    /// The sum of all series of a name that have this among their labels.
    pub(super) fn sum_with_label(&self, name: &str, label: &str) -> f64 {
        let has_name_and_label = |series: &&String| {
            series.split('{').next() == Some(name)
                && parse_labels(series).iter().any(|l| l == label)
        };
        self.samples
            .iter()
            .filter(|(series, _)| has_name_and_label(series))
            .map(|(_, value)| value)
            .sum()
    }

    /// Each bucket of a histogram counts what the one before does, and the last counts all.
    pub(super) fn assert_cumulative_buckets(&self) {
        let buckets = self.samples.iter().filter(|(series, _)| series.contains("_bucket{"));
        let mut buckets_by_series: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for (series, value) in buckets {
            let (le, rest): (Vec<_>, Vec<_>) =
                parse_labels(series).into_iter().partition(|label| label.starts_with("le="));
            let bound = le[0].trim_start_matches("le=\"").trim_end_matches('"');
            let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() };
            let name = series.split("_bucket").next().unwrap();
            let count_series = format!("{name}_count{{{}}}", rest.join(","));
            buckets_by_series.entry(count_series).or_default().push((bound, *value));
        }
        assert!(!buckets_by_series.is_empty(), "there is no histogram");
        for (count_series, mut buckets) in buckets_by_series {
            buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert!(
                buckets.is_sorted_by(|one, next| one.1 <= next.1),
                "{count_series}: {buckets:?}"
            );
            assert_eq!(
                buckets.last().map(|last| last.1),
                self.value_of(&count_series),
                "{count_series}"
            );
        }
    }
}

/// The labels of a series, each as it is written.
fn parse_labels(series: &str) -> Vec<String> {
    let Some((_, rest)) = series.split_once('{') else { return Vec::new() };
    let inner = rest.strip_suffix('}').unwrap_or_else(|| panic!("labels do not end: {series}"));
    let mut labels = Vec::new();
    let mut rest = inner;
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").unwrap_or_else(|| panic!("{series}"));
        let is_label_char = |char: char| char.is_ascii_lowercase() || char == '_';
        assert!(!name.is_empty() && name.chars().all(is_label_char), "{series}");
        let (value, more) = value.split_once('"').unwrap_or_else(|| panic!("{series}"));
        assert!(!value.contains('\\'), "nothing here needs to be escaped: {series}");
        labels.push(format!("{name}=\"{value}\""));
        rest = more.trim_start_matches(',');
    }
    labels
}
