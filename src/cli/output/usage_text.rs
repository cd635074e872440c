//! Used tokens and costs as text for people.

use crate::wire::api::usage::UsageAmounts;

/// Formats a cost for people.
pub(crate) fn format_dollars(micros: u64) -> String {
    format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// Returns one line about the usage of a task; `None` if its agent has reported nothing.
pub(crate) fn usage_line(amounts: UsageAmounts) -> Option<String> {
    let UsageAmounts { turns, input_tokens, cached_input_tokens, output_tokens, cost_micros } =
        amounts;
    let count_text = |number: u64, unit: &str| (number > 0).then(|| format!("{number} {unit}"));
    let parts = [
        count_text(turns, "turns"),
        count_text(input_tokens, "input tokens"),
        count_text(cached_input_tokens, "of them from a cache"),
        count_text(output_tokens, "output tokens"),
        (cost_micros > 0).then(|| format_dollars(cost_micros)),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
