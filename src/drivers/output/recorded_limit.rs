//! Number of bytes of a program's stream that are recorded for the next process of the service.

use algonius_actors::model::program::ProgramSpec;

/// Bytes of a stream that are held beyond the retained limit, so that a truncation can be detected.
const TRUNCATION_MARGIN_BYTES: u64 = 64 << 10;

/// Bytes of a stream that are held of an interactive agent: its output contains each event of its protocol.
const MIN_CONVERSATION_BYTES: u64 = 64 << 20;

/// Returns the number of bytes that are recorded of a stream of a program that ends with its attempt.
pub(in crate::drivers) fn max_recorded_bytes(
    program: &ProgramSpec,
    max_output_bytes: usize,
) -> u64 {
    let retained_bytes = max_output_bytes as u64 + TRUNCATION_MARGIN_BYTES;
    // The next process of the service repeats the whole conversation of an interactive agent.
    match program.interactive_spec() {
        Some(_) => retained_bytes.max(MIN_CONVERSATION_BYTES),
        None => retained_bytes,
    }
}
