//! Output of a program on its way to the ledger, and what is detected in it.

pub(super) mod label;
pub(super) mod model_retries;
pub(super) mod pace;
pub(super) mod prompt_detection;
pub(super) mod pump;
pub(super) mod raw_text;
