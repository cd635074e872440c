//! Places to mask, how they are merged when they overlap, and what stands in their stead.

use std::ops::Range;

/// From this length on, a secret shows its prefix and its last four characters.
const LONG: usize = 20;

/// What is shown instead of a secret that shows nothing.
pub(super) const STARS: &str = "***";

/// What stands between the prefix and the last four characters.
pub(super) const DOTS: &str = "...";

/// How much of a secret is left to see. The number is the length of the kept prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Prefix, dots and the last four characters if the secret is long, else stars.
    Tail(usize),
    /// Prefix and stars.
    Stars(usize),
}

/// One place to mask.
#[derive(Debug, Clone)]
pub(super) struct Span {
    /// The secret.
    pub(super) secret: Range<usize>,
    /// Where the context begins without which this would not be known to be a secret.
    pub(super) context: usize,
    /// How it is masked.
    pub(super) form: Form,
}

impl Span {
    /// A secret that is known by its own shape.
    pub(super) const fn shape(secret: Range<usize>, form: Form) -> Self {
        Self { context: secret.start, secret, form }
    }

    fn covers(&self, range: &Range<usize>) -> bool {
        self.secret.start <= range.start && self.secret.end >= range.end
    }
}

/// Joins overlapping spans, so that none begins before another ends.
///
/// A span that covers its neighbours decides the form; earlier ones in `spans` win a tie.
/// Whatever shows nothing makes the whole show nothing.
pub(super) fn merge(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|span| !span.secret.is_empty());
    spans.sort_by_key(|span| span.secret.start);
    let mut merged = Vec::with_capacity(spans.len());
    let mut group: Vec<Span> = Vec::new();
    let mut end = 0;
    for span in spans {
        if !group.is_empty() && span.secret.start >= end {
            merged.extend(unite(&group));
            group.clear();
            end = 0;
        }
        end = end.max(span.secret.end);
        group.push(span);
    }
    merged.extend(unite(&group));
    merged
}

fn unite(group: &[Span]) -> Option<Span> {
    let start = group.iter().map(|span| span.secret.start).min()?;
    let end = group.iter().map(|span| span.secret.end).max()?;
    let context = group.iter().map(|span| span.context).min()?;
    let whole = start..end;
    let hides = group.iter().any(|span| span.form == Form::Stars(0));
    let winner = group.iter().find(|span| span.covers(&whole)).filter(|_| !hides);
    let form = winner.map_or(Form::Stars(0), |span| span.form);
    Some(Span { secret: whole, context, form })
}

/// Writes what stands instead of `secret`. It has as many lines, so that lines stay what they are.
pub(super) fn render(secret: &str, form: Form) -> String {
    if secret.contains('\n') {
        let lines = secret.split('\n').map(|line| if line.is_empty() { "" } else { STARS });
        return lines.collect::<Vec<_>>().join("\n");
    }
    let (Form::Tail(keep) | Form::Stars(keep)) = form;
    let prefix = secret.get(..keep).unwrap_or("");
    match form {
        Form::Stars(_) => format!("{prefix}{STARS}"),
        Form::Tail(_) => last_four(secret)
            .filter(|_| secret.len() >= LONG)
            .map_or_else(|| STARS.to_owned(), |last| format!("{prefix}{DOTS}{last}")),
    }
}

/// The last four characters, if they are of the kind that tokens end in.
fn last_four(secret: &str) -> Option<&str> {
    let last = secret.get(secret.len().checked_sub(4)?..)?;
    let ordinary = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+/=".contains(&byte);
    last.bytes().all(ordinary).then_some(last)
}
