//! Output of a program on its way to the ledger, and what is detected in it.

pub(super) mod channel_writer;
pub(super) mod display_label;
pub(in crate::drivers) mod error_tail;
pub(super) mod invalid_bytes;
pub(super) mod line_limit;
pub(super) mod model_retries;
pub(super) mod prompt_detection;
pub(super) mod raw_text;
pub(super) mod recorded_limit;
pub(super) mod release_timer;
