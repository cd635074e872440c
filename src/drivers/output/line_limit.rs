//! Greatest length of a line or message that a program writes.

/// Least limit in bytes: a line of native events may be long although its answer is short.
const MIN_LINE_LIMIT_BYTES: usize = 16 << 20;

/// Greatest limit in bytes: a line is held in memory as a whole.
const MAX_LINE_LIMIT_BYTES: usize = 256 << 20;

/// Room in bytes for what a line contains besides its text.
const OVERHEAD_BYTES: usize = 64 << 10;

/// Returns the greatest length of a line in bytes for this `max_output_bytes`. The escapes of JSON
/// make most text outside ASCII up to three times as long.
pub(in crate::drivers) fn max_line_bytes(max_output_bytes: usize) -> usize {
    let escaped_bytes = max_output_bytes.saturating_mul(3).saturating_add(OVERHEAD_BYTES);
    escaped_bytes.clamp(MIN_LINE_LIMIT_BYTES, MAX_LINE_LIMIT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_of_any_length_fits_into_a_line() {
        assert_eq!(max_line_bytes(1), MIN_LINE_LIMIT_BYTES);
        assert_eq!(max_line_bytes(10 << 20), (30 << 20) + OVERHEAD_BYTES);
        assert_eq!(max_line_bytes(usize::MAX), MAX_LINE_LIMIT_BYTES);
    }
}
